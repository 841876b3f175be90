import { setTimeout as sleep } from "node:timers/promises";
import { isCommand } from "@langchain/langgraph";
import { isWorkflowError, WorkflowError, type ErrorCode } from "../errors.ts";
import { digest } from "../internal/digest.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import { admitInput, requireStart, taskFinished, type Admitted } from "./admit-input.ts";
import { personOf } from "./identity.ts";
import { openRequests } from "./open-requests.ts";
import { addShown, recordReplies, resumeOf } from "./record-answers.ts";
import { FORKS, MUST_BE_NEW, SPENT, TASK_DECISIONS, type Runtime } from "./runtime.ts";
import type { Lease } from "./store.ts";
import { removeExpired } from "./time-to-live.ts";

const RENEW_EVERY_MS = 10_000;
const ATTEMPTS_AT_LEASE = 400;

/** The part of LangGraph's options that the runtime reads. */
export interface RunOptions {
  readonly configurable?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/** Takes the lease; an answerer waits a moment for an owner that is just pausing. */
async function hold(runtime: Runtime, taskId: string, patient: boolean): Promise<Lease> {
  const { store } = runtime;
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.acquire(taskId);
    } catch (error) {
      if (!patient || !isWorkflowError(error, "TASK_BUSY") || attempt >= ATTEMPTS_AT_LEASE) throw error;
      await sleep(5 + Math.random() * 10);
    }
  }
}

/** One run of a task under its lease. */
export interface RunTask {
  readonly runtime: Runtime;
  readonly taskId: string;
  /** LangGraph's input: values, a Command, or null for a wake-up. */
  readonly input: unknown;
  readonly options: RunOptions;
  /** Runs LangGraph's loop with this input. */
  readonly loop: (input: unknown, options: RunOptions, lease: Lease) => AsyncGenerator<unknown>;
  /** Puts a failed task's record back on its feet. */
  readonly retry: (lease: Lease) => Promise<void>;
}

/**
 * Runs a task as far as it goes: records answers, takes the lease, admits the input, lets LangGraph
 * run, and releases the lease whatever happens.
 */
export async function* runTask(task: RunTask): AsyncGenerator<unknown> {
  const { runtime, taskId } = task;
  const { store } = runtime;
  let { input } = task;
  let answered = false;
  await removeExpired(runtime, taskId);
  if (isCommand(input)) {
    await recordReplies(runtime, taskId, resumeOf(input), personOf(task.options.configurable));
    input = null;
    answered = true;
  } else {
    input = redactDeep(input);
  }
  const options = await admitAddress(task, input, answered);
  if ((await store.head(taskId)) === null) {
    // What can start nothing leaves no trace, not even a lease.
    requireStart(runtime.workflow, input, taskId);
  }
  const lease = await hold(runtime, taskId, answered);
  const renewal = setInterval(() => void store.renew(lease).catch(() => {}), RENEW_EVERY_MS);
  renewal.unref();
  // Whoever aborts may never ask this generator for more, so it cannot wait for its end. What the
  // aborted run still does is fenced by our stores: without the lease it can commit nothing.
  const letGo = () => {
    clearInterval(renewal);
    void store.release(lease).catch(() => {});
  };
  task.options.signal?.addEventListener("abort", letGo, { once: true });
  try {
    // A signal that was aborted while the lease was awaited fires no more.
    task.options.signal?.throwIfAborted();
    const { admitted, forks, maxDecisions } = await admitUnderLease(task, input, lease);
    await store.running(lease);
    const isFork = await noteFork(task, options, lease);
    const known = {
      [FORKS]: isFork ? forks + 1 : forks,
      [TASK_DECISIONS]: maxDecisions,
      ...(admitted.kind === "start" ? {} : { [SPENT]: await spentBefore(runtime, taskId) }),
    };
    const settings = { ...options, configurable: { ...options.configurable, ...known } };
    yield* task.loop(admitted.kind === "start" ? admitted.input : null, settings, lease);
    await removeEndedChildren(runtime, taskId);
  } catch (caught) {
    const error = await explained(runtime, taskId, caught);
    await noteError(runtime, taskId, error);
    throw isWorkflowError(error) ? error.addDetails({ taskId }).redacted(redactDeep) : error;
  } finally {
    clearInterval(renewal);
    task.options.signal?.removeEventListener("abort", letGo);
    await store.release(lease);
  }
}

async function admitUnderLease(
  task: RunTask,
  input: unknown,
  lease: Lease,
): Promise<{ admitted: Admitted; forks: number; maxDecisions: number | undefined }> {
  const { runtime, taskId } = task;
  const { store, workflow } = runtime;
  const head = await store.head(taskId);
  const open = await openRequests(store, taskId, head);
  const startedWithThis =
    head !== null && input !== null && input !== undefined && (await sameStart(runtime, taskId, input));
  const { configurable } = task.options;
  const mustBeNew = configurable?.[MUST_BE_NEW] === true;
  const admitted = admitInput(workflow, input, { taskId, head, open, startedWithThis, mustBeNew });
  let maxDecisions: number | undefined;
  if (admitted.kind === "start") {
    const { name, version, initial } = workflow;
    const who = personOf(configurable);
    maxDecisions = limitIn(configurable);
    await store.append(taskId, 0, "started", {
      input: admitted.input,
      digest: digest(admitted.input),
      workflow: name,
      version,
      step: initial,
      ...(who === null ? {} : { who }),
      ...(maxDecisions === undefined ? {} : { maxDecisions }),
    });
  } else if (admitted.kind === "answer") {
    if (head) await addShown(store, taskId, head, admitted.request);
    const { id, digest: shown } = admitted.request;
    const who = personOf(task.options.configurable);
    await store.answer(taskId, id, { answer: { type: "text", text: admitted.text }, who, shown });
  } else if (admitted.kind === "retry") {
    await task.retry(lease);
  }
  if (head?.execution.revision === 0) {
    // Nothing has been committed that could hold the limit.
    maxDecisions = limitIn((await store.firstEvent(taskId, "started"))?.data);
  }
  return { admitted, forks: head?.forks ?? 0, maxDecisions };
}

