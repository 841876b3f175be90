import { isPlainObject, jsonEqual } from "../internal/json.ts";
import type { Observation, Usage } from "../state/execution.ts";

/** One turn of the whole conversation, as an agent that keeps its history would have it. */
export interface Turn {
  readonly role: "user" | "assistant";
  readonly text: string;
  /** What came back, where the log has it as such. */
  readonly observation?: Observation;
  /** The fields that code has kept of what came back. */
  readonly kept?: Readonly<Record<string, unknown>>;
  /** What the model or a code step decided. */
  readonly decision?: Readonly<Record<string, unknown>>;
  /** The step that made the decision. */
  readonly from?: string;
  /** The step that the task was at afterwards. */
  readonly to?: string;
  /** The log entry that it comes from, and the task's revision after it. */
  readonly sequence?: number;
  readonly revision?: number;
  /** What the provider reported of the model call. */
  readonly usage?: Usage;
}

/** What the transcript needs of an event of the log. */
export interface TranscriptEvent {
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly sequence?: number;
  readonly revision?: number;
}

/**
 * The conversation so far, rebuilt from the event log: opening message, answers, results, and every
 * decision as the model wrote it. Pure.
 */
export function transcript(events: readonly TranscriptEvent[]): readonly Turn[] {
  const turns: Turn[] = [];
  const observe = (event: TranscriptEvent, observation: Observation | null) => {
    if (!observation) return;
    const { decision } = event.data;
    const kept =
      event.kind === "result" && isPlainObject(decision) && isPlainObject(decision.patch)
        ? { kept: decision.patch }
        : {};
    const last = turns.at(-1);
    // A decision carries the message that it answers, which may stand in the log already; so does what it waits for.
    const carriesMessage = event.kind === "decision" || event.kind === "consent";
    const { to, ...place } = placeOf(event);
    // It came before the decision that has led there.
    const after = carriesMessage || to === undefined ? {} : { to };
    const turn: Turn = { role: "user", text: textOf(observation), observation, ...kept, ...place, ...after };
    if (carriesMessage && last && isSameObservation(last.observation, observation)) {
      turns[turns.length - 1] = { ...last, observation };
    } else turns.push(turn);
  };
  for (const event of events) {
    const { kind, data } = event;
    // What a fork left behind never happened on the branch that goes on.
    const forkedAt = kind === "forked" ? revisionIn(data) : Infinity;
    while ((turns.at(-1)?.revision ?? 0) > forkedAt) turns.pop();
    if (kind === "started") observe(event, openingOf(data));
    if (kind === "result" || kind === "decision" || kind === "consent") observe(event, observationIn(data));
    if (kind === "decision" && isPlainObject(data.decision)) {
      const { decision } = data;
      const usage = isPlainObject(data.usage) ? { usage: data.usage as unknown as Usage } : {};
      const from = typeof data.step === "string" ? { from: data.step } : {};
      turns.push({ role: "assistant", text: JSON.stringify(decision), decision, ...usage, ...from, ...placeOf(event) });
    }
  }
  return turns;
}

/** The fields that a task was started with; null where there are none, or the log does not go back so far. Pure. */
export function givenIn(events: readonly TranscriptEvent[]): Readonly<Record<string, unknown>> | null {
  const input = events.find(({ kind }) => kind === "started")?.data.input;
  const { message: _message, ...fields } = isPlainObject(input) ? input : {};
  const set = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return set.length > 0 ? Object.fromEntries(set) : null;
}

/** The same, whenever it came. */
export function isSameObservation(a: Observation | null | undefined, b: Observation | null | undefined): boolean {
  if (a?.kind === "message" && b?.kind === "message") return a.text === b.text;
  return jsonEqual(a, b);
}

function placeOf({ sequence, revision, data }: TranscriptEvent): Pick<Turn, "to" | "sequence" | "revision"> {
  return {
    ...(revision === undefined ? {} : { revision }),
    ...(typeof data.to === "string" ? { to: data.to } : {}),
    ...(sequence === undefined ? {} : { sequence }),
  };
}

/** The opening message; the first format had it beside the other data of its event. */
function openingOf(data: Readonly<Record<string, unknown>>): Observation | null {
  const text = (data.input as { message?: unknown } | undefined)?.message ?? data.message;
  return typeof text === "string" ? { kind: "message", text } : null;
}

/** The revision that a fork went back to. */
function revisionIn({ snapshot }: Readonly<Record<string, unknown>>): number {
  const execution = isPlainObject(snapshot) && isPlainObject(snapshot.execution) ? snapshot.execution : {};
  return typeof execution.revision === "number" ? execution.revision : Infinity;
}

function observationIn(data: Readonly<Record<string, unknown>>): Observation | null {
  return isPlainObject(data.observation) ? (data.observation as unknown as Observation) : null;
}

/** What a person said or a tool gave back, as plain text. */
export function textOf(observation: Observation): string {
  switch (observation.kind) {
    case "message":
    case "answer":
      return observation.text;
    case "results":
      return JSON.stringify(observation.results);
    case "expired":
      return `no answer came in time to: ${observation.what}`;
    case "workflow":
      return `workflow ${observation.workflow} ${observation.status}`;
  }
}
