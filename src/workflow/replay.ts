import { WorkflowError } from "../errors.ts";
import { digest } from "../internal/digest.ts";
import { isPlainObject, jsonEqual } from "../internal/json.ts";
import {
  addUsage,
  executionSchema,
  newExecution,
  NO_USAGE,
  type Execution,
  type LastUpdate,
  type Pending,
  type ToolUse,
} from "../state/execution.ts";
import { stateIn } from "../state/fields.ts";
import { usedNow } from "./tool-use.ts";

/** How many lines about the latest decisions a record keeps. */
const RECENT_LINES = 3;

type Values = Readonly<Record<string, unknown>>;

/** What replaying needs of an event of the log. */
export interface LoggedEvent {
  readonly sequence: number;
  readonly revision: number;
  readonly kind: string;
  readonly data: Values;
}

/** A task as its log or a checkpoint tells it. */
export interface Replayed {
  readonly execution: Execution;
  readonly state: Values;
}

/** What a log leads to. */
export interface Replay {
  /**
   * None before the task was started. Several only after a fork that may have come to nothing (its run
   * ended before anything of it was stored): then the branch first, and the line that it left.
   */
  readonly tasks: readonly Replayed[];
  /** An entry of an older format, which tells too little; null where there is none since the last entry that has all. */
  readonly older: number | null;
}

/**
 * What the log keeps of a committed update: what it did, and how the record differs from what that alone
 * would make of it, so that an entry stays small. A task that was forked has more than one line; there
 * the entry tells which record it followed. Pure.
 */
export function commitEntry(from: Execution | null, execution: Execution, last: LastUpdate, isForked = false): Values {
  const { kind: _kind, step, decision, appended, observation, usage, measures } = last;
  const plain = from && expected(from, last, execution.step);
  const counted = from && expectedUse(from, last);
  const isCounted = counted !== null && jsonEqual(execution.toolUse ?? null, counted);
  const likely = plain && isCounted ? { ...plain, toolUse: counted } : plain;
  const line = likely && isNext(likely.recent, execution.recent) ? execution.recent.at(-1) : undefined;
  const record = Object.entries(execution).filter(([name, value]) => {
    if (name === "last" || (name === "recent" && line !== undefined)) return false;
    return !likely || !jsonEqual(value, likely[name as keyof Execution]);
  });
  return {
    step,
    decision,
    ...(appended ? { appended } : {}),
    ...(observation ? { observation } : {}),
    ...(jsonEqual(usage, NO_USAGE) ? {} : { usage }),
    ...(measures ? { measures } : {}),
    ...(line === undefined ? {} : { line }),
    ...(isCounted ? { counted: true } : {}),
    to: execution.step,
    record: Object.fromEntries(record),
    ...(isForked && from ? { base: fingerprint(from) } : {}),
  };
}

/**
 * The record that usually follows. Entries of every log are read with it, so it may never change: what
 * it does not foresee is in the entry.
 */
function expected(from: Execution, last: LastUpdate, step: string): Execution {
  const isDecision = last.kind === "decision";
  const pending = isDecision ? expectedPending(from, last) : null;
  const made = from.decisionsByStep[last.step] ?? 0;
  return {
    ...from,
    revision: from.revision + 1,
    decisions: from.decisions + (isDecision ? 1 : 0),
    decisionsByStep: isDecision ? { ...from.decisionsByStep, [last.step]: made + 1 } : from.decisionsByStep,
    observation: last.observation ?? from.observation,
    usage: addUsage(from.usage, last.usage),
    step,
    pending,
    last,
  };
}

/** What a decision leaves to be carried out: its calls, or its question. */
function expectedPending({ decisions, untrusted }: Execution, { decision }: LastUpdate): Pending | null {
  const { calls, ask, patch = null, clear = null, next = null } = (decision ?? {}) as Readonly<Record<string, unknown>>;
  const pending = calls
    ? { kind: "calls", decision: decisions + 1, calls, patch, clear, next, ...(untrusted ? { untrusted } : {}) }
    : ask
      ? { kind: "question", decision: decisions + 1, question: ask }
      : null;
  return pending as Pending | null;
}

/** What results add to the count of calls. Entries of older releases have not been counted. */
function expectedUse({ pending, toolUse }: Execution, { observation }: LastUpdate): Record<string, ToolUse> | null {
  if (pending?.kind !== "calls" || observation?.kind !== "results") return null;
  return usedNow(toolUse ?? {}, pending.calls, observation.results);
}

/** Whether the latest lines are those of before and one more. */
function isNext(before: readonly string[], after: readonly string[]): boolean {
  const line = after.at(-1);
  return line !== undefined && jsonEqual(after, [...before, line].slice(-RECENT_LINES));
}

/** Tells a record from others of its task. What may be large in it is left out: this is done at every commit. */
function fingerprint({ observation: _observation, last: _last, pending, ...rest }: Execution): string {
  return digest({ ...rest, pending: pending?.decision ?? null });
}

/**
 * The task that a checkpoint's channels hold. Between its first two checkpoints the input is still in
 * the channel that LangGraph starts with. Pure.
 */
export function taskIn(values: Values): Replayed {
  const input = isPlainObject(values.__start__) ? values.__start__ : {};
  return { execution: values.execution as Execution, state: stateIn({ ...values, ...input }) };
}

/** The kinds of events that commit an update of the runtime. */
const COMMITS: ReadonlySet<string> = new Set(["decision", "result", "failure", "retry", "consent"]);
/** The kinds that carry the whole task, whatever came before. */
const SNAPSHOTS: ReadonlySet<string> = new Set(["migrated", "override", "imported", "cancelled"]);

