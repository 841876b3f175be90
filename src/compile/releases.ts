import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, Checkpoint, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../errors.ts";
import { isPlainObject } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { migrateTask, type Quarantine, type Verdict } from "../workflow/migrate.ts";
import type { StoredTask } from "../workflow/migrations.ts";

/** What a workflow's present release makes of a stored checkpoint. */
export function judge(workflow: AnyWorkflow, checkpoint: Checkpoint): Verdict {
  // Without a record it is the checkpoint of another LangGraph program, and no task.
  if (!isPlainObject(checkpoint.channel_values.execution)) return { kind: "fits" };
  return migrateTask(workflow, storedTask(checkpoint));
}

/** The parts of a checkpoint that hold a workflow's names. */
export function storedTask(checkpoint: Checkpoint): StoredTask {
  return {
    execution: checkpoint.channel_values.execution as Execution,
    values: checkpoint.channel_values,
    channelVersions: checkpoint.channel_versions,
    versionsSeen: checkpoint.versions_seen,
  };
}

/** The same checkpoint with other such parts. */
export function withTask(checkpoint: Checkpoint, { values, channelVersions, versionsSeen }: StoredTask): Checkpoint {
  return {
    ...checkpoint,
    channel_values: values as Checkpoint["channel_values"],
    channel_versions: channelVersions as Checkpoint["channel_versions"],
    versions_seen: versionsSeen as Checkpoint["versions_seen"],
  };
}

/** The refusal to run a task that does not fit its workflow; it is raised before anything is written. */
export function quarantineError(taskId: string, workflow: string, quarantine: Quarantine): WorkflowError {
  const { kind: _kind, unfit: _unfit, reason, ...names } = quarantine;
  const { from, to, sameVersion } = names;
  const message = sameVersion
    ? `task ${taskId} does not fit workflow "${workflow}" any more: ${reason}. The task is as it was; give the workflow a new version and declare the change in its migrations, or choose what becomes of the task with: npx statecard migrate`
    : `task ${taskId} of workflow "${workflow}" was stored by version ${from} and does not fit version ${to}: ${reason}. The task is as it was; see what a release means for every task with: npx statecard migrate --dry-run`;
  return new WorkflowError("TASK_QUARANTINED", message, { details: { taskId, reason, ...names } });
}

/**
 * Any LangGraph checkpointer, with the tasks that it loads in their present form. Everything else about
 * it is as it was given.
 *
 * @param workflows those that are compiled here, by name; grows.
 */
export function migratingSaver(
  saver: BaseCheckpointSaver,
  workflows: ReadonlyMap<string, AnyWorkflow>,
): BaseCheckpointSaver {
  const getTuple = async (config: RunnableConfig): Promise<CheckpointTuple | undefined> => {
    const tuple = await saver.getTuple(config);
    const workflow = tuple && workflowOf(tuple, workflows);
    if (!workflow) return tuple;
    const verdict = judge(workflow, tuple.checkpoint);
    if (verdict.kind === "quarantined") {
      throw quarantineError(String(config.configurable?.thread_id), workflow.name, verdict);
    }
    return verdict.kind === "fits" ? tuple : { ...tuple, checkpoint: withTask(tuple.checkpoint, verdict.task) };
  };
  return new Proxy(saver, {
    get(target, key) {
      if (key === "getTuple") return getTuple;
      const value: unknown = Reflect.get(target, key, target);
      // Savers may have private members, which only they themselves can reach.
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The workflow of a thread's own checkpoint; a graph inside one of its steps is not looked at. */
export function workflowOf(
  { checkpoint, config }: CheckpointTuple,
  workflows: ReadonlyMap<string, AnyWorkflow>,
): AnyWorkflow | undefined {
  const record: unknown = checkpoint.channel_values.execution;
  const isRoot = (config.configurable?.checkpoint_ns ?? "") === "";
  const name = isRoot && isPlainObject(record) ? record.workflow : undefined;
  return typeof name === "string" ? workflows.get(name) : undefined;
}
