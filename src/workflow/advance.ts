import { shorten } from "../internal/json.ts";
import {
  addUsage,
  type Call,
  type Execution,
  type LastUpdate,
  type Observation,
  type Pending,
  type TaskError,
  type Usage,
} from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import { applyPatch, type Refusal, type Writer } from "../state/patch.ts";
import { stepLimit, type AnyWorkflow, type Snapshot } from "./define.ts";
import { admitCalls } from "./calls.ts";
import { countDecision, FREE, lastUpdate, moveTo, type Decision, type DecisionCost } from "./record.ts";
import { nextStep } from "./next-step.ts";
import { targets } from "./next-step.ts";

const MAX_BECAUSE = 500;
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
  const isCode = (declared?.run ?? declared?.workflow) !== undefined;
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
  const called = admitCalls(workflow, step, decision.calls ?? []);
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

/** The limit that the next decision would exceed, if any. */
export function reachedLimit(workflow: AnyWorkflow, execution: Execution): TaskError | null {
  const { step, decisions } = execution;
  const perStep = stepLimit(workflow, step);
  if ((execution.decisionsByStep[step] ?? 0) >= perStep) {
    const message = `step ${step} has made ${perStep} decisions, its limit, without coming to an end; raise steps.${step}.maxDecisions or look at the history for what repeats`;
    return { code: "STEP_LIMIT", step, message };
  }
  if (decisions >= workflow.maxDecisions) {
    const message = `the task has made ${decisions} decisions, its limit; raise maxDecisions or look at the history for what repeats`;
    return { code: "TASK_LIMIT", step, message };
  }
  return null;
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
  const admitted = admitDecision(workflow, snapshot, decision);
  if (!admitted.ok) return admitted;
  if (admitted.calls.length > 0) {
    const update = recordCalls(execution, { ...decision, calls: admitted.calls }, options);
    return { ok: true, update: { changes: {}, execution: update } };
  }
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

/** A decision with calls is recorded first; its patch and move wait for the results. */
function recordCalls(
  execution: Execution,
  decision: Decision & { calls: readonly Call[] },
  options: { number: number; observation: Observation | null; cost?: DecisionCost },
): Execution {
  const because = decision.because ? shorten(decision.because, MAX_BECAUSE) : null;
  const counted = countDecision(execution, { ...decision, because }, options.cost ?? FREE, options.observation);
  const { calls, patch = null, clear = null, next = null } = decision;
  const pending: Pending = {
    kind: "calls",
    decision: options.number,
    calls: [...calls],
    patch: patch && { ...patch },
    clear: clear && [...clear],
    next,
  };
  return { ...counted, pending, status: "running" };
}

/** Names the fields that an update added to, so that the log can be replayed without the definition. */
function withAppended(
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
function asCommitted(
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

/** Records that a child workflow is to run; nothing else changes until it has finished. Pure. */
export function startChild(
  snapshot: Snapshot,
  child: { workflow: string; input: Record<string, unknown> },
  observation: Observation | null,
): Update {
  const { execution } = snapshot;
  const decision: Decision = { because: `run workflow ${child.workflow}` };
  const counted = countDecision(execution, decision, FREE, observation);
  const pending: Pending = { kind: "workflow", decision: execution.decisions + 1, ...child };
  return { changes: {}, execution: { ...counted, pending, status: "running" } };
}

/** What a pending action came to: what was observed, for a child's end a patch and a move, and what it cost. */
export interface Settlement {
  readonly observation: Observation;
  readonly result: Decision | null;
  readonly usage: Usage;
}

/** Commits the outcome of a pending action. Pure. */
export function settle(
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  { observation, result, usage }: Settlement,
): { ok: true; update: Update } | { ok: false; refusal: Refusal } {
  const { execution } = snapshot;
  const settled: Execution = {
    ...execution,
    pending: null,
    observation,
    status: "running",
    revision: execution.revision + 1,
    usage: addUsage(execution.usage, usage),
    last: lastUpdate("result", execution.step, null, observation, { ...FREE, usage }),
  };
  if (!result) return { ok: true, update: { changes: {}, execution: settled } };
  const { calls, ...rest } = result;
  const admitted = admitDecision(workflow, snapshot, rest, Boolean(calls?.length));
  if (!admitted.ok) return admitted;
  const committed = asCommitted(workflow, snapshot.state, rest, admitted.changes);
  const told = lastUpdate("result", execution.step, committed, observation, { ...FREE, usage });
  const last = withAppended(workflow, snapshot.state, told, admitted.changes);
  return {
    ok: true,
    update: { changes: admitted.changes, execution: moveTo(workflow, { ...settled, last }, admitted.step, null) },
  };
}
