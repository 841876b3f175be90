import { shorten } from "../internal/json.ts";
import {
  type Call,
  type Execution,
  type LastUpdate,
  type Observation,
  type Pending,
  type TaskError,
} from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import { applyPatch, type Refusal, type Writer } from "../state/patch.ts";
import { stepLimit, type AnyWorkflow, type Snapshot } from "./define.ts";
import { admitCalls } from "./calls.ts";
import { countDecision, FREE, moveTo, type Decision, type DecisionCost } from "./record.ts";
import { nextStep, targets } from "./next-step.ts";
import { phaseFault, phaseOf, planFieldOf, type Phase, type Plan } from "./plan.ts";
import { stateFault } from "./state-budget.ts";

const MAX_BECAUSE = 500;
/** The items of one map step. */
export const MAX_ITEMS = 1000;
const MAX_TEXT_BYTES = 16_384;

export type Admission =
  | {
      readonly ok: true;
      readonly state: State;
      readonly changes: Readonly<Record<string, unknown>>;
      readonly step: string;
      /** The calls with complete arguments. */
      readonly calls: readonly Call[];
    }
  | { readonly ok: false; readonly refusal: Refusal };

/** How a step writes: a model only what it declares, code everything unless it declares less. */
function writerOf(workflow: AnyWorkflow, step: string): Writer {
  const declared = workflow.steps[step];
  const isCode = (declared?.run ?? declared?.workflow ?? declared?.map) !== undefined;
  const writes = declared?.writes ?? (isCode ? undefined : []);
  return { kind: isCode ? "code" : "model", ...(writes ? { writes } : {}) };
}

/**
 * Checks a whole decision against the table, the write rules, the schemas and the guards, as the
 * state would be after its patch. Pure: a refused decision changes nothing.
 *
 * @param hasActed true for what commits with the results of calls, which have been checked and have run.
 */
export function admitDecision(
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  decision: Decision,
  hasActed = false,
): Admission {
  const { execution, state } = snapshot;
  const step = execution.step;
  const refuse = (refusal: Refusal): Admission => ({ ok: false, refusal });
  if (decision.ask && decision.reply) {
    return refuse({ code: "INVALID_DECISION", reason: "choose one of ask and reply; a question can carry the text" });
  }
  if (decision.calls?.length && (decision.ask || decision.reply)) {
    return refuse({ code: "INVALID_DECISION", reason: "calls stand alone: ask or reply when their results are there" });
  }
  // A phase is for what a model decides next, not for how a pending action ends, such as a question without an answer.
  const phase = hasActed || execution.pending !== null ? null : phaseOf(workflow, step, state);
  const fault = phaseFault(phase, {
    calls: decision.calls?.length ?? 0,
    moves: Boolean(decision.next) || changesSomething(decision),
    asks: Boolean(decision.ask),
  });
  if (fault) return refuse({ code: "INVALID_DECISION", reason: fault });
  const isMap = workflow.steps[step]?.map !== undefined;
  const { toolUse } = execution;
  const called = admitCalls(workflow, step, decision.calls ?? [], {
    ...(toolUse ? { toolUse } : {}),
    ...(isMap ? { maxCalls: MAX_ITEMS } : phase?.maxCalls ? { maxCalls: phase.maxCalls } : {}),
  });
  if (!called.ok) return called;
  for (const part of ["ask", "reply"] as const) {
    const bytes = Buffer.byteLength(decision[part] ?? "");
    if (bytes > MAX_TEXT_BYTES) {
      return refuse({
        code: "INVALID_DECISION",
        reason: `${part} has ${bytes} bytes, at most ${MAX_TEXT_BYTES} are allowed`,
      });
    }
  }
  const patched = applyPatch(workflow.state, state, decision, writerOf(workflow, step), workflow.checks);
  if (!patched.ok) return refuse(patched.refusal);
  const tooLarge = stateFault(workflow, patched);
  if (tooLarge) return refuse(tooLarge);

  const staysByTable = targets(workflow.steps[step]).includes(step);
  const mayStay = staysByTable || Boolean(decision.ask) || called.calls.length > 0 || hasActed;
  const to = decision.next ?? (mayStay ? step : null);
  if (to === null) {
    const reason = `say where to go: next is missing, and step ${step} may not repeat itself without a question`;
    return refuse({ code: "INVALID_DECISION", reason });
  }
  if (decision.next || !(decision.ask || called.calls.length > 0 || hasActed)) {
    const moved = nextStep(workflow, step, patched.state, to);
    if (!moved.ok) return refuse(moved.refusal);
  }
  // A question never moves: the answer may change where to go.
  return {
    ok: true,
    state: patched.state,
    changes: patched.changes,
    step: decision.ask ? step : to,
    calls: called.calls,
  };
}

