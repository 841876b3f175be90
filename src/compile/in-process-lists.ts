import { isExpired } from "../people/expiry.ts";
import type {
  OpenFilter,
  OpenPlace,
  OpenRequest,
  TaskFilter,
  TaskRow,
  UntouchedFilter,
  UntouchedTask,
} from "./store.ts";

// What databases find by an index, found among all there is: a process holds what it can look through.

/** A page of these tasks, the latest changed first. Pure. */
export function pageOfTasks(rows: readonly TaskRow[], { after, limit }: TaskFilter): readonly TaskRow[] {
  const order = (a: UntouchedTask, b: UntouchedTask) => b.updatedAt - a.updatedAt || (a.taskId < b.taskId ? -1 : 1);
  const behind = rows.filter((row) => !after || order(after, row) < 0);
  return behind.toSorted(order).slice(0, limit);
}

/** A page of what these tasks wait for; what expires first comes first. Pure. */
export function pageOfOpen(
  rows: readonly TaskRow[],
  { approvals, dueBy, after, limit }: OpenFilter,
): readonly OpenRequest[] {
  const place = ({ taskId, request }: OpenRequest): OpenPlace => ({ ...request, taskId });
  return rows
    .flatMap(({ taskId, execution: { workflow }, waiting }) =>
      waiting.map((request) => ({ taskId, workflow, request })),
    )
    .filter(({ request }) => !approvals || request.kind !== "question")
    .filter(({ request }) => dueBy === undefined || isExpired(request, dueBy))
    .filter((open) => !after || byExpiry(after, place(open)) < 0)
    .toSorted((a, b) => byExpiry(place(a), place(b)))
    .slice(0, limit);
}

/** A page of those of these tasks that nothing has happened to, the longest untouched first. Pure. */
export function pageOfUntouched(
  tasks: readonly UntouchedTask[],
  { since, after, limit }: UntouchedFilter,
): readonly UntouchedTask[] {
  const order = (a: UntouchedTask, b: UntouchedTask) => a.updatedAt - b.updatedAt || (a.taskId < b.taskId ? -1 : 1);
  const behind = tasks.filter((task) => task.updatedAt < since && (!after || order(after, task) < 0));
  return behind.toSorted(order).slice(0, limit);
}

/** What expires first comes first, what never does last. */
function byExpiry(a: OpenPlace, b: OpenPlace): number {
  const [first, second] = [a.expiresAt ?? Infinity, b.expiresAt ?? Infinity];
  if (first !== second) return first < second ? -1 : 1;
  return a.taskId === b.taskId ? (a.id < b.id ? -1 : 1) : a.taskId < b.taskId ? -1 : 1;
}
