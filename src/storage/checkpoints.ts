import { first, type Sql } from "./sql.ts";

/** The latest checkpoint of a thread, kept as a row: never the largest id, since ids follow clocks. */
export interface HeadRow {
  readonly checkpoint_id: string;
  readonly workflow: string | null;
  readonly revision: number;
  readonly execution: string | null;
  readonly forks: number;
  readonly last_fork: string | null;
}

/** A stored checkpoint. */
export interface CheckpointRow {
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly parent_checkpoint_id: string | null;
  readonly type: string | null;
  readonly checkpoint: Uint8Array | string;
  readonly metadata: Uint8Array | string;
}

export const CHECKPOINT_COLUMNS = "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata";
/** A task's checkpoints that are kept, counted from the head back along the parents. */
export const KEPT_CHECKPOINTS = 50;

/** The head row of a thread. */
export function readHead(sql: Sql, thread: string, namespace: string): Promise<HeadRow | null> {
  return first<HeadRow>(
    sql,
    `select checkpoint_id, workflow, revision, execution, forks, last_fork from statecard_heads where task_id = ? and namespace = ?`,
    thread,
    namespace,
  );
}

/** One stored checkpoint. */
export function readCheckpoint(sql: Sql, thread: string, namespace: string, id: string): Promise<CheckpointRow | null> {
  return first<CheckpointRow>(
    sql,
    `select ${CHECKPOINT_COLUMNS} from checkpoints where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?`,
    thread,
    namespace,
    id,
  );
}

/** Removes checkpoints that are not among the latest of the head's line of parents. */
export async function prune(sql: Sql, thread: string, namespace: string, head: string): Promise<void> {
  const chain = await sql.all<{ id: string }>(
    `with recursive line (id, depth) as (
       select cast(? as text), 0
       union all
       select c.parent_checkpoint_id, line.depth + 1 from checkpoints c join line on c.checkpoint_id = line.id
       where c.thread_id = ? and c.checkpoint_ns = ? and c.parent_checkpoint_id is not null and line.depth + 1 < ?)
     select id from line`,
    head,
    thread,
    namespace,
    KEPT_CHECKPOINTS,
  );
  const marks = chain.map(() => "?").join(", ");
  for (const table of ["checkpoints", "writes"]) {
    await sql.run(
      `delete from ${table} where thread_id = ? and checkpoint_ns = ? and checkpoint_id not in (${marks})`,
      thread,
      namespace,
      ...chain.map((row) => row.id),
    );
  }
}
