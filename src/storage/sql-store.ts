import { checkAnswerable } from "../compile/in-process-store.ts";
import type { Lease, ParentPause, TaskEvent, TaskHead, TaskRow, TaskStore } from "../compile/store.ts";
import type { Clock } from "../internal/clock.ts";
import type { Answer, OwnerState, Request, RequestRow } from "../people/requests.ts";
import type { Execution } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { appendEvent, readEvents, readFirstEvent } from "./events.ts";
import { readHead } from "./checkpoints.ts";
import { GuardedSaver } from "./guarded-saver.ts";
import { Leases, requireLease } from "./leases.ts";
import { first, type Database, type Sql } from "./sql.ts";

interface StoredRequest {
  readonly decision: number;
  readonly forks: number;
  readonly request: string;
  readonly answer: string | null;
  readonly answered_by: string | null;
}

const REQUEST_COLUMNS = "decision, forks, request, answer, answered_by";

/** The task store on a SQL database; `sqliteStore` makes one. */
export class SqlStore implements TaskStore {
  readonly guarantees = "store";
  readonly checkpointer: GuardedSaver;
  private readonly sql: Database;
  private readonly clock: Clock;
  private readonly leases: Leases;

  constructor(sql: Database, clock: Clock) {
    this.sql = sql;
    this.clock = clock;
    this.leases = new Leases(sql, clock);
    this.checkpointer = new GuardedSaver(sql, clock);
  }

  bind(workflow: AnyWorkflow): void {
    this.checkpointer.bind(workflow);
  }

  async head(taskId: string): Promise<TaskHead | null> {
    const row = await readHead(this.sql, taskId, "");
    if (!row?.execution) return null;
    return { checkpointId: row.checkpoint_id, execution: JSON.parse(row.execution) as Execution, forks: row.forks };
  }

  acquire(taskId: string): Promise<Lease> {
    return this.leases.acquire(taskId);
  }

  running(lease: Lease): Promise<void> {
    return this.leases.running(lease);
  }

  renew(lease: Lease): Promise<void> {
    return this.leases.renew(lease);
  }

  release(lease: Lease): Promise<void> {
    return this.leases.release(lease);
  }

  closing(lease: Lease, requestIds: readonly string[]): Promise<boolean> {
    return this.sql.transaction(async (sql) => {
      await requireLease(sql, lease.taskId, lease.token);
      for (const id of requestIds) {
        const row = await readRequest(sql, lease.taskId, id);
        if (row?.answer) return false;
      }
      await this.leases.markClosing(sql, lease);
      return true;
    });
  }

  fork(lease: Lease, from: string): Promise<void> {
    return this.sql.transaction(async (sql) => {
      await requireLease(sql, lease.taskId, lease.token);
      await sql.run(
        `update statecard_heads set forks = forks + 1, last_fork = ? where task_id = ? and namespace = ''`,
        from,
        lease.taskId,
      );
      await appendEvent(sql, lease.taskId, { revision: -1, kind: "forked", at: this.clock.now(), data: { from } });
    });
  }

  async lastFork(taskId: string): Promise<string | null> {
    return (await readHead(this.sql, taskId, ""))?.last_fork ?? null;
  }

  async addRequests(taskId: string, decision: number, forks: number, requests: readonly Request[]): Promise<void> {
    for (const request of requests) {
      await this.sql.run(
        `insert into statecard_requests (task_id, id, decision, forks, request) values (?, ?, ?, ?, ?) on conflict (task_id, id) do nothing`,
        taskId,
        request.id,
        decision,
        forks,
        JSON.stringify(request),
      );
    }
  }

  async requests(taskId: string, decision: number, forks: number): Promise<readonly RequestRow[]> {
    const rows = await this.sql.all<StoredRequest>(
      `select ${REQUEST_COLUMNS} from statecard_requests where task_id = ? and decision = ? and forks = ? order by id`,
      taskId,
      decision,
      forks,
    );
    return rows.map(toRequestRow);
  }

