import { isWorkflowError } from "../errors.ts";
import type { Fields } from "../state/fields.ts";
import { dueTasks } from "./due-tasks.ts";
import type { WorkflowGraph } from "./workflow-graph.ts";

/**
 * Wakes every task of a workflow whose question or approval has run out of time, so that it goes on as
 * its step's `deadline` says, and removes those whose time to live is over. Where the graph has memories, what has
 * expired or was passing is deleted from their store, once a day however often and by however many this is called.
 * Call it from whatever repeats jobs in your program; a task that another process runs is left to it.
 *
 * @param wake how a task is woken, where your program runs tasks in its own way; `invoke(null)` unless set.
 * @returns the ids of the tasks that were woken.
 * @example setInterval(() => void wakeDue(graph), 60_000)
 */
export async function wakeDue<F extends Fields, I extends keyof F & string>(
  graph: WorkflowGraph<F, I>,
  wake: (taskId: string) => Promise<unknown> = (taskId) => graph.invoke(null, { configurable: { thread_id: taskId } }),
): Promise<readonly string[]> {
  const { memories, childMemories = {} } = graph.runtime;
  const woken: string[] = [];
  const failed: unknown[] = [];
  for await (const taskId of dueTasks(graph.runtime)) {
    try {
      await wake(taskId);
      woken.push(taskId);
    } catch (error) {
      // One that fails must not keep the others asleep.
      if (!isWorkflowError(error, "TASK_BUSY")) failed.push(error);
    }
  }
  for (const each of [...(memories ? [memories] : []), ...Object.values(childMemories)])
    await each.cleanUpDaily().catch((error: unknown) => failed.push(error));
  if (failed.length > 0)
    throw failed.length === 1 ? failed[0] : new AggregateError(failed, `${failed.length} of its jobs failed`);
  return woken;
}
