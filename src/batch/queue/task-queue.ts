import { Queue, type JobsOptions } from "bullmq";
import type { SqlStore } from "../../storage/sql-store.ts";
import type { Wake } from "../../storage/wakes.ts";
import { connectQueue, type ConnectOptions, type QueueConnection } from "./connection.ts";

/** What a job says: that a task is worth looking at. Where the task stands is in the store alone. */
export interface WakeJob {
  readonly taskId: string;
  /** How often a task that fails is run at most. */
  readonly attempts: number;
  /** How often it has failed since it was woken. */
  readonly failures: number;
}

export interface WakeOptions {
  /** 3 unless set. */
  readonly attempts?: number;
}

export interface QueueOptions extends Partial<ConnectOptions> {
  /** What the queues' names begin with, where several databases share one queue server; `statecard` unless set. */
  readonly prefix?: string;
}

/** A queue with jobs of this name for each of them. */
const UPKEEP = ["sweep", "consents", "deadlines", "memories", "prune"] as const;
export type Upkeep = (typeof UPKEEP)[number];

const DEFAULT_ATTEMPTS = 3;
const DEFAULT_CONNECTIONS = 4;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
/** How often each comes round, in milliseconds. */
export const EVERY: Readonly<Record<Upkeep, number>> = {
  sweep: MINUTE,
  consents: MINUTE,
  deadlines: 60 * MINUTE,
  memories: DAY,
  prune: DAY,
};
/** What went wrong with jobs themselves, for whoever looks. */
const KEEP_FAILED = { age: 7 * 24 * 60 * 60, count: 1000 };

/**
 * The queues of a deployment: one for each workflow, and one for the upkeep. A job is only a wake-up: that a task
 * is to be run is noted in the store first, so a job that is lost is made again by the sweep, and one that comes
 * twice finds nothing to do.
 */
export class TaskQueue {
  readonly connection: QueueConnection;
  private readonly store: SqlStore;
  private readonly prefix: string;
  private readonly queues = new Map<string, Queue>();

  private constructor(connection: QueueConnection, store: SqlStore, prefix: string) {
    this.connection = connection;
    this.store = store;
    this.prefix = prefix;
  }

  /**
   * @param location `postgres://…` or `redis://…`.
   * @throws USAGE, DATABASE_UNAVAILABLE.
   */
  static async open(location: string, store: SqlStore, options: QueueOptions = {}): Promise<TaskQueue> {
    const { prefix = "statecard", maxConnections = DEFAULT_CONNECTIONS } = options;
    return new TaskQueue(await connectQueue(location, { maxConnections }), store, prefix);
  }

  /** Has a task run, however often it is called: first as a note in the store, then as a job. */
  async wake(workflow: string, taskId: string, { attempts }: WakeOptions = {}): Promise<void> {
    await this.store.addWake(taskId, attempts);
    await this.queue(workflow).add("wake", jobOf({ taskId, attempts }), once(taskId));
  }

  /** Makes jobs for tasks that are noted in the store already; one that has a job keeps it. */
  async remind(workflow: string, wakes: readonly Pick<Wake, "taskId" | "attempts">[]): Promise<void> {
    await this.queue(workflow).addBulk(
      wakes.map((wake) => ({ name: "wake", data: jobOf(wake), opts: once(wake.taskId) })),
    );
  }

  /** Has a task looked at when the time for an answer is over. */
  async wakeAt(workflow: string, taskId: string, at: number, now: number): Promise<void> {
    const options = { ...once(`${taskId} ${at}`), delay: Math.max(0, at - now) };
    await this.queue(workflow).add("deadline", jobOf({ taskId }), options);
  }

  /** Puts a job that somebody had begun with before those that nobody has. */
  async toFront(workflow: string, jobId: string): Promise<void> {
    const job = await this.queue(workflow).getJob(jobId);
    await job?.changePriority({ priority: 0, lifo: true });
  }

  /** How many of a graph's tasks run at once, over all workers; null for any number. It holds until it is set again. */
  async limitConcurrency(workflow: string, concurrency: number | null): Promise<void> {
    const queue = this.queue(workflow);
    await (concurrency === null ? queue.removeGlobalConcurrency() : queue.setGlobalConcurrency(concurrency));
  }

  /** Has the upkeep come round, once for all workers; what another release had and this one has not, no longer. */
  async scheduleUpkeep(): Promise<void> {
    const queue = this.queue(UPKEEP_QUEUE);
    for (const name of UPKEEP) {
      const opts = { removeOnComplete: true, removeOnFail: KEEP_FAILED };
      await queue.upsertJobScheduler(name, { every: EVERY[name] }, { name, data: {}, opts });
    }
    for (const { key } of await queue.getJobSchedulers()) {
      if (!Object.hasOwn(EVERY, key)) await queue.removeJobScheduler(key);
    }
  }

  /** How many jobs of a graph wait, run, or are put off. */
  async counts(workflow: string): Promise<Readonly<Record<"waiting" | "active" | "delayed", number>>> {
    const counts = await this.queue(workflow).getJobCounts("waiting", "active", "delayed");
    return { waiting: counts.waiting ?? 0, active: counts.active ?? 0, delayed: counts.delayed ?? 0 };
  }

  /** The name of a workflow's queue. */
  nameOf(workflow: string): string {
    return `${this.prefix}.${workflow}`;
  }

  /** Removes the jobs and settings of a workflow's queue, or of the upkeep. Tasks stay as they are. */
  async remove(workflow: string): Promise<void> {
    await this.queue(workflow).obliterate({ force: true });
  }

  async close(): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.close()));
    await this.connection.close();
  }

  private queue(workflow: string): Queue {
    const known = this.queues.get(workflow);
    if (known) return known;
    const { connection, backend } = this.connection;
    const queue = new Queue(this.nameOf(workflow), { connection }, ...((backend ? [backend] : []) as []));
    // It connects again by itself; what a call fails with, its caller gets.
    queue.on("error", () => {});
    this.queues.set(workflow, queue);
    return queue;
  }
}

/** No workflow's name has a dot. */
export const UPKEEP_QUEUE = "upkeep.all";

function jobOf({ taskId, attempts = DEFAULT_ATTEMPTS }: { taskId: string; attempts?: number | undefined }): WakeJob {
  return { taskId, attempts, failures: 0 };
}

/** At most one job that waits and one that runs, however often a task is woken. */
function once(id: string): JobsOptions {
  return { deduplication: { id, keepLastIfActive: true }, removeOnComplete: true, removeOnFail: KEEP_FAILED };
}
