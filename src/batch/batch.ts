import { canStart } from "../compile/admit-input.ts";
import type { TaskDescription } from "../compile/describe.ts";
import { canGoOn } from "../compile/open-requests.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError, type ErrorCode } from "../errors.ts";
import type { Fields } from "../state/fields.ts";
import { MAX_TIMER_MS } from "../internal/clock.ts";
import { sleep } from "../tools/retry.ts";
import { attempt, type TimeLimits } from "./attempt.ts";
import { ended, failureOf, noteFailure, standing, type Failure } from "./standing.ts";

/** One task of a batch. */
export interface BatchTask {
  readonly taskId: string;
  /** The message and the fields that it is started with. */
  readonly input: Readonly<Record<string, unknown>>;
}

/** What became of a task: it has ended, waits for a person, or was left where it stands because the batch was stopped. */
export type Outcome = "completed" | "failed" | "waiting" | "cancelled" | "stopped";

/** A task that this batch has nothing more to do for. */
export interface Settled {
  readonly taskId: string;
  readonly outcome: Outcome;
  /** True where this batch has run it, false where it was found like this. */
  readonly ran: boolean;
  readonly error: Failure | null;
}

/** What happens while a batch runs. */
export type BatchEvent =
  | { readonly kind: "started"; readonly taskId: string }
  /** Another process runs it; it will be looked at again. */
  | { readonly kind: "busy"; readonly taskId: string }
  /** An attempt has failed, and there will be another one. */
  | { readonly kind: "retry"; readonly taskId: string; readonly error: Failure }
  | { readonly kind: "settled"; readonly taskId: string; readonly settled: Settled };

export interface BatchOptions {
  readonly tasks: readonly BatchTask[];
  /** How many tasks run at once in this process. */
  readonly workers: number;
  /** How often a task is run at most in this batch, the first time included. */
  readonly attempts: number;
  /** The wait before a second attempt, in milliseconds; doubled before each further one. */
  readonly backoffMs: number;
  readonly limits?: TimeLimits;
  /** Once aborted, no task is begun and those that run end before their next step. */
  readonly stop?: AbortSignal;
  /** Once aborted, those that run end at once. */
  readonly cut?: AbortSignal;
  /** Called before a task is started that does not exist yet. */
  readonly beforeStart?: (taskId: string) => Promise<void>;
  readonly onEvent?: (event: BatchEvent) => void;
}

const LONGEST_BACKOFF_MS = 60_000;
/** How long to leave a task alone that another process runs. */
const BUSY_MS = 250;

/** Errors that the next attempt would end with too. */
const HOPELESS: readonly ErrorCode[] = [
  "INVALID_INPUT",
  "INVALID_MESSAGE",
  "MESSAGE_TOO_LARGE",
  "INVALID_TASK_ID",
  "WRONG_WORKFLOW",
  "TASK_QUARANTINED",
  "MISSING_MODEL",
  "CONSENT_WITHHELD",
  "CONTEXT_TOO_SMALL",
  "STEP_LIMIT",
  "TASK_LIMIT",
];

/** What runs tasks one by one: a batch, or a worker of a queue. */
export interface Runner extends Pick<BatchOptions, "attempts" | "backoffMs" | "limits" | "beforeStart" | "onEvent"> {
  readonly graph: WorkflowGraph;
  /** What a task's log says that it was taken up by. */
  readonly by: TakenUpBy;
}

/** What takes up tasks that somebody has begun. */
export type TakenUpBy = "batch" | "worker";

interface Job {
  readonly task: BatchTask;
  /** Milliseconds since the epoch, by this process's clock: timers go by it. */
  due: number;
  failures: number;
  ran: boolean;
}

/** What is to be done about a task after it was looked at or run. */
export type Next = Settled | { readonly againInMs: number };

/**
 * Runs many tasks, several at once, each in a state of its own. One that fails is tried again where it stands,
 * one that hangs is left behind at its time limit, and neither stops another. What has ended or waits for a person
 * is left alone, so the same call again goes on with what is left; two at the same time share the work.
 *
 * @returns what became of each task, in the order of `tasks`.
 * @throws DATABASE_… errors: without its database no task can go on.
 * @example
 * await runBatch(graph, { tasks: [{ taskId: "a", input: { message: "…" } }], workers: 4, attempts: 3, backoffMs: 1000 })
 */
