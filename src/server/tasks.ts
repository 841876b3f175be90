import { setTimeout as sleep } from "node:timers/promises";
import { requireStart, taskFinished, unknownTask } from "../compile/admit-input.ts";
import { describeRow, describeTask, type TaskDescription, type WaitingRequest } from "../compile/describe.ts";
import { shownRow, shownTask, type ShownRow, type ShownTask } from "../compile/iso-times.ts";
import { signedIn } from "../compile/identity.ts";
import { recordReplies, resumeOf } from "../compile/record-answers.ts";
import { canGoOn } from "../compile/open-requests.ts";
import { replyTo, type PersonsReply, type ReplyWords } from "../compile/reply-to.ts";
import { startOnly } from "../compile/start-only.ts";
import { checkTaskId, newTaskId } from "../compile/task-id.ts";
import type { TaskRow } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { digest } from "../internal/digest.ts";
import { redact } from "../internal/redact.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { shown, storedIdFor, type Caller } from "./caller.ts";
import { cursorOf, readCursor } from "./cursor.ts";
import type { Runner } from "./runner.ts";
import { inputOf, type NewTask } from "./task-input.ts";

/** A task and what became of the request that asked for it. */
export interface Outcome {
  readonly task: ShownTask;
  /** True where an earlier request with the same key had made it. */
  readonly isReplayed?: boolean;
}

export interface ListOptions {
  readonly status?: TaskDescription["status"] | undefined;
  readonly graph?: string | undefined;
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string | undefined;
}

/** How an answer is written in a request's body. */
const IN_BODY: ReplyWords = { verb: (verb) => `"${verb}"`, request: "requestId" };
/** A list that is filtered by status looks at so many tasks for one page. */
const MOST_LOOKED_AT = 1000;
const FIRST_LOOKS = 100;

/** What can be done with tasks, for one caller after the other. Tasks of other tenants do not exist for it. */
export class Tasks {
  private readonly store: SqlStore;
  private readonly runner: Runner;
  /** By the id that clients use. */
  private readonly graphs: ReadonlyMap<string, WorkflowGraph>;

  constructor(store: SqlStore, runner: Runner, graphs: ReadonlyMap<string, WorkflowGraph>) {
    this.store = store;
    this.runner = runner;
    this.graphs = graphs;
  }

  /**
   * Starts a task: when this returns, it is in the database and will be run, whatever happens to this process.
   *
   * @param key the client's key for this request, where it has one.
   * @throws UNKNOWN_GRAPH, INVALID_INPUT, TASK_EXISTS, IDEMPOTENCY_CONFLICT, and what the input's text may be refused with.
   */
  async create(caller: Caller, given: NewTask, key: string | undefined): Promise<Outcome> {
    const graph = this.graph(given.graph);
    const input = inputOf(graph, given);
    const { workflow } = graph.runtime;
    requireStart(workflow, input, given.taskId);
    const stored = this.idFor(caller, given.taskId ?? newTaskId(workflow.name));
    const start = (taskId: string) =>
      startOnly(graph, taskId, input, { who: caller.who, maxDecisions: given.maxDecisions });
    const wake = async (taskId: string): Promise<Outcome> => {
      await this.runner.wake(taskId);
      return { task: await this.describe(caller, taskId) };
    };
    if (key === undefined) {
      await start(stored);
      return wake(stored);
    }
    const claim = { ...caller, key, digest: digest(given), taskId: stored };
    const known = await this.store.claimKey(claim);
    if (known.digest !== claim.digest) {
      const message = "this Idempotency-Key came with another body before; use a new key for a new request";
      throw new WorkflowError("IDEMPOTENCY_CONFLICT", message);
    }
    if (!known.isNew && (await this.exists(known.taskId))) {
      const task = await this.describe(caller, known.taskId);
      // Whoever made it may have come to its end before it was noted that it is to be run.
      const isAsleep = task.status === "created" && !this.runner.has(known.taskId);
      return { ...(isAsleep ? await wake(known.taskId) : { task }), isReplayed: true };
    }
    try {
      await start(known.taskId);
    } catch (error) {
      if (known.isNew) {
        await this.store.releaseKey(claim);
      } else if (isWorkflowError(error, "TASK_EXISTS")) {
        // The same request, sent twice at once: the other one has made it, or is about to.
        return { task: await this.soon(caller, known.taskId), isReplayed: true };
      }
      throw error;
    }
    return wake(known.taskId);
  }

  /** @throws UNKNOWN_TASK. */
  async read(caller: Caller, taskId: string): Promise<ShownTask> {
    return this.describe(caller, this.idFor(caller, taskId));
  }

  /** Waits until a task has paused or ended in this process, at most so long. */
  async settled(caller: Caller, taskId: string, seconds: number, signal: AbortSignal): Promise<ShownTask> {
    const stored = this.idFor(caller, taskId);
    await waitFor(this.runner.settled(stored), seconds * 1000, signal);
    return this.describe(caller, stored);
  }

  /** Whether a task runs, here or elsewhere, or is about to. */
  goesOn(caller: Caller, { taskId, status }: ShownTask): boolean {
    return this.runner.has(this.idFor(caller, taskId)) || status === "created" || status === "running";
  }

