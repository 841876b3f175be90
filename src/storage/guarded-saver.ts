import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  WRITES_IDX_MAP,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { addressOf, text, type Address } from "./address.ts";
import {
  CHECKPOINT_COLUMNS,
  KEPT_CHECKPOINTS,
  moveHead,
  prune,
  readCheckpoint,
  readLatest,
  readStanding,
  removeInner,
  type CheckpointRow,
  type Standing,
} from "./checkpoints.ts";
import { permissionIn, type Permission } from "../compile/override.ts";
import { LEASE_TOKEN, LOADED } from "../compile/store.ts";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { isPlainObject, jsonEqual } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import { stateIn } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { schemaDigest } from "../workflow/schema-digest.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { commitEntry } from "../workflow/replay.ts";
import { appendEvent } from "./events.ts";
import { checkLease } from "./leases.ts";
import { checkLegal } from "./legal.ts";
import { Releases } from "./migrate-stored.ts";
import { markOpen } from "./open-requests.ts";
import { TASK_TABLES } from "./schema.ts";
import { Conditions, type Database, type Sql, type SqlValue } from "./sql.ts";
import { dumpTask, load, toTuple } from "./tuples.ts";

/** A checkpoint as it is stored; the record is there where the task is ours. */
interface Dumped {
  readonly type?: string;
  readonly body: Uint8Array;
  readonly meta: Uint8Array;
  readonly record?: string;
}

/** What is about to be stored. */
interface Written {
  readonly checkpoint: Checkpoint;
  readonly metadata: CheckpointMetadata;
  /** What it may do past the table. */
  readonly permission: Permission | null;
}

/**
 * A LangGraph checkpoint saver that checks every write in the write's own transaction: the lease
 * holds, the parent is the head, the change is in the table of the task's workflow.
 *
 * A thread is *bound* when its head row names a workflow; then nothing is written to it, inner graphs
 * included, but by the holder of its lease, in a process that has compiled this workflow. A new thread
 * is bound by its first checkpoint, if that has a record in the channel `execution` or comes with a
 * lease, in a process that has compiled any workflow. Every other thread belongs to another LangGraph
 * program, which may use the same database freely: nothing is checked, and no task can start in it.
 */
export class GuardedSaver extends BaseCheckpointSaver {
  private readonly sql: Database;
  private readonly clock: Clock;
  private readonly workflows = new Map<string, AnyWorkflow>();
  /** Stored tasks as the workflows that are bound here take them. */
  readonly releases: Releases;

  constructor(sql: Database, clock: Clock) {
    super();
    this.sql = sql;
    this.clock = clock;
    this.releases = new Releases(sql, this.serde, clock, this.workflows);
  }

