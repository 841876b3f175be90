import { DelayedError, WaitingError, Worker, type Job } from "bullmq";
import type { TaskDescription } from "../../compile/describe.ts";
import { tenantOf } from "../../compile/task-id.ts";
import type { WorkflowGraph } from "../../compile/workflow-graph.ts";
import { isWorkflowError, WorkflowError } from "../../errors.ts";
import { redact } from "../../internal/redact.ts";
import { isExpired } from "../../people/expiry.ts";
import type { SqlStore } from "../../storage/sql-store.ts";
import type { Wake } from "../../storage/wakes.ts";
import type { TimeLimits } from "../attempt.ts";
import { advance, type BatchEvent } from "../batch.ts";
import { noteFailure, standing } from "../standing.ts";
import { Slots, type Limit, type NamedLimit, type Slot } from "./slots.ts";
import { UPKEEP_QUEUE, type TaskQueue, type Upkeep, type WakeJob } from "./task-queue.ts";
import { upkeep } from "./upkeep.ts";

export interface WorkerOptions {
  readonly store: SqlStore;
  /** Open; whoever opened it closes it. */
  readonly queue: TaskQueue;
  /** The graphs whose tasks this worker runs, by the workflow's name. */
  readonly graphs: ReadonlyMap<string, WorkflowGraph>;
  /** How many tasks of each graph run at once in this process. */
  readonly concurrency: number;
  /** Limits over all workers, by the workflow's name. Each worker has to be told the same. */
  readonly graphLimits?: ReadonlyMap<string, Limit>;
  /** Likewise, by the tenant's name. */
  readonly tenantLimits?: ReadonlyMap<string, Limit>;
  readonly timeLimits?: TimeLimits;
  /** The wait before a failed task's second attempt, in milliseconds; doubled before each further one. 1,000 unless set. */
  readonly backoffMs?: number;
  /**
   * A dead worker's tasks are taken over after at most twice this, in milliseconds; 40,000 unless set. Over several
   * machines it has to be longer than a lease, 30 seconds: before that, nobody could take them.
   */
  readonly stallMs?: number;
  /** How long tasks that have ended are kept, in milliseconds; for ever unless set. Each worker has to be told the same. */
  readonly keepEndedMs?: number;
  /** Whether this worker takes part in the upkeep; true unless set. */
  readonly upkeep?: boolean;
  /** Called with what happens to tasks in this process. */
  readonly onEvent?: (event: BatchEvent) => void;
  readonly log: (message: string) => void;
}

/** A task that is to be run. */
interface Due {
  readonly task: TaskDescription;
  readonly graph: WorkflowGraph;
  /** The note that says so, as it was before the task is run; undefined where only the time for an answer is over. */
  readonly wake: Wake | undefined;
}

const STALL_MS = 40_000;
/** The part of the stall interval that a job's lock holds; longer than a lease where the interval is. */
const LOCK_SHARE = 0.8;
const BACKOFF_MS = 1000;
/** More than a job can come to. */
const UNCOUNTED = 1_000_000;
/** A task that so many processes have died of is not given to another. */
const MOST_DEATHS = 5;
const LONGEST_WAIT_MS = 5000;
const DATABASE_AWAY_MS = 2000;
const OTHER_RELEASE_MS = 30_000;
const GRACE_MS = 10_000;
/** What BullMQ says of a job that this worker had, and that was given to another one or removed. */
const LOST_JOB = /^(?:could not renew lock|Missing (?:lock|key)|Lock mismatch) for job /;

/**
 * Runs tasks that are noted to be run, whichever process noted them. What a job says is never trusted: it is looked
 * up in the store, under the task's lease.
 */
export class TaskWorker {
  private readonly options: WorkerOptions;
  private readonly slots: Slots;
  private readonly workers: readonly Worker[];
  private readonly stopping = new AbortController();
  private readonly cutting = new AbortController();

  constructor(options: WorkerOptions) {
    this.options = options;
    this.slots = new Slots(options.store);
    const names = [...options.graphs.keys()];
    this.workers = [
      ...names.map((workflow) => this.listen(workflow, options.concurrency, (job, token) => this.run(job, token))),
      ...(options.upkeep === false ? [] : [this.listen(UPKEEP_QUEUE, 1, (job) => this.keepUp(job.name))]),
    ];
  }

