import { childTaskIds, parentTaskId } from "./child.ts";
import { describeRequests, type WaitingRequest } from "./describe.ts";
import { openRequests } from "./open-requests.ts";
import type { OpenFilter, OpenPlace, TaskRow, TaskStore } from "./store.ts";

/** An approval, or a call of which a person has to say whether it happened, with the task that asks. */
export interface OpenApproval {
  readonly row: TaskRow;
  readonly request: WaitingRequest;
}

/** A page of open approvals. */
export interface ApprovalPage {
  readonly approvals: readonly OpenApproval[];
  /** Where the next page begins; null where there is none. */
  readonly next: OpenPlace | null;
}

/** A page of the approvals that are open, of a tenant or of all; what expires first comes first. */
export async function openApprovals(
  store: TaskStore,
  filter: Pick<OpenFilter, "tenant" | "after" | "limit">,
): Promise<ApprovalPage> {
  const approvals: OpenApproval[] = [];
  const rows = new Map<string, TaskRow | null>();
  for (let { after } = filter; ;) {
    const page = await store.openRequests({ ...filter, approvals: true, ...(after ? { after } : {}) });
    for (const { taskId, request } of page) {
      if (approvals.length === filter.limit && after) return { approvals, next: after };
      after = { taskId, id: request.id, ...(request.expiresAt === undefined ? {} : { expiresAt: request.expiresAt }) };
      if (!rows.has(taskId)) rows.set(taskId, await askingRow(store, taskId));
      const row = rows.get(taskId);
      // It may have been answered since the page was read.
      const open = row?.waiting.filter(({ id }) => id === request.id) ?? [];
      for (const described of await describeRequests(store, taskId, open))
        if (row) approvals.push({ row, request: described });
    }
    if (page.length < filter.limit || !after) return { approvals, next: null };
  }
}

/** A task with what it waits for; null where its requests are answered at its parent, which passes them on. */
async function askingRow(store: TaskStore, taskId: string): Promise<TaskRow | null> {
  const parentId = parentTaskId(taskId);
  const parent = parentId === null ? null : await rowOf(store, parentId);
  return parent && askingChildren(parent).includes(taskId) ? null : rowOf(store, taskId);
}

async function rowOf(store: TaskStore, taskId: string): Promise<TaskRow | null> {
  const head = await store.look(taskId);
  if (!head) return null;
  const { execution, updatedAt } = head;
  return { taskId, execution, updatedAt, waiting: await openRequests(store, taskId, head) };
}

/** Child workflows whose requests a task passes on. */
function askingChildren({ taskId, execution, waiting }: TaskRow): readonly string[] {
  return waiting.flatMap(({ id }) => {
    const [, forks] = /^w\d+\.(\d+)(?:\.\d+)?\//.exec(id) ?? [];
    return forks === undefined ? [] : childTaskIds(taskId, execution, Number(forks));
  });
}
