import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

const TAGS = "step|state|memory|recent|observation|facts|refused|status|now|summary|answer-schema";
const LOOK_ALIKE = new RegExp(String.raw`&lt;(?=[\s/]*(?:${TAGS})\b)`, "gi");
const LINE_OF_OURS = new RegExp(String.raw`^<(?:${TAGS})\b`, "m");
const OBSERVATION = /<observation(?: kind="(\w+)")?>\n([\s\S]*?)\n<\/observation>/g;

/** What the rules can know: the prompt, taken apart. There is no other way in. */
export interface Prompt {
  /** All of it, for what has no place below. */
  readonly text: string;
  readonly step: string;
  /** The steps that are open now. */
  readonly next: readonly string[];
  /** The state fields that the prompt shows with a value. */
  readonly state: Readonly<Record<string, unknown>>;
  /** The latest decisions, a line each. */
  readonly recent: readonly string[];
  /**
   * What came back last, as it is shown: a `message`, an `answer` with its question or the `reply` alone, the `results`
   * of calls or the `result` of the only one.
   */
  readonly latest: { readonly kind: string; readonly text: string };
  /** The latest message or answer; empty where there is none. */
  readonly said: string;
  /** The question that `said` answers; empty for a message. */
  readonly question: string;
  /** What the latest calls came to; empty unless that is what came back last. */
  readonly results: readonly CallOutcome[];
}

/** What a call came to, as the prompt tells it. */
export interface CallOutcome {
  readonly tool: string;
  readonly status: string;
  /** Changed arguments, the reason or error, and the value, as far as there are some. */
  readonly detail: string;
}

/**
 * A chat model made of rules, so that an example runs without a key. It is a real BaseChatModel: it
 * gets the prompt's messages and nothing else, and answers with the text of a JSON decision.
 */
export class OfflineRules extends BaseChatModel {
  /** Rules read each prompt alone, so there is nothing that a cache could save. */
  readonly promptCache = "none";
  /** Nothing that they are shown leaves this process. */
  readonly isLocal: boolean = true;
  private readonly rules: (prompt: Prompt) => object;

  constructor(rules: (prompt: Prompt) => object) {
    super({});
    this.rules = rules;
  }

