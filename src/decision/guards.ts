import { WorkflowError } from "../errors.ts";
import { frozenCopy, isPlainObject, shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { RuntimeStep } from "../workflow/step.ts";
import type { Decision } from "../workflow/record.ts";

/** What the output guards of a step make of a decision. */
export type Guarded =
  | { readonly kind: "passed"; readonly decision: Decision; readonly doubts: readonly string[] }
  | { readonly kind: "sent back"; readonly guard: number; readonly reason: string };

/**
 * Asks a step's output guards, in order. Each may pass a decision, mend it, or send it back; what it has sent
 * back once it cannot send back again, and nothing can after the last correction: then the decision passes, and
 * the doubt is told.
 *
 * @param sentBack the guards that have sent this decision back before, by position.
 * @param isLast true where the model is not asked again.
 * @throws STEP_FAILED where a guard throws or gives no clear answer.
 */
export function askGuards(
  step: RuntimeStep | undefined,
  { execution, state }: Snapshot,
  decision: Decision,
  sentBack: ReadonlySet<number>,
  isLast: boolean,
): Guarded {
  let now = decision;
  const doubts: string[] = [];
  for (const [position, guard] of (step?.guards ?? []).entries()) {
    const isPast = isLast || sentBack.has(position);
    const verdict = verdictOf(() => {
      const { patch = null, reply = null, ask = null, next = null } = now;
      const output = frozenCopy({ patch: patch ?? {}, reply, ask, next });
      return guard(output as never, frozenCopy(state) as never, isPast);
    }, execution.step);
    if (verdict === null) continue;
    if ("mend" in verdict) {
      now = mended(now, verdict.mend);
    } else if (isPast) doubts.push(verdict.sendBack);
    else return { kind: "sent back", guard: position, reason: verdict.sendBack };
  }
  return { kind: "passed", decision: now, doubts };
}

interface Mend {
  readonly reply?: string;
  readonly patch?: Readonly<Record<string, unknown>>;
}

function mended(decision: Decision, { reply, patch }: Mend): Decision {
  return {
    ...decision,
    ...(reply === undefined ? {} : { reply }),
    ...(patch === undefined ? {} : { patch: { ...decision.patch, ...redactDeep(patch) } }),
  };
}

type Verdict = { readonly mend: Mend } | { readonly sendBack: string };

function verdictOf(ask: () => unknown, step: string): Verdict | null {
  let verdict: unknown;
  try {
    verdict = ask() ?? null;
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError("STEP_FAILED", `a guard of step ${step} threw: ${said}`, { cause: error });
  }
  if (verdict === null) return null;
  if (isPlainObject(verdict) && typeof verdict.sendBack === "string") return { sendBack: verdict.sendBack };
  if (isPlainObject(verdict) && isPlainObject(verdict.mend)) return { mend: verdict.mend };
  throw new WorkflowError(
    "STEP_FAILED",
    `a guard of step ${step} gave no clear answer; it has to return nothing, {mend: {reply, patch}} or {sendBack: "why"}`,
  );
}
