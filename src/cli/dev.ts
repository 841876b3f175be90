import { submitAnswer, submitTask } from "../batch/queue/submit.ts";
import { describeTask } from "../compile/describe.ts";
import { newTaskId } from "../compile/task-id.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { systemUser } from "../internal/system-user.ts";
import { isPostgres } from "../storage/open-store.ts";
import { databaseFile } from "../storage/sqlite/sqlite.ts";
import { DevSet, type StartedSet } from "./dev-set.ts";
import { EXIT, usage } from "./exit.ts";
import { graphIds, graphOfTask, rememberGraph } from "./graphs.ts";
import { LineInput } from "./line-input.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";
import { onStop, STOP_SIGNALS } from "./stop-signals.ts";
import { detectTerminal, printable } from "./terminal.ts";

export interface DevCommandOptions extends CommonOptions {
  readonly distributed?: boolean;
  readonly workers?: string;
  readonly graphs?: string;
  readonly queue?: string;
}

const WORKERS = 2;

/** `statecard dev --distributed`: a database, workers and a prompt, all on this machine, until it is left. */
export async function devCommand(options: DevCommandOptions): Promise<number> {
  if (!options.distributed) {
    throw usage("statecard dev --distributed starts workers here; for LangGraph Studio there is: npx langgraphjs dev");
  }
  if (options.json)
    throw usage("statecard dev talks with a person; for programs there are statecard worker and submit");
  const workers = wholeNumber("--workers", options.workers, 1, 64) ?? WORKERS;
  const graphs = graphIds(options.graphs);
  const location = namedDatabase(options);
  const set = new DevSet();
  const leave = new AbortController();
  // In order at the first, at once at the second.
  const listenNoMore = onStop(() => {
    if (leave.signal.aborted) void set.kill().finally(() => process.exit(EXIT.interrupted));
    else leave.abort();
  }, [...STOP_SIGNALS, "SIGHUP"]);
  let isUp = false;
  let input: LineInput | null = null;
  const say = (line: string) => (input ? input.tell(line) : void process.stdout.write(`${line}\n`));
  say(`Starting ${location === null ? "PostgreSQL and " : ""}${workers} ${workers === 1 ? "worker" : "workers"} …`);
  try {
    const started = await set.start(
      { location, queueLocation: options.queue ?? null, graphs, workers, say },
      leave.signal,
    );
    isUp = true;
    const database =
      location === null
        ? "a PostgreSQL of its own, which goes with it (--db keeps tasks)"
        : started.queue.connection.where;
    say(`${workers} ${workers === 1 ? "worker" : "workers"} on ${database}.`);
    say(
      `Type GRAPH MESSAGE to submit a task, TASK ANSWER to answer one. Graphs: ${graphs.join(", ")}. Ctrl-D ends it.`,
    );
    input = new LineInput();
    await prompt(started, input, leave.signal);
  } catch (error) {
    if (isUp || !leave.signal.aborted) throw error;
  } finally {
    if (isUp || leave.signal.aborted) say("Stopping: what runs commits its step. Ctrl-C ends it at once.");
    leave.abort();
    await set.stop();
    listenNoMore();
  }
  return isUp ? EXIT.ok : EXIT.interrupted;
}

/**
 * The database that was named; null where none was.
 *
 * @throws USAGE where it is a file.
 */
function namedDatabase({ db }: DevCommandOptions): string | null {
  const where = databaseFile(db);
  if (isPostgres(where)) return where;
  if (db === undefined) return null;
  throw usage("workers share their tasks in PostgreSQL: --db postgres://…; without --db one is started here");
}

/** Takes lines until there are no more, or it is left. */
async function prompt(set: StartedSet, input: LineInput, signal: AbortSignal): Promise<void> {
  const terminal = detectTerminal();
  signal.addEventListener("abort", () => input.close());
  if (signal.aborted) input.close();
  try {
    for (let line = await input.next(terminal); line !== null; line = await input.next(terminal)) {
      try {
        await carryOut(line.trim(), set, (told) => input.tell(told));
      } catch (error) {
        if (!isWorkflowError(error)) throw error;
        input.tell(`${error.code}: ${redact(error.message)}`);
      }
    }
  } finally {
    input.close();
  }
}

async function carryOut(
  line: string,
  { store, queue, graphs }: StartedSet,
  say: (line: string) => void,
): Promise<void> {
  if (line === "") return;
  const [, name = "", text = ""] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
  const named = graphs.get(name);
  if (named) {
    const taskId = newTaskId(named.runtime.workflow.name);
    const input = text === "" ? {} : { message: text };
    const beforeStart = () => rememberGraph(store, taskId, name);
    await submitTask(queue, named, { taskId, input }, { who: systemUser(), beforeStart });
    say(`submitted ${taskId}`);
    return;
  }
  const task = await describeTask(store, name).catch((error: unknown) => {
    if (!isWorkflowError(error, "UNKNOWN_TASK")) throw error;
    const known = [...graphs.keys()].join(", ");
    throw new WorkflowError("USAGE", `"${printable(name)}" is neither a graph (${known}) nor a task`);
  });
  const [request] = task.waiting ?? [];
  if (!request) throw new WorkflowError("TASK_NOT_WAITING", `task ${name} waits for nothing; it is ${task.status}`);
  const graph = await graphOfTask(store, name, task.workflow, undefined);
  await submitAnswer(queue, graph, { taskId: name, requestId: request.id, text, who: systemUser() });
}
