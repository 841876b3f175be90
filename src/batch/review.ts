import { describeTask } from "../compile/describe.ts";
import type { TaskEvent, TaskStore } from "../compile/store.ts";
import { digest } from "../internal/digest.ts";
import { redact } from "../internal/redact.ts";

/** What a person says about a finished task's result. */
export type ReviewVerdict = "approved" | "rejected";

/** Where the review of a task's result stands. */
export interface Review {
  readonly status: "required" | ReviewVerdict;
  /** Who has said so; null where nobody has. */
  readonly who: string | null;
  readonly reason: string;
}

interface Result {
  readonly taskId: string;
  readonly revision: number;
  readonly state: Readonly<Record<string, unknown>>;
}

/** What a finished task is, by where the review of its result stands: its result may be published, waits, or may not. Pure. */
export function completedAs(review: Review | null): "completed" | "reviewing" | "rejected" {
  if (review === null || review.status === "approved") return "completed";
  return review.status === "required" ? "reviewing" : "rejected";
}

/** Where the review of a task's result stands; null where none was required. Reads the whole log only where one was. */
export async function reviewOf(store: TaskStore, taskId: string): Promise<Review | null> {
  if ((await store.firstEvent(taskId, "review")) === null) return null;
  return reviewIn(await store.events(taskId), (await describeTask(store, taskId)).state);
}

/** Notes in a task's log that its result is published only when a person has approved it. It cannot be taken back. */
export async function requireReview(store: TaskStore, taskId: string, revision: number): Promise<void> {
  if ((await store.firstEvent(taskId, "review")) !== null) return;
  await store.append(taskId, revision, "review", { status: "required" });
}

/** Writes down what a person, whose name the caller has verified, says about the result as it is now. */
export async function addReview(
  store: TaskStore,
  { taskId, revision, state }: Result,
  { status, who, reason }: Review,
): Promise<void> {
  await store.append(taskId, revision, "review", { status, who, reason: redact(reason), digest: digest(state) });
}

/**
 * Where the review stands, by the task's log; null where none was required. What was said about a result holds only
 * as long as the result is the same. Pure.
 */
export function reviewIn(events: readonly TaskEvent[], state: Result["state"]): Review | null {
  const reviews = events.filter(({ kind }) => kind === "review");
  if (reviews.length === 0) return null;
  const said = reviews.findLast(({ data }) => data.status !== "required")?.data;
  if (!said || said.digest !== digest(state)) return { status: "required", who: null, reason: "" };
  const status = said.status === "approved" ? "approved" : "rejected";
  return { status, who: String(said.who), reason: typeof said.reason === "string" ? said.reason : "" };
}
