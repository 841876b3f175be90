import { WorkflowError } from "../errors.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import { checkText } from "../people/replies.ts";
import type { Request } from "../people/requests.ts";
import type { Execution, TaskError } from "../state/execution.ts";
import { applyPatch } from "../state/patch.ts";
import { emptyState } from "../state/fields.ts";
import { stateFault } from "../workflow/state-budget.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { isFinished } from "../workflow/next-step.ts";
import type { TaskHead } from "./store.ts";

/** What a run without a reply comes to. */
export type Admitted =
  | { readonly kind: "start"; readonly input: Readonly<Record<string, unknown>> }
  | { readonly kind: "wake" }
  | { readonly kind: "retry" }
  | { readonly kind: "answer"; readonly request: Request; readonly text: string };

/** Where a task stands when an input comes. */
export interface Situation {
  readonly taskId: string;
  readonly head: TaskHead | null;
  readonly open: readonly Request[];
  /** True where this very input started the task and nothing was answered since. */
  readonly startedWithThis: boolean;
  /** True where the input may only start a task, never be an answer. */
  readonly mustBeNew?: boolean;
}

/**
 * Decides what an input means for a task, before anything is written. LangGraph itself would start
 * the graph anew on any input and throw a pause away. Pure.
 *
 * @throws UNKNOWN_TASK, TASK_FINISHED, TASK_CANCELLED, TASK_EXISTS, TASK_STARTED, TASK_WAITING, TASK_UNFINISHED, WRONG_WORKFLOW,
 * INVALID_INPUT, INVALID_MESSAGE, MESSAGE_TOO_LARGE.
 */
export function admitInput(workflow: AnyWorkflow, input: unknown, situation: Situation): Admitted {
  const { taskId, head, open } = situation;
  if (head) checkWorkflow(workflow, taskId, head);
  if (input === null || input === undefined) {
    if (!head) throw unknownTask(taskId);
    if (head.execution.status === "cancelled") throw taskFinished(taskId, head);
    return head.execution.status === "failed" ? { kind: "retry" } : { kind: "wake" };
  }
  const checked = checkInput(workflow, input);
  if (!head) {
    requireInputs(workflow, checked);
    return { kind: "start", input: checked };
  }
  if (situation.mustBeNew) throw taskExists(taskId);
  if (situation.startedWithThis) {
    throw new WorkflowError(
      "TASK_STARTED",
      `task ${taskId} was started with this very input; resume it, or start another task`,
      { details: { taskId } },
    );
  }
  const { status, lastError } = head.execution;
  const isFailed = status === "failed";
  if (!isFailed && isFinished(workflow, head.execution)) throw taskFinished(taskId, head);
  const [only] = open;
  if (isFailed || !only) {
    const [how, then] = isFailed
      ? [`failed (${lastError?.code ?? "unknown"})`, "try again"]
      : ["stopped in the middle", "let it go on"];
    throw new WorkflowError(
      "TASK_UNFINISHED",
      `task ${taskId} ${how} and takes no new input; wake it (resume without an answer) to ${then}`,
      { details: { taskId } },
    );
  }
  if (
    open.length === 1 &&
    only.kind === "question" &&
    typeof checked.message === "string" &&
    Object.keys(checked).length === 1
  ) {
    return { kind: "answer", request: only, text: checked.message };
  }
  const ids = open.map((request) => request.id).join(", ");
  const how = only.kind === "question" ? "answer by id" : "approve or reject it";
  throw new WorkflowError("TASK_WAITING", `task ${taskId} waits for ${ids}; ${how}`, {
    details: { taskId, open },
  });
}

/**
 * Refuses what can start no task, before it leaves a trace. Pure.
 *
 * @throws what `admitInput` refuses of a task that is not there yet.
 */
export function requireStart(workflow: AnyWorkflow, input: unknown, taskId = ""): void {
  admitInput(workflow, input, { taskId, head: null, open: [], startedWithThis: false });
}

/** Whether an input could start a task. Pure. */
export function canStart(workflow: AnyWorkflow, input: unknown): boolean {
  try {
    requireStart(workflow, input);
    return true;
  } catch {
    return false;
  }
}

