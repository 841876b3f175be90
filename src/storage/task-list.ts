import type { TaskRow } from "../compile/store.ts";
import type { Execution } from "../state/execution.ts";
import type { Releases } from "./migrate-stored.ts";
import { readRequests } from "./requests.ts";
import type { Sql, SqlValue } from "./sql.ts";
import { ofTenant } from "./tenants.ts";

/** Which tasks are listed; all unless something is set. */
export interface TaskFilter {
  /** Those of a tenant; with an empty text, those of none. */
  readonly tenant?: string;
  readonly workflow?: string;
  /** Those that come behind this one in the list. */
  readonly after?: { readonly updatedAt: number; readonly taskId: string };
  readonly limit?: number;
}

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
  const { conditions, parameters } = conditionsOf(filter);
  const heads = await sql.all<ListedHead>(
    `select task_id, execution, forks, updated_at, workflow, schema from statecard_heads
     where ${["namespace = ''", "execution is not null", ...conditions].join(" and ")}
     order by updated_at desc, task_id ${filter.limit === undefined ? "" : "limit ?"}`,
    ...parameters,
    ...(filter.limit === undefined ? [] : [filter.limit]),
  );
  const rows: TaskRow[] = [];
  for (const head of heads) {
    const execution = JSON.parse(head.execution) as Execution;
    const { pending } = execution;
    const asked = pending ? await readRequests(sql, head.task_id, pending.decision, head.forks) : [];
    const waiting = asked.filter((row) => row.answer === null).map((row) => row.request);
    const quarantine = await releases.quarantineOf(head.task_id, head);
    const stands = { taskId: head.task_id, execution, updatedAt: Number(head.updated_at), waiting };
    rows.push(quarantine === null ? stands : { ...stands, quarantine });
  }
  return rows;
}

function conditionsOf({ tenant, workflow, after }: TaskFilter): { conditions: string[]; parameters: SqlValue[] } {
  const conditions: string[] = [];
  const parameters: SqlValue[] = [];
  const add = (condition: string, ...values: readonly SqlValue[]) => {
    conditions.push(condition);
    parameters.push(...values);
  };
  if (tenant !== undefined) {
    const own = ofTenant(tenant);
    add(own.condition, ...own.parameters);
  }
  if (workflow !== undefined) add("workflow = ?", workflow);
  if (after) {
    add("(updated_at < ? or (updated_at = ? and task_id > ?))", after.updatedAt, after.updatedAt, after.taskId);
  }
  return { conditions, parameters };
}
