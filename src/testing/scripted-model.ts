import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

/** One answer of a scripted model: a decision, the raw text of an answer, an error to throw, or a function of the prompt. */
export type ScriptedAnswer = object | string | Error | ((prompt: string) => object | string);

/**
 * A chat model that gives the answers it was told to, in order. It fails the test on a call that the
 * script does not expect, and `assertConsumed` fails it on answers that nobody asked for.
 *
 * @example
 * const model = scriptedModel([{ next: "deciding" }, { ask: "How urgent?" }]);
 */
export function scriptedModel(script: readonly ScriptedAnswer[]): ScriptedModel {
  return new ScriptedModel(script);
}

export class ScriptedModel extends BaseChatModel {
  /** Nothing that it is shown leaves this process. */
  readonly isLocal: boolean = true;
  /** The prompts that the model was sent, as one text each. */
  readonly prompts: string[] = [];
  private readonly script: readonly ScriptedAnswer[];

  constructor(script: readonly ScriptedAnswer[]) {
    super({ maxRetries: 0 });
    this.script = script;
  }

  override _llmType(): string {
    return "scripted";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const prompt = messages.map((message) => message.text).join("\n");
    const answer = this.script[this.prompts.length];
    this.prompts.push(prompt);
    if (answer === undefined) {
      throw new Error(
        `scripted model: call ${this.prompts.length} was not expected, the script has ${this.script.length} answers`,
      );
    }
    if (answer instanceof Error) throw answer;
    const given: unknown = typeof answer === "function" ? (answer as (prompt: string) => unknown)(prompt) : answer;
    const text = typeof given === "string" ? given : JSON.stringify(given);
    return { generations: [{ text, message: new AIMessage(text) }] };
  }

  /** Throws where some answers of the script were not asked for. */
  assertConsumed(): void {
    if (this.prompts.length < this.script.length) {
      throw new Error(`scripted model: only ${this.prompts.length} of ${this.script.length} answers were asked for`);
    }
  }
}
