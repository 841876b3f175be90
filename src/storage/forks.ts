import type { Lease } from "../compile/store.ts";
import { appendEvent } from "./events.ts";
import { requireLease } from "./leases.ts";
import { markOpen } from "./open-requests.ts";
import type { Sql } from "./sql.ts";

/** A fork from an older checkpoint. */
interface Fork {
  readonly from: string;
  /** The task as it was there: what comes next in the log does not follow from what came before. */
  readonly snapshot: unknown;
  readonly at: number;
}

/**
 * Counts a fork, within a transaction: what the branch that is left has asked is no longer open.
 *
 * @throws STALE_WRITE.
 */
export async function countFork(sql: Sql, { taskId, token }: Lease, { from, snapshot, at }: Fork): Promise<void> {
  await requireLease(sql, taskId, token);
  await sql.run(
    `update statecard_heads set forks = forks + 1, last_fork = ? where task_id = ? and namespace = ''`,
    from,
    taskId,
  );
  await markOpen(sql, taskId);
  await appendEvent(sql, taskId, { revision: -1, kind: "forked", at, data: { from, snapshot } });
}
