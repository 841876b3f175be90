import { shorten } from "../internal/json.ts";
import {
  addUsage,
  NO_USAGE,
  type Execution,
  type LastUpdate,
  type Measures,
  type Observation,
  type Pending,
  type TaskError,
  type Usage,
} from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import { applyPatch, type Refusal, type Writer } from "../state/patch.ts";
import { stepLimit, type AnyWorkflow, type Snapshot } from "./define.ts";
import { nextStep } from "./next-step.ts";
import { targets } from "./validate.ts";

/** A decision in the runtime's form: what a model answered or a code step returned. */
export interface Decision {
  readonly because?: string | null;
  readonly patch?: Readonly<Record<string, unknown>> | null;
  readonly clear?: readonly string[] | null;
  readonly next?: string | null;
  readonly ask?: string | null;
  readonly reply?: string | null;
}

/** What a decision cost and how often it was refused before it was right. */
export interface DecisionCost {
  readonly usage: Usage;
  readonly measures: Measures | null;
  readonly refused: number;
}
export const FREE: DecisionCost = { usage: NO_USAGE, measures: null, refused: 0 };

const MAX_BECAUSE = 500;
const MAX_TEXT_BYTES = 16_384;

export type Admission =
  | {
      readonly ok: true;
      readonly state: State;
      readonly changes: Readonly<Record<string, unknown>>;
      readonly step: string;
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
 */
export function admitDecision(workflow: AnyWorkflow, snapshot: Snapshot, decision: Decision): Admission {
  const { execution, state } = snapshot;
  const step = execution.step;
  const refuse = (refusal: Refusal): Admission => ({ ok: false, refusal });
  if (decision.ask && decision.reply) {
    return refuse({ code: "INVALID_DECISION", reason: "choose one of ask and reply; a question can carry the text" });
  }
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
  const to = decision.next ?? (staysByTable || decision.ask ? step : null);
  if (to === null) {
    const reason = `say where to go: next is missing, and step ${step} may not repeat itself without a question`;
    return refuse({ code: "INVALID_DECISION", reason });
  }
  if (decision.next || !decision.ask) {
    const moved = nextStep(workflow, step, patched.state, to);
    if (!moved.ok) return refuse(moved.refusal);
  }
  // A question never moves: the answer may change where to go.
  return { ok: true, state: patched.state, changes: patched.changes, step: decision.ask ? step : to };
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
  const pending: Pending | null = decision.ask
    ? { kind: "question", decision: options.number, question: decision.ask }
    : null;
  const told = asCommitted(workflow, snapshot.state, decision, admitted.changes);
  const decided = countDecision(execution, told, options.cost ?? FREE, options.observation);
  return {
    ok: true,
    update: {
      changes: admitted.changes,
      execution: moveTo(
        workflow,
        { ...decided, pending, status: pending ? "waiting_user" : "running" },
        admitted.step,
        pending,
      ),
    },
  };
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
    last: {
      kind: "result",
      step: execution.step,
      decision: result ? { ...result } : null,
      observation,
      usage,
      measures: null,
    },
  };
  if (!result) return { ok: true, update: { changes: {}, execution: settled } };
  const admitted = admitDecision(workflow, snapshot, result);
  if (!admitted.ok) return admitted;
  return { ok: true, update: { changes: admitted.changes, execution: moveTo(workflow, settled, admitted.step, null) } };
}

/** The record of a task that could not go on: it stays where it is and says why. Pure. */
export function fail(
  execution: Execution,
  error: TaskError,
  cost: DecisionCost,
  observation: Observation | null,
  decision: Decision | null = null,
): Execution {
  return {
    ...execution,
    status: "failed",
    pending: null,
    observation: observation ?? execution.observation,
    lastError: error,
    revision: execution.revision + 1,
    refused: execution.refused + cost.refused,
    retryCount: execution.retryCount + cost.refused,
    usage: addUsage(execution.usage, cost.usage),
    last: lastUpdate("failure", execution.step, decision, observation, cost),
  };
}

/** A failed task's record, ready for another try. The limits that it has used stay used. Pure. */
export function retry(execution: Execution): Execution {
  return {
    ...execution,
    status: "running",
    lastError: null,
    revision: execution.revision + 1,
    retryCount: execution.retryCount + 1,
    last: lastUpdate("retry", execution.step, null, null, FREE),
  };
}

function countDecision(
  execution: Execution,
  decision: Decision,
  cost: DecisionCost,
  observation: Observation | null,
): Execution {
  const { step } = execution;
  const made = execution.decisionsByStep[step] ?? 0;
  return {
    ...execution,
    revision: execution.revision + 1,
    decisions: execution.decisions + 1,
    decisionsByStep: { ...execution.decisionsByStep, [step]: made + 1 },
    retryCount: execution.retryCount + cost.refused,
    refused: execution.refused + cost.refused,
    observation: observation ?? execution.observation,
    recent: [...execution.recent, describeDecision(execution, decision)].slice(-3),
    lastError: null,
    usage: addUsage(execution.usage, cost.usage),
    last: lastUpdate("decision", step, decision, observation, cost),
  };
}

function moveTo(workflow: AnyWorkflow, execution: Execution, step: string, pending: Pending | null): Execution {
  const status = workflow.steps[step]?.final ? "completed" : execution.status;
  if (step === execution.step) {
    // A question is progress, not another try.
    return { ...execution, pending, status, retryCount: execution.retryCount + (pending ? 0 : 1) };
  }
  const completedSteps = execution.completedSteps.includes(execution.step)
    ? execution.completedSteps
    : [...execution.completedSteps, execution.step];
  return { ...execution, pending, status, step, completedSteps, retryCount: 0 };
}

function lastUpdate(
  kind: LastUpdate["kind"],
  step: string,
  decision: Decision | null,
  observation: Observation | null,
  cost: DecisionCost,
): LastUpdate {
  const told =
    decision &&
    Object.fromEntries(Object.entries(decision).filter(([, value]) => value !== null && value !== undefined));
  return { kind, step, decision: told, observation, usage: cost.usage, measures: cost.measures };
}

/** One line about a decision, for the view: what was done, and to which fields. */
function describeDecision(execution: Execution, decision: Decision): string {
  const fields = Object.entries(decision.patch ?? {}).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [name],
  );
  const line = (text: string) => shorten(text.replaceAll(/\s+/g, " "), 120);
  const parts = [
    fields.length > 0 ? `set ${fields.join(", ")}` : "",
    decision.clear?.length ? `cleared ${decision.clear.join(", ")}` : "",
    decision.ask ? `asked: ${line(decision.ask)}` : "",
    decision.reply ? `said: ${line(decision.reply)}` : "",
    decision.next && decision.next !== execution.step && !decision.ask ? `went to ${decision.next}` : "",
    decision.because && fields.length === 0 && !decision.ask && !decision.next ? line(decision.because) : "",
  ];
  return `${execution.decisions + 1}. ${execution.step}: ${parts.filter(Boolean).join("; ") || "no change"}`;
}
