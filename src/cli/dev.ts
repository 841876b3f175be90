import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { submitAnswer, submitTask } from "../batch/queue/submit.ts";
import { TaskQueue } from "../batch/queue/task-queue.ts";
import { describeTask } from "../compile/describe.ts";
import { newTaskId } from "../compile/task-id.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { systemUser } from "../internal/system-user.ts";
import { isPostgres, openStore } from "../storage/open-store.ts";
import { databaseFile } from "../storage/sqlite/sqlite.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { EXIT, usage } from "./exit.ts";
import { graphIds, graphOfTask, loadGraph, rememberGraph } from "./graphs.ts";
import { LineInput } from "./line-input.ts";
import { startLocalPostgres, type LocalPostgres } from "./local-postgres.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";
import { detectTerminal, printable } from "./terminal.ts";

export interface DevCommandOptions extends CommonOptions {
  readonly distributed?: boolean;
  readonly workers?: string;
  readonly graphs?: string;
  readonly queue?: string;
}

const WORKERS = 2;
/** All of it is on this machine, where a dead process is known at once. */
const STALL_S = 5;
const MAIN = fileURLToPath(new URL("main.js", import.meta.url));

/** `statecard dev --distributed`: a database, workers and a prompt, all on this machine, until it is left. */
export async function devCommand(options: DevCommandOptions): Promise<number> {
  if (!options.distributed) {
    throw usage("statecard dev --distributed starts workers here; for LangGraph Studio there is: npx langgraphjs dev");
  }
  if (options.json)
    throw usage("statecard dev talks with a person; for programs there are statecard worker and submit");
  const count = wholeNumber("--workers", options.workers, 1, 64) ?? WORKERS;
  const ids = graphIds(options.graphs);
  const own = await databaseOf(options);
  const location = own?.url ?? databaseFile(options.db);
  try {
    await runSet({ location, queueLocation: options.queue ?? location, ids, count, isOwn: own !== null });
  } finally {
    await own?.stop();
  }
  return EXIT.ok;
}

/** The database of this run; null where one is named. */
async function databaseOf({ db }: DevCommandOptions): Promise<LocalPostgres | null> {
  if (db === undefined && !isPostgres(databaseFile(db))) return startLocalPostgres();
  if (isPostgres(databaseFile(db))) return null;
  throw usage("workers share their tasks in PostgreSQL: --db postgres://…; without --db one is started here");
}

interface Setting {
  readonly location: string;
  readonly queueLocation: string;
  readonly ids: readonly string[];
  readonly count: number;
  readonly isOwn: boolean;
}

async function runSet({ location, queueLocation, ids, count, isOwn }: Setting): Promise<void> {
  const store = openStore(location);
  const queue = await TaskQueue.open(queueLocation, store);
  const workers = new Set<WorkerProcess>();
  try {
    for (let number = 1; number <= count; number++) {
      workers.add(new WorkerProcess(number, { location, queueLocation, ids }));
    }
    const database = isOwn ? "a PostgreSQL of its own, which goes with it (--db keeps tasks)" : queue.connection.where;
    say(`${count} ${count === 1 ? "worker" : "workers"} on ${database}.`);
    say(`Type GRAPH MESSAGE to submit a task, TASK ANSWER to answer one. Graphs: ${ids.join(", ")}. Ctrl-D ends it.`);
    await Promise.all([...workers].map((worker) => worker.ready));
    await prompt(store, queue, ids);
  } finally {
    say("Stopping: what runs commits its step; nothing is lost.");
    await Promise.all([...workers].map((worker) => worker.stop()));
    await queue.close();
    await store.close();
  }
}

/** Takes lines until there are no more, or a signal comes. */
async function prompt(store: SqlStore, queue: TaskQueue, ids: readonly string[]): Promise<void> {
  const terminal = detectTerminal();
  const input = new LineInput();
  const onSignal = () => input.close();
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  try {
    for (let line = await input.next(terminal); line !== null; line = await input.next(terminal)) {
      try {
        await carryOut(line.trim(), store, queue, ids);
      } catch (error) {
        if (!isWorkflowError(error)) throw error;
        say(`${error.code}: ${redact(error.message)}`);
      }
    }
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
    input.close();
  }
}

async function carryOut(line: string, store: SqlStore, queue: TaskQueue, ids: readonly string[]): Promise<void> {
  if (line === "") return;
  const [, name = "", text = ""] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
  if (ids.includes(name)) {
    const graph = await loadGraph(name, store);
    const taskId = newTaskId(graph.runtime.workflow.name);
    const input = text === "" ? {} : { message: text };
    const beforeStart = () => rememberGraph(store, taskId, name);
    await submitTask(queue, graph, { taskId, input }, { who: systemUser(), beforeStart });
    say(`submitted ${taskId}`);
    return;
  }
  const task = await describeTask(store, name).catch((error: unknown) => {
    if (!isWorkflowError(error, "UNKNOWN_TASK")) throw error;
    throw new WorkflowError("USAGE", `"${printable(name)}" is neither a graph (${ids.join(", ")}) nor a task`);
  });
  const [request] = task.waiting ?? [];
  if (!request) throw new WorkflowError("TASK_NOT_WAITING", `task ${name} waits for nothing; it is ${task.status}`);
  const graph = await graphOfTask(store, name, task.workflow, undefined);
  await submitAnswer(queue, graph, { taskId: name, requestId: request.id, text, who: systemUser() });
}

/** A worker in a process of its own, whose lines are shown with its number. */
class WorkerProcess {
  /** Resolves when it has said its first line, or has ended. */
  readonly ready: Promise<unknown>;
  private readonly number: number;
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  constructor(number: number, { location, queueLocation, ids }: Omit<Setting, "count" | "isOwn">) {
    this.number = number;
    const args = ["worker", "--graphs", ids.join(","), "--stall-interval", String(STALL_S)];
    // Locations can hold passwords, which would be seen in a list of processes.
    const env = { ...process.env, STATECARD_DB: location, STATECARD_QUEUE: queueLocation };
    // A group of its own, so that Ctrl-C comes from here alone; it ends where this process does.
    this.child = spawn(process.execPath, [MAIN, ...args], {
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.ended = once(this.child, "exit").then(([code]) => code !== 0 && say(`[${number}] ended with code ${code}`));
    this.ready = Promise.race([this.ended, ...this.show(this.child.stdout), ...this.show(this.child.stderr)]);
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    await this.ended;
  }

  private show(output: Readable | null): readonly Promise<unknown>[] {
    if (!output) return [];
    const lines = createInterface({ input: output });
    // What a worker says about itself is said once, for all of them.
    lines.on("line", (line) => /^(?:Worker for|Ctrl-C|Stopping)/.test(line) || say(`[${this.number}] ${line}`));
    return [once(lines, "line")];
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
