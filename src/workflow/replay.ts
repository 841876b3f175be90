import { WorkflowError } from "../errors.ts";
import { digest } from "../internal/digest.ts";
import { isPlainObject, jsonEqual } from "../internal/json.ts";
import { executionSchema, newExecution, type Execution, type LastUpdate } from "../state/execution.ts";
import { stateIn } from "../state/fields.ts";

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
 * What the log keeps of a committed update: what it did, and what else changed in the record. A task
 * that was forked has more than one line, so there the entry tells which record it followed. Pure.
 */
export function commitEntry(from: Execution | null, execution: Execution, last: LastUpdate, isForked = false): Values {
  const record = Object.entries(execution).filter(([name, value]) => {
    if (name === "last") return false;
    if (name === "observation" && last.observation !== null && jsonEqual(value, last.observation)) return false;
    return !from || !jsonEqual(value, from[name as keyof Execution]);
  });
  return {
    ...last,
    to: execution.step,
    record: Object.fromEntries(record),
    ...(isForked && from ? { base: fingerprint(from) } : {}),
  };
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
const COMMITS: ReadonlySet<string> = new Set(["decision", "result", "failure", "retry"]);
/** The kinds that carry the whole task, whatever came before. */
const SNAPSHOTS: ReadonlySet<string> = new Set(["migrated", "override", "imported"]);

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
  return { tasks: committed(known.tasks, data, unfit), older: null };
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

function committed(tasks: readonly Replayed[], data: Values, unfit: Unfit): readonly Replayed[] {
  const bases = tasks.filter(({ execution }) => data.base === undefined || data.base === fingerprint(execution));
  if (bases.length === 0) throw unfit("it was committed to another record than the one before it");
  return bases.map(({ execution, state }) => ({
    execution: nextRecord(execution, data, unfit),
    state: nextState(state, data),
  }));
}

function nextRecord(from: Execution, data: Values, unfit: Unfit): Execution {
  const { to: _to, record, base: _base, ...last } = data;
  const observation = last.observation === null ? {} : { observation: last.observation };
  const execution = checked({ ...from, ...observation, ...(record as Values), last }, unfit);
  if (execution.revision === from.revision + 1) return execution;
  throw unfit(`the revision went from ${from.revision} to ${execution.revision}`);
}

function nextState(state: Values, data: Values): Values {
  const decision = data.decision as { patch?: Values; clear?: readonly string[]; calls?: readonly unknown[] } | null;
  // The patch of a decision with calls commits with their results, and a failure commits none.
  if (!decision || decision.calls?.length || data.kind === "failure") return state;
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
