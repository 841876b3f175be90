import { describeTask } from "../compile/describe.ts";
import { checkTaskId } from "../compile/task-id.ts";
import { WorkflowError } from "../errors.ts";
import { readExport, writeExport } from "../storage/export/folder.ts";
import type { TaskStatus } from "../state/execution.ts";
import { EXPORT_KEY, type ExportedRequest, type ExportedTask } from "../storage/export/format.ts";
import { verifyExport, type VerifiedExport } from "../storage/export/verify.ts";
import { openStore } from "../storage/open-store.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import { howToAnswer } from "./hints.ts";
import { sameTask, type CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { count, detectTerminal, printable } from "./terminal.ts";

export interface ImportOptions extends CommonOptions {
  readonly asTask?: string;
}

/** The key that exports are signed with; one that is set but empty counts as none. */
function exportKey(): string | undefined {
  return process.env[EXPORT_KEY] || undefined;
}

/** Lines that hold what others have written. */
const printed = (lines: readonly string[]) => lines.map(printable);

/** `statecard export`: a task as a folder. */
export async function exportCommand(taskId: string, folder: string, options: CommonOptions): Promise<number> {
  if (folder.trim() === "") throw usage("the folder is empty; name one");
  const store = storeForReading(options.db);
  const exported = await store.exportTask(taskId);
  const key = exportKey();
  const { log } = writeExport(folder, exported, key);
  const { workflow, version, step } = exported.task.execution;
  const artifacts = exported.artifacts.length;
  const child = exported.child === null ? {} : { child: exported.child };
  const json = { taskId, folder, entries: log.count, hash: log.hash, artifacts, signed: key !== undefined, ...child };
  return print(
    options,
    json,
    printed([
      `Exported ${taskId} to ${folder}: ${workflow} v${version}, ${statusIn(exported.task)} at ${step}`,
      `  ${entries(log.count)}${artifacts > 0 ? `, ${number(artifacts, "artifact")}` : ""}, ${key === undefined ? `not signed (set ${EXPORT_KEY} to sign)` : "signed"}`,
      ...(exported.child === null
        ? []
        : [`  It waits for a task of its own, which it cannot do without: export ${exported.child} too.`]),
    ]),
  );
}

/** `statecard verify`: whether an export is what was written; needs no database. */
export async function verifyCommand(folder: string, options: CommonOptions): Promise<number> {
  const verified = verifyExport(readExport(folder), exportKey());
  const { difference, taskId, log } = verified;
  if (difference !== null) {
    const message = `${difference}; the log itself holds together (${entries(log.count)}, ${verified.signature}), and statecard import would restore the task from it`;
    throw new WorkflowError("INVALID_EXPORT", message, { details: { taskId, folder } });
  }
  return print(
    options,
    { ok: true, ...told(verified) },
    printed([...describe(folder, verified), `  ${stateChecked(verified)}`]),
  );
}

/** `statecard import`: takes an exported task into the database, rebuilt from its log where need be. */
export async function importCommand(folder: string, options: ImportOptions): Promise<number> {
  if (options.asTask === "") throw usage("--as-task is empty; give an id, or leave it out");
  const verified = verifyExport(readExport(folder), exportKey());
  const taskId = importedId(options.asTask ?? verified.taskId);
  const store = openStore(options.db);
  const { graphOfTask } = await import("./graphs.ts");
  const { runtime } = await graphOfTask(store, taskId, verified.task.execution.workflow, options.graph);
  await store.importTask(runtime.workflow, taskId, verified);
  // Named here, by whoever imports, so resume may load it.
  if (options.graph !== undefined) await store.append(taskId, 0, "source", { graph: options.graph });
  const task = await describeTask(store, taskId);
  const goesOn = task.status !== "completed";
  return print(
    options,
    { ...told(verified), taskId, status: task.status },
    printed([
      ...describe(folder, verified),
      `  ${
        verified.from === "state.json"
          ? stateChecked(verified)
          : `restored from events.log alone, since ${verified.difference}${verified.difference === "state.json is missing" ? " (whether the log was cut off at its end cannot be told without it)" : ""}`
      }`,
      `Imported as ${taskId}: ${task.status} at ${task.step}`,
      ...(goesOn ? [`Go on with:  ${howToAnswer(detectTerminal(), taskId, sameTask(options), task.waiting)}`] : []),
    ]),
  );
}

function importedId(taskId: string): string {
  if (taskId !== "") return checkTaskId(taskId, "name one with --as-task");
  throw new WorkflowError(
    "INVALID_TASK_ID",
    "the log does not tell the task's id, since the task had decided nothing yet; name one with --as-task",
  );
}

const number = (value: number, of: string) => `${count(value)} ${of}${value === 1 ? "" : "s"}`;
const entries = (value: number) => `${count(value)} ${value === 1 ? "entry" : "entries"} in the log`;

/**
 * What goes on when the task does: whoever has asked waits, else as the record says. `show` also calls a task failed
 * whose latest run ended with an error before it could commit anything; here that one is running.
 */
function statusIn({ execution, requests, forks }: ExportedTask): TaskStatus {
  const isAsked = ({ answer, ...row }: ExportedRequest) =>
    answer === null && row.decision === execution.pending?.decision && row.forks === forks;
  return requests.some(isAsked) ? "waiting_user" : execution.status;
}

function told({ taskId, task, log, artifacts, signature, from, difference, older }: VerifiedExport) {
  const { workflow, version, step } = task.execution;
  return {
    taskId,
    workflow,
    version,
    status: statusIn(task),
    step,
    entries: log.count,
    hash: log.hash,
    artifacts: artifacts.length,
    signature,
    from,
    difference,
    replayed: older === null,
  };
}

function describe(folder: string, { taskId, task, log, artifacts, signature }: VerifiedExport): readonly string[] {
  const { workflow, version, step } = task.execution;
  const trust = {
    "not signed": "not signed: this shows accidents, not a forger who wrote all of it anew",
    "signed, but no key given": `signed, but no key given: set ${EXPORT_KEY} to check the macs`,
    "signed and verified": "signed: every mac fits",
  };
  return [
    `${folder}: task ${taskId || "without an id"}, ${workflow} v${version}, ${statusIn(task)} at ${step}`,
    `  ${entries(log.count)}, the chain is whole and ends in ${log.hash.slice(0, 12)}`,
    ...(artifacts.length > 0 ? [`  ${number(artifacts.length, "artifact")}, unchanged since the log named them`] : []),
    `  ${trust[signature]}`,
  ];
}

function stateChecked({ task, older }: VerifiedExport): string {
  if (older !== null) {
    return `entry ${older} is of an older format: such entries cannot be replayed, so state.json was taken as it is`;
  }
  const { requests, journal } = task;
  const counted = `${number(requests.length, "request")}, ${number(journal.length, "call")}`;
  return `state.json is what the log leads to: record, state, ${counted}`;
}
