import type { Checkpoint, CheckpointMetadata, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { judge, quarantineError, storedTask, withTask } from "../compile/releases.ts";
import type { Lease, LookedAt, TaskHead } from "../compile/store.ts";
import type { Clock } from "../internal/clock.ts";
import { shorten } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import { stateIn } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { emptyFields, migrateTask, type Quarantine, type Verdict } from "../workflow/migrate.ts";
import type { StoredTask } from "../workflow/migrations.ts";
import { taskIn } from "../workflow/replay.ts";
import { schemaDigest } from "../workflow/schema-digest.ts";
import { readCheckpoint, readHead, type CheckpointRow, type HeadRow } from "./checkpoints.ts";
import { appendEvent } from "./events.ts";
import { requireLease } from "./leases.ts";
import { markOpen } from "./open-requests.ts";
import type { Database, Sql } from "./sql.ts";
import { load } from "./tuples.ts";

/** What a release means for a stored task; `unknown` where no workflow of its name is compiled here. */
export type StoredVerdict = Verdict | { readonly kind: "unknown" };

interface Found {
  readonly head: HeadRow;
  readonly row: CheckpointRow;
  readonly checkpoint: Checkpoint;
}

/**
 * Stored tasks as the workflows of this process take them. Whatever reads a task goes through here, so
 * LangGraph, the rules of the saver and people all see the migrated one. The full check costs more than
 * a step: it is left out where a head was written under the workflow's present schema digest.
 */
export class Releases {
  private readonly sql: Database;
  private readonly serde: SerializerProtocol;
  private readonly clock: Clock;
  private readonly workflows: ReadonlyMap<string, AnyWorkflow>;

  constructor(
    sql: Database,
    serde: SerializerProtocol,
    clock: Clock,
    /** The workflows that are compiled in this process; grows. */
    workflows: ReadonlyMap<string, AnyWorkflow>,
  ) {
    this.sql = sql;
    this.serde = serde;
    this.clock = clock;
    this.workflows = workflows;
  }

  /**
   * A loaded checkpoint in its present form.
   *
   * @throws TASK_QUARANTINED.
   */
  fit(taskId: string, row: CheckpointRow, checkpoint: Checkpoint): Checkpoint {
    const workflow = this.stale(row);
    const verdict = workflow && judge(workflow, checkpoint);
    if (verdict?.kind === "quarantined") throw quarantineError(taskId, workflow?.name ?? "", verdict);
    return verdict?.kind === "migrated" ? withTask(checkpoint, verdict.task) : checkpoint;
  }

  /** The same for whoever only looks: what does not fit is shown as it is stored. */
  fitToRead(row: CheckpointRow, checkpoint: Checkpoint): Checkpoint {
    const workflow = this.stale(row);
    const verdict = workflow && judge(workflow, checkpoint);
    return verdict?.kind === "migrated" ? withTask(checkpoint, verdict.task) : checkpoint;
  }

  /**
   * A head's execution record in its present form.
   *
   * @throws TASK_QUARANTINED.
   */
  private async record(taskId: string, head: HeadRow, execution: Execution): Promise<Execution> {
    const workflow = this.stale(head);
    const found = workflow && (await this.find(this.sql, taskId, head));
    if (!found) return execution;
    const verdict = judge(workflow, found.checkpoint);
    if (verdict.kind === "quarantined") throw quarantineError(taskId, workflow.name, verdict);
    // Not the row's: between the two reads, the checkpoint may have been migrated in its place.
    return verdict.kind === "migrated" ? verdict.task.execution : storedTask(found.checkpoint).execution;
  }

  /** @throws TASK_QUARANTINED. */
  async head(taskId: string): Promise<TaskHead | null> {
    const row = await readHead(this.sql, taskId, "");
    if (!row?.execution) return null;
    const execution = await this.record(taskId, row, JSON.parse(row.execution) as Execution);
    const { checkpoint_id: checkpointId, forks, updated_at: updatedAt } = row;
    return { checkpointId, execution, forks, updatedAt: Number(updatedAt) };
  }

  /** A task for whoever only looks: never refused, and what does not fit is shown as it is stored. */
  async look(taskId: string): Promise<LookedAt | null> {
    const found = await this.find(this.sql, taskId);
    if (!found) return null;
    const { head, checkpoint } = found;
    const workflow = this.stale(head);
    const verdict = workflow ? judge(workflow, checkpoint) : null;
    const values = verdict?.kind === "migrated" ? verdict.task.values : checkpoint.channel_values;
    return {
      checkpointId: head.checkpoint_id,
      forks: head.forks,
      updatedAt: Number(head.updated_at),
      execution: values.execution as Execution,
      state: stateIn(values),
      quarantine: verdict?.kind === "quarantined" ? verdict.reason : null,
    };
  }

  /** Why a head is quarantined; null where it is not. */
  async quarantineOf(taskId: string, head: Pick<HeadRow, "workflow" | "schema">): Promise<string | null> {
    return this.stale(head) ? ((await this.look(taskId))?.quarantine ?? null) : null;
  }

  /** What the present release means for a task. */
  async verdict(taskId: string): Promise<StoredVerdict | null> {
    const found = await this.find(this.sql, taskId);
    if (!found) return null;
    const workflow = this.workflows.get(found.head.workflow ?? "");
    return workflow ? judge(workflow, found.checkpoint) : { kind: "unknown" };
  }

  /**
   * The record that a write to a task is compared with, within the write's transaction: its base in its
   * present form. Where that differs from what is stored, the log gets what was done.
   */
  async base(
    sql: Sql,
    workflow: AnyWorkflow,
    taskId: string,
    { record, id, schema }: { record: Execution; id: string | undefined; schema: string | null },
  ): Promise<Execution> {
    const row =
      id === undefined || schema === schemaDigest(workflow) ? null : await readCheckpoint(sql, taskId, "", id);
    if (!row) return record;
    const verdict = judge(workflow, (await load(this.serde, row.type, row.checkpoint)) as Checkpoint);
    if (verdict.kind === "quarantined") throw quarantineError(taskId, workflow.name, verdict);
    if (verdict.kind === "fits") return record;
    await this.log(sql, taskId, verdict);
    return verdict.task.execution;
  }

  /**
   * Writes a task down in its present form, in place of its latest checkpoint, so that its pause stays
   * as it is. Needs the task's lease.
   *
   * @param emptied true to leave out the values that do not fit.
   * @returns what was done; a quarantine or `unknown` where nothing was.
   */
  migrate({ taskId, token }: Lease, emptied = false): Promise<StoredVerdict> {
    return this.sql.transaction(async (sql): Promise<StoredVerdict> => {
      await requireLease(sql, taskId, token);
      const found = await this.find(sql, taskId);
      const workflow = this.workflows.get(found?.head.workflow ?? "");
      if (!found || !workflow) return { kind: "unknown" };
      const { checkpoint, head } = found;
      const verdict = judge(workflow, checkpoint);
      if (verdict.kind === "quarantined") return emptied ? this.writeEmptied(sql, taskId, found, verdict) : verdict;
      if (verdict.kind === "migrated") {
        await this.log(sql, taskId, verdict);
        await this.write(sql, taskId, found, verdict.task);
      } else if (head.schema !== schemaDigest(workflow)) {
        await this.write(sql, taskId, found, storedTask(checkpoint));
      }
      return verdict;
    }, taskId);
  }

  private async writeEmptied(sql: Sql, taskId: string, found: Found, quarantine: Quarantine): Promise<StoredVerdict> {
    const workflow = this.workflows.get(found.head.workflow ?? "");
    if (!workflow || quarantine.unfit.length === 0) return quarantine;
    const emptied = emptyFields(storedTask(found.checkpoint), quarantine.unfit);
    const verdict = migrateTask(workflow, emptied);
    if (verdict.kind === "quarantined") return verdict;
    const { from, to, unfit } = quarantine;
    const done = unfit.map((name) => {
      const was = shorten(JSON.stringify(found.checkpoint.channel_values[name] ?? null), 100);
      return `field ${name} was emptied, it was ${was}`;
    });
    const task = verdict.kind === "migrated" ? verdict.task : emptied;
    const written = { kind: "migrated", task, from, to, steps: done } as const;
    await this.log(sql, taskId, written);
    await this.write(sql, taskId, found, task);
    return written;
  }

  private async write(sql: Sql, taskId: string, { head, row, checkpoint }: Found, task: StoredTask): Promise<void> {
    const workflow = this.workflows.get(head.workflow ?? "");
    const metadata = (await load(this.serde, row.type, row.metadata)) as CheckpointMetadata;
    const [type, body] = await this.serde.dumpsTyped(withTask(checkpoint, task));
    const [, meta] = await this.serde.dumpsTyped({ ...metadata, version: task.execution.version });
    await sql.run(
      `update checkpoints set type = ?, checkpoint = ?, metadata = ? where thread_id = ? and checkpoint_ns = '' and checkpoint_id = ?`,
      type,
      body,
      meta,
      taskId,
      head.checkpoint_id,
    );
    await sql.run(
      `update statecard_heads set step = ?, execution = ?, schema = ?, pending = ? where task_id = ? and namespace = ''`,
      task.execution.step,
      JSON.stringify(task.execution),
      workflow ? schemaDigest(workflow) : null,
      task.execution.pending?.decision ?? null,
      taskId,
    );
    await markOpen(sql, taskId);
  }

  private log(sql: Sql, taskId: string, verdict: Extract<Verdict, { kind: "migrated" }>): Promise<void> {
    const { task, from, to, steps } = verdict;
    const snapshot = taskIn(task.values);
    // What was logged before is in the names of then, so the log says where the task stands from now on.
    const data = { from, to, done: steps, snapshot };
    return appendEvent(sql, taskId, {
      revision: task.execution.revision,
      kind: "migrated",
      at: this.clock.now(),
      data,
    });
  }

  /** The compiled workflow of a row that was not written under its present schema. */
  private stale({ workflow: name, schema }: Pick<HeadRow, "workflow" | "schema">): AnyWorkflow | undefined {
    const workflow = name === null ? undefined : this.workflows.get(name);
    return workflow && schema !== schemaDigest(workflow) ? workflow : undefined;
  }

  private async find(sql: Sql, taskId: string, known?: HeadRow): Promise<Found | null> {
    const head = known ?? (await readHead(sql, taskId, ""));
    const row = head?.execution ? await readCheckpoint(sql, taskId, "", head.checkpoint_id) : null;
    if (!head?.execution || !row) return null;
    const checkpoint = (await load(this.serde, row.type, row.checkpoint)) as Checkpoint;
    return { head, row, checkpoint };
  }
}