export async function runBatch<F extends Fields, I extends keyof F & string>(
  graph: WorkflowGraph<F, I>,
  options: BatchOptions,
): Promise<readonly Settled[]> {
  const runner: Runner = { ...options, graph: graph as unknown as WorkflowGraph, by: "batch" };
  const queue = new Queue(options.tasks);
  const settled = new Map<string, Settled>();
  const stop = options.stop ?? new AbortController().signal;
  const failed = new AbortController();
  const cut = AbortSignal.any([failed.signal, ...(options.cut ? [options.cut] : [])]);
  const worker = async () => {
    for (let job = queue.take(); job && !failed.signal.aborted; job = queue.take()) {
      const wait = job.due - Date.now();
      if (wait > 0) await sleep(wait, AbortSignal.any([stop, cut]));
      const next = stop.aborted ? left(job) : await advance(runner, job, stop, cut);
      if ("againInMs" in next) {
        queue.putBack(job, next.againInMs);
      } else {
        settled.set(job.task.taskId, next);
        options.onEvent?.({ kind: "settled", taskId: next.taskId, settled: next });
      }
    }
  };
  const workers = Array.from({ length: Math.min(options.workers, options.tasks.length) }, () =>
    worker().catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  await Promise.all(workers);
  return options.tasks.flatMap(({ taskId }) => settled.get(taskId) ?? []);
}

/** What is to be run: in the order of the batch, and again when it is due. */
class Queue {
  private readonly tasks: readonly BatchTask[];
  private readonly again: Job[] = [];
  private next = 0;

  constructor(tasks: readonly BatchTask[]) {
    this.tasks = tasks;
  }

  putBack(job: Job, afterMs: number): void {
    job.due = Date.now() + afterMs;
    const behind = this.again.findIndex(({ due }) => due > job.due);
    this.again.splice(behind === -1 ? this.again.length : behind, 0, job);
  }

  /** What is due comes first, then what was not begun yet, then what will be due; whoever takes it waits until then. */
  take(): Job | undefined {
    const [first] = this.again;
    const task = first && first.due <= Date.now() ? undefined : this.tasks[this.next];
    if (!task) return this.again.shift();
    this.next++;
    return { task, due: 0, failures: 0, ran: false };
  }
}

function left({ task: { taskId }, ran }: Job): Settled {
  return { taskId, outcome: "stopped", ran, error: null };
}

export async function advance(options: Runner, job: Job, stop: AbortSignal, cut: AbortSignal): Promise<Next> {
  const { graph } = options;
  const { store, clock, workflow } = graph.runtime;
  const { taskId, input } = job.task;
  const before = await standing(store, taskId);
  const found = before && ended(before, clock.now());
  const goesOn = found === "waiting" && (await canGoOn(store, taskId, await store.look(taskId), clock.now()));
  if (found && !goesOn) return { taskId, outcome: found, ran: job.ran, error: before.lastError ?? null };
  if (before === null && canStart(workflow, input)) await options.beforeStart?.(taskId);
  options.onEvent?.({ kind: "started", taskId });
  const run = await runOnce(options, job.task, before, stop, cut);
  if (run === "busy") {
    options.onEvent?.({ kind: "busy", taskId });
    return { againInMs: BUSY_MS };
  }
  const { thrown, isTakenUp } = run;
  const isStopped = thrown !== undefined && (cut.aborted || isWorkflowError(thrown, "TASK_STOPPED"));
  // Another process may have brought it to its end since it was looked at.
  job.ran ||= isTakenUp || (thrown !== undefined && !isStopped);
  if (isStopped) return left(job);
  if (thrown !== undefined) await noteFailure(store, taskId, thrown);
  const after = await standing(store, taskId);
  const outcome = after && ended(after, clock.now());
  if (outcome) return { taskId, outcome, ran: job.ran, error: null };
  return failure(options, job, thrown, after?.lastError ?? null);
}

/** What came of one attempt. */
interface Ran {
  /** What ended the run before the task could go on; undefined where nothing did. */
  readonly thrown: unknown;
  /** Whether this attempt has committed anything. */
  readonly isTakenUp: boolean;
}

async function runOnce(
  { graph, by, limits = {} }: Runner,
  { taskId, input }: BatchTask,
  before: TaskDescription | null,
  stop: AbortSignal,
  cut: AbortSignal,
): Promise<Ran | "busy"> {
  const { store } = graph.runtime;
  let isTakenUp = false;
  let noted: Promise<void> | undefined;
  // What was submitted has not been run by anybody before its first worker.
  const isFirst = before === null || (by === "worker" && before.status === "created");
  // That a task goes on is in its log, as for every other way to resume it. Where this cannot be written, nothing can.
  const note = () => {
    if (!isFirst) noted ??= store.append(taskId, before.revision, "resumed", { by }).catch(() => undefined);
  };
  const onTakenUp = () => {
    isTakenUp = true;
    note();
  };
  let thrown: unknown;
  try {
    await attempt({ graph, taskId, input: before ? null : input, limits, stop, cut, onTakenUp });
  } catch (error) {
    if (isWorkflowError(error, "TASK_BUSY", "TASK_EXISTS", "TASK_FINISHED", "STALE_WRITE")) return "busy";
    if (isDatabaseError(error)) throw error;
    thrown = error;
    if (!isWorkflowError(error, "TASK_STOPPED")) note();
  }
  await noted;
  return { thrown, isTakenUp };
}

/** A task that has not come to an end: once more, or no more. */
function failure(options: Runner, job: Job, thrown: unknown, known: Failure | null): Next {
  const error = known ?? failureOf(thrown);
  job.failures++;
  const isHopeless =
    HOPELESS.some((code) => code === error.code) || (isWorkflowError(thrown, "MODEL_FAILED") && !thrown.retryable);
  if (isHopeless || job.failures >= options.attempts) {
    return { taskId: job.task.taskId, outcome: "failed", ran: true, error };
  }
  options.onEvent?.({ kind: "retry", taskId: job.task.taskId, error });
  return { againInMs: backoff(options.backoffMs, job.failures) };
}

/** Doubled with each failure; a quarter by chance, so that tasks that failed together do not come back together. */
function backoff(baseMs: number, failures: number): number {
  const wait = Math.min(baseMs * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
  return Math.min(wait * (0.75 + Math.random() / 4), MAX_TIMER_MS);
}

function isDatabaseError(error: unknown): boolean {
  return isWorkflowError(error) && error.code.startsWith("DATABASE_") && error.code !== "DATABASE_LOCKED";
}
