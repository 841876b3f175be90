import { parentTaskId } from "./child.ts";
import { removeIf } from "./remove.ts";
import type { TaskStore } from "./store.ts";
import { untouched } from "./untouched.ts";

/** Which tasks are removed. */
export interface Pruning {
  readonly store: TaskStore;
  /** Those of workflows of these names. */
  readonly workflows: ReadonlySet<string>;
  /** Those that ended before then, in milliseconds since the epoch. */
  readonly before: number;
  /** True where they are only counted. */
  readonly isDry?: boolean;
}

/**
 * Removes tasks that ended long ago, completed or cancelled, with all that is stored of them: log, journal, artifacts,
 * keys. What has failed or was stopped midway stays for somebody to look at, and a child stays while its parent goes on.
 *
 * @returns how many.
 */
export async function removeEnded({ store, workflows, before, isDry = false }: Pruning): Promise<number> {
  let removed = 0;
  for (const workflow of workflows) {
    for await (const { taskId } of untouched(store, { workflow, since: before })) {
      const isOver = () => mayGo(store, taskId, before);
      if (isDry ? await isOver() : await removeIf(store, taskId, isOver)) removed++;
    }
  }
  return removed;
}

async function mayGo(store: TaskStore, taskId: string, before: number): Promise<boolean> {
  const task = await store.look(taskId);
  if (!task || task.updatedAt >= before || !hasEnded(task.execution)) return false;
  // The parent may not have taken the child's result in yet.
  const parentId = parentTaskId(taskId);
  const parent = parentId === null ? null : await store.look(parentId);
  return parent === null || hasEnded(parent.execution);
}

function hasEnded({ status }: { readonly status: string }): boolean {
  return status === "completed" || status === "cancelled";
}