  request(taskId: string, id: string): Promise<RequestRow | null> {
    return readRequest(this.sql, taskId, id);
  }

  answer(taskId: string, id: string, answer: Answer, who: string, shown?: string): Promise<OwnerState> {
    return this.sql.transaction(async (sql) => {
      checkAnswerable(taskId, id, await readRequest(sql, taskId, id), shown);
      const at = this.clock.now();
      await sql.run(
        `update statecard_requests set answer = ?, answered_by = ?, answered_at = ? where task_id = ? and id = ? and answer is null`,
        JSON.stringify(answer),
        who,
        at,
        taskId,
        id,
      );
      await appendEvent(sql, taskId, { revision: -1, kind: "answered", at, data: { id, who } });
      return this.leases.ownerState(sql, taskId);
    });
  }

  async hasAnswers(taskId: string): Promise<boolean> {
    return (
      (await first(
        this.sql,
        `select 1 from statecard_requests where task_id = ? and answer is not null limit 1`,
        taskId,
      )) !== null
    );
  }

  append(taskId: string, revision: number, kind: string, data: Readonly<Record<string, unknown>>): Promise<void> {
    return this.sql.transaction((sql) => appendEvent(sql, taskId, { revision, kind, at: this.clock.now(), data }));
  }

  events(taskId: string, latest?: number): Promise<readonly TaskEvent[]> {
    return readEvents(this.sql, taskId, latest);
  }

  firstEvent(taskId: string, kind: string): Promise<TaskEvent | null> {
    return readFirstEvent(this.sql, taskId, kind);
  }

  async tasks(): Promise<readonly TaskRow[]> {
    const heads = await this.sql.all<{
      task_id: string;
      execution: string;
      forks: number;
      updated_at: number | string;
    }>(
      `select task_id, execution, forks, updated_at from statecard_heads where namespace = '' and execution is not null order by updated_at desc, task_id`,
    );
    const rows: TaskRow[] = [];
    for (const head of heads) {
      const execution = JSON.parse(head.execution) as Execution;
      const asked = execution.pending ? await this.requests(head.task_id, execution.pending.decision, head.forks) : [];
      const waiting = asked.filter((row) => row.answer === null).map((row) => row.request);
      rows.push({ taskId: head.task_id, execution, updatedAt: Number(head.updated_at), waiting });
    }
    return rows;
  }

  /** Closes the database file; the next call opens it again. */
  close(): void {
    this.sql.close();
  }

  deleteTask(taskId: string): Promise<void> {
    return this.checkpointer.deleteThread(taskId);
  }

  async parentPauses(taskId: string): Promise<readonly ParentPause[]> {
    const rows = await this.sql.all<{ ordinal: number; requests: string; used: number }>(
      `select ordinal, requests, used from statecard_parent_pauses where task_id = ? order by ordinal`,
      taskId,
    );
    return rows.map((row) => ({
      ordinal: row.ordinal,
      requests: JSON.parse(row.requests) as Request[],
      used: row.used === 1,
    }));
  }

  async setParentPause(taskId: string, pause: ParentPause): Promise<void> {
    await this.sql.run(
      `insert into statecard_parent_pauses (task_id, ordinal, requests, used) values (?, ?, ?, ?)
       on conflict (task_id, ordinal) do update set requests = excluded.requests, used = excluded.used`,
      taskId,
      pause.ordinal,
      JSON.stringify(pause.requests),
      pause.used ? 1 : 0,
    );
  }
}

async function readRequest(sql: Sql, taskId: string, id: string): Promise<RequestRow | null> {
  const row = await first<StoredRequest>(
    sql,
    `select ${REQUEST_COLUMNS} from statecard_requests where task_id = ? and id = ?`,
    taskId,
    id,
  );
  return row && toRequestRow(row);
}

function toRequestRow(row: StoredRequest): RequestRow {
  return {
    request: JSON.parse(row.request) as Request,
    decision: row.decision,
    forks: row.forks,
    answer: row.answer === null ? null : (JSON.parse(row.answer) as Answer),
    answeredBy: row.answered_by,
  };
}
