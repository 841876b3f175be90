import { isWorkflowError } from "../errors.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { TaskStore, UntouchedTask } from "./store.ts";

/** Which tasks are removed. */
export interface Pruning {
  readonly store: TaskStore;
  /** Those of this workflow, and of workflows that are steps of it. */
  readonly workflow: AnyWorkflow;
  /** Those that ended before then, in milliseconds since the epoch. */
  readonly before: number;
  /** True where they are only counted. */
  readonly isDry?: boolean;
}

/** So many rows are read at once. */
const PAGE = 500;

/**
 * Removes tasks that ended long ago, completed or cancelled, with all that is stored of them: log, journal, artifacts,
 * keys. What has failed or was stopped midway stays for somebody to look at, and a child stays while its parent goes on.
 *
 * @returns how many.
 */
export async function removeEnded({ store, workflow, before, isDry = false }: Pruning): Promise<number> {
  let removed = 0;
  for (const name of namesIn(workflow)) {
    for (let after: UntouchedTask | undefined; ;) {
      const page = await store.untouchedTasks({
        workflow: name,
        since: before,
        limit: PAGE,
        ...(after ? { after } : {}),
      });
      for (const { taskId } of page) {
        if (!(await mayGo(store, taskId, before))) continue;
        if (isDry || (await remove(store, taskId, before))) removed++;
      }
      after = page.at(-1);
      if (page.length < PAGE) break;
    }
  }
  return removed;
}

/** A workflow's name and those of the workflows that are its steps. */
function namesIn(workflow: AnyWorkflow, known = new Set<string>()): ReadonlySet<string> {
  if (known.has(workflow.name)) return known;
  known.add(workflow.name);
  for (const step of Object.values(workflow.steps)) if (step.workflow) namesIn(step.workflow, known);
  return known;
}

async function mayGo(store: TaskStore, taskId: string, before: number): Promise<boolean> {
  const task = await store.look(taskId);
  if (!task || task.updatedAt >= before || !hasEnded(task.execution)) return false;
  // The parent may not have taken the child's result in yet.
  const [, parentId] = /^(.+)\/[^/]+\/\d+\.\d+(?:\.\d+)?$/.exec(taskId) ?? [];
  const parent = parentId === undefined ? null : await store.look(parentId);
  return parent === null || hasEnded(parent.execution);
}

function hasEnded({ status }: { readonly status: string }): boolean {
  return status === "completed" || status === "cancelled";
}

/** @returns false where somebody has it in hand, or was faster. */
async function remove(store: TaskStore, taskId: string, before: number): Promise<boolean> {
  try {
    const lease = await store.acquire(taskId);
    if (await mayGo(store, taskId, before)) {
      await store.deleteTask(taskId);
      return true;
    }
    await store.release(lease);
  } catch (error) {
    if (!isWorkflowError(error, "TASK_BUSY")) throw error;
  }
  return false;
}
