import { isWorkflowError } from "../errors.ts";
import { taskExists } from "./admit-input.ts";
import { signedIn } from "./identity.ts";
import { MUST_BE_NEW } from "./runtime.ts";
import type { WorkflowGraph } from "./workflow-graph.ts";

/** What is said of a task beside its input. */
export interface StartOptions {
  /** Who starts it, as the log shows it. */
  readonly who?: string | undefined;
  /** The task's own limit of decisions, beside its workflow's. */
  readonly maxDecisions?: number | undefined;
}

/**
 * Writes a task's first checkpoint and runs none of its steps: from then on it is a task like any other, for whoever
 * runs tasks.
 *
 * @throws TASK_EXISTS, also where another process is just making it; what the input is refused with.
 */
export async function startOnly(
  graph: WorkflowGraph,
  taskId: string,
  input: object,
  { who, maxDecisions }: StartOptions = {},
): Promise<void> {
  const configurable = {
    thread_id: taskId,
    [MUST_BE_NEW]: true,
    ...(who === undefined ? {} : signedIn(who)),
    ...(maxDecisions === undefined ? {} : { maxDecisions }),
  };
  try {
    await graph.invoke(input as never, { configurable, interruptBefore: "*" } as never);
  } catch (error) {
    // Whoever holds it has made it, or is about to.
    throw isWorkflowError(error, "TASK_BUSY") ? taskExists(taskId) : error;
  }
}
