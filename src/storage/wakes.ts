import type { Sql } from "./sql.ts";

/** A note that a task is to be run. It outlives the process that made it. */
export interface Wake {
  readonly taskId: string;
  /** How often it was asked for. */
  readonly count: number;
  /** When it was made, in milliseconds since the epoch: a later note of the same task is another one. */
  readonly at: number;
}

export async function addWake(sql: Sql, taskId: string, now: number): Promise<void> {
  await sql.run(
    `insert into statecard_wakes (task_id, count, at) values (?, 1, ?)
     on conflict (task_id) do update set count = statecard_wakes.count + 1`,
    taskId,
    now,
  );
}

/** The notes there are, oldest first; of one task or of all. */
export async function readWakes(sql: Sql, taskId?: string): Promise<readonly Wake[]> {
  const rows = await sql.all<{ task_id: string; count: number; at: number | string }>(
    `select task_id, count, at from statecard_wakes ${taskId === undefined ? "" : "where task_id = ?"} order by at, task_id`,
    ...(taskId === undefined ? [] : [taskId]),
  );
  return rows.map((row) => ({ taskId: row.task_id, count: row.count, at: Number(row.at) }));
}

/** Removes a note, unless it was asked for again since it was read. */
export async function removeWake(sql: Sql, { taskId, count, at }: Wake): Promise<void> {
  await sql.run(`delete from statecard_wakes where task_id = ? and count = ? and at = ?`, taskId, count, at);
}
