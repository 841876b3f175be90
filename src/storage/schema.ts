/** Raised when a table changes; a database with a higher number was written by a newer version. */
export const SCHEMA_VERSION = 1;

/**
 * The tables. `checkpoints` and `writes` are those of LangGraph's own SqliteSaver, so that its tools
 * can read the file; ours stand beside them.
 */
export const TABLES: readonly string[] = [
  `create table if not exists statecard_meta (key text primary key, value text not null)`,
  `create table if not exists checkpoints (
    thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null,
    parent_checkpoint_id text, type text, checkpoint blob, metadata blob,
    primary key (thread_id, checkpoint_ns, checkpoint_id))`,
  `create table if not exists writes (
    thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null,
    task_id text not null, idx integer not null, channel text not null, type text, value blob,
    primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))`,
  `create table if not exists statecard_heads (
    task_id text not null, namespace text not null, checkpoint_id text not null, workflow text,
    revision integer not null, step text, execution text, forks integer not null default 0, last_fork text,
    updated_at bigint not null, primary key (task_id, namespace))`,
  `create table if not exists statecard_leases (
    task_id text primary key, token integer not null, host text, pid integer, started bigint,
    expires bigint not null, closing integer not null default 0)`,
  `create table if not exists statecard_events (
    task_id text not null, sequence integer not null, revision integer not null, kind text not null,
    at bigint not null, data text not null, primary key (task_id, sequence))`,
  `create table if not exists statecard_requests (
    task_id text not null, id text not null, decision integer not null, forks integer not null,
    request text not null, answer text, answered_by text, answered_at bigint, primary key (task_id, id))`,
  `create table if not exists statecard_parent_pauses (
    task_id text not null, ordinal integer not null, requests text not null, used integer not null,
    primary key (task_id, ordinal))`,
];

/** Every table that holds rows of a task, with the column that names it. */
export const TASK_TABLES: readonly (readonly [table: string, column: string])[] = [
  ["checkpoints", "thread_id"],
  ["writes", "thread_id"],
  ["statecard_heads", "task_id"],
  ["statecard_leases", "task_id"],
  ["statecard_events", "task_id"],
  ["statecard_requests", "task_id"],
  ["statecard_parent_pauses", "task_id"],
];
