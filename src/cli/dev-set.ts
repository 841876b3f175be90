import { once } from "node:events";
import { TaskQueue } from "../batch/queue/task-queue.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { openStore } from "../storage/open-store.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { loadGraphs } from "./graphs.ts";
import { startKeptPostgres } from "./kept-postgres.ts";
import type { LocalPostgres } from "./local-postgres.ts";
import { WorkerProcess } from "./worker-process.ts";

export interface DevSetting {
  /** The database with the tasks; null for one that is started for them. */
  readonly location: string | null;
  /** Where the jobs are; in that database where it is null. */
  readonly queueLocation: string | null;
  readonly graphs: readonly string[];
  readonly workers: number;
  readonly say: (line: string) => void;
}

/** What the prompt needs. */
export interface StartedSet {
  readonly store: SqlStore;
  readonly queue: TaskQueue;
  /** By the names that they were given. */
  readonly graphs: ReadonlyMap<string, WorkflowGraph>;
}

/** All of it is on this machine, where a dead process is known at once. */
const STALL_S = 5;

/** What `statecard dev --distributed` runs: a database where none is named, connections to it, and workers. */
export class DevSet {
  private readonly workers: WorkerProcess[] = [];
  private database: LocalPostgres | null = null;
  private store: SqlStore | null = null;
  private queue: TaskQueue | null = null;

  /**
   * Starts all of it. Whatever comes of that, `stop` puts away what there is.
   *
   * @throws USAGE, UNKNOWN_GRAPH, INVALID_GRAPH, DATABASE_UNAVAILABLE; the signal's reason.
   */
  async start(setting: DevSetting, signal: AbortSignal): Promise<StartedSet> {
    if (setting.location === null) this.database = await startKeptPostgres(signal);
    const location = setting.location ?? this.database?.url ?? "";
    const queueLocation = setting.queueLocation ?? location;
    const store = openStore(location);
    this.store = store;
    const graphs = await loadGraphs(setting.graphs, store);
    const queue = await TaskQueue.open(queueLocation, store);
    this.queue = queue;
    signal.throwIfAborted();
    const of = { location, queueLocation, graphs: setting.graphs, stallSeconds: STALL_S, say: setting.say };
    for (let number = 1; number <= setting.workers; number++) this.workers.push(new WorkerProcess(number, of));
    await Promise.race([Promise.all(this.workers.map(({ ready }) => ready)), once(signal, "abort")]);
    signal.throwIfAborted();
    return { store, queue, graphs };
  }

  /** Puts all of it away: workers commit the steps that run, ten seconds at most. */
  async stop(): Promise<void> {
    try {
      await Promise.all(this.workers.map((worker) => worker.stop()));
      await this.queue?.close();
      await this.store?.close();
    } finally {
      await this.database?.stop();
    }
  }

  /** Puts it away at once; connections go with this process. */
  async kill(): Promise<void> {
    for (const worker of this.workers) worker.kill();
    await this.database?.stop();
  }
}
