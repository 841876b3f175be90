import { shorten } from "../internal/json.ts";
import {
  addUsage,
  NO_USAGE,
  type Call,
  type Execution,
  type LastUpdate,
  type Measures,
  type Observation,
  type Pending,
  type TaskError,
  type Usage,
} from "../state/execution.ts";
import type { AnyWorkflow } from "./define.ts";

/** A decision in the runtime's form: what a model answered or a code step returned. */
export interface Decision {
  readonly because?: string | null;
  readonly patch?: Readonly<Record<string, unknown>> | null;
  readonly clear?: readonly string[] | null;
  readonly next?: string | null;
  readonly calls?: readonly Call[] | null;
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

/** Who has ended a task for good, and why. */
export interface Cancellation {
  /** Null where nobody was signed in. */
  readonly who: string | null;
  /** Empty where none was given. */
  readonly reason: string;
}

/** The record of a task that somebody has ended for good: where it stands stays, what was pending is dropped. Pure. */
export function cancelled(execution: Execution, { who, reason }: Cancellation): Execution {
  const message = `${who === null ? "cancelled" : `cancelled by ${who}`}${reason === "" ? "" : `: ${reason}`}`;
  return {
    ...execution,
    status: "cancelled",
    pending: null,
    lastError: { code: "TASK_CANCELLED", message, step: execution.step },
    revision: execution.revision + 1,
    last: null,
  };
}

/** The record after a decision was made, before it is known where that leads. Pure. */
export function countDecision(
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

/** The record at the step that follows; staying is another try, unless something is asked. Pure. */
export function moveTo(workflow: AnyWorkflow, execution: Execution, step: string, pending: Pending | null): Execution {
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

/** What the latest update did, as the record keeps it. Pure. */
export function lastUpdate(
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
    decision.calls?.length ? `called ${decision.calls.map((call) => call.tool).join(", ")}` : "",
    decision.reply ? `said: ${line(decision.reply)}` : "",
    decision.next && decision.next !== execution.step && !decision.ask ? `went to ${decision.next}` : "",
    decision.because && fields.length === 0 && !decision.ask && !decision.calls?.length && !decision.next
      ? line(decision.because)
      : "",
  ];
  return `${execution.decisions + 1}. ${execution.step}: ${parts.filter(Boolean).join("; ") || "no change"}`;
}