  bind(workflow: AnyWorkflow): void {
    this.workflows.set(workflow.name, workflow);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, namespace, id } = addressOf(config);
    const row = await (id === undefined
      ? readLatest(this.sql, thread, namespace)
      : readCheckpoint(this.sql, thread, namespace, id));
    if (!row) return undefined;
    const tuple = await toTuple(this.sql, this.serde, thread, row);
    const { configurable } = tuple.config;
    // LangGraph hands this config back with what it writes, so a write tells what it was based on.
    const loaded =
      config.configurable?.[LEASE_TOKEN] === undefined ? {} : { [LOADED]: id === undefined ? "head" : "addressed" };
    const checkpoint = this.releases.fit(thread, row, tuple.checkpoint);
    return { ...tuple, checkpoint, config: { configurable: { ...configurable, ...loaded } } };
  }

  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { configurable } = config;
    const conditions = new Conditions();
    const given = (condition: string, value: string | undefined) =>
      value !== undefined && conditions.add(condition, value);
    given("thread_id = ?", text(configurable?.thread_id));
    given("checkpoint_ns = ?", text(configurable?.checkpoint_ns));
    given("checkpoint_id = ?", text(configurable?.checkpoint_id));
    given("checkpoint_id < ?", text(options.before?.configurable?.checkpoint_id));
    let left = options.limit ?? Infinity;
    const isCut = Number.isSafeInteger(left) && left >= 0 && Object.keys(options.filter ?? {}).length === 0;
    const rows = await this.sql.all<CheckpointRow & { thread_id: string }>(
      `select thread_id, ${CHECKPOINT_COLUMNS} from checkpoints ${conditions.where} order by checkpoint_id desc ${isCut ? "limit ?" : ""}`,
      ...conditions.parameters,
      ...(isCut ? [left] : []),
    );
    for (const row of rows) {
      if (left <= 0) return;
      const tuple = await toTuple(this.sql, this.serde, row.thread_id, row);
      const metadata = (tuple.metadata ?? {}) as Readonly<Record<string, unknown>>;
      const matches = Object.entries(options.filter ?? {}).every(([key, value]) => metadata[key] === value);
      if (!matches) continue;
      left--;
      yield { ...tuple, checkpoint: this.releases.fitToRead(row, tuple.checkpoint) };
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    const address = addressOf(config);
    const { thread, namespace, id: parent } = address;
    if (!thread) throw noThread();
    const record: unknown = checkpoint.channel_values.execution ?? undefined;
    const stamped = this.stamped(metadata, address, record);
    const dumped: Dumped = stamped === metadata ? await this.dump(checkpoint, metadata) : dumpTask(checkpoint, stamped);
    const { type = "json", body, meta } = dumped;
    faultPoint("before-put");
    await this.sql.transaction(async (sql) => {
      const standing = await readStanding(sql, thread);
      const workflow = namespace === "" ? this.workflowOf(standing, address, record) : undefined;
      const permission = permissionIn(config.configurable);
      const execution =
        workflow && (await this.guard(sql, workflow, address, standing, { checkpoint, metadata, permission }));
      if (namespace !== "" && standing.workflow !== null) checkLease(standing, thread, address.token);
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
      faultPoint("inside-put");
      const text = dumped.record ?? JSON.stringify(execution);
      const task = workflow && execution ? { execution, text, schema: schemaDigest(workflow) } : null;
      await moveHead(sql, standing, { thread, namespace, id: checkpoint.id, task, at: this.clock.now() });
      const isAnother = namespace === "" && standing.pending !== (task?.execution.pending?.decision ?? null);
      if (isAnother && standing.asks === 1) await markOpen(sql, thread);
      if (standing.workflow === null) return;
      const step = metadata.step ?? 0;
      const isPruned = step > 0 && step % KEPT_CHECKPOINTS === 0;
      if (isPruned) await prune(sql, thread, namespace, checkpoint.id);
      const hasEnded = execution && (workflow.steps[execution.step]?.final || execution.status === "cancelled");
      if (workflow && (hasEnded || isPruned)) await removeInner(sql, thread, hasEnded ? "all" : "done");
    }, thread);
    faultPoint("after-put");
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

  /** A checkpoint of anything as bytes, by LangGraph's serializer. */
  private async dump(checkpoint: Checkpoint, metadata: CheckpointMetadata): Promise<Dumped> {
    const [[type, body], [, meta]] = await Promise.all([
      this.serde.dumpsTyped(checkpoint),
      this.serde.dumpsTyped(metadata),
    ]);
    return { type, body, meta };
  }

  /** A task's checkpoints say by which version of what they were written. */
  private stamped(metadata: CheckpointMetadata, { namespace, token }: Address, record: unknown): CheckpointMetadata {
    if (namespace !== "" || token === undefined || !isPlainObject(record)) return metadata;
    const workflow = typeof record.workflow === "string" ? this.workflows.get(record.workflow) : undefined;
    const schema = workflow && schemaDigest(workflow);
    return { ...metadata, workflow: record.workflow, version: record.version, schema } as CheckpointMetadata;
  }

  /** The workflow whose rules hold for a write to a thread's root; none where the thread is not bound. */
  private workflowOf(standing: Standing, address: Address, record: unknown): AnyWorkflow | undefined {
    const { thread, token } = address;
    const isNew = standing.checkpoint_id === null;
    if (standing.workflow === null) {
      const claims = token !== undefined || (isNew && record !== undefined);
      if (!claims || this.workflows.size === 0) return undefined;
      if (!isNew || address.id !== undefined) {
        throw new WorkflowError(
          "WRONG_WORKFLOW",
          `thread ${thread} holds the checkpoints of another LangGraph program, so no task can run in it; use another task id`,
          { details: { taskId: thread } },
        );
      }
    }
    const name = standing.workflow ?? (isPlainObject(record) ? record.workflow : undefined);
    const workflow = typeof name === "string" ? this.workflows.get(name) : undefined;
    if (workflow) return workflow;
    if (typeof name !== "string") {
      throw new WorkflowError(
        "ILLEGAL_STATE",
        `the first checkpoint of task ${thread} was refused: it has no valid execution record; start tasks through the graph that compile() returned`,
        { details: { taskId: thread } },
      );
    }
    throw new WorkflowError(
      "WRONG_WORKFLOW",
      `task ${thread} belongs to workflow "${name}", which this process has not compiled; compile it with this store first`,
      { details: { taskId: thread, workflow: name } },
    );
  }

  /** @returns the record, which has been checked. */
  private async guard(
    sql: Sql,
    workflow: AnyWorkflow,
    address: Address,
    head: Standing,
    { checkpoint, metadata, permission }: Written,
  ): Promise<Execution | undefined> {
    const { thread, namespace, id: parent, token, loaded } = address;
    checkLease(head, thread, token);
    let from = head.execution === null ? null : (JSON.parse(head.execution) as Execution);
    if (head.checkpoint_id !== null && head.checkpoint_id !== parent) {
      const row = loaded === "addressed" && parent ? await readCheckpoint(sql, thread, namespace, parent) : null;
      if (!row) throw staleWrite(thread, head.checkpoint_id, parent);
      const base = (await load(this.serde, row.type, row.checkpoint)) as Checkpoint;
      from = (base.channel_values.execution as Execution | undefined) ?? null;
    }
    const schema = head.checkpoint_id === parent ? head.schema : null;
    if (from) from = await this.releases.base(sql, workflow, thread, { record: from, id: parent, schema });
    const execution = checkpoint.channel_values.execution as Execution | undefined;
    const values = checkpoint.channel_values;
    checkLegal(workflow, { source: metadata.source, from, execution, values, permission });
    if (execution && permission) {
      const { kind, ...by } = permission;
      const snapshot = { execution, state: stateIn(values) };
      const data = { ...by, from: from?.step, to: execution.step, snapshot };
      await appendEvent(sql, thread, { revision: execution.revision, kind, at: this.clock.now(), data });
    } else if (execution?.last && execution.revision !== from?.revision) {
      const { revision, last } = execution;
      const data = commitEntry(from, execution, last, (head.forks ?? 0) > 0);
      await appendEvent(sql, thread, { revision, kind: last.kind, at: this.clock.now(), data });
    } else if (execution && metadata.source === "update") {
      await this.noteEdit(sql, workflow, address, execution, checkpoint);
    }
    return execution;
  }

  /** A correction by hand is logged with what it changed, in the transaction that stores it. */
  private async noteEdit(
    sql: Sql,
    workflow: AnyWorkflow,
    { thread, namespace, id: parent }: Address,
    { revision }: Execution,
    checkpoint: Checkpoint,
  ): Promise<void> {
    const row = parent === undefined ? null : await readCheckpoint(sql, thread, namespace, parent);
    const before = row ? ((await load(this.serde, row.type, row.checkpoint)) as Checkpoint).channel_values : {};
    const fields = Object.keys(workflow.state).map((name) => [name, checkpoint.channel_values[name] ?? null] as const);
    const changed = fields.filter(([name, value]) => !jsonEqual(value, before[name] ?? null));
    const data = { changes: Object.fromEntries(changed) };
    await appendEvent(sql, thread, { revision, kind: "edited", at: this.clock.now(), data });
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread, namespace, id, token, loaded } = addressOf(config);
    if (!thread) throw noThread();
    if (id === undefined)
      throw new WorkflowError("UNKNOWN_CHECKPOINT", "writes without configurable.checkpoint_id cannot be stored");
    const special = writes.every(([channel]) => channel in WRITES_IDX_MAP);
    // The only task of a superstep is followed by its checkpoint at once; storing its result twice
    // would buy nothing but one model call less after a kill in between.
    if (!special && token !== undefined && namespace === "") return;
    const rows = await Promise.all(
      writes.map(async ([channel, value], index): Promise<SqlValue[]> => {
        const [type, body] = await this.serde.dumpsTyped(value);
        return [thread, namespace, id, taskId, WRITES_IDX_MAP[channel] ?? index, channel, type, body];
      }),
    );
    const conflict = special
      ? "do update set channel = excluded.channel, type = excluded.type, value = excluded.value"
      : "do nothing";
    await this.sql.transaction(async (sql) => {
      const standing = await readStanding(sql, thread);
      if (standing.workflow !== null) {
        checkLease(standing, thread, token);
        const isStale = namespace === "" && standing.checkpoint_id !== id && loaded !== "addressed";
        if (isStale) throw staleWrite(thread, standing.checkpoint_id, id);
      }
      for (const row of rows) {
        await sql.run(
          `insert into writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value) values (?, ?, ?, ?, ?, ?, ?, ?)
           on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) ${conflict}`,
          ...row,
        );
      }
    }, thread);
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.sql.transaction(async (sql) => {
      for (const [table, column] of TASK_TABLES) await sql.run(`delete from ${table} where ${column} = ?`, threadId);
    }, threadId);
  }
}

function noThread(): WorkflowError {
  return new WorkflowError("MISSING_TASK_ID", "a checkpoint without configurable.thread_id cannot be stored");
}

function staleWrite(thread: string, head: string | null, parent: string | undefined): WorkflowError {
  return new WorkflowError(
    "STALE_WRITE",
    `task ${thread} has moved on: its head is ${head ?? "nowhere"}, the write was based on ${parent ?? "nothing"}; read the task again`,
    {
      details: { taskId: thread, head, parent: parent ?? null },
    },
  );
}
