import type { TaskEvent } from "../compile/store.ts";
import { first, type Sql } from "./sql.ts";

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

interface EventRow extends Omit<TaskEvent, "data"> {
  readonly data: string;
}

const EVENT_COLUMNS = "sequence, revision, kind, at, data";

/** A task's log, oldest first; with `latest`, only so many of its last entries. */
export async function readEvents(sql: Sql, taskId: string, latest?: number): Promise<readonly TaskEvent[]> {
  const from = `from statecard_events where task_id = ?`;
  const rows =
    latest === undefined
      ? await sql.all<EventRow>(`select ${EVENT_COLUMNS} ${from} order by sequence`, taskId)
      : (
          await sql.all<EventRow>(`select ${EVENT_COLUMNS} ${from} order by sequence desc limit ?`, taskId, latest)
        ).toReversed();
  return rows.map(toEvent);
}

/** What follows an entry of a task's log, oldest first, at most so many. */
export async function readEventsAfter(
  sql: Sql,
  taskId: string,
  sequence: number,
  limit: number,
): Promise<readonly TaskEvent[]> {
  const rows = await sql.all<EventRow>(
    `select ${EVENT_COLUMNS} from statecard_events where task_id = ? and sequence > ? order by sequence limit ?`,
    taskId,
    sequence,
    limit,
  );
  return rows.map(toEvent);
}

/** The first entry of a kind in a task's log. */
export async function readFirstEvent(sql: Sql, taskId: string, kind: string): Promise<TaskEvent | null> {
  const row = await first<EventRow>(
    sql,
    `select ${EVENT_COLUMNS} from statecard_events where task_id = ? and kind = ? order by sequence limit 1`,
    taskId,
    kind,
  );
  return row && toEvent(row);
}

function toEvent(row: EventRow): TaskEvent {
  return { ...row, data: JSON.parse(row.data) as Record<string, unknown> };
}