/** Where null is written for what is left out, an empty patch is none. */
function changesSomething({ patch, clear }: Decision): boolean {
  return Object.values(patch ?? {}).some((value) => value !== null && value !== undefined) || Boolean(clear?.length);
}

/** The limit that the next decision would exceed, if any. */
export function reachedLimit(workflow: AnyWorkflow, execution: Execution): TaskError | null {
  const { step, decisions } = execution;
  const perStep = stepLimit(workflow, step);
  if ((execution.decisionsByStep[step] ?? 0) >= perStep) {
    const message = `step ${step} has made ${counted(perStep)}, its limit, without coming to an end; look at the history for what repeats, or raise steps.${step}.maxDecisions in the definition, and resume`;
    return { code: "STEP_LIMIT", step, message };
  }
  if (decisions >= taskLimit(workflow, execution)) {
    return {
      code: "TASK_LIMIT",
      step,
      message: `the task has made ${counted(decisions)}, ${taskLimitHint(workflow, execution)}`,
    };
  }
  return null;
}

const counted = (decisions: number) => `${decisions} ${decisions === 1 ? "decision" : "decisions"}`;

/** A task's own limit is part of its record, which nothing raises. */
function taskLimitHint({ maxDecisions }: AnyWorkflow, { maxDecisions: own = Infinity }: Execution): string {
  return own <= maxDecisions
    ? "the limit that it was started with, which stays; look at the history for what repeats, or start a new task with a higher one"
    : "the limit of its workflow; look at the history for what repeats, or raise maxDecisions in the definition, and resume";
}

/** How many decisions a task may make: its own limit only ever lowers its workflow's. Pure. */
export function taskLimit(workflow: AnyWorkflow, { maxDecisions = Infinity }: Execution): number {
  return Math.min(workflow.maxDecisions, maxDecisions);
}

export interface Update {
  readonly changes: Readonly<Record<string, unknown>>;
  readonly execution: Execution;
}

/**
 * The record and state after an admitted decision. `number` is the decision's own number, one more
 * than the record's count when it was made: applying it a second time changes nothing. Pure.
 */
export function applyDecision(
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  decision: Decision,
  options: { number: number; observation: Observation | null; cost?: DecisionCost },
): { ok: true; update: Update } | { ok: false; refusal: Refusal } {
  const { execution } = snapshot;
  if (options.number <= execution.decisions) return { ok: true, update: { changes: {}, execution } };
  let admitted = admitDecision(workflow, snapshot, decision);
  if (!admitted.ok) return admitted;
  if (admitted.calls.length > 0) {
    const update = recordCalls(workflow, snapshot, { ...decision, calls: admitted.calls }, options);
    return { ok: true, update: { changes: {}, execution: update } };
  }
  // A step that may follow itself begins anew when its model says so.
  const goesOn = decision.next === execution.step && isConcluding(phaseOf(workflow, execution.step, snapshot.state));
  if (admitted.step !== execution.step || goesOn) admitted = concluded(workflow, snapshot, admitted);
  const pending: Pending | null = decision.ask
    ? { kind: "question", decision: options.number, question: decision.ask }
    : null;
  const told = asCommitted(workflow, snapshot.state, decision, admitted.changes);
  const decided = countDecision(execution, told, options.cost ?? FREE, options.observation);
  const last = withAppended(workflow, snapshot.state, decided.last, admitted.changes);
  return {
    ok: true,
    update: {
      changes: admitted.changes,
      execution: moveTo(
        workflow,
        { ...decided, last, pending, status: pending ? "waiting_user" : "running" },
        admitted.step,
        pending,
      ),
    },
  };
}

