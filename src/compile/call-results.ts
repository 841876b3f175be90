import type { Request } from "../people/requests.ts";
import { NO_USAGE, type CallResult, type Pending } from "../state/execution.ts";
import type { Settlement } from "../workflow/advance.ts";
import { unmetExpectation } from "../workflow/expectations.ts";
import { expired, type Action } from "./action.ts";
import { mapOutcome } from "./act-map.ts";
import { wholeValue } from "./whole-value.ts";

type CallsPending = Extract<Pending, { kind: "calls" }>;

/** What one call of the decision needs next. */
export type Turn =
  | { readonly kind: "settled"; readonly result: CallResult; readonly isLate?: true }
  | { readonly kind: "running"; readonly done: Promise<void> }
  /** Another attempt of it may still end. */
  | { readonly kind: "elsewhere" }
  | { readonly kind: "asked"; readonly request: Request }
  /** Something that it needs is not there yet. */
  | { readonly kind: "waiting" };

/** What the ended calls of a decision come to: results in order, and the patch and move if all went well. */
export async function settlementOf(action: Action, pending: CallsPending, turns: readonly Turn[]): Promise<Settlement> {
  const { runtime, snapshot, lease } = action;
  const settled = turns.filter((turn) => turn.kind === "settled");
  const results: CallResult[] = [];
  for (const [position, { result }] of settled.entries()) {
    const { id, expect } = pending.calls[position] ?? {};
    const unmet =
      expect && result.status === "ok"
        ? unmetExpectation(await wholeValue(runtime.store, lease.taskId, result), expect)
        : null;
    results.push({ ...result, ...(id ? { name: id } : {}), ...(unmet ? { unmet } : {}) });
  }
  const observation = { kind: "results" as const, results, at: runtime.clock.now() };
  const deadline = runtime.workflow.steps[snapshot.execution.step]?.deadline;
  if (deadline && settled.some((turn) => turn.isLate)) return expired(deadline.to, observation);
  if (pending.origin === "map") return mapOutcome(action, observation);
  const { patch, clear, next, calls } = pending;
  const allOk = results.every((result) => result.status === "ok" && result.unmet === undefined);
  return { observation, result: allOk ? { patch, clear, next, calls } : null, usage: NO_USAGE };
}
