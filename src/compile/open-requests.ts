import { distinctRequests } from "../people/consent-request.ts";
import { isExpired } from "../people/expiry.ts";
import { questionRequest, type Request } from "../people/requests.ts";
import { undecided } from "./decided-consents.ts";
import type { TaskHead, TaskStore } from "./store.ts";

/** What of a task is looked at: where it stands and on which branch. */
type Standing = Pick<TaskHead, "execution" | "forks">;

/**
 * The requests of a task that wait for an answer now: those of its pending decision on its present
 * branch. A task is waiting exactly when there are some, whatever its stored status says.
 */
export async function openRequests(
  store: TaskStore,
  taskId: string,
  head: Standing | null,
): Promise<readonly Request[]> {
  return distinctRequests(await answerable(store, taskId, head));
}

/** The same, with requests for one consent that several workflows within ask: an answer may go to any of them. */
export async function answerable(store: TaskStore, taskId: string, head: Standing | null): Promise<readonly Request[]> {
  return undecided(store, taskId, await unanswered(store, taskId, head));
}

/** Whether a task that waits can go on without an answer: its time for one is over, or a consent was decided elsewhere. */
export async function canGoOn(store: TaskStore, taskId: string, head: Standing | null, now: number): Promise<boolean> {
  const asked = await unanswered(store, taskId, head);
  if (asked.some((request) => isExpired(request, now))) return true;
  return (await undecided(store, taskId, asked)).length < asked.length;
}

async function unanswered(store: TaskStore, taskId: string, head: Standing | null): Promise<readonly Request[]> {
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
  return rows.filter((row) => row.answer === null).map((row) => row.request);
}

/** Requests without an answer, less those that need none: consents that were decided elsewhere, or are asked for twice. */
export function needingAnswers(
  store: Pick<TaskStore, "consents">,
  taskId: string,
  unanswered: readonly Request[],
): Promise<readonly Request[]> {
  return undecided(store, taskId, distinctRequests(unanswered));
}
