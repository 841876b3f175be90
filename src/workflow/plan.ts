import { z } from "zod";
import { jsonBytes, notJson } from "../internal/json.ts";
import type { Call, CallResult, Pending } from "../state/execution.ts";
import { field, type Field, type State } from "../state/fields.ts";
import type { AnyWorkflow } from "./define.ts";
import type { RuntimeStep } from "./step.ts";
import { callName } from "./references.ts";

const planCallSchema = z.object({
  id: z.string(),
  tool: z.string(),
  /** As they were decided, with their references; a text where they are long. */
  args: z.unknown(),
  status: z.enum(["ok", "error", "timeout", "cancelled", "refused"]),
  /** Shortened where it is long; the latest observation has it whole. */
  result: z.unknown(),
  /** Why it did not come true: an error, or what was expected and is not so. */
  problem: z.string().nullable(),
});

const planSchema = z.object({
  /** Whether the latest calls were those of a plan, or of a round of the free loop. */
  mode: z.enum(["plan", "free"]),
  calls: z.array(planCallSchema),
  /** Whether all of the latest calls went well and as expected. */
  met: z.boolean(),
  replans: z.number(),
  rounds: z.number(),
  /** True once the step has concluded. */
  concluded: z.boolean(),
});
/** A plan and what became of it, as the state keeps it. */
export type Plan = z.infer<typeof planSchema>;

/**
 * A state field for a step with `plan` or `react`: what was called and found. Kept by the runtime.
 *
 * @example state: { plan: planField() }, steps: { research: { plan: { into: "plan" }, tools: [...], to: ["done"] } }
 */
export function planField(): Field<Plan> {
  return field(planSchema).runtimeOnly().describe("the calls of this step and what they brought");
}

const DEFAULT_REPLANS = 2;
const DEFAULT_ROUNDS = 10;
const DEFAULT_PLAN_CALLS = 50;
/** Calls of the free loop that the state keeps. */
const KEPT_CALLS = 40;
/** How much the state keeps of the calls, in bytes of JSON: what is aimed at, and at most. The field takes 16,384. */
const KEPT_BYTES = 9000;
const MOST_BYTES = 12_000;

/**
 * What the next decision of a planning or looping step is for. `plan`: calls only. `act`: a round of the
 * free loop, or the conclusion. `conclude`: all went as planned, no more calls. `close`: the limit is
 * reached, no more calls.
 */
export type PhaseKind = "plan" | "act" | "conclude" | "close";

export interface Phase {
  readonly kind: PhaseKind;
  /** The number of this plan or round, from 1. */
  readonly number: number;
  readonly of: number;
  /** The calls of one decision at most, where that is not the default. */
  readonly maxCalls?: number;
  /** The latest calls that did not come true. */
  readonly open: readonly { readonly id: string; readonly tool: string; readonly status: string }[];
}

/** The field in which a step keeps its plan; null where the step does not plan. */
export function planFieldOf(step: RuntimeStep | undefined): string | null {
  return step?.plan?.into ?? step?.react?.into ?? null;
}

/** The phase of a step; null where it neither plans nor loops. Pure. */
export function phaseOf(workflow: AnyWorkflow, stepName: string, state: State): Phase | null {
  const step = workflow.steps[stepName];
  const into = planFieldOf(step);
  if (!step || into === null) return null;
  const kept = (state[into] ?? null) as Plan | null;
  const plan = kept?.concluded ? null : kept;
  const open = (plan?.calls ?? [])
    .filter((call) => call.problem !== null)
    .map(({ id, tool, status }) => ({ id, tool, status }));
  const free = (rounds: number, of: number): Phase =>
    rounds < of ? { kind: "act", number: rounds + 1, of, open } : { kind: "close", number: of, of, open };
  if (!step.plan) return free(plan?.rounds ?? 0, step.react?.maxRounds ?? DEFAULT_ROUNDS);
  const { maxReplans = DEFAULT_REPLANS, maxRounds = DEFAULT_ROUNDS, maxCalls = DEFAULT_PLAN_CALLS } = step.plan;
  const planning = (number: number): Phase => ({ kind: "plan", number, of: maxReplans + 1, maxCalls, open });
  if (plan === null) return planning(1);
  if (plan.mode === "free") return free(plan.rounds, maxRounds);
  if (plan.met) return { kind: "conclude", number: 1, of: 1, open };
  return plan.replans < maxReplans ? planning(plan.replans + 2) : free(plan.rounds, maxRounds);
}

