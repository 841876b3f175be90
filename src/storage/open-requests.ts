import type { OpenFilter, OpenRequest } from "../compile/store.ts";
import type { Request } from "../people/requests.ts";
import { Conditions, type Sql } from "./sql.ts";

/** When a request expires that never does: a number, so that rows sort by it in both dialects. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/** What the column `expires_at` says of a request: an imported one may hold anything. */
export function expiryOf({ expiresAt }: Pick<Request, "expiresAt">): number {
  return expiresAt !== undefined && Number.isFinite(expiresAt) ? Math.min(Math.ceil(expiresAt), NEVER) : NEVER;
}

/** Conditions of indexes: a query uses one where it has the same words. */
export const OPEN = "is_open = 1";
export const APPROVALS = "kind <> 'question'";
/** The same, in words that no query about one tenant has: it has an index of its own. */
export const ALL_APPROVALS = `${APPROVALS} and forks >= 0`;
export const EXPIRES = `expires_at < ${NEVER}`;

interface StoredOpen {
  readonly task_id: string;
  readonly request: string;
  readonly workflow: string;
}

/** A page of open requests; what expires first comes first. */
export async function readOpenRequests(sql: Sql, filter: OpenFilter): Promise<readonly OpenRequest[]> {
  const { where, parameters } = conditionsOf(filter);
  const rows = await sql.all<StoredOpen>(
    `select task_id, workflow, request from statecard_requests
     ${where} order by expires_at, task_id, id limit ?`,
    ...parameters,
    filter.limit,
  );
  return rows.map(({ task_id: taskId, workflow, request }) => ({
    taskId,
    workflow,
    request: JSON.parse(request) as Request,
  }));
}

function conditionsOf({ tenant, workflow, approvals, dueBy, after }: OpenFilter): Conditions {
  const conditions = new Conditions().add(OPEN);
  if (tenant !== undefined) conditions.add("tenant = ?", tenant);
  if (workflow !== undefined) conditions.add("workflow = ?", workflow);
  if (approvals) conditions.add(tenant === undefined ? ALL_APPROVALS : APPROVALS);
  if (dueBy !== undefined) conditions.add(`${EXPIRES} and expires_at <= ?`, dueBy);
  if (after) conditions.add("(expires_at, task_id, id) > (?, ?, ?)", expiryOf(after), after.taskId, after.id);
  return conditions;
}

/** Whether a new row is open, and its task's workflow: for the task, the decision, the fork count, and the task again. */
export const OPENS = `(select count(*) from statecard_heads where task_id = ? and namespace = '' and pending = ? and forks = ?),
   (select workflow from statecard_heads where task_id = ? and namespace = '')`;

/** What a row says by its task's head. */
export const BY_HEAD = `is_open = (select count(*) from statecard_heads h
     where statecard_requests.answer is null and h.task_id = statecard_requests.task_id and h.namespace = ''
     and h.pending = statecard_requests.decision and h.forks = statecard_requests.forks),
   workflow = (select h.workflow from statecard_heads h where h.task_id = statecard_requests.task_id and h.namespace = '')`;

/**
 * Marks anew which requests of a task are open, within the transaction that moves its head or counts a fork:
 * those without an answer, of its pending decision on its present branch.
 */
export async function markOpen(sql: Sql, taskId: string): Promise<void> {
  await sql.run(`update statecard_requests set ${BY_HEAD} where task_id = ? and answer is null`, taskId);
}
