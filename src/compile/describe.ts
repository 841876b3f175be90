import type { Request } from "../people/requests.ts";
import type { Execution, TaskError, TaskStatus, Usage } from "../state/execution.ts";
import { unknownTask } from "./admit-input.ts";
import { openRequests } from "./open-requests.ts";
import type { TaskHead, TaskStore } from "./store.ts";

/** A task as the command line and servers show it. */
export interface TaskDescription {
  readonly taskId: string;
  readonly workflow: string;
  readonly version: number;
  readonly status: TaskStatus;
  readonly step: string;
  readonly completedSteps: readonly string[];
  readonly revision: number;
  readonly retryCount: number;
  readonly state: Readonly<Record<string, unknown>>;
  readonly waiting?: readonly Pick<Request, "id" | "kind" | "question">[];
  readonly lastError?: TaskError;
  readonly usage: Usage;
}

// An error is followed by nothing but refusals and answers until the task has moved on.
const RECENT_EVENTS = 20;

// Channels that are not the workflow's fields.
const OWN_CHANNELS = /^(?:execution|message|__.*|branch:.*)$/;

/**
 * Reads where a task stands, from its store alone. The status is the true one: waiting where
 * requests are open, failed where the latest run ended with an error, whatever was stored before.
 *
 * @throws UNKNOWN_TASK.
 */
export async function describeTask(store: TaskStore, taskId: string): Promise<TaskDescription> {
  const head = await store.head(taskId);
  if (!head) throw unknownTask(taskId);
  const { execution } = head;
  const open = await openRequests(store, taskId, head);
  const lastError = execution.lastError ?? (await errorSince(store, taskId, execution));
  return {
    taskId,
    workflow: execution.workflow,
    version: execution.version,
    status: trueStatus(execution, open, lastError),
    step: execution.step,
    completedSteps: execution.completedSteps,
    revision: execution.revision,
    retryCount: execution.retryCount,
    state: await stateOf(store, taskId, head),
    ...(open.length > 0 ? { waiting: open.map(({ id, kind, question }) => ({ id, kind, question })) } : {}),
    ...(lastError ? { lastError } : {}),
    usage: execution.usage,
  };
}

function trueStatus(execution: Execution, open: readonly Request[], error: TaskError | null): TaskStatus {
  if (open.length > 0) return "waiting_user";
  if (error) return "failed";
  return execution.status === "waiting_user" ? "running" : execution.status;
}

/** An error that ended the latest run before it could commit anything; the task can be resumed. */
async function errorSince(store: TaskStore, taskId: string, execution: Execution): Promise<TaskError | null> {
  if (execution.status === "completed") return null;
  const latest = (await store.events(taskId, RECENT_EVENTS)).findLast(
    (event) => event.kind !== "refused" && event.kind !== "answered",
  );
  if (latest?.kind !== "error" || latest.revision !== execution.revision) return null;
  const { code, message, step } = latest.data;
  return { code: String(code), message: String(message), step: String(step) };
}

async function stateOf(store: TaskStore, taskId: string, head: TaskHead): Promise<Readonly<Record<string, unknown>>> {
  const configurable = { thread_id: taskId, checkpoint_ns: "", checkpoint_id: head.checkpointId };
  const tuple = await store.checkpointer.getTuple({ configurable });
  const values = Object.entries(tuple?.checkpoint.channel_values ?? {});
  return Object.fromEntries(values.filter(([name]) => !OWN_CHANNELS.test(name)));
}
