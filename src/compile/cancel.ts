import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { uuid6, type Checkpoint, type CheckpointMetadata, type CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { isPlainObject } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import { cancelled, type Cancellation } from "../workflow/record.ts";
import { checkWorkflow, taskFinished, unknownTask } from "./admit-input.ts";
import { childTaskIds } from "./child.ts";
import { permitCancel } from "./override.ts";
import type { Runtime } from "./runtime.ts";
import { LEASE_TOKEN, type Lease, type TaskHead } from "./store.ts";

/**
 * Ends a task for good, with the child workflows that it waits for. Its owner, if there is one, loses the
 * lease first; so nothing happens between what is cancelled here and what the record says.
 *
 * @throws UNKNOWN_TASK, WRONG_WORKFLOW, TASK_FINISHED, TASK_CANCELLED, TASK_BUSY.
 */
export async function cancelTask(runtime: Runtime, taskId: string, by: Cancellation): Promise<void> {
  const { store } = runtime;
  await requireUnended(runtime, taskId);
  const lease = await store.takeOver(taskId);
  try {
    const { execution, forks } = await requireUnended(runtime, taskId);
    const cancelChildren = async () => {
      for (const childId of childTaskIds(taskId, execution, forks))
        await runtime.children[execution.step]?.cancel(childId, by);
    };
    // Before, so that a crash in between leaves none; and after, since one may have begun until then.
    await cancelChildren();
    await commit(runtime, lease, cancelled(execution, by), by);
    if (store.guarantees === "in-process") {
      const { step, revision } = execution;
      await store.append(taskId, revision + 1, "cancelled", { ...by, from: step, to: step });
    }
    await cancelChildren();
  } finally {
    await store.release(lease);
  }
}

async function requireUnended({ store, workflow }: Runtime, taskId: string): Promise<TaskHead> {
  const head = await store.head(taskId);
  if (!head) throw unknownTask(taskId);
  checkWorkflow(workflow, taskId, head);
  const { status } = head.execution;
  if (status === "completed" || status === "cancelled") throw taskFinished(taskId, head);
  return head;
}

/**
 * Writes the record with nothing left to run: no step that is due, no input that was not taken in.
 * LangGraph's own update keeps both, so the checkpoint is made here.
 */
async function commit({ store }: Runtime, lease: Lease, execution: Execution, by: Cancellation): Promise<void> {
  const configurable = { thread_id: lease.taskId, checkpoint_ns: "", [LEASE_TOKEN]: lease.token };
  const tuple = await store.checkpointer.getTuple({ configurable });
  if (!tuple) throw unknownTask(lease.taskId);
  const { checkpoint, changed } = ended(tuple, execution, (version) =>
    store.checkpointer.getNextVersion(version as never),
  );
  const step = (tuple.metadata?.step ?? -1) + 1;
  const metadata: CheckpointMetadata = { source: "update", step, parents: tuple.metadata?.parents ?? {} };
  const config: LangGraphRunnableConfig = {
    configurable: { ...configurable, ...permitCancel(by), checkpoint_id: tuple.checkpoint.id },
  };
  await store.checkpointer.put(config, checkpoint, metadata, changed);
}

function ended(
  { checkpoint, metadata }: CheckpointTuple,
  execution: Execution,
  next: (version: unknown) => number | string,
): { checkpoint: Checkpoint; changed: Record<string, number | string> } {
  const { __start__: start, ...values } = checkpoint.channel_values;
  const { message: _message, ...given } = isPlainObject(start) ? start : {};
  const kept = Object.entries({ ...values, ...given }).filter(([name]) => !name.startsWith("branch:to:"));
  const names = [...Object.keys(checkpoint.channel_values).filter(isTrigger), ...Object.keys(given), "execution"];
  const changed = Object.fromEntries(names.map((name) => [name, next(checkpoint.channel_versions[name])]));
  return {
    changed,
    checkpoint: {
      ...checkpoint,
      id: uuid6((metadata?.step ?? -1) + 1),
      ts: new Date().toISOString(),
      channel_values: { ...Object.fromEntries(kept), execution },
      channel_versions: { ...checkpoint.channel_versions, ...changed },
    },
  };
}

function isTrigger(channel: string): boolean {
  return channel === "__start__" || channel.startsWith("branch:to:");
}