  /** Resolves when it takes jobs. */
  async ready(): Promise<void> {
    const { queue, graphs, graphLimits } = this.options;
    for (const workflow of graphs.keys()) {
      await queue.limitConcurrency(workflow, graphLimits?.get(workflow)?.concurrency ?? null);
    }
    if (this.options.upkeep !== false) await queue.scheduleUpkeep();
    await Promise.all(this.workers.map((worker) => worker.waitUntilReady()));
  }

  /**
   * Ends all runs: each commits the step that it is in, and its job goes back to the other workers at once.
   *
   * @param graceMs after so long, runs are cut off within their step; nothing is lost then either.
   */
  async stop(graceMs = GRACE_MS): Promise<void> {
    this.stopping.abort(new Error("the worker stops"));
    const late = setTimeout(() => this.cutting.abort(new Error("the worker stops")), graceMs);
    await Promise.all(this.workers.map((worker) => worker.close()));
    clearTimeout(late);
    await this.slots.close();
  }

  private listen(
    workflow: string,
    concurrency: number,
    process: (job: Job, token: string | undefined) => Promise<unknown>,
  ): Worker {
    const { queue, stallMs = STALL_MS, log } = this.options;
    const { connection, backend } = queue.connection;
    const settings = {
      connection,
      concurrency,
      // Some worker checks at least once within twice this; a job has to be found without a lock twice.
      stalledInterval: Math.round(stallMs / 2),
      lockDuration: Math.round(stallMs * LOCK_SHARE),
      // Counted in `run`, which can tell the task.
      maxStalledCount: UNCOUNTED,
    };
    /** The tasks in hand, by their jobs. */
    const inHand = new Map<string, string>();
    const take = async (job: Job, token: string | undefined): Promise<unknown> => {
      const id = job.id ?? "";
      inHand.set(id, String(job.data.taskId ?? job.name));
      try {
        return await process(job, token);
      } finally {
        inHand.delete(id);
      }
    };
    const worker = new Worker(queue.nameOf(workflow), take, settings, ...((backend ? [backend] : []) as []));
    const onError = (error: Error) => {
      // Told below for the task; and the end of a job that is another worker's by then, or gone, means nothing.
      if (!LOST_JOB.test(error.message)) log(`queue ${workflow}: ${redact(error.message)}`);
    };
    worker.on("error", onError);
    worker.on("lockRenewalFailed", (jobIds) => {
      for (const id of jobIds) {
        const name = inHand.get(id);
        // Once, though each renewal fails from then on.
        inHand.delete(id);
        if (name !== undefined) log(givenAway(workflow === UPKEEP_QUEUE ? `upkeep ${name}` : `task ${name}`));
      }
    });
    // On PostgreSQL it would come back behind all that wait.
    worker.on("stalled", (jobId) => void queue.toFront(workflow, jobId).catch(onError));
    return worker;
  }

  private async keepUp(name: string): Promise<void> {
    const { log } = this.options;
    // A job of a newer or an older release.
    if (!isUpkeep(name)) return;
    try {
      await upkeep[name](this.options);
    } catch (error) {
      // The next round does it.
      log(`upkeep ${name}: ${redact(error instanceof Error ? error.message : String(error))}`);
    }
  }

  private async run(job: Job<WakeJob>, token: string | undefined): Promise<void> {
    const { taskId } = job.data;
    if (this.stopping.signal.aborted) return giveBack(job, token);
    let slot: Slot | undefined;
    try {
      const due = await this.due(taskId);
      if (!due) return;
      const { task, graph } = due;
      if (task.quarantine !== undefined) {
        // Another release may be able to run it: one that is just being rolled out, or the one before.
        this.options.log(`task ${taskId} is left to another release: ${task.quarantine}`);
        return await putOff(job, token, OTHER_RELEASE_MS);
      }
      const place = await this.slots.take(this.limitsOf(graph, taskId));
      if ("againInMs" in place) return await putOff(job, token, place.againInMs);
      slot = place;
      await this.advance(due, job, token);
    } catch (error) {
      if (!isWorkflowError(error) || !error.code.startsWith("DATABASE_")) throw error;
      this.options.log(`task ${taskId}: ${error.code}: ${redact(error.message)}`);
      await putOff(job, token, DATABASE_AWAY_MS);
    } finally {
      slot?.release();
    }
  }

