import { frozenCopy, isPlainObject, shorten } from "../internal/json.ts";
import type { CallResult, Execution, Pending } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import { applyPatch, type Change } from "../state/patch.ts";
import type { AnyWorkflow, Snapshot } from "./define.ts";
import { planAfter, planFieldOf, type Plan } from "./plan.ts";
import { stateFault } from "./state-budget.ts";
import { usedNow } from "./tool-use.ts";

/** How many calls of a tool in a row may bring nothing new before that is pointed out. */
const STALE_CALLS = 3;

type CallsPending = Extract<Pending, { kind: "calls" }>;

/** What code makes of results, whatever a model thinks of them. */
export interface TakenIn {
  readonly state: State;
  readonly changes: Readonly<Record<string, unknown>>;
  /** The fields of the record that results change. */
  readonly record: Pick<Execution, "toolUse" | "untrusted">;
  /** What the model should know about them. */
  readonly notes: readonly string[];
}

/**
 * Takes the results of a decision's calls in: counts them, keeps what the definition says in the state, and
 * notices repetition and text from outside. Pure.
 */
export function takeIn(
  workflow: AnyWorkflow,
  { execution, state }: Snapshot,
  pending: CallsPending,
  results: readonly CallResult[],
): TakenIn {
  const notes: string[] = [];
  let now: State = state;
  const changes: Record<string, unknown> = {};
  const keep = (what: string, change: Change) => {
    const patched = applyPatch(workflow.state, now, change, { kind: "code" }, workflow.checks);
    const refusal = patched.ok ? stateFault(workflow, patched) : patched.refusal;
    if (refusal) notes.push(`${what} was not kept: ${refusal.reason}`);
    else if (patched.ok) {
      now = patched.state;
      Object.assign(changes, patched.changes);
    }
  };
  for (const result of results) {
    for (const keeper of [workflow.tools[result.tool]?.onResult, workflow.onResult[result.tool]]) {
      if (keeper) keep(`what code keeps of ${result.id}`, keptOf(keeper, result, now, notes));
    }
  }
  const into = planFieldOf(workflow.steps[execution.step]);
  if (into !== null) {
    const plan = planAfter((state[into] ?? null) as Plan | null, pending, results);
    keep("the plan", { patch: { [into]: plan } });
  }
  const toolUse = usedNow(execution.toolUse ?? {}, pending.calls, results);
  for (const tool of new Set(results.map((result) => result.tool))) {
    const stale = toolUse[tool]?.stale ?? 0;
    if (stale >= STALE_CALLS)
      notes.push(`${stale} calls of ${tool} in a row brought nothing new: try something else, or conclude`);
  }
  const untrusted = results.some((result) => isFromOutside(workflow, result));
  return { state: now, changes, record: { toolUse, ...(untrusted ? { untrusted } : {}) }, notes };
}

function keptOf(
  keeper: (result: CallResult, state: never) => unknown,
  result: CallResult,
  state: State,
  notes: string[],
): Change {
  try {
    const patch = keeper(frozenCopy(result), frozenCopy(state) as never) ?? {};
    if (isPlainObject(patch)) return { patch };
    notes.push(`what code keeps of ${result.id} was not kept: it is no object`);
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    notes.push(`what code keeps of ${result.id} was not kept: it threw: ${said}`);
  }
  return {};
}

/** True where somebody else may have written what a result says. */
export function isFromOutside(workflow: AnyWorkflow, { tool, status }: Pick<CallResult, "tool" | "status">): boolean {
  const declared = workflow.tools[tool];
  return status !== "refused" && status !== "cancelled" && !declared?.trusted && declared?.effect !== "none";
}
