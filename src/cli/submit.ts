import { basename, extname } from "node:path";
import { batchTaskId, readLines } from "../batch/lines.ts";
import { submitTask, type Submitted } from "../batch/queue/submit.ts";
import { TaskQueue } from "../batch/queue/task-queue.ts";
import { newTaskId } from "../compile/task-id.ts";
import { isWorkflowError } from "../errors.ts";
import { systemUser } from "../internal/system-user.ts";
import { openStore } from "../storage/open-store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { readTasks } from "./batch-file.ts";
import { EXIT, usage } from "./exit.ts";
import { loadGraph, rememberGraph } from "./graphs.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";
import { readSettings } from "./run.ts";
import { count, printable } from "./terminal.ts";
import { queueLocation } from "./worker.ts";

export interface SubmitCommandOptions extends CommonOptions {
  readonly task?: string;
  readonly message?: string;
  readonly set?: readonly string[];
  readonly attempts?: string;
  readonly queue?: string;
}

/** A task of a file, or that of the command line. */
interface ToSubmit {
  readonly taskId: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly line: number | null;
}

interface Refused {
  readonly line: number | null;
  readonly reason: string;
}

/** How many tasks are handed over at once. */
const AT_ONCE = 16;

/** `statecard submit`: hands tasks over to the workers and waits for none of them. */
export async function submitCommand(
  name: string,
  file: string | undefined,
  options: SubmitCommandOptions,
): Promise<number> {
  const attempts = wholeNumber("--attempts", options.attempts, 1, 1000);
  const store = openStore(options.db);
  const location = queueLocation(options);
  const graph = await loadGraph(name, store);
  const { tasks, refused } = tasksOf(graph, file, options);
  const queue = await TaskQueue.open(location, store);
  const came: Record<Submitted, string[]> = { started: [], woken: [], left: [] };
  try {
    const left = [...tasks];
    const hand = async () => {
      for (let task = left.shift(); task; task = left.shift()) {
        const { taskId, line } = task;
        try {
          const beforeStart = () => rememberGraph(store, taskId, name);
          const settings = { who: systemUser(), beforeStart, ...(attempts === undefined ? {} : { attempts }) };
          came[await submitTask(queue, graph, task, settings)].push(taskId);
        } catch (error) {
          // Of a file, the other lines go on.
          const isOfTask = isWorkflowError(error) && !error.code.startsWith("DATABASE_");
          if (line === null || !isOfTask) throw error;
          refused.push({ line, reason: `${error.code}: ${error.message}` });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, hand));
  } finally {
    await queue.close();
    await store.close();
  }
  report(came, refused, options);
  return refused.length > 0 ? EXIT.refused : EXIT.ok;
}

function tasksOf(
  graph: WorkflowGraph,
  file: string | undefined,
  options: SubmitCommandOptions,
): { readonly tasks: readonly ToSubmit[]; readonly refused: Refused[] } {
  const { name: workflow } = graph.runtime.workflow;
  const input = {
    ...readSettings(options.set ?? [], graph),
    ...(options.message === undefined ? {} : { message: options.message }),
  };
  if (file === undefined) {
    return { tasks: [{ taskId: options.task ?? newTaskId(workflow), input, line: null }], refused: [] };
  }
  if (options.task !== undefined || Object.keys(input).length > 0) {
    throw usage("a file has the tasks with their messages; leave --task, --message and --set out");
  }
  const { lines, broken } = readLines(readTasks(file));
  const batch = basename(file, extname(file));
  return {
    tasks: lines.map((line) => ({ taskId: batchTaskId(batch, workflow, line), input: line.input, line: line.line })),
    refused: [...broken],
  };
}

function report(
  came: Readonly<Record<Submitted, readonly string[]>>,
  refused: readonly Refused[],
  { json }: CommonOptions,
): void {
  if (json) {
    process.stdout.write(`${JSON.stringify({ ...came, refused }, null, 2)}\n`);
    return;
  }
  const { started, woken, left } = came;
  for (const { line, reason } of refused) process.stderr.write(`line ${line}: ${printable(reason)}\n`);
  const all = [...started, ...woken, ...left];
  const [only] = all;
  const [there] = [...woken, ...left];
  if (all.length === 1 && there !== undefined && refused.length === 0) {
    // Whoever has sent another message with it has to know that it went nowhere.
    const what = woken.length > 0 ? "goes on" : "has ended or waits for a person";
    process.stdout.write(`${printable(there)} exists already and ${what}; nothing was added to it.\n`);
    return;
  }
  const what = all.length === 1 && only !== undefined ? printable(only) : `${count(all.length)} tasks`;
  const parts = [
    ...(started.length > 0 ? [`${count(started.length)} new`] : []),
    ...(woken.length > 0 ? [`${count(woken.length)} ${woken.length === 1 ? "goes" : "go"} on`] : []),
    ...(left.length > 0
      ? [`${count(left.length)} ${left.length === 1 ? "has ended or waits" : "have ended or wait"} for a person`]
      : []),
    ...(refused.length > 0 ? [`${count(refused.length)} refused`] : []),
  ];
  process.stdout.write(`Submitted ${what}: ${parts.join(", ") || "nothing"}.\n`);
}
