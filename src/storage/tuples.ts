import { randomUUID } from "node:crypto";
import {
  maxChannelVersion,
  TASKS,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { CheckpointRow } from "./checkpoints.ts";
import type { Sql } from "./sql.ts";

interface WriteRow {
  readonly task_id: string;
  readonly channel: string;
  readonly type: string | null;
  readonly value: Uint8Array | string;
}

/** Since this format, what `Send`s lead to is in the checkpoint itself. */
const SENDS_INSIDE = 4;

/** A stored value as it was before. */
export async function load(
  serde: SerializerProtocol,
  type: string | null,
  value: Uint8Array | string,
): Promise<unknown> {
  const loaded: unknown = await serde.loadsTyped(type ?? "json", value);
  // Drivers give their own kinds of bytes; what was stored is a plain array of them.
  return type === "bytes" && loaded instanceof Uint8Array ? Uint8Array.from(loaded) : loaded;
}

// No text of a task can hold it, since nobody knows it.
const RECORD = `record ${randomUUID()}`;

/**
 * A task's checkpoint and metadata as bytes, and its execution record as text: a task's channels hold JSON
 * and nothing else, so they do without LangGraph's slower serializer, and the record is written out once.
 */
export function dumpTask(
  checkpoint: Checkpoint,
  metadata: CheckpointMetadata,
): { readonly body: Uint8Array; readonly meta: Uint8Array; readonly record: string } {
  const { channel_values: values } = checkpoint;
  const record = JSON.stringify(values.execution);
  const around = JSON.stringify({ ...checkpoint, channel_values: { ...values, execution: RECORD } });
  return {
    body: Buffer.from(around.replace(`"${RECORD}"`, () => record)),
    meta: Buffer.from(JSON.stringify(metadata)),
    record,
  };
}

/** A stored checkpoint with its pending writes, as LangGraph reads it. */
export async function toTuple(
  sql: Sql,
  serde: SerializerProtocol,
  thread: string,
  row: CheckpointRow,
): Promise<CheckpointTuple> {
  const parent = row.parent_checkpoint_id;
  const pendingWrites = await readWrites(sql, serde, thread, row.checkpoint_ns, row.checkpoint_id);
  const checkpoint = (await load(serde, row.type, row.checkpoint)) as Checkpoint;
  if (checkpoint.v < SENDS_INSIDE && parent !== null) {
    const earlier = await readWrites(sql, serde, thread, row.checkpoint_ns, parent);
    addSends(checkpoint, earlier);
  }
  const address = (id: string) => ({
    configurable: { thread_id: thread, checkpoint_ns: row.checkpoint_ns, checkpoint_id: id },
  });
  return {
    config: address(row.checkpoint_id),
    checkpoint,
    metadata: (await load(serde, row.type, row.metadata)) as CheckpointMetadata,
    pendingWrites,
    ...(parent === null ? {} : { parentConfig: address(parent) }),
  };
}

async function readWrites(
  sql: Sql,
  serde: SerializerProtocol,
  thread: string,
  namespace: string,
  id: string,
): Promise<CheckpointPendingWrite[]> {
  const rows = await sql.all<WriteRow>(
    `select task_id, channel, type, value from writes where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ? order by task_id, idx`,
    thread,
    namespace,
    id,
  );
  return Promise.all(
    rows.map(async (row): Promise<CheckpointPendingWrite> => [
      row.task_id,
      row.channel,
      await load(serde, row.type, row.value),
    ]),
  );
}

function addSends(checkpoint: Checkpoint, earlier: readonly CheckpointPendingWrite[]): void {
  const versions = Object.values(checkpoint.channel_versions);
  checkpoint.channel_values[TASKS] = earlier.filter(([, channel]) => channel === TASKS).map(([, , value]) => value);
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
}
