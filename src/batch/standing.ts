import { describeTask, type TaskDescription } from "../compile/describe.ts";
import type { TaskStore } from "../compile/store.ts";
import { isWorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { isExpired } from "../people/expiry.ts";
import type { TaskError } from "../state/execution.ts";

/** What a task has failed with, as its log has it. */
export type Failure = Pick<TaskError, "code" | "message">;

/** Where a task stands; null where there is none. */
export async function standing(store: TaskStore, taskId: string): Promise<TaskDescription | null> {
  return describeTask(store, taskId).catch((error: unknown) => {
    if (isWorkflowError(error, "UNKNOWN_TASK")) return null;
    throw error;
  });
}

/** Whether a task is through, or waits for a person; null where it is worth running. */
export function ended(
  { status, waiting = [] }: TaskDescription,
  now: number,
): "completed" | "cancelled" | "waiting" | null {
  if (status === "completed" || status === "cancelled") return status;
  return waiting.length > 0 && !waiting.some((request) => isExpired(request, now)) ? "waiting" : null;
}

/**
 * Logs what ended a task's run. An error that the runtime has not logged, as that of a time limit, would leave a task
 * that seems to run.
 *
 * @returns what was logged; null where the task does not seem to run.
 */
export async function noteFailure(store: TaskStore, taskId: string, error: unknown): Promise<Failure | null> {
  const task = await standing(store, taskId);
  if (!task || (task.status !== "running" && task.status !== "created")) return null;
  const failure = failureOf(error);
  await store.append(taskId, task.revision, "error", { ...failure, step: task.step });
  return failure;
}

/** @param error undefined where nothing was thrown. */
export function failureOf(error: unknown): Failure {
  if (error === undefined) return { code: "TASK_UNFINISHED", message: "the run ended before the task did" };
  const message = redact(error instanceof Error ? error.message : String(error));
  return { code: isWorkflowError(error) ? error.code : "INTERNAL_ERROR", message };
}
