import { WorkflowError } from "../errors.ts";
import type { CallResult } from "../state/execution.ts";
import { GRACE_MS, type Holder, type Intent, type IntentState, type NewArtifact } from "../tools/journal.ts";
import { logged, putArtifact } from "./artifacts.ts";
import { appendEvent } from "./events.ts";
import { checkLease } from "./leases.ts";
import { isAlive, thisProcess } from "./owner.ts";
import { first, type Sql } from "./sql.ts";

/** The lease, the head, and what the journal has of a call, in one row. */
interface Found {
  readonly holder: number;
  readonly owner: number | null;
  readonly head: string | null;
  readonly attempt: number | null;
  readonly token: number | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly started: number | null;
  readonly deadline: number | null;
  readonly result: string | null;
}

/** An earlier attempt at the call, where there was one. */
function attemptIn({ attempt: number, token, host, pid, started, deadline }: Found) {
  if (number === null || token === null || host === null || pid === null) return null;
  return { number, token, host, pid, started: started ?? 0, deadline: deadline ?? 0 };
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
  const known = await first<Found>(
    sql,
    `select l.token as holder, l.pid as owner, h.checkpoint_id as head, j.attempt, j.token, j.host, j.pid, j.started, j.deadline, j.result
     from statecard_leases l
     left join statecard_heads h on h.task_id = l.task_id and h.namespace = ''
     left join statecard_journal j on j.task_id = l.task_id and j.key = ? and j.digest = ?
     where l.task_id = ?`,
    key,
    digest,
    taskId,
  );
  checkLease(known && { token: known.holder, pid: known.owner }, taskId, token);
  if (known?.head !== checkpointId) {
    const message = `task ${taskId} has moved on: a call of ${tool} was about to run for a state that is past`;
    throw new WorkflowError("STALE_WRITE", message, { details: { taskId, head: known?.head ?? null } });
  }
  if (known?.result) return { state: "done", result: JSON.parse(known.result) as CallResult };
  const attempt = attemptIn(known);
  if (attempt && attempt.token !== token && now < attempt.deadline && isAlive(attempt)) return { state: "alive" };
  if (attempt && !intent.repeat) return { state: "begun", attempt: attempt.number };
  const { host, pid, started } = thisProcess;
  await sql.run(
    `insert into statecard_journal (task_id, key, digest, decision, tool, attempt, token, host, pid, started, deadline)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (task_id, key, digest) do update set attempt = excluded.attempt, token = excluded.token, host = excluded.host, pid = excluded.pid,
       started = excluded.started, deadline = excluded.deadline`,
    taskId,
    key,
    digest,
    decision,
    tool,
    (attempt?.number ?? 0) + 1,
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
  { result, artifact }: { readonly result: CallResult; readonly artifact: NewArtifact | null },
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
  if (artifact) await putArtifact(sql, taskId, { ...artifact, at: now });
  // The log's chain so covers what is kept outside of the log.
  const data = artifact ? { key, digest, result, artifact: logged(artifact) } : { key, digest, result };
  await appendEvent(sql, taskId, { revision: -1, kind: "returned", at: now, data });
  return true;
}

/** `Journal.resultOf`. */
export async function resultOf(
  sql: Sql,
  taskId: string,
  { key, digest }: Pick<Intent, "key" | "digest">,
): Promise<CallResult | null> {
  const statement = `select result from statecard_journal where task_id = ? and key = ? and digest = ?`;
  const row = await first<{ result: string | null }>(sql, statement, taskId, key, digest);
  return row?.result ? (JSON.parse(row.result) as CallResult) : null;
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
