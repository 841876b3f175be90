import { tenantOf } from "../compile/task-id.ts";
import type { Execution } from "../state/execution.ts";
import { first, type Sql } from "./sql.ts";
import { secondOf } from "./task-list.ts";

/** The latest checkpoint of a thread, kept as a row: never the largest id, since ids follow clocks. */
export interface HeadRow {
  readonly checkpoint_id: string;
  readonly workflow: string | null;
  readonly revision: number;
  readonly execution: string | null;
  readonly forks: number;
  readonly last_fork: string | null;
  readonly updated_at: number | string;
  /** The digest of the workflow's schema that it was checked by; null in what older formats wrote. */
  readonly schema: string | null;
}

/** Where a thread stands: its root head and its lease. Each may be missing. */
export interface Standing {
  readonly checkpoint_id: string | null;
  readonly workflow: string | null;
  readonly execution: string | null;
  readonly forks: number | null;
  readonly schema: string | null;
  /** By which lists find the head. */
  readonly updated_second: number | null;
  /** The decision that the head has pending. */
  readonly pending: number | null;
  /** 1 where it has a request without an answer. */
  readonly asks: number;
  readonly token: number | null;
  /** Null where the lease was let go. */
  readonly pid: number | null;
}

/** A stored checkpoint. */
export interface CheckpointRow {
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly parent_checkpoint_id: string | null;
  readonly type: string | null;
  readonly checkpoint: Uint8Array | string;
  readonly metadata: Uint8Array | string;
  /** The workflow that the thread is bound to. */
  readonly workflow: string | null;
  /** Of the head only: the schema digest that it was checked by. */
  readonly schema: string | null;
}

const COLUMNS = ["checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata"];
const OWN_HEAD = `from statecard_heads h where h.task_id = thread_id and h.namespace = checkpoint_ns`;
/** What a `CheckpointRow` has, to be read from the table `checkpoints`. */
export const CHECKPOINT_COLUMNS = [
  ...COLUMNS,
  `(select h.workflow ${OWN_HEAD}) as workflow`,
  `(select h.schema ${OWN_HEAD} and h.checkpoint_id = checkpoints.checkpoint_id) as schema`,
].join(", ");
/** A task's checkpoints that are kept, counted from the head back along the parents. */
export const KEPT_CHECKPOINTS = 50;

/** The head row of a thread. */
export function readHead(sql: Sql, thread: string, namespace: string): Promise<HeadRow | null> {
  return first<HeadRow>(
    sql,
    `select checkpoint_id, workflow, revision, execution, forks, last_fork, updated_at, schema from statecard_heads where task_id = ? and namespace = ?`,
    thread,
    namespace,
  );
}

