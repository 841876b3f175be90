import { WorkflowError } from "../errors.ts";
import type { CallResult } from "../state/execution.ts";
import { GRACE_MS, type Holder, type Intent, type IntentState } from "../tools/journal.ts";
import { readHead } from "./checkpoints.ts";
import { appendEvent } from "./events.ts";
import { requireLease } from "./leases.ts";
import { isAlive, thisProcess } from "./owner.ts";
import { first, type Sql } from "./sql.ts";

interface JournalRow {
  readonly token: number;
  readonly host: string;
  readonly pid: number;
  readonly started: number;
  readonly deadline: number;
  readonly result: string | null;
}

/** `Journal.intend`, within a transaction. */
export async function intend(
  sql: Sql,
  holder: Holder,
  checkpointId: string,
  intent: Intent,
  now: number,
): Promise<IntentState> {
  const { taskId, token } = holder;
  const { key, digest, decision, tool } = intent;
  await requireLease(sql, taskId, token);
  const head = await readHead(sql, taskId, "");
  if (head?.checkpoint_id !== checkpointId) {
    const message = `task ${taskId} has moved on: a call of ${tool} was about to run for a state that is past`;
    throw new WorkflowError("STALE_WRITE", message, { details: { taskId, head: head?.checkpoint_id ?? null } });
  }
  const known = await first<JournalRow>(
    sql,
    `select token, host, pid, started, deadline, result from statecard_journal where task_id = ? and key = ? and digest = ?`,
    taskId,
    key,
    digest,
  );
  if (known?.result) return { state: "done", result: JSON.parse(known.result) as CallResult };
  const mayStillEnd = known && known.token !== token && now < known.deadline && isAlive(known);
  if (mayStillEnd) return { state: "alive" };
  if (known && !intent.repeat) return { state: "begun" };
  const { host, pid, started } = thisProcess;
  await sql.run(
    `insert into statecard_journal (task_id, key, digest, decision, tool, token, host, pid, started, deadline)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (task_id, key, digest) do update set token = excluded.token, host = excluded.host, pid = excluded.pid,
       started = excluded.started, deadline = excluded.deadline`,
    taskId,
    key,
    digest,
    decision,
    tool,
    token,
    host,
    pid,
    started,
    now + intent.timeoutMs + GRACE_MS,
  );
  await appendEvent(sql, taskId, { revision: -1, kind: "call", at: now, data: { key, tool, digest } });
  return { state: "new" };
}

/** `Journal.recordResult`, within a transaction. */
export async function recordResult(
  sql: Sql,
  holder: Holder,
  intent: Intent,
  result: CallResult,
  now: number,
): Promise<boolean> {
  const { taskId, token } = holder;
  const { key, digest } = intent;
  const changed = await sql.run(
    `update statecard_journal set result = ? where task_id = ? and key = ? and digest = ? and token = ? and result is null`,
    JSON.stringify(result),
    taskId,
    key,
    digest,
    token,
  );
  if (changed === 0) return false;
  await appendEvent(sql, taskId, { revision: -1, kind: "returned", at: now, data: { key, digest, result } });
  return true;
}

/** `Journal.letGo`. */
export async function letGo(sql: Sql, { taskId, token }: Holder, { key, digest }: Intent): Promise<void> {
  await sql.run(
    `update statecard_journal set deadline = 0 where task_id = ? and key = ? and digest = ? and token = ? and result is null`,
    taskId,
    key,
    digest,
    token,
  );
}
