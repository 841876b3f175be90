import type { TaskFilter, TaskRow, UntouchedFilter, UntouchedTask } from "../compile/store.ts";
import type { Execution } from "../state/execution.ts";
import type { Releases } from "./migrate-stored.ts";
import { readRequests } from "./requests.ts";
import { Conditions, type Sql } from "./sql.ts";

/**
 * What a row of the list is sorted by first. The time itself changes with every checkpoint; its second changes seldom
 * enough that the checkpoints of a busy task leave the indexes alone. Null in heads that are no tasks.
 */
export function secondOf(updatedAt: number): number {
  return Math.floor(updatedAt / 1000);
}

/**
 * The heads that are tasks: the condition of the index by tenant. Those of the other two hold for every task as well
 * and are named only where their index is meant, so that a planner has no choice: to find a tenant or workflow with
 * few tasks by walking all tasks would be to read them all. None names a column that a checkpoint changes.
 */
export const TASKS = "updated_second is not null";
export const OVER_ALL = `${TASKS} and forks >= 0`;
export const OVER_TENANTS = `${TASKS} and namespace = ''`;

interface ListedHead {
  readonly task_id: string;
  readonly execution: string;
  readonly forks: number;
  readonly updated_at: number | string;
  readonly workflow: string | null;
  readonly schema: string | null;
}

/** The list of tasks, the latest changed first, each with what it waits for. */
export async function readTasks(sql: Sql, releases: Releases, filter: TaskFilter): Promise<readonly TaskRow[]> {
  const { where, parameters } = conditionsOf(filter);
  const heads = await sql.all<ListedHead>(
    `select task_id, execution, forks, updated_at, workflow, schema from statecard_heads
     ${where}
     order by updated_second desc, updated_at desc, task_id ${filter.limit === undefined ? "" : "limit ?"}`,
    ...parameters,
    ...(filter.limit === undefined ? [] : [filter.limit]),
  );
  const rows: TaskRow[] = [];
  for (const head of heads) {
    const execution = JSON.parse(head.execution) as Execution;
    const { pending } = execution;
    const asked = pending
      ? await readRequests(sql, head.task_id, { decision: pending.decision, forks: head.forks, prefix: "" })
      : [];
    const waiting = asked.filter((row) => row.answer === null).map((row) => row.request);
    const quarantine = await releases.quarantineOf(head.task_id, head);
    const stands = { taskId: head.task_id, execution, updatedAt: Number(head.updated_at), waiting };
    rows.push(quarantine === null ? stands : { ...stands, quarantine });
  }
  return rows;
}

function conditionsOf({ tenant, workflow, after }: TaskFilter): Conditions {
  const among = workflow === undefined ? OVER_ALL : OVER_TENANTS;
  const conditions = new Conditions().add(tenant === undefined ? among : TASKS);
  if (tenant !== undefined) conditions.add("tenant = ?", tenant);
  if (workflow !== undefined) conditions.add("workflow = ?", workflow);
  if (after) {
    const { updatedAt, taskId } = after;
    conditions.add(
      "updated_second <= ? and (updated_at < ? or (updated_at = ? and task_id > ?))",
      secondOf(updatedAt),
      updatedAt,
      updatedAt,
      taskId,
    );
  }
  return conditions;
}

/** The tasks of a workflow that nothing has happened to for a while, the longest untouched first. */
export async function readUntouched(
  sql: Sql,
  { workflow, since, after, limit }: UntouchedFilter,
): Promise<readonly UntouchedTask[]> {
  const behind = after ? "and updated_second >= ? and (updated_at > ? or (updated_at = ? and task_id > ?))" : "";
  const rows = await sql.all<Pick<ListedHead, "task_id" | "updated_at">>(
    `select task_id, updated_at from statecard_heads
     where ${OVER_TENANTS} and workflow = ? and updated_second <= ? and updated_at < ? ${behind}
     order by updated_second, updated_at, task_id limit ?`,
    workflow,
    secondOf(since),
    since,
    ...(after ? [secondOf(after.updatedAt), after.updatedAt, after.updatedAt, after.taskId] : []),
    limit,
  );
  return rows.map((row) => ({ taskId: row.task_id, updatedAt: Number(row.updated_at) }));
}

/** The names of the workflows whose tasks are stored, in order. */
export async function readWorkflows(sql: Sql): Promise<readonly string[]> {
  const rows = await sql.all<{ workflow: string | null }>(
    `select distinct workflow from statecard_heads where ${TASKS} order by workflow`,
  );
  return rows.flatMap(({ workflow }) => workflow ?? []);
}
