import type { Sql } from "./sql.ts";

/** A note that a task is to be run. It outlives the process that made it. */
export interface Wake {
  readonly taskId: string;
  /** How often it was asked for. */
  readonly count: number;
  /** When it was made, in milliseconds since the epoch: a later note of the same task is another one. */
  readonly at: number;
  /** How often the task is run at most where it fails, where whoever made the note has said so. */
  readonly attempts?: number;
  /** The task's; null where there is no such task, not yet or no longer. */
  readonly workflow: string | null;
}

export async function addWake(sql: Sql, taskId: string, now: number, attempts?: number): Promise<void> {
  await sql.run(
    `insert into statecard_wakes (task_id, count, at, attempts) values (?, 1, ?, ?)
     on conflict (task_id) do update set count = statecard_wakes.count + 1,
       attempts = coalesce(excluded.attempts, statecard_wakes.attempts)`,
    taskId,
    now,
    attempts ?? null,
  );
}

interface WakeRow {
  readonly task_id: string;
  readonly count: number;
  readonly at: number | string;
  readonly attempts: number | null;
  readonly workflow: string | null;
}

/** The notes there are, oldest first; of one task or of all. */
export async function readWakes(sql: Sql, taskId?: string): Promise<readonly Wake[]> {
  const rows = await sql.all<WakeRow>(
    `select w.task_id, w.count, w.at, w.attempts, h.workflow from statecard_wakes w
     left join statecard_heads h on h.task_id = w.task_id and h.namespace = ''
     ${taskId === undefined ? "" : "where w.task_id = ?"} order by w.at, w.task_id`,
    ...(taskId === undefined ? [] : [taskId]),
  );
  return rows.map(({ task_id, at, attempts, ...row }) => ({
    ...row,
    taskId: task_id,
    at: Number(at),
    ...(attempts === null ? {} : { attempts }),
  }));
}

/** Removes a note, unless it was asked for again since it was read. */
export async function removeWake(
  sql: Sql,
  { taskId, count, at }: Pick<Wake, "taskId" | "count" | "at">,
): Promise<void> {
  await sql.run(`delete from statecard_wakes where task_id = ? and count = ? and at = ?`, taskId, count, at);
}
