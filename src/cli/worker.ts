import type { BatchEvent } from "../batch/batch.ts";
import { readLimit } from "../batch/queue/read-limit.ts";
import type { Limit } from "../batch/queue/slots.ts";
import { TaskQueue } from "../batch/queue/task-queue.ts";
import { TaskWorker } from "../batch/queue/worker.ts";
import { describeTask } from "../compile/describe.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isPostgres, openStore } from "../storage/open-store.ts";
import { databaseFile } from "../storage/sqlite/sqlite.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { EXIT, exitWith, usage } from "./exit.ts";
import { graphIds, loadGraphs } from "./graphs.ts";
import { milliseconds, timeLimitsIn, wholeNumber, type CommonOptions, type TimeLimitOptions } from "./options.ts";
import { DAY_MS, MOST_DAYS } from "./prune.ts";
import { STOP_SIGNALS, untilStopped } from "./stop-signals.ts";
import { printable } from "./terminal.ts";
import { asksLine } from "./waiting.ts";

export interface WorkerCommandOptions extends CommonOptions, TimeLimitOptions {
  readonly graphs?: string;
  readonly concurrency?: string;
  readonly queue?: string;
  readonly limit?: readonly string[];
  readonly stallInterval?: string;
  readonly keepEnded?: string;
}

const CONCURRENCY = 16;
/** Each graph's queue listens on a connection of its own; so does the upkeep. */
const SHARED_CONNECTIONS = 5;

/** `statecard worker`: runs tasks that others submit, until a signal ends it. */
export async function workerCommand(options: WorkerCommandOptions): Promise<number> {
  const concurrency = wholeNumber("--concurrency", options.concurrency, 1, 10_000) ?? CONCURRENCY;
  const timeLimits = timeLimitsIn(options);
  const stallMs = milliseconds("--stall-interval", options.stallInterval);
  const keptDays = wholeNumber("--keep-ended", options.keepEnded, 1, MOST_DAYS);
  const store = openStore(options.db);
  const graphs = await loadGraphs(graphIds(options.graphs), store);
  const { tenantLimits, graphLimits } = readLimits(options.limit ?? [], graphs);
  const location = queueLocation(options);
  const queue = await TaskQueue.open(location, store, { maxConnections: graphs.size + SHARED_CONNECTIONS });
  const worker = new TaskWorker({
    store,
    queue,
    graphs: new Map([...graphs.values()].map((graph) => [graph.runtime.workflow.name, graph])),
    concurrency,
    graphLimits,
    tenantLimits,
    timeLimits,
    ...(stallMs === undefined ? {} : { stallMs }),
    ...(keptDays === undefined ? {} : { keepEndedMs: keptDays * DAY_MS }),
    onEvent: (event) => void tell(store, event, options),
    log: (message) => process.stderr.write(`${printable(message)}\n`),
  });
  // It takes up jobs at once, before it has said that it is ready.
  const stopped = untilStopped(
    () => worker.stop(),
    "Stopping: what runs commits its step and goes back to the other workers.",
    [...STOP_SIGNALS, "disconnect"],
  );
  // Listened to, the channel to whoever has started it would keep this process. It may have closed already.
  process.channel?.unref();
  if (process.send && !process.connected) process.emit("disconnect");
  const isReady = await Promise.race([worker.ready().then(() => true), stopped.then(() => false)]);
  if (isReady) announce([...graphs.keys()], concurrency, queue.connection.where, options);
  await stopped;
  await queue.close();
  await store.close();
  // A step that was cut off may go on for as long as it likes; it can commit nothing any more.
  return exitWith(EXIT.ok);
}

/**
 * Where the jobs are: `--queue`, else STATECARD_QUEUE, else the database with the tasks.
 *
 * @throws USAGE where that is a file.
 */
export function queueLocation({ db, queue }: Pick<WorkerCommandOptions, "db" | "queue">): string {
  const named = queue ?? process.env.STATECARD_QUEUE;
  if (named !== undefined) return named;
  const where = databaseFile(db);
  if (isPostgres(where)) return where;
  throw usage(
    `workers share their tasks through a server: name it with --db postgres://… (or STATECARD_DB); tasks in a file (${where}) need --queue redis://… beside it, and all workers on this machine`,
  );
}

/** @throws USAGE. */
function readLimits(
  given: readonly string[],
  graphs: ReadonlyMap<string, WorkflowGraph>,
): { readonly tenantLimits: ReadonlyMap<string, Limit>; readonly graphLimits: ReadonlyMap<string, Limit> } {
  const tenantLimits = new Map<string, Limit>();
  const graphLimits = new Map<string, Limit>();
  for (const { kind, name, limit } of given.map(readLimit)) {
    const workflow = graphs.get(name)?.runtime.workflow.name;
    if (kind === "tenant") tenantLimits.set(name, limit);
    else if (workflow === undefined) {
      throw usage(`--limit ${name}: this worker has ${[...graphs.keys()].join(", ")}; a tenant is written @${name}`);
    } else graphLimits.set(workflow, limit);
  }
  return { tenantLimits, graphLimits };
}

function announce(graphs: readonly string[], concurrency: number, where: string, { json }: CommonOptions): void {
  const text = json
    ? JSON.stringify({ worker: { pid: process.pid, graphs, concurrency, queue: where } })
    : `Worker for ${graphs.join(", ")}: up to ${concurrency} tasks of each at once. Jobs are in ${where}.\nCtrl-C stops it; nothing is lost.`;
  process.stdout.write(`${text}\n`);
}

/** One line for each task that has paused or ended here, or is tried again. */
async function tell(store: SqlStore, event: BatchEvent, { json }: CommonOptions): Promise<void> {
  if (event.kind !== "settled" && event.kind !== "retry") return;
  const { taskId } = event;
  const { outcome, error } = event.kind === "settled" ? event.settled : { outcome: "tried again", error: event.error };
  if (json) {
    process.stdout.write(`${JSON.stringify({ taskId, outcome, ...(error ? { error } : {}) })}\n`);
    return;
  }
  const task = outcome === "waiting" ? await describeTask(store, taskId).catch(() => null) : null;
  const [request] = task?.waiting ?? [];
  const says = request ? asksLine(request, Date.now()) : outcome;
  const why = error ? `  ${printable(`${error.code}: ${error.message}`)}` : "";
  process.stdout.write(`${printable(taskId)}  ${says}${why}\n`);
}
