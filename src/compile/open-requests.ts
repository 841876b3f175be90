import { distinctRequests } from "../people/consent-request.ts";
import { questionRequest, type Request } from "../people/requests.ts";
import { undecided } from "./decided-consents.ts";
import type { TaskHead, TaskStore } from "./store.ts";

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
  const rows = await store.requests(taskId, pending.decision, head.forks);
  const unanswered = rows.filter((row) => row.answer === null).map((row) => row.request);
  return needingAnswers(store, taskId, unanswered);
}

/** Whether a task can go on though it waits: one of the workflows within it asked for a consent that was decided elsewhere. */
export async function isPartlyDecided(store: TaskStore, taskId: string): Promise<boolean> {
  const head = await store.head(taskId);
  if (head?.execution.pending?.kind !== "workflows") return false;
  const rows = await store.requests(taskId, head.execution.pending.decision, head.forks);
  const unanswered = rows.filter((row) => row.answer === null).map((row) => row.request);
  return (await undecided(store, taskId, unanswered)).length < unanswered.length;
}

/** Requests without an answer, less those that need none: consents that were decided elsewhere, or are asked for twice. */
export function needingAnswers(
  store: Pick<TaskStore, "consents">,
  taskId: string,
  unanswered: readonly Request[],
): Promise<readonly Request[]> {
  return undecided(store, taskId, distinctRequests(unanswered));
}
