import { newExecution, type CallResult, type Observation } from "../src/state/execution.ts";
import { emptyState } from "../src/state/fields.ts";
import type { Snapshot } from "../src/workflow/define.ts";
import { countDecision, FREE, type Decision } from "../src/workflow/record.ts";
import { transcript, type TranscriptEvent, type Turn } from "../src/view/transcript.ts";
import type { Message, Recorded, RecordedCall } from "./context-sets.ts";
import { parse, spoken, type ContextSet } from "./context-workflows.ts";

/** One recorded model call, as the task stood before it. */
export interface ModelCall {
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  readonly turns: readonly Turn[];
  /** The messages before it, as they were recorded. */
  readonly before: readonly Message[];
  /** What the recorded model then called. */
  readonly calls: readonly RecordedCall[];
  /** What the log's next entry will be: snapshots are taken at it. */
  readonly sequence: number;
}

/**
 * Replays a recorded conversation as a task of the set's workflow: what was said and returned becomes
 * the log, what code keeps becomes the state. Nothing of it depends on a policy.
 */
export function replay(set: ContextSet, { messages }: Recorded): readonly ModelCall[] {
  const events: TranscriptEvent[] = [];
  const log = (kind: string, data: Readonly<Record<string, unknown>>) =>
    events.push({ kind, data: { to: "serve", ...data }, sequence: events.length + 1 });
  const modelCalls: ModelCall[] = [];
  let state: Readonly<Record<string, unknown>> = emptyState(set.workflow.state);
  let execution = { ...newExecution(set.workflow), status: "running" as const };
  let observation: Observation | null = null;
  let asked: string | null = null;
  let open: RecordedCall[] = [];
  let results: CallResult[] = [];
  for (const [index, message] of messages.entries()) {
    const call = open.find(({ id }) => id === message.toolCallId) ?? open[results.length] ?? null;
    if (message.role === "assistant") {
      modelCalls.push({
        snapshot: { execution, state },
        observation,
        turns: transcript(events),
        before: messages.slice(0, index),
        calls: message.toolCalls ?? [],
        sequence: events.length + 1,
      });
      const decision = decisionOf(message);
      execution = { ...countDecision(execution, decision, FREE, observation), status: "running" };
      log("decision", { decision });
      asked = decision.ask ?? null;
      open = [...(message.toolCalls ?? [])];
      results = [];
    } else if (message.role === "user") {
      const text = message.content;
      observation = asked === null ? { kind: "message", text } : { kind: "answer", question: asked, text };
      if (events.length === 0) log("started", { input: { message: text } });
      else log("result", { observation });
    } else if (message.role === "tool" && call) {
      results.push(resultOf(call, message, `${execution.decisions}.${results.length}`));
      if (results.length === open.length) {
        observation = { kind: "results", results };
        log("result", { observation });
      }
    }
    if (message.role !== "system") state = Object.assign({}, state, set.keep(state, message, call));
  }
  return modelCalls;
}

function decisionOf({ content, toolCalls }: Message): Decision {
  if (!toolCalls?.length) return { ask: spoken(content) };
  const calls = toolCalls.map(({ name, args }) => ({ tool: name.replaceAll(".", "_"), args: { ...args } }));
  return { ...(content ? { because: content } : {}), calls };
}

function resultOf({ name }: RecordedCall, { content }: Message, id: string): CallResult {
  return { id, tool: name.replaceAll(".", "_"), status: "ok", value: parse(content) };
}
