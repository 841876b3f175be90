import { removeExpired } from "../../compile/time-to-live.ts";
import type { WorkflowGraph } from "../../compile/workflow-graph.ts";
import { isExpired } from "../../people/expiry.ts";
import type { SqlStore } from "../../storage/sql-store.ts";
import type { TaskQueue, Upkeep } from "./task-queue.ts";

export interface UpkeepOptions {
  readonly store: SqlStore;
  readonly queue: TaskQueue;
  /** By the workflow's name. */
  readonly graphs: ReadonlyMap<string, WorkflowGraph>;
}

const AT_ONCE = 500;
/** A page of the list of tasks, which the database sorts for each. */
const PAGE = 5000;

/** What has to be done from time to time, by one worker for all. */
export const upkeep: Readonly<Record<Upkeep, (options: UpkeepOptions) => Promise<number>>> = {
  sweep: sweepWakes,
  deadlines: sweepDeadlines,
  memories: ({ store }) => store.memory().cleanUp(),
};

/**
 * Makes jobs again for all tasks that are noted to be run, so that one whose job was lost is run after all.
 *
 * @returns how many tasks are noted.
 */
async function sweepWakes({ store, queue }: UpkeepOptions): Promise<number> {
  const wakes = await store.wakes();
  const byWorkflow = new Map<string, string[]>();
  for (const wake of wakes) {
    const task = await store.look(wake.taskId);
    if (task === null) {
      // Its start was refused, or it has been deleted since.
      await store.removeWake(wake);
      continue;
    }
    const { workflow } = task.execution;
    byWorkflow.set(workflow, [...(byWorkflow.get(workflow) ?? []), wake.taskId]);
  }
  for (const [workflow, taskIds] of byWorkflow) {
    for (let at = 0; at < taskIds.length; at += AT_ONCE) await queue.remind(workflow, taskIds.slice(at, at + AT_ONCE));
  }
  return wakes.length;
}

/**
 * Finds tasks whose time for an answer is over and that have no job of their own for it, as those that paused
 * outside of a worker, and removes those whose time to live is over.
 *
 * @returns how many are to go on.
 */
async function sweepDeadlines({ store, queue, graphs }: UpkeepOptions): Promise<number> {
  let due = 0;
  for (let page = await store.tasks({ limit: PAGE }); ;) {
    for (const { taskId, execution, waiting, quarantine } of page) {
      const graph = graphs.get(execution.workflow);
      // A task that does not fit the present release keeps its expired request.
      if (!graph || quarantine !== undefined) continue;
      if (await removeExpired(graph.runtime, taskId)) continue;
      const now = graph.runtime.clock.now();
      if (!waiting.some((request) => isExpired(request, now))) continue;
      await queue.wakeAt(execution.workflow, taskId, now, now);
      due++;
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return due;
    page = await store.tasks({ limit: PAGE, after: { updatedAt: last.updatedAt, taskId: last.taskId } });
  }
}
