import { readFileSync, writeFileSync } from "node:fs";
import { BaseChatModel, type BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { redact } from "../internal/redact.ts";

/** One call of a model: what it was sent, as one text, and what it answered. */
export interface RecordedCall {
  readonly prompt: string;
  readonly answer: string;
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number; readonly total_tokens: number };
}

/**
 * Passes every call on to a real model and keeps what it was sent and what it answered, to be replayed
 * in tests without a key. Answers are asked for as plain JSON, so that a recording fits any model.
 *
 * @example
 * const model = recordingModel(new ChatOpenAI({ model: "gpt-4o" }));
 * await runWorkflow(ticket, { model, message: "network unstable", answers: ["P1"] });
 * model.save("test/ticket.recording.json");
 */
export function recordingModel(model: BaseChatModel): RecordingModel {
  return new RecordingModel(model);
}

export class RecordingModel extends BaseChatModel {
  readonly calls: RecordedCall[] = [];
  /** What sensitive data may go to goes by it. */
  readonly wraps: BaseChatModel;

  constructor(model: BaseChatModel) {
    super({ maxRetries: 0 });
    this.wraps = model;
  }

  override _llmType(): string {
    return "recording";
  }

  override async _generate(messages: BaseMessage[], options: BaseChatModelCallOptions): Promise<ChatResult> {
    const message = await this.wraps.invoke(messages, { signal: options.signal });
    const { usage_metadata: usage } = message;
    const { text } = message;
    this.calls.push({ prompt: promptOf(messages), answer: redact(text), ...(usage ? { usage } : {}) });
    return { generations: [{ text, message }] };
  }

  /** Writes the recording to a file. Secrets in it are redacted. */
  save(file: string): void {
    writeFileSync(file, `${JSON.stringify(this.calls, null, 2)}\n`);
  }
}

/**
 * Gives a recording's answers again, in order. It fails the test where a prompt is not what it was
 * when the answer was given, so a change that the model would see does not pass unnoticed; record again then.
 *
 * @param recording the calls, or the file that `save` wrote.
 * @param options `anyPrompt`: take the answers whatever is asked.
 */
export function replayingModel(
  recording: string | readonly RecordedCall[],
  options: { readonly anyPrompt?: boolean } = {},
): ReplayingModel {
  const calls =
    typeof recording === "string" ? (JSON.parse(readFileSync(recording, "utf8")) as RecordedCall[]) : recording;
  return new ReplayingModel(calls, options.anyPrompt ?? false);
}

export class ReplayingModel extends BaseChatModel {
  /** Nothing that it is shown leaves this process. */
  readonly isLocal: boolean = true;
  private readonly calls: readonly RecordedCall[];
  private readonly anyPrompt: boolean;
  private next = 0;

  constructor(calls: readonly RecordedCall[], anyPrompt: boolean) {
    super({ maxRetries: 0 });
    this.calls = calls;
    this.anyPrompt = anyPrompt;
  }

  override _llmType(): string {
    return "replaying";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const call = this.calls[this.next++];
    if (!call) throw new Error(`replaying model: call ${this.next} was not recorded, there are ${this.calls.length}`);
    const prompt = promptOf(messages);
    if (!this.anyPrompt && prompt !== call.prompt) {
      throw new Error(
        `replaying model: call ${this.next} has another prompt than recorded; ${firstDifference(call.prompt, prompt)}`,
      );
    }
    const message = new AIMessage({ content: call.answer, ...(call.usage ? { usage_metadata: call.usage } : {}) });
    return { generations: [{ text: call.answer, message }] };
  }

  /** Throws where some of the recorded answers were not asked for. */
  assertConsumed(): void {
    if (this.next < this.calls.length) {
      throw new Error(`replaying model: only ${this.next} of ${this.calls.length} recorded answers were asked for`);
    }
  }
}

function promptOf(messages: readonly BaseMessage[]): string {
  return messages.map((message) => `${message.type}: ${message.text}`).join("\n");
}

function firstDifference(recorded: string, now: string): string {
  const [before, after] = [recorded.split("\n"), now.split("\n")];
  const line = before.findIndex((text, index) => text !== after[index]);
  const at = line < 0 ? before.length : line;
  return `line ${at + 1} was "${before[at] ?? ""}" and is "${after[at] ?? ""}"`;
}
