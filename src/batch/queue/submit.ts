import { checkWorkflow, requireStart } from "../../compile/admit-input.ts";
import { recordReplies } from "../../compile/record-answers.ts";
import { startOnly } from "../../compile/start-only.ts";
import type { WorkflowGraph } from "../../compile/workflow-graph.ts";
import { isWorkflowError } from "../../errors.ts";
import type { BatchTask } from "../batch.ts";
import { ended, standing } from "../standing.ts";
import type { TaskQueue, WakeOptions } from "./task-queue.ts";

export interface SubmitOptions extends WakeOptions {
  /** Who submits it, as the log shows it. */
  readonly who?: string;
  /** Called before a task is started that does not exist yet. */
  readonly beforeStart?: (taskId: string) => Promise<void>;
}

/** What a submission came to: a new task, one that goes on, or one that has ended or waits for a person. */
export type Submitted = "started" | "woken" | "left";

/**
 * Hands a task over to the workers. When it returns, the task is in the store, noted to be run, whatever happens
 * to this process or to the queue. Submitting the same task again is harmless: what has ended or waits is left.
 *
 * @throws INVALID_INPUT, INVALID_MESSAGE, MESSAGE_TOO_LARGE, WRONG_WORKFLOW, DATABASE_… errors.
 * @example
 * const queue = await TaskQueue.open("postgres://app@db/tasks", store)
 * await submitTask(queue, graph, { taskId: "t-1", input: { message: "network unstable" } })
 */
export async function submitTask(
  queue: TaskQueue,
  graph: WorkflowGraph,
  { taskId, input }: BatchTask,
  options: SubmitOptions = {},
): Promise<Submitted> {
  const { store, workflow, clock } = graph.runtime;
  const head = await store.head(taskId);
  if (head) checkWorkflow(workflow, taskId, head);
  const before = await standing(store, taskId);
  if (before && ended(before, clock.now())) return "left";
  if (before === null) {
    // What can start nothing leaves no trace.
    requireStart(workflow, input, taskId);
    await options.beforeStart?.(taskId);
    await startOnly(graph, taskId, input, options).catch((error: unknown) => {
      // One that another process has just begun is as good.
      if (!isWorkflowError(error, "TASK_EXISTS")) throw error;
    });
  }
  await queue.wake(workflow.name, taskId, options);
  return before === null ? "started" : "woken";
}

/**
 * Stores an answer to a request and hands the task over to the workers.
 *
 * @throws TASK_FINISHED, STALE_RESUME, INVALID_REPLY and what else an answer is refused with.
 */
export async function submitAnswer(
  queue: TaskQueue,
  graph: WorkflowGraph,
  { taskId, requestId, text, who }: { taskId: string; requestId: string; text: string; who: string },
): Promise<void> {
  try {
    await recordReplies(graph.runtime, taskId, { [requestId]: text }, who);
  } catch (error) {
    // Whoever runs the task at this moment takes it in.
    if (!isWorkflowError(error, "TASK_BUSY") || error.details.recorded !== true) throw error;
  }
  await queue.wake(graph.runtime.workflow.name, taskId);
}
