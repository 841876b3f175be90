import type { TaskEvent } from "../compile/store.ts";
import type { Sql } from "./sql.ts";

/** Appends to a task's log, within the transaction of what is logged. */
export async function appendEvent(sql: Sql, taskId: string, event: Omit<TaskEvent, "sequence">): Promise<void> {
  await sql.run(
    `insert into statecard_events (task_id, sequence, revision, kind, at, data)
     select ?, coalesce(max(sequence), 0) + 1, ?, ?, ?, ? from statecard_events where task_id = ?`,
    taskId,
    event.revision,
    event.kind,
    event.at,
    JSON.stringify(event.data),
    taskId,
  );
}

/** A task's whole log, oldest first. */
export async function readEvents(sql: Sql, taskId: string): Promise<readonly TaskEvent[]> {
  const rows = await sql.all<Omit<TaskEvent, "data"> & { data: string }>(
    `select sequence, revision, kind, at, data from statecard_events where task_id = ? order by sequence`,
    taskId,
  );
  return rows.map((row) => ({ ...row, data: JSON.parse(row.data) as Record<string, unknown> }));
}
