import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { Refusal } from "../state/patch.ts";
import type { AnyWorkflow } from "./define.ts";
import type { RuntimeStep } from "./step.ts";

/** The step names that a transition list leads to, without their conditions. */
export function targets(step: RuntimeStep | undefined): readonly string[] {
  return (step?.to ?? []).map((move) => (typeof move === "string" ? move : move.to));
}

/** Whether a model decides in a step. */
export function isModelStep({ run, workflow, map, final }: RuntimeStep): boolean {
  return [run, workflow, map, final].every((kind) => kind === undefined);
}

/** One transition out of a step, with what closes it at the moment. */
export interface Move {
  readonly to: string;
  readonly closed: Refusal | null;
}

/** All transitions that the table has out of a step, open ones and closed ones. Pure. */
export function moves(workflow: AnyWorkflow, from: string, state: State): readonly Move[] {
  return (workflow.steps[from]?.to ?? []).map((move) => {
    const to = typeof move === "string" ? move : move.to;
    const fields = (workflow.steps[to]?.requires ?? []).filter((field) => (state[field] ?? null) === null);
    if (fields.length > 0) {
      return { to, closed: { code: "REQUIRES", to, fields, reason: `${to} needs ${fields.join(", ")}` } };
    }
    if (typeof move !== "string" && !holds(`the condition from ${from} to ${to}`, () => move.when(state as never))) {
      return { to, closed: { code: "GUARD", to, reason: `${to} is closed: ${move.because}` } };
    }
    return { to, closed: null };
  });
}

/** Asks a user's function; where it throws, the error says which. */
function holds(what: string, ask: () => boolean): boolean {
  try {
    return ask();
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError("STEP_FAILED", `${what} threw: ${said}`, { cause: error });
  }
}

/** The steps that may follow now. */
export function openMoves(workflow: AnyWorkflow, from: string, state: State): readonly string[] {
  return [...new Set(moves(workflow, from, state).flatMap((move) => (move.closed ? [] : [move.to])))];
}

/**
 * Where a move leads, or why it is refused. The transition table, entry conditions and guards are
 * enforced here and nowhere else. Pure.
 *
 * @example nextStep(ticket, "init", state, "done") // {ok: false, refusal: {code: "ILLEGAL_TRANSITION", …}}
 */
export function nextStep(
  workflow: AnyWorkflow,
  from: string,
  state: State,
  to: string,
): { ok: true; step: string } | { ok: false; refusal: Refusal } {
  const all = moves(workflow, from, state);
  // A step may be listed twice, under different conditions: one open way is enough.
  const listed = all.filter((candidate) => candidate.to === to);
  const move = listed.find((candidate) => !candidate.closed) ?? listed[0];
  if (move && !move.closed) return { ok: true, step: to };
  const open = describeMoves(all);
  if (!move) {
    const named = shorten(to, 80);
    const reason = `step ${from} cannot be followed by "${named}"; open now: ${open}`;
    return { ok: false, refusal: { code: "ILLEGAL_TRANSITION", to: named, reason } };
  }
  return { ok: false, refusal: { ...(move.closed as Refusal), reason: `${move.closed?.reason}; open now: ${open}` } };
}

function describeMoves(all: readonly Move[]): string {
  const open = all.filter((move) => !move.closed).map((move) => move.to);
  const closed = all.flatMap((move) => (move.closed ? [move.closed.reason] : []));
  return `${open.join(", ") || "nothing"}${closed.length > 0 ? ` (${closed.join("; ")})` : ""}`;
}

/** The node name of the shared action node, and LangGraph's name for the end. */
export const ACT = "act";
export const END_OF_TASK = "__end__";

/**
 * The one router: which node is due, by the execution record alone. Everything that decides what
 * runs next (edges, entry checks, the saver, input rules) asks this function. Pure.
 *
 * @returns a step's name, `act`, or `__end__`.
 */
export function dueNode(workflow: AnyWorkflow, execution: Execution): string {
  const hasEnded = execution.status === "failed" || execution.status === "cancelled";
  if (hasEnded || workflow.steps[execution.step]?.final) return END_OF_TASK;
  return execution.pending ? ACT : execution.step;
}

/** True when nothing is left to do: completed, failed or cancelled. */
export function isFinished(workflow: AnyWorkflow, execution: Execution): boolean {
  return dueNode(workflow, execution) === END_OF_TASK;
}