/** Why a decision does not fit its phase; null where it does. Pure. */
export function phaseFault(
  phase: Phase | null,
  decision: { readonly calls: number; readonly moves: boolean; readonly asks: boolean },
): string | null {
  if (phase === null || phase.kind === "act" || decision.asks) return null;
  if (phase.kind === "plan") {
    if (decision.calls === 0)
      return "first the plan: answer with calls, and references between them where one needs another";
    return decision.moves ? "first the plan: calls only; patch and next come when their results are there" : null;
  }
  if (decision.calls === 0) return null;
  return phase.kind === "conclude"
    ? "all calls of the plan came back as expected: conclude now, without further calls"
    : `the limit of ${phase.of} rounds is reached: no more calls; say what is known and what is open`;
}

/** The plan after the calls of a decision have come back. Pure. */
export function planAfter(
  before: Plan | null,
  pending: Extract<Pending, { kind: "calls" }>,
  results: readonly CallResult[],
): Plan {
  const known = before?.concluded ? null : before;
  const latest = toldTogether(pending.calls, results);
  const met = pending.calls.every((_, position) => problemOf(results[position]) === null);
  if (pending.origin === "plan") {
    const replans = known === null ? 0 : known.replans + 1;
    // What came true is missed least.
    const calls = fitted(latest, (call) => call.problem === null);
    return { mode: "plan", calls, met, replans, rounds: known?.rounds ?? 0, concluded: false };
  }
  const rounds = (known?.rounds ?? 0) + 1;
  const all = [...(known?.calls ?? []), ...latest.map((call) => ({ ...call, id: `r${rounds}.${call.id}` }))];
  const calls = fitted(all.slice(-KEPT_CALLS), () => true);
  return { mode: "free", calls, met, replans: known?.replans ?? 0, rounds, concluded: false };
}

type PlanCall = Plan["calls"][number];

/** The calls with what they brought, each as fully as there is room for all of them. */
function toldTogether(calls: readonly Call[], results: readonly (CallResult | undefined)[]): PlanCall[] {
  for (let budget = Math.max(120, Math.floor(KEPT_BYTES / calls.length)); ; budget = Math.floor(budget / 2)) {
    const all = calls.map((call, position) => told(call, position, results[position], budget));
    if (budget < 16 || jsonBytes(all) <= MOST_BYTES) return all;
  }
}

function told(call: Call, position: number, result: CallResult | undefined, budget: number): PlanCall {
  const { status = "cancelled", value = null } = result ?? {};
  const problem = problemOf(result);
  return {
    id: cut(callName(call, position), Math.min(40, budget)),
    tool: call.tool,
    args: brief(call.args, budget / 3),
    status,
    result: brief(value, budget / 2),
    problem: problem === null ? null : cut(problem, Math.min(200, budget)),
  };
}

/** Why a call did not come true; null where it did. */
function problemOf(result: CallResult | undefined): string | null {
  const { status = "cancelled", error, unmet } = result ?? {};
  return status === "ok" ? (unmet ?? null) : (error ?? status);
}

function brief(value: unknown, bytes: number): unknown {
  // What a state cannot hold, such as a key "__proto__" in arguments, is kept as text.
  const isKept = jsonBytes(value) <= bytes && (value === undefined || notJson(value) === null);
  return isKept ? value : cut(JSON.stringify(value), Math.floor(bytes / 2));
}

// How much is left out would cost more room than there is: the observation has the whole.
function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** As many calls as fit. The oldest go first, those that may before the others. */
function fitted(calls: readonly PlanCall[], mayGoFirst: (call: PlanCall) => boolean): PlanCall[] {
  const order = [...calls.filter(mayGoFirst), ...calls.filter((call) => !mayGoFirst(call))];
  const dropped = new Set<PlanCall>();
  let bytes = jsonBytes(calls);
  for (const call of order) {
    if (bytes <= MOST_BYTES) break;
    dropped.add(call);
    bytes -= jsonBytes(call) + 1;
  }
  return calls.filter((call) => !dropped.has(call));
}
