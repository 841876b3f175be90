import type { TaskEvent } from "../../compile/store.ts";
import { isWorkflowError, WorkflowError } from "../../errors.ts";
import { isPlainObject, jsonEqual, shorten } from "../../internal/json.ts";
import type { Artifact } from "../../workflow/artifact.ts";
import { checkArtifacts } from "./artifact-files.ts";
import { readLog, unsigned, type CheckedLog, type Signature } from "./chain.ts";
import type { ExportFolder } from "./folder.ts";
import { headOf, isMacOf, parseStateFile, stateBody, type ExportedTask, type StateFile } from "./format.ts";
import { rebuild, type Rebuilt } from "./rebuild.ts";

/** An export that holds together as far as its log goes. */
export interface VerifiedExport {
  readonly taskId: string;
  /** What the task is: by `state.json` where that agrees with the log, else by the log alone. */
  readonly task: ExportedTask;
  readonly from: "state.json" | "events.log";
  readonly child: string | null;
  readonly events: readonly TaskEvent[];
  readonly artifacts: readonly Artifact[];
  readonly log: StateFile["log"];
  readonly signature: Signature;
  /** Why `state.json` cannot be used, or where it differs from the log; null where all is well. */
  readonly difference: string | null;
  /** An entry of an older format: the state could not be compared with the log. */
  readonly older: number | null;
}

/**
 * Checks an export: the chain, the macs, the end of the log, the artifacts, and whether the log leads to
 * what `state.json` says. Needs no database and no workflow. Pure.
 *
 * @param key checks the macs, and demands that there are some.
 * @throws INVALID_EXPORT where the log was changed or cut off, an artifact is not what the log names, and where nothing tells what the task is.
 */
export function verifyExport({ log, state, artifact }: ExportFolder, key: string | undefined): VerifiedExport {
  const parsed = state === null ? null : parseStateFile(state);
  const file = parsed?.ok ? parsed.file : null;
  const checked = readLog(log, file?.log ?? null, key);
  if (file) checkStateMac(file, key);
  if (file) checkEnd(file, checked);
  const broken =
    parsed === null ? "state.json is missing" : parsed.ok ? null : `state.json is broken: ${parsed.reason}`;
  const { rebuilt, fault } = rebuildChecked(checked.events);
  const { signature, events } = checked;
  const artifacts = checkArtifacts(events, artifact);
  const common = { events, artifacts, log: headOf(checked.lines), signature, older: rebuilt.older };
  const difference = broken ?? fault ?? (file && differenceOf(file, rebuilt));
  if (file && difference === null) {
    const { taskId, child, execution, message, forks, requests, journal } = file;
    const task = { execution, state: file.state, message, forks, requests, journal };
    return { ...common, taskId, task, child, from: "state.json", difference };
  }
  const [task] = rebuilt.tasks;
  if (fault !== null || !task) throw cannotRebuild(difference ?? "", fault, rebuilt);
  return {
    ...common,
    taskId: file?.taskId ?? task.execution.taskId,
    task,
    child: null,
    from: "events.log",
    difference,
  };
}

function checkStateMac(file: StateFile, key: string | undefined): void {
  if (key === undefined) return;
  if (file.mac === undefined) throw unsigned("state.json is not signed");
  if (isMacOf(file.mac, key, stateBody(file))) return;
  throw new WorkflowError(
    "INVALID_EXPORT",
    "state.json was changed: its mac does not fit; without state.json the task can be restored from the log, whose entries are as they were signed",
  );
}

