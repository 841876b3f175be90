import { WorkflowError } from "../errors.ts";
import { jsonEqual } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import { pickState } from "../state/fields.ts";
import { retry } from "../workflow/advance.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { ACT, dueNode, END_OF_TASK, nextStep } from "../workflow/next-step.ts";

/** A checkpoint about to be written: where it came from, and what it holds. */
export interface Proposed {
  readonly source: string;
  readonly from: Execution | null;
  readonly execution: Execution | undefined;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Refuses a checkpoint that the transition table does not allow, whoever writes it. Pure.
 *
 * @throws ILLEGAL_STATE or ILLEGAL_TRANSITION.
 */
export function checkLegal(workflow: AnyWorkflow, proposed: Proposed): void {
  const { source, from, execution } = proposed;
  const refuse = (why: string): never => {
    throw new WorkflowError(
      "ILLEGAL_STATE",
      `a checkpoint of workflow "${workflow.name}" was refused: ${why} (written by ${source})`,
      {
        details: { source, from: from?.step ?? null, to: execution?.step ?? null },
      },
    );
  };
  if (!execution) return refuse("the execution record is missing");
  if (!from) {
    if (execution.step !== workflow.initial || execution.revision !== 0) refuse(`a task starts at ${workflow.initial}`);
  } else {
    checkMove(workflow, from, execution, proposed, refuse);
  }
  checkState(workflow, proposed.values, refuse);
  if (source === "input") {
    if (from) refuse("a task gets its input once");
    return;
  }
  checkBranches(workflow, execution, proposed.values, refuse);
}

function checkMove(
  workflow: AnyWorkflow,
  from: Execution,
  execution: Execution,
  { source, values }: Proposed,
  refuse: (why: string) => never,
): void {
  if (source === "update" || source === "fork" || source === "input") {
    const isRetry = from.status === "failed" && jsonEqual(execution, retry(from));
    if (!isRetry && !jsonEqual(from, execution)) refuse("the execution record belongs to the runtime");
    return;
  }
  if (execution.revision === from.revision) {
    if (!jsonEqual(from, execution)) refuse("the record changed without a new revision");
    return;
  }
  if (execution.revision !== from.revision + 1)
    refuse(`the revision went from ${from.revision} to ${execution.revision}`);
  if (execution.step === from.step) return;
  const moved = nextStep(workflow, from.step, pickState(workflow.state, values), execution.step);
  if (moved.ok) return;
  throw new WorkflowError("ILLEGAL_TRANSITION", `workflow "${workflow.name}": ${moved.refusal.reason}`, {
    details: { from: from.step, to: execution.step, source },
  });
}

/** The state that would be stored satisfies its schema and the rules over several fields. */
function checkState(
  workflow: AnyWorkflow,
  values: Readonly<Record<string, unknown>>,
  refuse: (why: string) => never,
): void {
  const state = pickState(workflow.state, values);
  for (const [name, field] of Object.entries(workflow.state)) {
    if (state[name] !== null && !field.schema.safeParse(state[name]).success)
      refuse(`"${name}" does not fit its schema`);
  }
  for (const [rule, check] of Object.entries(workflow.checks)) {
    const reason = check(state);
    if (reason) refuse(`rule "${rule}": ${reason}`);
  }
}

/** LangGraph keeps what runs next in branch channels; they must lead where the record says. */
function checkBranches(
  workflow: AnyWorkflow,
  execution: Execution,
  values: Readonly<Record<string, unknown>>,
  refuse: (why: string) => never,
): void {
  const due = dueNode(workflow, execution);
  const led = Object.keys(values)
    .filter((name) => name.startsWith("branch:to:"))
    .map((name) => name.slice("branch:to:".length));
  const atStart = values.__start__ !== undefined;
  if (
    due === END_OF_TASK
      ? led.length > 0 || atStart
      : !(led.length === 0 && atStart) && !(led.length === 1 && led[0] === due && !atStart)
  ) {
    const names = [...led, ...(atStart ? ["the start"] : [])].join(", ") || "nowhere";
    refuse(`the graph would go to ${names}, the record says ${due === ACT ? "act" : due}`);
  }
}