/**
 * Rebuilds a task from its log alone, without its workflow's definition. Pure.
 *
 * @param taskId for errors; null where it is not known.
 * @throws INVALID_EXPORT where an event does not follow from those before it.
 */
export function replay(taskId: string | null, events: readonly LoggedEvent[]): Replay {
  let known: Replay = { tasks: [], older: null };
  for (const event of events) known = applyEvent(taskId, known, event);
  return known;
}

function applyEvent(taskId: string | null, known: Replay, event: LoggedEvent): Replay {
  const { kind, data, sequence } = event;
  const unfit = (why: string) => unfitEntry(taskId, sequence, why);
  if (kind === "started") {
    if (known.tasks.some(({ execution }) => execution.revision > 0)) throw unfit("the task had been started before");
    return data.step === undefined ? { tasks: [], older: sequence } : { tasks: [startOf(data)], older: null };
  }
  if (SNAPSHOTS.has(kind)) return { tasks: [snapshotOf(data, unfit)], older: null };
  if (known.older !== null) return known;
  if (kind === "forked") {
    const branch = snapshotOf(data, unfit);
    return { tasks: [branch, ...known.tasks.filter((task) => !jsonEqual(task, branch))], older: null };
  }
  if (!COMMITS.has(kind) && kind !== "edited") return known;
  if (known.tasks.length === 0) throw unfit(`a ${kind} comes before the task was started`);
  if (kind === "edited") return { tasks: edited(known.tasks, event, unfit), older: null };
  if (data.record === undefined) return { tasks: [], older: sequence };
  return { tasks: committed(known.tasks, kind, data, unfit), older: null };
}

type Unfit = (why: string) => WorkflowError;

function startOf({ input, workflow, version, step }: Values): Replayed {
  const execution = newExecution({ name: String(workflow), version: Number(version), initial: String(step) });
  return { execution, state: stateIn(isPlainObject(input) ? input : {}) };
}

function snapshotOf({ snapshot }: Values, unfit: Unfit): Replayed {
  if (!isPlainObject(snapshot) || !isPlainObject(snapshot.state)) throw unfit("it does not say what the task was then");
  return { execution: checked(snapshot.execution, unfit), state: snapshot.state };
}

function edited(tasks: readonly Replayed[], { revision, data }: LoggedEvent, unfit: Unfit): readonly Replayed[] {
  const bases = tasks.filter(({ execution }) => execution.revision === revision);
  if (bases.length === 0) throw unfit(`it corrects revision ${revision}, which is not the one before it`);
  return bases.map((task) => ({ ...task, state: { ...task.state, ...(data.changes as Values) } }));
}

function committed(tasks: readonly Replayed[], kind: string, data: Values, unfit: Unfit): readonly Replayed[] {
  const bases = tasks.filter(({ execution }) => data.base === undefined || data.base === fingerprint(execution));
  if (bases.length === 0) throw unfit("it was committed to another record than the one before it");
  return bases.map(({ execution, state }) => ({
    execution: nextRecord(execution, kind, data, unfit),
    state: kind === "failure" ? state : nextState(state, data),
  }));
}

function nextRecord(from: Execution, kind: string, data: Values, unfit: Unfit): Execution {
  const { step, decision, appended, observation = null, usage = NO_USAGE, measures = null, line, record, to } = data;
  const last = { kind, step, decision, ...(appended ? { appended } : {}), observation, usage, measures } as LastUpdate;
  const recent = line === undefined ? from.recent : [...from.recent, line].slice(-RECENT_LINES);
  const toolUse = data.counted ? expectedUse(from, last) : null;
  const likely = { ...expected(from, last, String(to)), recent, ...(toolUse ? { toolUse } : {}) };
  const execution = checked({ ...likely, ...(record as Values) }, unfit);
  if (execution.revision === from.revision + 1) return execution;
  throw unfit(`the revision went from ${from.revision} to ${execution.revision}`);
}

function nextState(state: Values, data: Values): Values {
  const decision = data.decision as { patch?: Values; clear?: readonly string[]; calls?: readonly unknown[] } | null;
  // The patch of a decision with calls commits with their results.
  if (!decision || decision.calls?.length) return state;
  const appended = new Set((data.appended ?? []) as readonly string[]);
  const set = Object.entries(decision.patch ?? {}).map(([name, value]): [string, unknown] => {
    const before = state[name];
    const adds = appended.has(name) && Array.isArray(before) && Array.isArray(value);
    return [name, adds ? [...(before as unknown[]), ...(value as unknown[])] : value];
  });
  const cleared = (decision.clear ?? []).map((name): [string, unknown] => [name, null]);
  return { ...state, ...Object.fromEntries([...set, ...cleared]) };
}

/** The record as it is, not as the schema would make it: it has to equal the stored one. */
function checked(value: unknown, unfit: Unfit): Execution {
  const parsed = executionSchema.safeParse(value);
  if (parsed.success) return value as Execution;
  const [issue] = parsed.error.issues;
  throw unfit(`the record does not fit: ${issue?.path.join(".")}: ${issue?.message}`);
}

function unfitEntry(taskId: string | null, sequence: number, why: string): WorkflowError {
  const log = taskId === null ? "the log" : `the log of task ${taskId}`;
  const message = `${log} does not hold together at entry ${sequence}: ${why}`;
  return new WorkflowError("INVALID_EXPORT", message, { details: { entry: sequence } });
}
