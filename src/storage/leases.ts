import { randomInt } from "node:crypto";
import type { Lease, TaskOwner } from "../compile/store.ts";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { isAlive, thisProcess } from "./owner.ts";
import { first, type Database, type Sql } from "./sql.ts";

interface LeaseRow {
  readonly token: number;
  readonly host: string;
  readonly pid: number | null;
  readonly started: number;
  readonly expires: number;
  readonly closing: number;
  readonly since: number | null;
}

/** How long a lease holds without being renewed; the runtime renews every 10 seconds. */
const LEASE_MS = 30_000;
const FIRST_TOKENS = 1_000_000_000;

/** Leases with fencing tokens: one owner a task; whoever lost it can write nothing any more. */
export class Leases {
  private readonly sql: Database;
  private readonly clock: Clock;

  constructor(sql: Database, clock: Clock) {
    this.sql = sql;
    this.clock = clock;
  }

  /**
   * Takes a task's lease, where nobody holds it, or from whoever does.
   *
   * @throws TASK_BUSY.
   */
  async acquire(taskId: string, from: "nobody" | "from anybody" = "nobody"): Promise<Lease> {
    return this.sql.transaction(async (sql) => {
      const row = await read(sql, taskId);
      if (from === "nobody" && row && this.isHeld(row)) {
        const message = `task ${taskId} is being run by process ${row.pid} on ${row.host}; wait until it pauses or ends`;
        throw new WorkflowError("TASK_BUSY", message, {
          retryable: true,
          details: { taskId, host: row.host, pid: row.pid },
        });
      }
      // A deleted task's tokens are forgotten: its last owner must not hold the first of its successor.
      const token = (row?.token ?? randomInt(FIRST_TOKENS)) + 1;
      const { host, pid, started } = thisProcess;
      const now = this.clock.now();
      await sql.run(
        `insert into statecard_leases (task_id, token, host, pid, started, expires, since, closing)
         values (?, ?, ?, ?, ?, ?, ?, 1)
         on conflict (task_id) do update set token = excluded.token, host = excluded.host, pid = excluded.pid,
           started = excluded.started, expires = excluded.expires, since = excluded.since, closing = 1`,
        taskId,
        token,
        host,
        pid,
        started,
        now + LEASE_MS,
        now,
      );
      return { taskId, token };
    }, taskId);
  }

  async running(lease: Lease): Promise<void> {
    await this.sql.run(
      `update statecard_leases set closing = 0 where task_id = ? and token = ?`,
      lease.taskId,
      lease.token,
    );
  }

  async renew(lease: Lease): Promise<void> {
    const expires = this.clock.now() + LEASE_MS;
    await this.sql.run(
      `update statecard_leases set expires = ? where task_id = ? and token = ? and pid is not null`,
      expires,
      lease.taskId,
      lease.token,
    );
  }

  async release(lease: Lease): Promise<void> {
    await this.sql.run(
      `update statecard_leases set pid = null, closing = 0 where task_id = ? and token = ?`,
      lease.taskId,
      lease.token,
    );
  }

  /** What the owner of a task is doing, as an answerer needs to know. */
  async ownerState(sql: Sql, taskId: string): Promise<"running" | "closing" | "free"> {
    const row = await read(sql, taskId);
    if (!row || !this.isHeld(row)) return "free";
    return row.closing ? "closing" : "running";
  }

  /** Who runs a task; null where nobody does. */
  async owner(taskId: string): Promise<TaskOwner | null> {
    const row = await read(this.sql, taskId);
    if (!row || row.pid === null || !this.isHeld(row)) return null;
    return { host: row.host, pid: row.pid, since: row.since };
  }

  async markClosing(sql: Sql, lease: Lease): Promise<void> {
    await sql.run(`update statecard_leases set closing = 1 where task_id = ? and token = ?`, lease.taskId, lease.token);
  }

  private isHeld(row: LeaseRow): boolean {
    if (row.pid === null || row.expires < this.clock.now()) return false;
    return isAlive({ host: row.host, pid: row.pid, started: row.started });
  }
}

/**
 * Refuses a write whose token does not hold the lease, in the write's own transaction.
 *
 * @throws STALE_WRITE.
 */
export async function requireLease(sql: Sql, taskId: string, token: unknown): Promise<void> {
  checkLease(await read(sql, taskId), taskId, token);
}

/** `requireLease` for a lease that has been read. */
export function checkLease(
  row: { readonly token: number | null; readonly pid: number | null } | null,
  taskId: string,
  token: unknown,
): void {
  if (row && row.pid !== null && row.token === token) return;
  const message = `a write to task ${taskId} without its lease was refused; run tasks through the graph that compile() returned`;
  throw new WorkflowError("STALE_WRITE", message, { details: { taskId, holder: row?.token ?? null } });
}

function read(sql: Sql, taskId: string): Promise<LeaseRow | null> {
  return first<LeaseRow>(
    sql,
    `select token, host, pid, started, expires, closing, since from statecard_leases where task_id = ?`,
    taskId,
  );
}