/** @throws INVALID_INPUT. */
function limitIn(given: Readonly<Record<string, unknown>> | undefined): number | undefined {
  const limit = given?.maxDecisions;
  if (limit === undefined || limit === null) return undefined;
  if (typeof limit === "number" && Number.isSafeInteger(limit) && limit >= 1) return limit;
  throw new WorkflowError("INVALID_INPUT", "maxDecisions is a whole number from 1");
}

/** Whoever lost a task because it was cancelled is told that, and not what it could not write. */
async function explained({ store }: Runtime, taskId: string, error: unknown): Promise<unknown> {
  if (!isWorkflowError(error, "STALE_WRITE")) return error;
  const head = await store.head(taskId).catch(() => null);
  return head?.execution.status === "cancelled" ? taskFinished(taskId, head) : error;
}

async function sameStart(runtime: Runtime, taskId: string, input: unknown): Promise<boolean> {
  if (await runtime.store.hasAnswers(taskId)) return false;
  const started = await runtime.store.firstEvent(taskId, "started");
  return started?.data.digest === digest(input);
}

/** A resume always goes to the head, input too; only a bare wake-up may name an old checkpoint: a fork. */
async function admitAddress(task: RunTask, input: unknown, answered: boolean): Promise<RunOptions> {
  const { configurable } = task.options;
  const address = configurable?.checkpoint_id;
  if (typeof address !== "string") return task.options;
  const { store } = task.runtime;
  const head = await store.head(task.taskId);
  if (head?.checkpointId === address) return task.options;
  await requireCheckpoint(task.runtime, task.taskId, address);
  // The LangGraph server leaves a fork's checkpoint id in the thread's config for ever.
  const leftOver = configurable?.assistant_id !== undefined && (await store.lastFork(task.taskId)) === address;
  if (leftOver || answered) {
    const { checkpoint_id: _id, checkpoint_map: _map, ...rest } = configurable ?? {};
    return { ...task.options, configurable: rest };
  }
  if (input !== null && input !== undefined) {
    throw new WorkflowError(
      "FORK_TAKES_NO_INPUT",
      "an old checkpoint can only be run again as it was; start a new task for another input",
    );
  }
  return task.options;
}

/** @throws UNKNOWN_CHECKPOINT: LangGraph itself would start the task anew. */
export async function requireCheckpoint({ store }: Runtime, taskId: string, id: string): Promise<void> {
  const configurable = { thread_id: taskId, checkpoint_ns: "", checkpoint_id: id };
  if (await store.checkpointer.getTuple({ configurable })) return;
  const message = `task ${taskId} has no checkpoint ${id}, or it has been pruned; read its history to see which there are`;
  throw new WorkflowError("UNKNOWN_CHECKPOINT", message, { details: { taskId, checkpointId: id } });
}

/** @returns whether this run leaves the line of the head. */
async function noteFork(task: RunTask, options: RunOptions, lease: Lease): Promise<boolean> {
  const address = options.configurable?.checkpoint_id;
  if (typeof address !== "string") return false;
  const head = await task.runtime.store.head(task.taskId);
  const isFork = head !== null && head.checkpointId !== address;
  if (isFork) await task.runtime.store.fork(lease, address);
  return isFork;
}

/** A child workflow's task is part of its parent's step: once that has taken its outcome over, it goes. */
async function removeEndedChildren(runtime: Runtime, taskId: string): Promise<void> {
  const ended = runtime.endedChildren.get(taskId);
  if (!ended) return;
  runtime.endedChildren.delete(taskId);
  for (const childId of ended) await runtime.store.deleteTask(childId);
}

/** What others write beside a run. */
const BESIDE: ReadonlySet<string> = new Set(["migrated", "resumed", "review"]);

/** The usage that the latest entry of the log, an error, has not been able to commit. */
async function spentBefore(runtime: Runtime, taskId: string): Promise<object | undefined> {
  const latest = (await runtime.store.events(taskId, 4)).findLast(({ kind }) => !BESIDE.has(kind));
  return latest?.kind === "error" && latest.data.usage
    ? { revision: latest.revision, usage: latest.data.usage }
    : undefined;
}

/** Errors that end a run before anything of it is committed, so that nothing but the log tells of them. */
const LOGGED: readonly ErrorCode[] = [
  "MODEL_FAILED",
  "MODEL_TIMEOUT",
  "STEP_FAILED",
  "MISSING_MODEL",
  "CONSENT_WITHHELD",
];

async function noteError(runtime: Runtime, taskId: string, error: unknown): Promise<void> {
  if (!isWorkflowError(error, ...LOGGED)) return;
  const head = await runtime.store.head(taskId).catch(() => null);
  const step = head?.execution.step ?? runtime.workflow.initial;
  await runtime.store
    .append(taskId, head?.execution.revision ?? 0, "error", {
      code: error.code,
      message: redact(error.message),
      step,
      ...(error.details.usage ? { usage: error.details.usage } : {}),
    })
    .catch(() => {});
}