type Admitted = Extract<Admission, { ok: true }>;

function isConcluding(phase: Phase | null): boolean {
  return phase?.kind === "conclude" || phase?.kind === "close";
}

/** A step that planned or looped and is left has concluded: when it is entered again, it begins anew. */
export function concluded(workflow: AnyWorkflow, { execution, state }: Snapshot, admitted: Admitted): Admitted {
  const into = planFieldOf(workflow.steps[execution.step]);
  const plan = into === null ? null : ((state[into] ?? null) as Plan | null);
  if (into === null || plan === null || plan.concluded) return admitted;
  const value = { ...plan, concluded: true };
  return {
    ...admitted,
    state: { ...admitted.state, [into]: value },
    changes: { ...admitted.changes, [into]: value },
  };
}

/** A decision with calls is recorded first; its patch and move wait for the results. */
function recordCalls(
  workflow: AnyWorkflow,
  { execution, state }: Snapshot,
  decision: Decision & { calls: readonly Call[] },
  options: { number: number; observation: Observation | null; cost?: DecisionCost },
): Execution {
  const because = decision.because ? shorten(decision.because, MAX_BECAUSE) : null;
  const counted = countDecision(execution, { ...decision, because }, options.cost ?? FREE, options.observation);
  const { calls, patch = null, clear = null, next = null } = decision;
  const step = workflow.steps[execution.step];
  const origin = step?.map ? "map" : phaseOf(workflow, execution.step, state)?.kind === "plan" ? "plan" : null;
  const pending: Pending = {
    kind: "calls",
    decision: options.number,
    calls: [...calls],
    patch: patch && { ...patch },
    clear: clear && [...clear],
    next,
    ...(origin ? { origin } : {}),
    ...(execution.untrusted && !step?.trusted ? { untrusted: true } : {}),
  };
  return { ...counted, pending, status: "running" };
}

/** Names the fields that an update added to, so that the log can be replayed without the definition. */
export function withAppended(
  workflow: AnyWorkflow,
  state: State,
  last: LastUpdate | null,
  changes: Readonly<Record<string, unknown>>,
): LastUpdate | null {
  const appended = Object.keys(changes).filter(
    (name) => workflow.state[name]?.rules.appendOnly && Array.isArray(state[name]) && changes[name] !== null,
  );
  return last && appended.length > 0 ? { ...last, appended } : last;
}

/** The decision as the log keeps it: what it really changed, so that it stays as small as the state. */
export function asCommitted(
  workflow: AnyWorkflow,
  state: State,
  decision: Decision,
  changes: Readonly<Record<string, unknown>>,
): Decision {
  const set = Object.entries(changes).filter(([, value]) => value !== null);
  const patch = set.map(([name, value]): [string, unknown] => {
    const before = state[name];
    const adds = workflow.state[name]?.rules.appendOnly && Array.isArray(value) && Array.isArray(before);
    return [name, adds ? value.slice(before.length) : value];
  });
  const clear = Object.keys(changes).filter((name) => changes[name] === null);
  return {
    ...decision,
    because: decision.because ? shorten(decision.because, MAX_BECAUSE) : null,
    patch: patch.length > 0 ? Object.fromEntries(patch) : null,
    clear: clear.length > 0 ? clear : null,
  };
}

/** Records that a child workflow, or one for each input, is to run; nothing else changes until all have finished. Pure. */
export function startChild(
  snapshot: Snapshot,
  child: { workflow: string; input: Record<string, unknown> } | { workflow: string; inputs: Record<string, unknown>[] },
  observation: Observation | null,
): Update {
  const { execution } = snapshot;
  const times = "inputs" in child ? `, ${child.inputs.length} times` : "";
  const decision: Decision = { because: `run workflow ${child.workflow}${times}` };
  const counted = countDecision(execution, decision, FREE, observation);
  const number = execution.decisions + 1;
  const pending: Pending =
    "inputs" in child
      ? { kind: "workflows", decision: number, ...child }
      : { kind: "workflow", decision: number, ...child };
  return { changes: {}, execution: { ...counted, pending, status: "running" } };
}