/** Only `state.json` tells where the chain ends, so where the two differ there nobody can tell which is right. */
function checkEnd(file: StateFile, { lines }: CheckedLog): void {
  const { count, hash } = headOf(lines);
  const refuse = (why: string) => {
    const how = "without state.json the task can be restored as far as the log goes";
    return new WorkflowError("INVALID_EXPORT", `${why}; ${how}`, { details: { entry: count } });
  };
  if (count < file.log.count) {
    throw refuse(`events.log was cut off: it has ${count} entries, state.json says ${file.log.count}`);
  }
  if (count > file.log.count) {
    throw refuse(`events.log has ${count} entries, state.json says ${file.log.count}: one of them was changed`);
  }
  if (hash === file.log.hash) return;
  throw refuse(
    `entry ${count} of events.log was changed, or state.json was: it says that the log ends in ${shorten(file.log.hash, 12)}, the log ends in ${shorten(hash, 12)}`,
  );
}

function rebuildChecked(events: readonly TaskEvent[]): { rebuilt: Rebuilt; fault: string | null } {
  try {
    return { rebuilt: rebuild(events), fault: null };
  } catch (error) {
    if (!isWorkflowError(error, "INVALID_EXPORT")) throw error;
    return { rebuilt: { tasks: [], older: null }, fault: error.message };
  }
}

function cannotRebuild(difference: string, fault: string | null, { older }: Rebuilt): WorkflowError {
  const why =
    fault ??
    (older === null
      ? "the log has no entry with which a task starts"
      : `entry ${older} of events.log is of an older format, which cannot be replayed`);
  const message = difference === why ? why : `${difference}, and it cannot be rebuilt: ${why}`;
  return new WorkflowError("INVALID_EXPORT", message);
}

/** The first difference between `state.json` and what the log leads to, in words. */
function differenceOf(file: StateFile, { tasks, older }: Rebuilt): string | null {
  const { execution, taskId } = file;
  const mismatch =
    jsonDifference("workflow", file.workflow, execution.workflow) ??
    jsonDifference("version", file.version, execution.version);
  if (mismatch) return says(mismatch, "its execution record");
  // Until its first decision a record has no task id.
  if (execution.taskId !== "" && execution.taskId !== taskId) {
    return says({ path: "taskId", left: taskId, right: execution.taskId }, "its execution record");
  }
  if (older !== null) return null;
  const differences = tasks.map((task) => taskDifference(file, task));
  if (differences.includes(null)) return null;
  const [found] = differences;
  return found ? says(found, "the log") : "the log has no entry with which a task starts";
}

interface Difference {
  readonly path: string;
  readonly left: unknown;
  readonly right: unknown;
}

function taskDifference(file: StateFile, task: ExportedTask): Difference | null {
  return (
    jsonDifference("execution", file.execution, task.execution) ??
    // A field without a value is the same as none.
    jsonDifference("state", withoutNulls(file.state), withoutNulls(task.state)) ??
    jsonDifference("message", file.message, task.message) ??
    jsonDifference("forks", file.forks, task.forks) ??
    jsonDifference("requests", file.requests, task.requests) ??
    jsonDifference("journal", file.journal, task.journal)
  );
}

function withoutNulls(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(state).filter(([, value]) => value !== null));
}

/** The deepest first place where two JSON values differ. */
function jsonDifference(path: string, left: unknown, right: unknown): Difference | null {
  if (jsonEqual(left, right)) return null;
  const bothLists = Array.isArray(left) && Array.isArray(right);
  if (!bothLists && !(isPlainObject(left) && isPlainObject(right))) return { path, left, right };
  const [a, b] = [left, right] as unknown as readonly Readonly<Record<string, unknown>>[];
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const found = jsonDifference(`${path}.${key}`, own(a, key), own(b, key));
    if (found) return found;
  }
  return { path, left, right };
}

function own(value: Readonly<Record<string, unknown>> | undefined, key: string): unknown {
  return value && Object.hasOwn(value, key) ? value[key] : undefined;
}

function says({ path, left, right }: Difference, other: string): string {
  const told = (value: unknown) => (value === undefined ? "nothing" : shorten(JSON.stringify(value), 80));
  return `state.json says ${path} is ${told(left)}, ${other} says ${told(right)}`;
}
