import type { Request } from "../people/requests.ts";
import type { Execution, TaskError, TaskStatus, Usage } from "../state/execution.ts";
import { unknownTask } from "./admit-input.ts";
import { needingAnswers, openRequests } from "./open-requests.ts";
import type { TaskRow, TaskStore } from "./store.ts";

/** What a task waits for, as the command line and servers show it. */
export interface WaitingRequest extends Pick<
  Request,
  "id" | "kind" | "question" | "tool" | "args" | "approvers" | "count" | "expiresAt"
> {
  /** Who has approved so far, where several have to. */
  readonly approvedBy?: readonly string[];
}

/** A task as the command line and servers show it. */
export interface TaskDescription {
  readonly taskId: string;
  readonly workflow: string;
  readonly version: number;
  readonly status: TaskStatus;
  readonly step: string;
  readonly completedSteps: readonly string[];
  readonly revision: number;
  readonly retryCount: number;
  readonly state: Readonly<Record<string, unknown>>;
  readonly waiting?: readonly WaitingRequest[];
  readonly lastError?: TaskError;
  /** Why the task does not fit its workflow's present release; then the rest is as it is stored. */
  readonly quarantine?: string;
  readonly usage: Usage;
}

// An error is followed by nothing but these until the task has moved on.
const SINCE_ERROR: ReadonlySet<string> = new Set(["refused", "answered", "migrated", "resumed", "review"]);
const RECENT_EVENTS = 20;

/**
 * Reads where a task stands, from its store alone. The status is the true one: waiting where
 * requests are open, failed where the latest run ended with an error, whatever was stored before.
 *
 * @throws UNKNOWN_TASK.
 */
export async function describeTask(store: TaskStore, taskId: string): Promise<TaskDescription> {
  const head = await store.look(taskId);
  if (!head) throw unknownTask(taskId);
  const { execution, state, quarantine } = head;
  const open = await openRequests(store, taskId, head);
  const { status, lastError } = await standingOf(store, taskId, execution, open);
  return {
    taskId,
    workflow: execution.workflow,
    version: execution.version,
    status,
    step: execution.step,
    completedSteps: execution.completedSteps,
    revision: execution.revision,
    retryCount: execution.retryCount,
    state,
    ...(quarantine === null ? {} : { quarantine }),
    ...(open.length > 0 ? { waiting: await describeRequests(store, taskId, open) } : {}),
    ...(lastError ? { lastError } : {}),
    usage: execution.usage,
  };
}

/** A task of a list, as the command line and servers show it. */
export interface ListedTask extends Pick<TaskDescription, "taskId" | "workflow" | "version" | "status" | "step"> {
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  /** What it waits for; empty where that is nothing. */
  readonly waiting: readonly WaitingRequest[];
  readonly lastError: TaskError | null;
}

/** A row of the list, judged as `describeTask` judges a task. */
export async function describeRow(store: TaskStore, row: TaskRow): Promise<ListedTask> {
  const { taskId, execution, updatedAt } = row;
  const { workflow, version, step } = execution;
  const open = await needingAnswers(store, taskId, row.waiting);
  const { status, lastError } = await standingOf(store, taskId, execution, open);
  const waiting = await describeRequests(store, taskId, open);
  return { taskId, workflow, version, status, step, updatedAt, waiting, lastError };
}

/** Open requests without what only the runtime needs, and with who has approved already. */
export function describeRequests(
  store: TaskStore,
  taskId: string,
  open: readonly Request[],
): Promise<readonly WaitingRequest[]> {
  return Promise.all(
    open.map(async ({ digest: _digest, ...request }) => {
      if ((request.count ?? 1) <= 1) return request;
      return { ...request, approvedBy: (await store.request(taskId, request.id))?.approvedBy ?? [] };
    }),
  );
}

/** A task's true status, and the error that its latest run ended with, where it did. */
async function standingOf(
  store: TaskStore,
  taskId: string,
  execution: Execution,
  open: readonly Request[],
): Promise<{ readonly status: TaskStatus; readonly lastError: TaskError | null }> {
  const lastError = execution.lastError ?? (await errorSince(store, taskId, execution));
  return { status: trueStatus(execution, open, lastError), lastError };
}

function trueStatus(execution: Execution, open: readonly Request[], error: TaskError | null): TaskStatus {
  if (open.length > 0) return "waiting_user";
  if (execution.status === "cancelled") return "cancelled";
  if (error) return "failed";
  return execution.status === "waiting_user" ? "running" : execution.status;
}

/** An error that ended the latest run before it could commit anything; the task can be resumed. */
async function errorSince(store: TaskStore, taskId: string, execution: Execution): Promise<TaskError | null> {
  if (execution.status === "completed") return null;
  const latest = (await store.events(taskId, RECENT_EVENTS)).findLast((event) => !SINCE_ERROR.has(event.kind));
  if (latest?.kind !== "error" || latest.revision !== execution.revision) return null;
  const { code, message, step } = latest.data;
  return { code: String(code), message: String(message), step: String(step) };
}
