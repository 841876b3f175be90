import { shownRequest } from "../compile/iso-times.ts";
import { openApprovals, type OpenApproval } from "../compile/open-approvals.ts";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { shown, shownId, type Caller } from "./caller.ts";
import { approvalCursor, readApprovalCursor } from "./cursor.ts";

/** What an approval's id names: the task as its tenant knows it, the request, and what it showed. */
export interface ApprovalAddress {
  readonly taskId: string;
  readonly requestId: string;
  /** Binds a decision to what the list has shown, also where it was changed since. */
  readonly digest: string;
}

export interface ListOptions {
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string | undefined;
}

/**
 * A page of the approvals that are open among a caller's tasks, as they are shown.
 *
 * @throws INVALID_REQUEST.
 */
export async function listApprovals(
  store: SqlStore,
  caller: Caller,
  { limit, after }: ListOptions,
): Promise<{ readonly approvals: readonly object[]; readonly next?: string }> {
  const from = after === undefined ? {} : { after: readApprovalCursor(caller, after) };
  const { approvals, next } = await openApprovals(store, { tenant: caller.tenant, limit, ...from });
  return {
    approvals: approvals.map((open) => describe(caller, open)),
    ...(next ? { next: approvalCursor(caller, next) } : {}),
  };
}

function describe(caller: Caller, { row, request }: OpenApproval): object {
  const { id, ...rest } = shownRequest(request);
  const digest = row.waiting.find((each) => each.id === id)?.digest ?? "";
  const taskId = shownId(caller, row.taskId);
  return shown(caller, row.taskId, {
    id: approvalId({ taskId, requestId: id, digest }),
    taskId: row.taskId,
    workflow: row.execution.workflow,
    requestId: id,
    ...rest,
  });
}

function approvalId({ taskId, requestId, digest }: ApprovalAddress): string {
  return Buffer.from(`${requestId} ${digest} ${taskId}`).toString("base64url");
}

/** @throws UNKNOWN_REQUEST for what is no id of an approval. */
export function readApprovalId(id: string): ApprovalAddress {
  const text = Buffer.from(id, "base64url").toString();
  const [, requestId, digest, taskId] = /^([\x21-\x7e]{1,200}) ([\w-]{1,64}) (.+)$/s.exec(text) ?? [];
  if (requestId === undefined || digest === undefined || taskId === undefined) throw unknownApproval(id);
  return { requestId, digest, taskId };
}

/** The one answer for an approval that is not there, whatever it is that is not there. */
export function unknownApproval(id: string): WorkflowError {
  const message = `there is no approval ${shorten(id, 100)}; GET /approvals lists those that are open`;
  return new WorkflowError("UNKNOWN_REQUEST", message, { details: { id } });
}
