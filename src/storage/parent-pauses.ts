import type { ParentPause } from "../compile/store.ts";
import type { Request } from "../people/requests.ts";
import type { Sql } from "./sql.ts";

/** The pauses that a task inside a foreign graph has raised in its parent, in their order. */
export async function readParentPauses(sql: Sql, taskId: string): Promise<readonly ParentPause[]> {
  const rows = await sql.all<{ ordinal: number; requests: string; used: number }>(
    `select ordinal, requests, used from statecard_parent_pauses where task_id = ? order by ordinal`,
    taskId,
  );
  return rows.map((row) => ({
    ordinal: row.ordinal,
    requests: JSON.parse(row.requests) as Request[],
    used: row.used === 1,
  }));
}

export async function putParentPause(sql: Sql, taskId: string, pause: ParentPause): Promise<void> {
  await sql.run(
    `insert into statecard_parent_pauses (task_id, ordinal, requests, used) values (?, ?, ?, ?)
     on conflict (task_id, ordinal) do update set requests = excluded.requests, used = excluded.used`,
    taskId,
    pause.ordinal,
    JSON.stringify(pause.requests),
    pause.used ? 1 : 0,
  );
}
