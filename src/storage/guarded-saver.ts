import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  WRITES_IDX_MAP,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import {
  CHECKPOINT_COLUMNS,
  KEPT_CHECKPOINTS,
  prune,
  readCheckpoint,
  readHead,
  type CheckpointRow,
  type HeadRow,
} from "./checkpoints.ts";
import { LEASE_TOKEN, LOADED } from "../compile/store.ts";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { isPlainObject } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { appendEvent } from "./events.ts";
import { requireLease } from "./leases.ts";
import { checkLegal } from "./legal.ts";
import { TASK_TABLES } from "./schema.ts";
import { first, type Sql, type SqlValue } from "./sql.ts";

interface WriteRow {
  readonly task_id: string;
  readonly channel: string;
  readonly type: string | null;
  readonly value: Uint8Array | string;
}

interface Address {
  readonly thread: string;
  readonly namespace: string;
  readonly id: string | undefined;
  readonly token: unknown;
  readonly loaded: unknown;
}

/**
 * A LangGraph checkpoint saver that checks every write in the write's own transaction: the lease
 * holds, the parent is the head, the change is in the table of the task's workflow.
 */
export class GuardedSaver extends BaseCheckpointSaver {
  private readonly sql: Sql;
  private readonly clock: Clock;
  private readonly workflows = new Map<string, AnyWorkflow>();

  constructor(sql: Sql, clock: Clock) {
    super();
    this.sql = sql;
    this.clock = clock;
  }

