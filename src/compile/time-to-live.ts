import { isFinished } from "../workflow/next-step.ts";
import { openRequests } from "./open-requests.ts";
import { removeIf } from "./remove.ts";
import type { Runtime } from "./runtime.ts";
import type { TaskHead } from "./store.ts";

/**
 * Removes a task that nothing has happened to for longer than its workflow's `timeToLiveMs`, if it waits for
 * somebody or has ended. One that was stopped midway stays: what it has begun may have happened.
 *
 * @returns whether it was removed.
 */
export async function removeExpired(runtime: Runtime, taskId: string): Promise<boolean> {
  const { store } = runtime;
  if (runtime.workflow.timeToLiveMs === Infinity) return false;
  return removeIf(store, taskId, async () => isOver(runtime, taskId, await store.head(taskId)));
}

async function isOver({ workflow, store, clock }: Runtime, taskId: string, head: TaskHead | null): Promise<boolean> {
  const { timeToLiveMs } = workflow;
  if (!head || clock.now() - head.updatedAt <= timeToLiveMs) return false;
  return isFinished(workflow, head.execution) || (await openRequests(store, taskId, head)).length > 0;
}
