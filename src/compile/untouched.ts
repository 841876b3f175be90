import type { TaskStore, UntouchedFilter, UntouchedTask } from "./store.ts";

/** So many rows are read at once. */
const PAGE = 500;

/** The tasks of a workflow that nothing has happened to since a time, page by page; they may be removed meanwhile. */
export async function* untouched(
  store: Pick<TaskStore, "untouchedTasks">,
  { limit = PAGE, ...filter }: Pick<UntouchedFilter, "workflow" | "since"> & { readonly limit?: number },
): AsyncGenerator<UntouchedTask, void> {
  for (let after: UntouchedTask | undefined; ;) {
    const page = await store.untouchedTasks({ ...filter, limit, ...(after ? { after } : {}) });
    yield* page;
    after = page.at(-1);
    if (page.length < limit) return;
  }
}
