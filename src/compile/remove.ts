import { isWorkflowError } from "../errors.ts";
import type { TaskStore } from "./store.ts";

/**
 * Removes a task where it may go, under its lease, so that nobody loses what he is at work on.
 *
 * @param mayGo asked before, and again under the lease: somebody may have been faster.
 * @returns whether it was removed.
 */
export async function removeIf(store: TaskStore, taskId: string, mayGo: () => Promise<boolean>): Promise<boolean> {
  if (!(await mayGo())) return false;
  try {
    const lease = await store.acquire(taskId);
    if (await mayGo()) {
      await store.deleteTask(taskId);
      return true;
    }
    await store.release(lease);
  } catch (error) {
    if (!isWorkflowError(error, "TASK_BUSY")) throw error;
  }
  return false;
}