  bind(workflow: AnyWorkflow): void {
    this.workflows.set(workflow.name, workflow);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, namespace, id } = addressOf(config);
    const row = id === undefined ? await this.latest(thread, namespace) : await this.byId(thread, namespace, id);
    if (!row) return undefined;
    const tuple = await this.toTuple(thread, row);
    const { configurable } = tuple.config;
    // LangGraph hands this config back with what it writes, so a write tells what it was based on.
    const loaded =
      config.configurable?.[LEASE_TOKEN] === undefined ? {} : { [LOADED]: id === undefined ? "head" : "addressed" };
    return { ...tuple, config: { configurable: { ...configurable, ...loaded } } };
  }

  private async latest(thread: string, namespace: string): Promise<CheckpointRow | null> {
    const head = await readHead(this.sql, thread, namespace);
    if (head) return this.byId(thread, namespace, head.checkpoint_id);
    return first<CheckpointRow>(
      this.sql,
      `select ${CHECKPOINT_COLUMNS} from checkpoints where thread_id = ? and checkpoint_ns = ? order by checkpoint_id desc limit 1`,
      thread,
      namespace,
    );
  }

  private byId(thread: string, namespace: string, id: string): Promise<CheckpointRow | null> {
    return readCheckpoint(this.sql, thread, namespace, id);
  }

  private async toTuple(thread: string, row: CheckpointRow): Promise<CheckpointTuple> {
    const written = await this.sql.all<WriteRow>(
      `select task_id, channel, type, value from writes where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ? order by task_id, idx`,
      thread,
      row.checkpoint_ns,
      row.checkpoint_id,
    );
    const pendingWrites = await Promise.all(
      written.map(async (write): Promise<CheckpointPendingWrite> => [
        write.task_id,
        write.channel,
        await this.serde.loadsTyped(write.type ?? "json", write.value),
      ]),
    );
    const address = (id: string) => ({
      configurable: { thread_id: thread, checkpoint_ns: row.checkpoint_ns, checkpoint_id: id },
    });
    return {
      config: address(row.checkpoint_id),
      checkpoint: (await this.serde.loadsTyped(row.type ?? "json", row.checkpoint)) as Checkpoint,
      metadata: (await this.serde.loadsTyped(row.type ?? "json", row.metadata)) as CheckpointMetadata,
      pendingWrites,
      ...(row.parent_checkpoint_id === null ? {} : { parentConfig: address(row.parent_checkpoint_id) }),
    };
  }

  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { configurable } = config;
    const conditions: [string, SqlValue | undefined][] = [
      ["thread_id = ?", text(configurable?.thread_id)],
      ["checkpoint_ns = ?", text(configurable?.checkpoint_ns)],
      ["checkpoint_id = ?", text(configurable?.checkpoint_id)],
      ["checkpoint_id < ?", text(options.before?.configurable?.checkpoint_id)],
    ];
    const used = conditions.filter(([, value]) => value !== undefined);
    const where = used.length > 0 ? `where ${used.map(([condition]) => condition).join(" and ")}` : "";
    const rows = await this.sql.all<CheckpointRow & { thread_id: string }>(
      `select thread_id, ${CHECKPOINT_COLUMNS} from checkpoints ${where} order by checkpoint_id desc`,
      ...used.map(([, value]) => value as SqlValue),
    );
    let left = options.limit ?? Infinity;
    for (const row of rows) {
      if (left <= 0) return;
      const tuple = await this.toTuple(row.thread_id, row);
      const metadata = (tuple.metadata ?? {}) as Readonly<Record<string, unknown>>;
      const matches = Object.entries(options.filter ?? {}).every(([key, value]) => metadata[key] === value);
      if (!matches) continue;
      left--;
      yield tuple;
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    const address = addressOf(config);
    const { thread, namespace, id: parent } = address;
    if (!thread)
      throw new WorkflowError("MISSING_TASK_ID", "a checkpoint without configurable.thread_id cannot be stored");
    const [[type, body], [, meta]] = await Promise.all([
      this.serde.dumpsTyped(checkpoint),
      this.serde.dumpsTyped(metadata),
    ]);
    const execution = checkpoint.channel_values.execution as Execution | undefined;
    await this.sql.transaction(async (sql) => {
      const head = await readHead(sql, thread, namespace);
      const workflow = namespace === "" ? this.workflowOf(head, execution) : undefined;
      if (workflow) await this.guard(sql, workflow, address, head, checkpoint, metadata);
      await sql.run(
        `insert into checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
         values (?, ?, ?, ?, ?, ?, ?)
         on conflict (thread_id, checkpoint_ns, checkpoint_id) do update set parent_checkpoint_id = excluded.parent_checkpoint_id,
           type = excluded.type, checkpoint = excluded.checkpoint, metadata = excluded.metadata`,
        thread,
        namespace,
        checkpoint.id,
        parent ?? null,
        type,
        body,
        meta,
      );
      await this.moveHead(sql, address, checkpoint.id, workflow ? execution : undefined);
      const step = metadata.step ?? 0;
      if (workflow && step > 0 && step % KEPT_CHECKPOINTS === 0) await prune(sql, thread, namespace, checkpoint.id);
    });
    const kept = { [LEASE_TOKEN]: address.token, [LOADED]: address.loaded };
    return {
      configurable: {
        thread_id: thread,
        checkpoint_ns: namespace,
        checkpoint_id: checkpoint.id,
        ...(address.token === undefined ? {} : kept),
      },
    };
  }

  /** A thread is bound to a workflow by its head; a new one by the record in its first checkpoint. */
  private workflowOf(head: HeadRow | null, execution: Execution | undefined): AnyWorkflow | undefined {
    const name = head ? head.workflow : execution?.workflow;
    if (!name) return undefined;
    const workflow = this.workflows.get(name);
    if (workflow) return workflow;
    if (!head) return undefined;
    throw new WorkflowError(
      "WRONG_WORKFLOW",
      `this task belongs to workflow "${name}", which this process has not compiled; compile it with this store first`,
    );
  }

  private async guard(
    sql: Sql,
    workflow: AnyWorkflow,
    address: Address,
    head: HeadRow | null,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<void> {
    const { thread, namespace, id: parent, token, loaded } = address;
    await requireLease(sql, thread, token);
    let from = head?.execution ? (JSON.parse(head.execution) as Execution) : null;
    if (head && head.checkpoint_id !== parent) {
      if (loaded !== "addressed" || parent === undefined) throw staleWrite(thread, head.checkpoint_id, parent);
      const row = await readCheckpoint(sql, thread, namespace, parent);
      if (!row) throw staleWrite(thread, head.checkpoint_id, parent);
      const base = (await this.serde.loadsTyped(row.type ?? "json", row.checkpoint)) as Checkpoint;
      from = (base.channel_values.execution as Execution | undefined) ?? null;
    }
    const execution = checkpoint.channel_values.execution as Execution | undefined;
    checkLegal(workflow, { source: metadata.source, from, execution, values: checkpoint.channel_values });
    if (execution?.last && execution.revision !== from?.revision) {
      const { kind } = execution.last;
      await appendEvent(sql, thread, {
        revision: execution.revision,
        kind,
        at: this.clock.now(),
        data: { ...execution.last, to: execution.step },
      });
    }
  }

  private async moveHead(sql: Sql, address: Address, id: string, execution: Execution | undefined): Promise<void> {
    await sql.run(
      `insert into statecard_heads (task_id, namespace, checkpoint_id, workflow, revision, step, execution, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?)
       on conflict (task_id, namespace) do update set checkpoint_id = excluded.checkpoint_id, workflow = excluded.workflow,
         revision = excluded.revision, step = excluded.step, execution = excluded.execution, updated_at = excluded.updated_at`,
      address.thread,
      address.namespace,
      id,
      execution?.workflow ?? null,
      execution?.revision ?? 0,
      execution?.step ?? null,
      execution ? JSON.stringify(execution) : null,
      this.clock.now(),
    );
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread, namespace, id, token, loaded } = addressOf(config);
    const special = writes.every(([channel]) => channel in WRITES_IDX_MAP);
    // The only task of a superstep is followed by its checkpoint at once; storing its result twice
    // would buy nothing but one model call less after a kill in between.
    if (!special && token !== undefined && namespace === "") return;
    const rows = await Promise.all(
      writes.map(async ([channel, value], index): Promise<SqlValue[]> => {
        const [type, body] = await this.serde.dumpsTyped(value);
        return [thread, namespace, id ?? "", taskId, WRITES_IDX_MAP[channel] ?? index, channel, type, body];
      }),
    );
    await this.sql.transaction(async (sql) => {
      const head = await readHead(sql, thread, namespace);
      if (head?.workflow) {
        await requireLease(sql, thread, token);
        if (head.checkpoint_id !== id && loaded !== "addressed") throw staleWrite(thread, head.checkpoint_id, id);
      }
      const conflict = special
        ? "do update set channel = excluded.channel, type = excluded.type, value = excluded.value"
        : "do nothing";
      for (const row of rows) {
        await sql.run(
          `insert into writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value) values (?, ?, ?, ?, ?, ?, ?, ?)
           on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) ${conflict}`,
          ...row,
        );
      }
    });
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.sql.transaction(async (sql) => {
      for (const [table, column] of TASK_TABLES) await sql.run(`delete from ${table} where ${column} = ?`, threadId);
    });
  }
}

function staleWrite(thread: string, head: string, parent: string | undefined): WorkflowError {
  return new WorkflowError(
    "STALE_WRITE",
    `task ${thread} has moved on: its head is ${head}, the write was based on ${parent ?? "nothing"}; read the task again`,
    {
      details: { taskId: thread, head, parent: parent ?? null },
    },
  );
}

function addressOf(config: RunnableConfig): Address {
  const configurable: Readonly<Record<string, unknown>> = isPlainObject(config.configurable) ? config.configurable : {};
  const id = text(configurable.checkpoint_id);
  return {
    thread: text(configurable.thread_id) ?? "",
    namespace: text(configurable.checkpoint_ns) ?? "",
    id: id === "" ? undefined : id,
    token: configurable[LEASE_TOKEN],
    loaded: configurable[LOADED],
  };
}

function text(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : String(value);
}