  /** The task, where it is to be run; null where there is nothing to do, as for a job that came twice. */
  private async due(taskId: string): Promise<Due | null> {
    const { store, graphs } = this.options;
    const [wake] = await store.wakes(taskId);
    const task = await standing(store, taskId);
    const graph = task ? graphs.get(task.workflow) : undefined;
    if (!task || !graph) return null;
    const now = graph.runtime.clock.now();
    return wake || task.waiting?.some((request) => isExpired(request, now)) ? { task, graph, wake } : null;
  }

  private async advance({ graph, wake }: Due, job: Job<WakeJob>, token: string | undefined): Promise<void> {
    const { store, timeLimits: limits = {}, backoffMs = BACKOFF_MS, onEvent = () => {} } = this.options;
    const { taskId, attempts, failures } = job.data;
    if (job.stalledCounter > MOST_DEATHS) {
      await noteFailure(store, taskId, diedOf(taskId, job.stalledCounter));
    } else {
      const tried = { task: { taskId, input: {} }, due: 0, failures, ran: false };
      const options = { graph, by: "worker", limits, attempts, backoffMs, onEvent } as const;
      const next = await advance(options, tried, this.stopping.signal, this.cutting.signal);
      if ("againInMs" in next) {
        if (tried.failures > failures) await job.updateData({ ...job.data, failures: tried.failures });
        return putOff(job, token, Math.max(next.againInMs, tried.failures > failures ? 0 : waitOf(job)));
      }
      if (next.outcome === "stopped") return giveBack(job, token);
      if (next.outcome === "waiting") await this.noteDeadline(graph, taskId);
      onEvent({ kind: "settled", taskId, settled: next });
    }
    if (wake) await store.removeWake(wake);
  }

  /** When the time for an answer is over, the task is looked at again. */
  private async noteDeadline(graph: WorkflowGraph, taskId: string): Promise<void> {
    const { runtime } = graph;
    const waiting = (await standing(runtime.store, taskId))?.waiting ?? [];
    const at = Math.min(...waiting.map(({ expiresAt = Infinity }) => expiresAt));
    if (at !== Infinity) await this.options.queue.wakeAt(runtime.workflow.name, taskId, at, runtime.clock.now());
  }

  /** What BullMQ does not limit: it counts a run that is put off for its tenant as one that has begun. */
  private limitsOf({ runtime }: WorkflowGraph, taskId: string): readonly NamedLimit[] {
    const tenant = tenantOf(taskId);
    const { graphLimits, tenantLimits } = this.options;
    const ofTenant = tenantLimits?.get(tenant);
    const rate = graphLimits?.get(runtime.workflow.name)?.rate;
    return [
      ...(ofTenant ? [{ name: `@${tenant}`, limit: ofTenant }] : []),
      ...(rate ? [{ name: runtime.workflow.name, limit: { concurrency: null, rate } }] : []),
    ];
  }
}

function isUpkeep(name: string): name is Upkeep {
  return Object.hasOwn(upkeep, name);
}

function givenAway(what: string): string {
  return `${what}: this worker did not tell the queue in time that it is alive, so another one may take it over; nothing is lost`;
}

function diedOf(taskId: string, deaths: number): WorkflowError {
  const message = `${deaths} processes died or hung while they ran task ${taskId}; resume it to try again`;
  return new WorkflowError("STEP_FAILED", message, { details: { taskId, deaths } });
}

/** The longer a job has been put off, the longer it waits; some by chance, so that many do not come back together. */
function waitOf({ attemptsStarted }: Job): number {
  return Math.min(100 * 2 ** Math.min(attemptsStarted, 10), LONGEST_WAIT_MS) * (0.5 + Math.random() / 2);
}

/** @throws always: so BullMQ learns that the job has been put back. */
async function putOff(job: Job, token: string | undefined, waitMs: number): Promise<never> {
  await job.moveToDelayed(Date.now() + Math.ceil(waitMs), token);
  throw new DelayedError();
}

/** @throws always. */
async function giveBack(job: Job, token: string | undefined): Promise<never> {
  await job.moveToWait(token);
  await job.changePriority({ priority: 0, lifo: true });
  throw new WaitingError();
}
