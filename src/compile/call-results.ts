import { isPlainObject, jsonBytes, shorten } from "../internal/json.ts";
import type { Request } from "../people/requests.ts";
import { NO_USAGE, type CallResult, type Pending } from "../state/execution.ts";
import type { Settlement } from "../workflow/settle.ts";
import { setAside } from "../tools/artifacts.ts";
import { unmetExpectation } from "../workflow/expectations.ts";
import { expired, type Action } from "./action.ts";
import { mapOutcome } from "./act-map.ts";
import { rememberResults } from "./remembered.ts";
import { wholeValue } from "./whole-value.ts";

type CallsPending = Extract<Pending, { kind: "calls" }>;
type Arguments = Readonly<Record<string, unknown>>;

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
  if (settled.length < turns.length) throw new Error("there are calls that neither run nor wait for anything");
  const results: CallResult[] = [];
  for (const [position, { result }] of settled.entries()) {
    const { id, expect } = pending.calls[position] ?? {};
    const unmet =
      expect && result.status === "ok"
        ? unmetExpectation(await wholeValue(runtime.store, lease.taskId, result), expect)
        : null;
    results.push({ ...result, ...(id ? { name: id } : {}), ...(unmet ? { unmet } : {}) });
  }
  const notes = await rememberResults(action, results);
  const observation = {
    kind: "results" as const,
    results,
    at: runtime.clock.now(),
    ...(notes.length > 0 ? { note: notes.join("; ") } : {}),
  };
  const deadline = runtime.workflow.steps[snapshot.execution.step]?.deadline;
  if (deadline && settled.some((turn) => turn.isLate)) return expired(deadline.to, observation);
  if (pending.origin === "map") return mapOutcome(action, observation);
  const { patch, clear, next, calls } = pending;
  const allOk = results.every((result) => result.status === "ok" && result.unmet === undefined);
  return { observation, result: allOk ? { patch, clear, next, calls } : null, usage: NO_USAGE };
}

/** What was found out of an earlier attempt is not set aside, since its record is not this attempt's to write. */
export function cutDown(key: string, found: CallResult): CallResult {
  const { value } = setAside(key, found).result;
  return isPlainObject(value) && typeof value.preview === "string" && value !== found.value
    ? { ...found, value: value.preview }
    : found;
}

const TOLD_BYTES = 1000;

/** A result with what its call ran with; large values are told in short, since they came from results that have them. */
export function withArguments(result: CallResult, changed: Arguments | undefined): CallResult {
  if (!changed) return result;
  const told = Object.entries(changed).map(([name, value]): [string, unknown] => {
    if (jsonBytes(value) <= TOLD_BYTES) return [name, value];
    return [name, shorten(typeof value === "string" ? value : JSON.stringify(value), TOLD_BYTES / 4)];
  });
  return { ...result, args: Object.fromEntries(told) };
}