  override _llmType(): string {
    return "offline-rules";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const text = JSON.stringify(this.rules(readPrompt(messages)));
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

/** Reads a prompt as a model would: the latest observation, the state with what has changed since, the step now. */
function readPrompt(messages: readonly BaseMessage[]): Prompt {
  const text = messages.map((message) => message.text).join("\n");
  const shown = shownDecisions(messages);
  const now = lines(section(text, "now"));
  // Steps are described as they are entered; where the last one is not where the task is, "now" says so.
  const step = lines(lastSection(text, "step"));
  const latest = latestObservation(messages);
  const { kind, text: observation } = latest;
  const [call] = shown.findLast(({ calls = [] }) => calls.length > 0)?.calls ?? [];
  const results =
    kind === "results" ? lines(observation).flatMap(readResult) : kind === "result" ? readPlain(observation, call) : [];
  const answered = kind === "answer" ? /^question: ([\s\S]*?)\nanswer: ([\s\S]*)$/.exec(observation) : null;
  // Where the decision that asked stands right above, the question is not told again.
  const asked = answered?.[1] ?? (kind === "reply" ? shown.findLast(({ ask }) => ask)?.ask : undefined) ?? "";
  return {
    text,
    step: valueOf(now, "step") || valueOf(step, "name"),
    next: (valueOf(now, "next") || valueOf(step, "next"))
      .split(" | ")
      .filter((move) => move !== "" && !move.startsWith("(")),
    state: { ...readState(lines(section(text, "state"))), ...readState(now) },
    recent: [...lines(section(text, "recent")), ...shown.map(told)].slice(-3),
    latest,
    said: results.length > 0 ? "" : asWritten(answered?.[2] ?? observation),
    question: asWritten(asked),
    results,
  };
}

interface ShownDecision {
  readonly ask?: string;
  readonly reply?: string;
  readonly next?: string;
  readonly calls?: readonly { readonly tool: string }[];
}

/** The earlier decisions that a prompt shows as they were; an answer before a refusal is none. */
function shownDecisions(messages: readonly BaseMessage[]): readonly ShownDecision[] {
  const refused = messages.findIndex((message) => message.text.startsWith("<refused>"));
  const shown = messages.slice(0, refused < 0 ? undefined : refused - 1).filter(({ type }) => type === "ai");
  // One after the other, a line each, they stand in one message.
  return shown
    .flatMap(({ text }) => lines(text))
    .flatMap((line) => {
      try {
        return [JSON.parse(asWritten(line)) as ShownDecision];
      } catch {
        return [];
      }
    });
}

/** A decision in a line, as the runtime tells it of older ones. */
function told({ ask, reply, next, calls = [] }: ShownDecision): string {
  const parts = [
    ask ? `asked: ${ask}` : "",
    calls.length > 0 ? `called ${calls.map(({ tool }) => tool).join(", ")}` : "",
    reply ? `said: ${reply}` : "",
    next && !ask ? `went to ${next}` : "",
  ];
  return parts.filter(Boolean).join("; ");
}

/** What came back last. Right behind the decision that asked for it, its kind is not told, and an answer has no tags. */
function latestObservation(messages: readonly BaseMessage[]): Prompt["latest"] {
  for (const [index, { type, text }] of [...messages.entries()].toReversed()) {
    if (type !== "human") continue;
    const before = messages[index - 1];
    const decision = before?.type === "ai" ? before.text : null;
    const [, kind, shown] = [...text.matchAll(OBSERVATION)].at(-1) ?? [];
    if (shown !== undefined) {
      return { kind: kind ?? (decision?.includes('"calls":[{') ? "result" : "reply"), text: shown };
    }
    const [words = "", ...tagged] = text.split(LINE_OF_OURS);
    if (decision !== null && words !== "") {
      return { kind: "reply", text: tagged.length > 0 ? words.slice(0, -1) : words };
    }
  }
  return { kind: "", text: "" };
}

/** The result of a decision's only call, which came to a good end. */
function readPlain(text: string, call: { readonly tool: string } | undefined): readonly CallOutcome[] {
  return call ? [{ tool: call.tool, status: "ok", detail: asWritten(text) }] : [];
}

function readResult(line: string): readonly CallOutcome[] {
  const [, tool, status, detail = ""] = /^\d+\.\d+ (\w+) (\w+)(?:: (.*))?$/.exec(line) ?? [];
  return tool === undefined || status === undefined ? [] : [{ tool, status, detail: asWritten(detail) }];
}

function section(text: string, tag: string): string {
  return new RegExp(`<${tag}[^>]*>\\n([\\s\\S]*?)\\n</${tag}>`).exec(text)?.[1] ?? "";
}

function lastSection(text: string, tag: string): string {
  return section(text.slice(Math.max(0, text.lastIndexOf(`<${tag}>`))), tag);
}

function lines(text: string): readonly string[] {
  return text === "" ? [] : text.split("\n");
}

function valueOf(all: readonly string[], key: string): string {
  return all.find((line) => line.startsWith(`${key}: `))?.slice(key.length + 2) ?? "";
}

function readState(all: readonly string[]): Record<string, unknown> {
  const state: Record<string, unknown> = {};
  for (const line of all) {
    const [, name, value] = /^(\w+): (.+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    try {
      state[name] = JSON.parse(asWritten(value)) as unknown;
    } catch {
      // "-" stands for no value, and a line such as "status: running" is no field.
    }
  }
  return state;
}

/** Undoes what a view does to look-alikes of its own tags, and nothing else. */
export function asWritten(text: string): string {
  return text.replace(LOOK_ALIKE, "<");
}
