import { attempt, type TimeLimits } from "../batch/attempt.ts";
import { noteFailure } from "../batch/standing.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import type { SqlStore } from "../storage/sql-store.ts";

export interface RunnerOptions {
  readonly store: SqlStore;
  /** The graph of each workflow that this server has, by the workflow's name. */
  readonly graphs: ReadonlyMap<string, WorkflowGraph>;
  /** How many tasks run at once. */
  readonly concurrency: number;
  readonly timeLimits: TimeLimits;
  readonly log: (message: string) => void;
  /** Called whenever a task that was run here has paused or ended. */
  readonly onSettled: (taskId: string) => void;
}

interface Job {
  readonly abort: AbortController;
  /** True where the task was woken again while it ran. */
  again: boolean;
  tries: number;
  readonly settled: Promise<void>;
  readonly settle: () => void;
}

const RETRY_MS = 100;
/** After so many, the next sweep tries again. */
const RETRIES = 20;

/**
 * Runs tasks in the background of this process. That a task is to be run is noted in the database first and
 * struck out when it has paused or ended, so that a crash loses none: whichever server sweeps next finds it.
 */
export class Runner {
  private readonly options: RunnerOptions;
  private readonly jobs = new Map<string, Job>();
  private readonly queue: string[] = [];
  /** Tasks that were busy, until they are tried again. */
  private readonly retries = new Map<string, NodeJS.Timeout>();
  private readonly stop = new AbortController();
  private running = 0;

  constructor(options: RunnerOptions) {
    this.options = options;
  }

  /** Makes sure that a task is run after this call, here or by another server. */
  async wake(taskId: string): Promise<void> {
    await this.options.store.addWake(taskId);
    this.enqueue(taskId);
  }

  /** Takes up whatever a server has promised to run and has not, as after a crash. */
  async sweep(): Promise<void> {
    if (this.stop.signal.aborted) return;
    for (const { taskId } of await this.options.store.wakes()) {
      // One that another server runs is busy, and is looked at again at the next sweep.
      if (!this.jobs.has(taskId)) this.enqueue(taskId, RETRIES);
    }
  }

  /** Whether this process runs a task, or is about to. */
  has(taskId: string): boolean {
    return this.jobs.has(taskId);
  }

  /** Resolves when this process neither runs a task nor is about to. */
  settled(taskId: string): Promise<void> {
    return this.jobs.get(taskId)?.settled ?? Promise.resolve();
  }

  /** Ends a run at once; the task has been taken from it already. */
  abort(taskId: string): void {
    this.jobs.get(taskId)?.abort.abort(new Error(`task ${taskId} was cancelled`));
  }

  /**
   * Ends all runs: each commits the superstep that it is in and lets its lease go. What is left stays noted,
   * for the next start.
   *
   * @param graceMs after so long, runs are cut off within their superstep; nothing is lost then either.
   */
  async drain(graceMs: number): Promise<void> {
    this.stop.abort(new Error("the server stops"));
    for (const timer of this.retries.values()) clearTimeout(timer);
    for (const taskId of [...this.queue.splice(0), ...this.retries.keys()]) this.settle(taskId);
    const all = Promise.all([...this.jobs.values()].map(({ settled }) => settled));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => (timer = setTimeout(resolve, graceMs, "late")));
    if ((await Promise.race([all, late])) === "late") {
      for (const { abort } of this.jobs.values()) abort.abort(new Error("the server stops"));
      await all;
    }
    clearTimeout(timer);
  }

  private enqueue(taskId: string, tries = 0): void {
    if (this.stop.signal.aborted) return;
    const known = this.jobs.get(taskId);
    if (known) {
      known.again = true;
      known.tries = 0;
      return;
    }
    const { promise, resolve } = withResolvers();
    this.jobs.set(taskId, { abort: new AbortController(), again: false, tries, settled: promise, settle: resolve });
    this.queue.push(taskId);
    this.next();
  }

  private next(): void {
    while (this.running < this.options.concurrency) {
      const taskId = this.queue.shift();
      const job = taskId === undefined ? undefined : this.jobs.get(taskId);
      if (taskId === undefined || !job) return;
      this.running++;
      void this.run(taskId, job)
        .catch((error: unknown) => {
          this.options.log(`task ${taskId}: ${redact(error instanceof Error ? error.message : String(error))}`);
          return "ended" as const;
        })
        .then((outcome) => {
          this.running--;
          this.finish(taskId, job, outcome);
          this.next();
        });
    }
  }

  private finish(taskId: string, job: Job, outcome: "ended" | "busy"): void {
    const isStopping = this.stop.signal.aborted;
    if (!isStopping && outcome === "busy" && job.tries < RETRIES) {
      const timer = setTimeout(() => {
        this.retries.delete(taskId);
        this.queue.push(taskId);
        this.next();
      }, RETRY_MS);
      this.retries.set(taskId, timer);
      job.tries++;
    } else if (!isStopping && job.again) {
      job.again = false;
      this.queue.push(taskId);
    } else {
      this.settle(taskId);
    }
  }

  private settle(taskId: string): void {
    this.jobs.get(taskId)?.settle();
    this.jobs.delete(taskId);
    this.options.onSettled(taskId);
  }

  private async run(taskId: string, job: Job): Promise<"ended" | "busy"> {
    const { store } = this.options;
    job.again = false;
    const [wake] = await store.wakes(taskId);
    if (!wake) return "ended";
    const graph = await this.graphOf(taskId);
    // Another server may have it.
    if (graph === null) return "ended";
    try {
      if (graph) await this.advance(graph, taskId, job.abort.signal);
    } catch (error) {
      if (isWorkflowError(error, "TASK_BUSY")) return "busy";
      // What was not lost is not struck out either: the next start takes it up.
      const isCut = this.stop.signal.aborted && job.abort.signal.aborted;
      const isLeft = isCut || isWorkflowError(error, "TASK_STOPPED");
      if (isLeft || (isWorkflowError(error) && error.code.startsWith("DATABASE_"))) return "ended";
      const noted = await noteFailure(store, taskId, error);
      if (noted) this.options.log(`task ${taskId}: ${noted.code}: ${noted.message}`);
    }
    await store.removeWake(wake);
    return "ended";
  }

  private advance(graph: WorkflowGraph, taskId: string, cut: AbortSignal): Promise<void> {
    const { timeLimits: limits } = this.options;
    return attempt({ graph, taskId, input: null, limits, stop: this.stop.signal, cut, onTakenUp: () => {} });
  }

  /** A task's graph; null where this server does not have it, undefined where nothing can run the task. */
  private async graphOf(taskId: string): Promise<WorkflowGraph | null | undefined> {
    const looked = await this.options.store.look(taskId);
    if (!looked) return undefined;
    return this.options.graphs.get(looked.execution.workflow) ?? null;
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
