import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { WorkflowError } from "../errors.ts";

/** What a client says about a new task. */
export interface NewTask {
  readonly graph: string;
  readonly taskId?: string | undefined;
  readonly goal?: string | undefined;
  readonly message?: string | undefined;
  readonly input?: Readonly<Record<string, unknown>> | undefined;
  readonly maxDecisions?: number | undefined;
}

/**
 * A new task's input. Its goal is the workflow's input field of that name; where it has none, it is what the
 * user says first.
 *
 * @throws INVALID_INPUT.
 */
export function inputOf(
  graph: WorkflowGraph,
  { goal, message, input = {} }: NewTask,
): Readonly<Record<string, unknown>> {
  const { workflow } = graph.runtime;
  const invalid = (why: string) => new WorkflowError("INVALID_INPUT", why, { details: { workflow: workflow.name } });
  if (input.message !== undefined) throw invalid("input has fields; what the user says goes into message");
  if (goal === undefined) return { ...input, ...(message === undefined ? {} : { message }) };
  if (workflow.input.includes("goal")) {
    if (input.goal !== undefined) throw invalid("the goal is given twice: as goal and in input");
    return { ...input, goal, ...(message === undefined ? {} : { message }) };
  }
  if (message === undefined) return { ...input, message: goal };
  throw invalid(
    `workflow "${workflow.name}" has no input field "goal", so a goal is its opening message; give one of them`,
  );
}
