import type { Request } from "../people/requests.ts";
import type { TaskHead, TaskStore } from "./store.ts";
import { isDecided } from "./consent.ts";
import { questionRequest } from "../people/requests.ts";

/**
 * The requests of a task that wait for an answer now: those of its pending decision on its present
 * branch. A task is waiting exactly when there are some, whatever its stored status says.
 */
export async function openRequests(
  store: TaskStore,
  taskId: string,
  head: TaskHead | null,
): Promise<readonly Request[]> {
  const pending = head?.execution.pending;
  if (!head || !pending) return [];
  if (pending.kind === "question") {
    // Derived from the record, so it is open even where another process kept the row.
    const request = questionRequest(pending, head.forks);
    const row = await store.request(taskId, request.id);
    // The row alone knows until when it may be answered.
    return row?.answer ? [] : [{ ...row?.request, ...request }];
  }
  if (pending.kind === "consent" && (await isDecided(store, taskId, head.execution.workflow, pending))) return [];
  const rows = await store.requests(taskId, pending.decision, head.forks);
  return rows.filter((row) => row.answer === null).map((row) => row.request);
}
