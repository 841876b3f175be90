import { first, type Sql } from "./sql.ts";

/** A client's key for a request that makes a task, so that sending it again makes no second one. */
export interface KeyClaim {
  readonly tenant: string;
  readonly who: string;
  readonly key: string;
  /** Of the request's body. */
  readonly digest: string;
  /** As it is stored. */
  readonly taskId: string;
}

/** What a key is bound to. */
export interface ClaimedKey extends Pick<KeyClaim, "digest" | "taskId"> {
  /** True where it was bound just now. */
  readonly isNew: boolean;
}

const KEPT_MS = 7 * 24 * 3_600_000;

/** Binds a key to a request and its task, within a transaction; what it was bound to first counts. */
export async function claimKey(
  sql: Sql,
  { tenant, who, key, digest, taskId }: KeyClaim,
  now: number,
): Promise<ClaimedKey> {
  await sql.run(`delete from statecard_keys where at < ?`, now - KEPT_MS);
  const added = await sql.run(
    `insert into statecard_keys (tenant, who, key, digest, task_id, at) values (?, ?, ?, ?, ?, ?)
     on conflict (tenant, who, key) do nothing`,
    tenant,
    who,
    key,
    digest,
    taskId,
    now,
  );
  const row = await first<{ digest: string; task_id: string }>(
    sql,
    `select digest, task_id from statecard_keys where tenant = ? and who = ? and key = ?`,
    tenant,
    who,
    key,
  );
  return { digest: row?.digest ?? digest, taskId: row?.task_id ?? taskId, isNew: added > 0 };
}

/** Lets a key go whose request was refused, so that it may come again, mended. */
export async function releaseKey(sql: Sql, { tenant, who, key, taskId }: KeyClaim): Promise<void> {
  await sql.run(
    `delete from statecard_keys where tenant = ? and who = ? and key = ? and task_id = ?`,
    tenant,
    who,
    key,
    taskId,
  );
}
