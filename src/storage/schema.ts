import { WorkflowError } from "../errors.ts";
import { ALL_APPROVALS, APPROVALS, EXPIRES, NEVER, OPEN } from "./open-requests.ts";
import { OVER_ALL, OVER_TENANTS, TASKS } from "./task-list.ts";
import { UPGRADES } from "./upgrades.ts";

/** Raised when a table changes; a database with a higher number was written by a newer version. */
const SCHEMA_VERSION = 6;

/**
 * The tables, in SQLite's words; PostgreSQL's connection renames two types and leaves out how rows are laid out. `checkpoints` and `writes`
 * are those of LangGraph's own SqliteSaver, so that its tools can read the file; ours stand beside them.
 */
const TABLES: readonly string[] = [
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
    updated_at bigint not null, schema text, tenant text not null default '', pending integer,
    updated_second bigint, primary key (task_id, namespace))`,
  // Lists of tasks, of a tenant, of a workflow and of all: a page costs the same however many tasks there are.
  `create index if not exists statecard_heads_newest on statecard_heads (updated_second desc) where ${OVER_ALL}`,
  `create index if not exists statecard_heads_workflow on statecard_heads (workflow, updated_second desc) where ${OVER_TENANTS}`,
  `create index if not exists statecard_heads_tenant on statecard_heads (tenant, updated_second desc) where ${TASKS}`,
  `create table if not exists statecard_leases (
    task_id text primary key, token integer not null, host text, pid integer, started bigint,
    expires bigint not null, closing integer not null default 0, since bigint)`,
  `create table if not exists statecard_events (
    task_id text not null, sequence integer not null, revision integer not null, kind text not null,
    at bigint not null, data text not null, primary key (task_id, sequence)) without rowid`,
  `create table if not exists statecard_requests (
    task_id text not null, id text not null, decision integer not null, forks integer not null,
    request text not null, answer text, answered_by text, answered_at bigint, tenant text not null default '', workflow text,
    kind text not null default 'question', expires_at bigint not null default ${NEVER}, is_open integer not null default 0,
    primary key (task_id, id))`,
  // What is open: a request leaves these indexes when it is answered, or its task moves on without an answer.
  `create index if not exists statecard_requests_due on statecard_requests (workflow, expires_at, task_id, id) where ${OPEN} and ${EXPIRES}`,
  `create index if not exists statecard_requests_approvals on statecard_requests (expires_at, task_id, id) where ${OPEN} and ${ALL_APPROVALS}`,
  `create index if not exists statecard_requests_tenant on statecard_requests (tenant, expires_at, task_id, id) where ${OPEN} and ${APPROVALS}`,
  `create table if not exists statecard_votes (
    task_id text not null, request_id text not null, who text not null, answer text not null, at bigint not null,
    primary key (task_id, request_id, who))`,
  `create table if not exists statecard_journal (
    task_id text not null, key text not null, digest text not null, decision integer not null, tool text not null,
    attempt integer not null, token integer not null, host text not null, pid integer not null,
    started bigint not null, deadline bigint not null, result text, primary key (task_id, key, digest)) without rowid`,
  // The text in UTF-8, since PostgreSQL's texts hold no NUL; last, so that a list of artifacts does not read it.
  `create table if not exists statecard_artifacts (
    task_id text not null, id text not null, tool text not null, kind text not null, bytes integer not null,
    at bigint not null, content blob not null, primary key (task_id, id))`,
  `create table if not exists statecard_tokens (
    name text primary key, hash text not null, created_at bigint not null, tenant text not null default '')`,
  `create index if not exists statecard_tokens_hash on statecard_tokens (hash)`,
  // What a server has promised: a task for a key, and that a task will be run.
  `create table if not exists statecard_keys (
    tenant text not null, who text not null, key text not null, digest text not null, task_id text not null,
    at bigint not null, primary key (tenant, who, key))`,
  `create index if not exists statecard_keys_age on statecard_keys (at)`,
  `create table if not exists statecard_wakes (
    task_id text primary key, count integer not null, at bigint not null, attempts integer)`,
  `create table if not exists statecard_parent_pauses (
    task_id text not null, ordinal integer not null, requests text not null, used integer not null,
    primary key (task_id, ordinal))`,
  // What people have decided about their data: for all tasks of a workflow, so that it goes with none.
  `create table if not exists statecard_consents (
    tenant text not null, workflow text not null, destination text not null, kind text not null,
    allowed integer not null, decided_by text, at bigint not null, primary key (tenant, workflow, destination, kind))`,
  // What is remembered across tasks, so that none of it goes with a task.
  `create table if not exists statecard_memory (
    namespace text not null, key text not null, type text, priority integer not null, created_at bigint not null,
    updated_at bigint not null, expires_at bigint, words text not null, value text not null, primary key (namespace, key))`,
  `create index if not exists statecard_memory_newest on statecard_memory (namespace, updated_at, key)`,
  `create index if not exists statecard_memory_first on statecard_memory (namespace, priority, updated_at, key)`,
  `create index if not exists statecard_memory_ends on statecard_memory (expires_at)`,
  `create index if not exists statecard_memory_passing on statecard_memory (priority, updated_at)`,
  // The key's columns are in the order of a recall: of a word that many memories hold, only the first are read.
  `create table if not exists statecard_memory_words (
    namespace text not null, word text not null, priority integer not null, updated_at bigint not null, key text not null,
    primary key (namespace, word, priority, updated_at, key)) without rowid`,
  `create table if not exists statecard_memory_vectors (
    namespace text not null, key text not null, field text not null, vector blob not null,
    primary key (namespace, key, field))`,
];

/** Every table that holds rows of a task, with the column that names it. Memories outlive tasks. */
export const TASK_TABLES: readonly (readonly [table: string, column: string])[] = [
  ["checkpoints", "thread_id"],
  ["writes", "thread_id"],
  ["statecard_heads", "task_id"],
  ["statecard_leases", "task_id"],
  ["statecard_events", "task_id"],
  ["statecard_requests", "task_id"],
  ["statecard_votes", "task_id"],
  ["statecard_journal", "task_id"],
  ["statecard_artifacts", "task_id"],
  ["statecard_parent_pauses", "task_id"],
  ["statecard_keys", "task_id"],
  ["statecard_wakes", "task_id"],
];

/** Where the format is kept; only ask where `statecard_meta` is there. */
export const READ_VERSION = `select value from statecard_meta where key = 'schema_version'`;

/**
 * The statements that bring a database to this version's format, to be run in one transaction that
 * read the stored format itself. None where there is nothing to do.
 *
 * @param stored the stored format; null in a new database.
 * @param where the database, as its user knows it.
 * @throws DATABASE_TOO_NEW.
 */
export function setUpStatements(stored: number | null, where: string): readonly string[] {
  if (stored === SCHEMA_VERSION) return [];
  if (stored !== null && stored > SCHEMA_VERSION) {
    throw new WorkflowError(
      "DATABASE_TOO_NEW",
      `${where} was written by a newer version of statecard (format ${stored}, this version knows ${SCHEMA_VERSION}); update statecard, or name another database with --db`,
      { details: { database: where, version: stored, known: SCHEMA_VERSION } },
    );
  }
  const newer = Object.entries(UPGRADES).filter(([format]) => stored !== null && Number(format) > stored);
  return [
    ...newer.flatMap(([, statements]) => statements),
    ...TABLES,
    `insert into statecard_meta (key, value) values ('schema_version', '${SCHEMA_VERSION}')
     on conflict (key) do update set value = excluded.value`,
  ];
}
