import { admitText } from "../decision/decide.ts";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { redact } from "../internal/redact.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import { FREE, type Decision, type DecisionCost } from "../workflow/record.ts";
import { withheldFromAgents } from "./consent.ts";
import type { Runtime } from "./runtime.ts";
import type { Lease, TaskStore } from "./store.ts";

const KEY = "__statecard_outside";

/** A decision that an agent outside of this program proposes for one revision of a task. */
export interface Proposal {
  /** The revision that the agent has seen; for another one the decision does not count. */
  readonly revision: number;
  /** The decision as JSON text. */
  readonly text: string;
}

/** Takes the place of the model for one run. JSON cannot make one, so no client of a server can. */
class Outside {
  readonly agent: string;
  #proposal: Proposal | null;

  constructor(agent: string, proposal: Proposal | null) {
    this.agent = agent;
    this.#proposal = proposal;
  }

  static in(value: unknown): Outside | null {
    return typeof value === "object" && value !== null && #proposal in value ? value : null;
  }

  /** True where the run has not come to the decision that the proposal is for. */
  get isLeft(): boolean {
    return this.#proposal !== null;
  }

  /** The proposal, once: a run goes on with code and calls, but makes no second decision with it. */
  take(): Proposal | null {
    const proposal = this.#proposal;
    this.#proposal = null;
    return proposal;
  }
}

/**
 * Says, for `configurable`, that in this run no model decides: the next decision of a model step is the proposal,
 * and a further one ends the run with `TASK_STOPPED`, with everything before it committed.
 *
 * @param agent whose decision it is, for the log.
 * @param proposal null where the run makes none, such as one that takes an answer in.
 */
export function decidedOutside(agent: string, proposal: Proposal | null): Readonly<Record<string, unknown>> {
  return { [KEY]: new Outside(agent, proposal) };
}

/** Who decides in this run in place of the model; null where the model does. */
export function outsideOf(configurable: Readonly<Record<string, unknown>> | undefined): Outside | null {
  return Outside.in(configurable?.[KEY]);
}

/** For a child's run: its decisions come from outside too, and none has come for it yet. */
export function outsideFor(configurable: Readonly<Record<string, unknown>> | undefined) {
  const outside = outsideOf(configurable);
  return outside ? decidedOutside(outside.agent, null) : {};
}

/**
 * The decision of a model step that an agent outside has proposed. It is read, checked against the table, the
 * schema and the rules, and passes the step's guards, like a model's. Who proposed it is logged, and why it was
 * refused, where it was; a refusal changes nothing.
 *
 * @throws TASK_STOPPED where no proposal is left, STALE_WRITE for one that was made for another revision, and the
 * code of the refusal.
 */
export async function decideOutside(
  runtime: Pick<Runtime, "workflow" | "store" | "consent">,
  outside: Outside,
  snapshot: Snapshot,
  lease: Lease,
): Promise<{ readonly ok: true; readonly decision: Decision; readonly cost: DecisionCost }> {
  const { workflow, store } = runtime;
  const { step, revision } = snapshot.execution;
  const { taskId } = lease;
  const proposal = outside.take();
  if (!proposal) {
    throw new WorkflowError("TASK_STOPPED", `task ${taskId} is at ${step} and waits for a decision from outside`);
  }
  // The retry of a failed task is a revision of its own, and nobody could have seen it.
  const isRetry = snapshot.execution.last?.kind === "retry" && proposal.revision === revision - 1;
  if (proposal.revision !== revision && !isRetry) {
    const message = `the decision was made for revision ${proposal.revision} of task ${taskId}, which is at ${revision} now; read it again`;
    throw new WorkflowError("STALE_WRITE", message, { details: { taskId, revision } });
  }
  const sentBack = await guardsAskedBefore(workflow, store, snapshot, taskId);
  const isPart = (await withheldFromAgents(runtime, taskId)).length > 0;
  const read = admitText(proposal.text, workflow, snapshot, { sentBack, isLast: false, isPart });
  const { agent } = outside;
  if (!read.ok) {
    const { refusal } = read;
    const answer = shorten(redact(proposal.text), 2000);
    await store.append(taskId, revision, "refused", { step, ...refusal, answer, agent });
    throw new WorkflowError(refusal.code, refusal.reason, { details: { ...refusal, taskId, step } });
  }
  await store.append(taskId, revision, "proposed", { step, agent });
  for (const doubt of read.doubts) await store.append(taskId, revision, "doubted", { step, reason: redact(doubt) });
  return { ok: true, decision: read.decision, cost: FREE };
}

const LOG_ENTRIES = 20;

/** A guard may send a decision back once; all have had their say when one has at this revision. */
async function guardsAskedBefore(
  workflow: AnyWorkflow,
  store: TaskStore,
  { execution }: Snapshot,
  taskId: string,
): Promise<Set<number>> {
  const guards = workflow.steps[execution.step]?.guards ?? [];
  if (guards.length === 0) return new Set();
  const latest = await store.events(taskId, LOG_ENTRIES);
  const wasSentBack = latest.some(
    ({ kind, revision, data }) => kind === "refused" && revision === execution.revision && data.code === "OUTPUT_GUARD",
  );
  return new Set(wasSentBack ? guards.keys() : []);
}