/** @throws WRONG_WORKFLOW where a task belongs to another workflow. */
export function checkWorkflow(workflow: AnyWorkflow, taskId: string, head: TaskHead): void {
  const { workflow: own } = head.execution;
  if (own === workflow.name) return;
  throw new WorkflowError("WRONG_WORKFLOW", `task ${taskId} belongs to workflow "${own}", not to "${workflow.name}"`);
}

export function unknownTask(taskId: string): WorkflowError {
  return new WorkflowError(
    "UNKNOWN_TASK",
    `there is no task ${shorten(taskId, 100)}; start it with a message, or list the tasks there are`,
    { details: { taskId } },
  );
}

export function taskExists(taskId: string): WorkflowError {
  const message = `task ${taskId} exists already; choose another id, or answer it where it waits`;
  return new WorkflowError("TASK_EXISTS", message, { details: { taskId } });
}

/** The refusal of what comes for a task that was completed or cancelled. */
export function taskFinished(taskId: string, head: TaskHead): WorkflowError {
  const { status, lastError } = head.execution;
  if (status === "cancelled") {
    const message = `task ${taskId} was ${lastError?.message ?? "cancelled"}; it takes no more answers and no changes; start a new one`;
    return new WorkflowError("TASK_CANCELLED", message, { details: { taskId, status } });
  }
  const message = `task ${taskId} was completed; it takes no more answers and no changes; start a new one`;
  return new WorkflowError("TASK_FINISHED", message, { details: { taskId, status } });
}

/** The refusal of an answer to a task that can go on without one. */
export function asksNothing(
  taskId: string,
  task: Pick<Execution, "status" | "step"> & { readonly lastError?: TaskError | null },
): WorkflowError {
  const { status, step, lastError } = task;
  const [stands, then] =
    status === "failed"
      ? [`it failed (${lastError?.code ?? "unknown"})`, "try again"]
      : [`it is ${status} at ${step}`, "let it go on"];
  const message = `task ${taskId} asks nothing now: ${stands}; resume it without an answer to ${then}`;
  return new WorkflowError("TASK_NOT_WAITING", message, { details: { taskId, status } });
}

/** An input's message and fields, checked as a patch to an empty state. */
function checkInput(workflow: AnyWorkflow, input: unknown): Readonly<Record<string, unknown>> {
  if (!isPlainObject(input)) {
    throw new WorkflowError(
      "INVALID_INPUT",
      `the input of workflow "${workflow.name}" is an object such as {message: "…"}, not ${shorten(JSON.stringify(input) ?? typeof input, 60)}`,
    );
  }
  const { message, ...fields } = input;
  const checked: Record<string, unknown> = {};
  if (message !== undefined && message !== null) {
    if (typeof message !== "string") throw new WorkflowError("INVALID_INPUT", "message is a text");
    checked.message = checkText(message);
  }
  const writer = { kind: "input" as const, writes: workflow.input };
  const patched = applyPatch(workflow.state, emptyState(workflow.state), { patch: fields }, writer, workflow.checks);
  if (!patched.ok) {
    const settable = workflow.input.join(", ") || "none";
    throw new WorkflowError(
      "INVALID_INPUT",
      `${patched.refusal.reason}; fields that can be set at the start: ${settable}`,
      {
        details: { ...patched.refusal, settable: workflow.input },
      },
    );
  }
  const tooLarge = stateFault(workflow, patched);
  if (tooLarge) throw new WorkflowError("INVALID_INPUT", tooLarge.reason, { details: { ...tooLarge } });
  return { ...checked, ...patched.changes };
}

/** The first step has to be open, like any other that is entered. */
function requireInputs(workflow: AnyWorkflow, input: Readonly<Record<string, unknown>>): void {
  const fields = (workflow.steps[workflow.initial]?.requires ?? []).filter((field) => !Object.hasOwn(input, field));
  if (fields.length === 0) return;
  const settable = workflow.input;
  throw new WorkflowError(
    "INVALID_INPUT",
    `workflow "${workflow.name}" starts only with ${fields.join(", ")}: give ${fields.length === 1 ? "it" : "them"} as input; fields that can be set at the start: ${settable.join(", ")}`,
    { details: { fields, settable } },
  );
}
