import { isWorkflowError, WorkflowError } from "../errors.ts";
import { taskFinished, unknownTask } from "./admit-input.ts";
import type { Fields } from "../state/fields.ts";
import { signedIn } from "./identity.ts";
import { openRequests } from "./open-requests.ts";
import { decidedOutside, outsideOf, type Proposal } from "./outside.ts";
import { isFinished } from "../workflow/next-step.ts";
import type { WorkflowGraph } from "./workflow-graph.ts";

/** A run in which an agent outside of this program decides in place of the model. */
export interface OutsideRun {
  /** The agent's name, for the log. It is no person's: it approves nothing. */
  readonly agent: string;
  readonly signal?: AbortSignal;
}

/** A proposed decision, as a model would answer it: `{because, patch, next, calls, ask, reply}`. */
export interface ProposedDecision extends OutsideRun {
  /** The revision of the task that it is made for. */
  readonly revision: number;
  readonly decision: unknown;
}

/**
 * Has an agent outside of this program make a task's next decision. It goes the way of a model's: it is checked
 * against the table, the schema and the rules, passes the step's guards, and is committed; its calls are run and
 * written down as always. Then the run goes on through code steps to the next decision, and stops there. What the
 * agent says counts as text from outside. Of two proposals at once one is taken.
 *
 * @throws what refuses the decision (`ILLEGAL_TRANSITION`, `INVALID_FIELD`, …), with nothing changed; STALE_WRITE
 * where the task has moved on since that revision; TASK_BUSY, TASK_WAITING, TASK_FINISHED, TASK_CANCELLED, UNKNOWN_TASK.
 * @example await propose(graph, "refactor-k3f9", { agent: "my editor", revision: 4, decision: { next: "testing" } })
 */
export async function propose<F extends Fields, I extends keyof F & string>(
  graph: WorkflowGraph<F, I>,
  taskId: string,
  proposed: ProposedDecision,
): Promise<void> {
  const { store, workflow } = graph.runtime;
  const head = await store.head(taskId);
  if (!head) throw unknownTask(taskId);
  const { execution } = head;
  if (execution.status !== "failed" && isFinished(workflow, execution)) throw taskFinished(taskId, head);
  const open = await openRequests(store, taskId, head);
  if (open.length > 0) {
    const ids = open.map((request) => `${request.id} (${request.kind})`).join(", ");
    const message = `task ${taskId} waits for ${ids}, and takes no decision before that`;
    throw new WorkflowError("TASK_WAITING", message, { details: { taskId, open } });
  }
  const proposal = { revision: proposed.revision, text: JSON.stringify(proposed.decision) ?? "" };
  const isTaken = await goOnOutside(graph as unknown as WorkflowGraph, taskId, null, proposed, proposal);
  if (isTaken) return;
  const now = await store.head(taskId);
  const message = `task ${taskId} went on to revision ${now?.execution.revision} by itself, and did not come to this decision; read it again`;
  throw new WorkflowError("STALE_WRITE", message, { details: { taskId } });
}

/**
 * Runs a task as far as it goes without a model: through calls and code steps, to the next decision of a model
 * step, a pause or the end.
 *
 * @param input as `invoke` takes it: an input, an answer, or null to go on.
 * @returns whether the proposal was taken.
 */
export async function goOnOutside(
  graph: WorkflowGraph,
  taskId: string,
  input: unknown,
  { agent, signal }: OutsideRun,
  proposal: Proposal | null = null,
): Promise<boolean> {
  const outside = decidedOutside(agent, proposal);
  const configurable = { thread_id: taskId, ...signedIn(`agent ${agent}`), ...outside };
  try {
    await graph.invoke(input as never, { configurable, ...(signal ? { signal } : {}) });
  } catch (error) {
    if (!isWorkflowError(error, "TASK_STOPPED")) throw error;
  }
  return outsideOf(outside)?.isLeft === false;
}