/** What every guarded write has to know, in one statement. */
export async function readStanding(sql: Sql, thread: string): Promise<Standing> {
  const row = await first<Standing>(
    sql,
    `select h.checkpoint_id, h.workflow, h.execution, h.forks, h.schema, h.pending, h.updated_second, l.token, l.pid,
       (case when exists (select 1 from statecard_requests r where r.task_id = t.task_id and r.answer is null) then 1 else 0 end) as asks
     from (select cast(? as text) as task_id) t
     left join statecard_heads h on h.task_id = t.task_id and h.namespace = ''
     left join statecard_leases l on l.task_id = t.task_id`,
    thread,
  );
  return (
    row ?? {
      checkpoint_id: null,
      workflow: null,
      execution: null,
      forks: null,
      schema: null,
      pending: null,
      updated_second: null,
      asks: 0,
      token: null,
      pid: null,
    }
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

/** The checkpoint that a thread's head row names; in a file of LangGraph's own saver, the largest id. */
export async function readLatest(sql: Sql, thread: string, namespace: string): Promise<CheckpointRow | null> {
  const named = await first<CheckpointRow>(
    sql,
    `select ${COLUMNS.map((column) => `c.${column}`).join(", ")}, h.workflow, h.schema from statecard_heads h
     join checkpoints c on c.thread_id = h.task_id and c.checkpoint_ns = h.namespace and c.checkpoint_id = h.checkpoint_id
     where h.task_id = ? and h.namespace = ?`,
    thread,
    namespace,
  );
  return (
    named ??
    first<CheckpointRow>(
      sql,
      `select ${CHECKPOINT_COLUMNS} from checkpoints where thread_id = ? and checkpoint_ns = ? order by checkpoint_id desc limit 1`,
      thread,
      namespace,
    )
  );
}

/** A thread's new head; `task` is null where the thread is none of ours. */
interface NewHead {
  readonly thread: string;
  readonly namespace: string;
  readonly id: string;
  readonly task: { readonly execution: Execution; readonly text: string; readonly schema: string } | null;
  readonly at: number;
}

/** What a checkpoint changes in its thread's head; nothing that is in an index. */
const MOVES = ["checkpoint_id", "revision", "step", "execution", "updated_at", "schema", "pending"];
/** What it changes once a second. */
const LISTED = ["updated_second", "workflow"];

/** Makes a checkpoint the head of its thread, within a transaction that has read where the thread stands. */
export async function moveHead(
  sql: Sql,
  { updated_second: listed }: Pick<Standing, "updated_second">,
  { thread, namespace, id, task, at }: NewHead,
): Promise<void> {
  const execution = task?.execution;
  const second = task && namespace === "" ? secondOf(at) : null;
  const changed = namespace !== "" || second === listed ? MOVES : [...MOVES, ...LISTED];
  await sql.run(
    `insert into statecard_heads (task_id, namespace, checkpoint_id, workflow, revision, step, execution, updated_at, schema, tenant, pending, updated_second)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (task_id, namespace) do update set ${changed.map((column) => `${column} = excluded.${column}`).join(", ")}`,
    thread,
    namespace,
    id,
    execution?.workflow ?? null,
    execution?.revision ?? 0,
    execution?.step ?? null,
    task?.text ?? null,
    at,
    task?.schema ?? null,
    tenantOf(thread),
    execution?.pending?.decision ?? null,
    second,
  );
}

/** Removes checkpoints that are not among the latest of the head's line of parents. */
export async function prune(sql: Sql, thread: string, namespace: string, head: string): Promise<void> {
  const chain = await sql.all<{ id: string }>(
    `with recursive line (id, parent, depth) as (
       select checkpoint_id, parent_checkpoint_id, 1 from checkpoints
       where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?
       union all
       select c.checkpoint_id, c.parent_checkpoint_id, line.depth + 1 from checkpoints c join line on c.checkpoint_id = line.parent
       where c.thread_id = ? and c.checkpoint_ns = ? and line.depth < ?)
     select id from line`,
    thread,
    namespace,
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

/** Every table that holds rows of graphs that ran inside a task's steps, by their namespaces. */
const NAMESPACED = [
  ["checkpoints", "thread_id", "checkpoint_ns"],
  ["writes", "thread_id", "checkpoint_ns"],
  ["statecard_heads", "task_id", "namespace"],
] as const;

/**
 * Removes what graphs inside a task's steps have stored. Between two steps, `done` are those of calls
 * that are over, whose namespaces name one call, as `step:<id>`; a graph with a memory of its own over
 * the whole task (`checkpointer: true`) has a namespace without ids, and keeps its rows to the task's end.
 */
export async function removeInner(sql: Sql, thread: string, which: "done" | "all"): Promise<void> {
  const inner = await first(
    sql,
    `select 1 as found from statecard_heads where task_id = ? and namespace <> '' limit 1`,
    thread,
  );
  if (!inner) return;
  for (const [table, column, namespace] of NAMESPACED) {
    const condition = which === "all" ? `${namespace} <> ''` : `${namespace} like '%:%'`;
    await sql.run(`delete from ${table} where ${column} = ? and ${condition}`, thread);
  }
}
