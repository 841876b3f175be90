import { briefTask } from "../compile/brief-task.ts";
import { describeTask } from "../compile/describe.ts";
import type { TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError } from "../errors.ts";
import { renderBrief } from "../view/brief.ts";
import { storeForReading } from "./database.ts";
import { graphOfTask } from "./graphs.ts";
import type { CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { printableLines } from "./terminal.ts";

/** `statecard brief`: what somebody needs who takes a task over. */
export async function briefCommand(taskId: string, options: CommonOptions): Promise<number> {
  const store = storeForReading(options.db);
  const graph = await graphAtHand(store, taskId, options.graph);
  const brief = await briefTask(store, taskId, graph?.runtime.workflow);
  return print(options, brief, printableLines(renderBrief(brief)));
}

/** The task's graph; null where none of those here has its workflow, or it cannot be loaded. */
export async function graphAtHand(
  store: TaskStore,
  taskId: string,
  named: string | undefined,
): Promise<WorkflowGraph | null> {
  const { workflow } = await describeTask(store, taskId);
  try {
    return await graphOfTask(store, taskId, workflow, named);
  } catch (error) {
    if (named === undefined && isWorkflowError(error, "UNKNOWN_GRAPH", "INVALID_GRAPH")) return null;
    throw error;
  }
}
