import { childTaskIds } from "./child.ts";
import { describeRequests, type WaitingRequest } from "./describe.ts";
import type { TaskRow, TaskStore } from "./store.ts";

/** An approval, or a call of which a person has to say whether it happened, with the task that asks. */
export interface OpenApproval {
  readonly row: TaskRow;
  readonly request: WaitingRequest;
}

/** Every approval that is open among these tasks; what expires first comes first. */
export async function openApprovals(store: TaskStore, rows: readonly TaskRow[]): Promise<readonly OpenApproval[]> {
  const children = new Set(rows.flatMap(askingChildren));
  const open: OpenApproval[] = [];
  for (const row of rows.filter(({ taskId }) => !children.has(taskId))) {
    const approvals = row.waiting.filter(({ kind }) => kind !== "question");
    for (const request of await describeRequests(store, row.taskId, approvals)) open.push({ row, request });
  }
  const expires = ({ request }: OpenApproval) => request.expiresAt ?? Infinity;
  // Not a difference: that of two that never expire is no number.
  return open.toSorted((a, b) => (expires(a) < expires(b) ? -1 : expires(a) > expires(b) ? 1 : 0));
}

/** Child workflows whose requests a task passes on: they are answered at their parent. */
function askingChildren({ taskId, execution, waiting }: TaskRow): readonly string[] {
  return waiting.flatMap(({ id }) => {
    const [, forks] = /^w\d+\.(\d+)(?:\.\d+)?\//.exec(id) ?? [];
    return forks === undefined ? [] : childTaskIds(taskId, execution, Number(forks));
  });
}