  /** @throws UNKNOWN_GRAPH, INVALID_REQUEST. */
  async list(caller: Caller, options: ListOptions): Promise<{ tasks: readonly ShownRow[]; next?: string }> {
    const workflow = options.graph === undefined ? undefined : this.graph(options.graph).runtime.workflow.name;
    let after = options.after === undefined ? undefined : readCursor(caller, options.after);
    const tasks: ShownRow[] = [];
    for (let looked = 0; looked < MOST_LOOKED_AT;) {
      const rows = await this.store.tasks({
        tenant: caller.tenant,
        limit: options.limit,
        ...(workflow === undefined ? {} : { workflow }),
        ...(after ? { after } : {}),
      });
      for (const row of rows) {
        after = { updatedAt: row.updatedAt, taskId: row.taskId };
        const listed = await this.listed(caller, row);
        if (options.status === undefined || listed.status === options.status) tasks.push(listed);
        if (tasks.length === options.limit) return { tasks, next: cursorOf(caller, after) };
      }
      if (rows.length < options.limit) return { tasks };
      looked += rows.length;
    }
    return after ? { tasks, next: cursorOf(caller, after) } : { tasks };
  }

  /**
   * Stores an answer, or none, and has the task go on.
   *
   * @param digest what the person was shown, where the client says so.
   * @throws what `replyTo` and `recordReplies` refuse, UNKNOWN_TASK, TASK_FINISHED, TASK_CANCELLED, UNKNOWN_GRAPH.
   */
  async resume(
    caller: Caller,
    taskId: string,
    { reply, requestId, shownDigest, reason }: ResumeOptions,
  ): Promise<ShownTask> {
    const stored = this.idFor(caller, taskId);
    const task = await describeTask(this.store, stored);
    const { runtime } = this.graphOf(task.workflow);
    const head = await this.store.head(stored);
    if (head && (task.status === "completed" || task.status === "cancelled")) throw taskFinished(stored, head);
    if (reply) {
      const command = await replyTo(this.store, task, reply, requestId, { ...IN_BODY, shown: shownDigest });
      try {
        await recordReplies(runtime, stored, resumeOf(command), caller.who);
      } catch (error) {
        if (!isWorkflowError(error, "TASK_BUSY") || error.details.recorded !== true) throw error;
      }
    } else {
      if (task.waiting && !(await canGoOn(this.store, stored, head, runtime.clock.now())))
        throw isWaiting(stored, task.waiting);
      const data = { who: caller.who, ...(reason === undefined ? {} : { reason: redact(reason) }) };
      await this.store.append(stored, task.revision, "resumed", data);
    }
    await this.runner.wake(stored);
    return this.describe(caller, stored);
  }

  /** @throws UNKNOWN_TASK, TASK_FINISHED, TASK_CANCELLED, UNKNOWN_GRAPH. */
  async cancel(caller: Caller, taskId: string, reason: string | undefined): Promise<ShownTask> {
    const stored = this.idFor(caller, taskId);
    const { workflow } = await describeTask(this.store, stored);
    const config = { configurable: { thread_id: stored, ...signedIn(caller.who) } };
    await this.graphOf(workflow).cancel(config, reason);
    this.runner.abort(stored);
    return this.describe(caller, stored);
  }

  /**
   * The stored id of a caller's task.
   *
   * @throws UNKNOWN_TASK where no task can have this id.
   */
  idFor(caller: Caller, taskId: string): string {
    const stored = storedIdFor(caller, taskId);
    if (stored === null) throw unknownTask(taskId);
    try {
      return checkTaskId(stored);
    } catch {
      throw unknownTask(taskId);
    }
  }

  /** @throws UNKNOWN_GRAPH. */
  private graph(id: string): WorkflowGraph {
    const graph = this.graphs.get(id);
    if (graph) return graph;
    const known = [...this.graphs.keys()];
    throw new WorkflowError("UNKNOWN_GRAPH", `there is no graph "${id}" here; there are: ${known.join(", ")}`, {
      details: { graph: id, known },
    });
  }

  private graphOf(workflow: string): WorkflowGraph {
    const graph = [...this.graphs.values()].find(({ runtime }) => runtime.workflow.name === workflow);
    if (graph) return graph;
    const message = `this server does not have workflow "${workflow}", to which the task belongs`;
    throw new WorkflowError("UNKNOWN_GRAPH", message, { details: { workflow } });
  }

  private async exists(stored: string): Promise<boolean> {
    return (await this.store.look(stored)) !== null;
  }

  /** A task that another request is making at this moment. */
  private async soon(caller: Caller, stored: string): Promise<ShownTask> {
    for (let look = 1; look < FIRST_LOOKS && !(await this.exists(stored)); look++) await sleep(20);
    return this.describe(caller, stored);
  }

  private async describe(caller: Caller, stored: string): Promise<ShownTask> {
    return shown(caller, stored, shownTask(await describeTask(this.store, stored)));
  }

  private async listed(caller: Caller, row: TaskRow): Promise<ShownRow> {
    return shown(caller, row.taskId, shownRow(await describeRow(this.store, row)));
  }
}

function isWaiting(taskId: string, open: readonly WaitingRequest[]): WorkflowError {
  const ids = open.map(({ id }) => id).join(", ");
  return new WorkflowError("TASK_WAITING", `task ${taskId} waits for ${ids}; send an answer with the request`, {
    details: { taskId, open },
  });
}

export interface ResumeOptions {
  readonly reply: PersonsReply | null;
  readonly requestId?: string | undefined;
  /** The digest of what the person was shown; of what is stored now unless set. */
  readonly shownDigest?: string | undefined;
  /** Why it goes on without an answer. */
  readonly reason?: string | undefined;
}

/** Waits for one of the three: the end, the time, the signal. */
function waitFor(end: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    void end.finally(done);
    if (signal.aborted) done();
  });
}
