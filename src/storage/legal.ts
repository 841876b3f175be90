import { isCancelOf, isOverrideOf, type Permission } from "../compile/override.ts";
import { WorkflowError } from "../errors.ts";
import { jsonEqual } from "../internal/json.ts";
import { executionSchema, newExecution, type Execution } from "../state/execution.ts";
import { pickState } from "../state/fields.ts";
import { retry } from "../workflow/record.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { ACT, dueNode, END_OF_TASK, nextStep } from "../workflow/next-step.ts";

/** A checkpoint about to be written: where it came from, and what it holds. */
export interface Proposed {
  readonly source: string;
  readonly from: Execution | null;
  readonly execution: Execution | undefined;
  readonly values: Readonly<Record<string, unknown>>;
  /** What its writer may do past the table. */
  readonly permission?: Permission | null;
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
  // An unchanged record is compared with its parent's below.
  if (execution.revision !== from?.revision) {
    const fault = source === "loop" && from ? shallowFault(execution) : deepFault(execution);
    if (fault) return refuse(`its execution record is invalid at ${fault}`);
    if (execution.workflow !== workflow.name) refuse(`its execution record is of workflow "${execution.workflow}"`);
  }
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

const SAMPLE = Object.entries(newExecution({ name: "", version: 1, initial: "" }));
const { status: STATUS, pending: PENDING } = executionSchema.shape;

/**
 * What is wrong with a record, looking at each field's kind, and closely at those that routing needs. The
 * whole schema takes a tenth of the time of a write: too much for each of them.
 */
function shallowFault(record: Execution): string | null {
  const values: Readonly<Record<string, unknown>> = { ...record };
  for (const [name, sample] of SAMPLE) {
    const value = values[name];
    const fits =
      sample === null || typeof sample === "object"
        ? typeof value === "object" &&
          (value !== null || sample === null) &&
          Array.isArray(value) === Array.isArray(sample)
        : typeof value === typeof sample;
    if (!fits) return name;
  }
  if (!STATUS.safeParse(record.status).success) return "status";
  return record.pending === null || PENDING.safeParse(record.pending).success ? null : "pending";
}

function deepFault(record: unknown): string | null {
  const parsed = executionSchema.safeParse(record);
  if (parsed.success) return null;
  const issue = parsed.error.issues[0];
  return `${issue?.path.join(".") || "its root"}: ${issue?.message ?? "unknown"}`;
}

function checkMove(
  workflow: AnyWorkflow,
  from: Execution,
  execution: Execution,
  { source, values, permission }: Proposed,
  refuse: (why: string) => never,
): void {
  if (permission?.kind === "cancelled") {
    if (!isCancelOf(from, execution, permission))
      refuse("cancelling ends a task that has not ended, and changes nothing else");
    return;
  }
  if (permission) {
    if (!isOverrideOf(workflow, from, execution)) refuse("an override changes the step and fields, nothing else");
    return;
  }
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
