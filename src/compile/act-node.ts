import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { WorkflowError } from "../errors.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { isExpired } from "../people/expiry.ts";
import { questionRequest } from "../people/requests.ts";
import { NO_USAGE, type Execution, type Observation, type Pending } from "../state/execution.ts";
import { settle, type Settlement } from "../workflow/settle.ts";
import { fail, FREE } from "../workflow/record.ts";
import type { PendingConsent } from "../workflow/consent.ts";
import type { Snapshot } from "../workflow/define.ts";
import { actCalls } from "./act-calls.ts";
import { actChild } from "./act-child.ts";
import { actWorkflows } from "./act-map.ts";
import { expired, pause, type Action } from "./action.ts";
import { updateWithFacts } from "./facts.ts";
import { snapshotOf, type ChannelValues } from "./channels.ts";
import { obtainConsent } from "./consent.ts";
import { outsideOf } from "./outside.ts";
import { enter, FORKS, type Runtime } from "./runtime.ts";

/**
 * The one node that acts: it carries out the recorded decision's action, pauses for what is still
 * open, and commits the outcome. It may run again at any point (after an interrupt, after a crash):
 * requests and answers are rows, so nothing is asked or done twice.
 */
export function actNode(runtime: Runtime) {
  return async (values: ChannelValues, config: LangGraphRunnableConfig): Promise<Record<string, unknown>> => {
    const lease = enter(runtime, "act", values.execution, config);
    const snapshot = snapshotOf(runtime.workflow, values);
    const { pending } = snapshot.execution;
    if (!pending) throw new WorkflowError("ILLEGAL_ENTRY", `task ${lease.taskId} has no action to carry out`);
    faultPoint("before-act");
    const forks = Number(config.configurable?.[FORKS] ?? 0);
    const checkpointId = config.executionInfo?.checkpointId ?? "";
    const action: Action = { runtime, snapshot, lease, forks, checkpointId, config };
    if (pending.kind === "consent") {
      const obtained = await obtainConsent(action, pending);
      return "late" in obtained ? commit(runtime, snapshot, obtained.late) : { execution: obtained.execution };
    }
    const outcome = await carryOut(action, pending);
    faultPoint("before-commit");
    return commit(runtime, snapshot, outcome);
  };
}

function carryOut(action: Action, pending: Exclude<Pending, PendingConsent>): Promise<Settlement> {
  switch (pending.kind) {
    case "question":
      return askPerson(action, pending);
    case "calls":
      return actCalls(action, pending);
    case "workflow":
      return actChild(action, pending);
    case "workflows":
      return actWorkflows(action, pending);
  }
}

function commit(runtime: Runtime, snapshot: Snapshot, outcome: Settlement): Record<string, unknown> {
  const settled = settle(runtime.workflow, snapshot, outcome);
  if (settled.ok) {
    const { changes, execution } = updateWithFacts(runtime, snapshot, settled.update);
    return { ...changes, execution };
  }
  if (outcome.observation.kind === "results" && outcome.result?.calls) {
    // What was done stays done: the results commit, the patch and the move do not.
    const dropped = `the patch and the move were dropped: ${settled.refusal.reason}`;
    const note = [outcome.observation.note ?? [], dropped].flat().join("; ");
    return commit(runtime, snapshot, { ...outcome, observation: { ...outcome.observation, note }, result: null });
  }
  const { step } = snapshot.execution;
  if (runtime.workflow.steps[step]?.map) {
    // A failed task decides again, and with that all items would run again. So the results are kept for a mended output.
    throw new WorkflowError("STEP_FAILED", `output of step ${step} was refused: ${settled.refusal.reason}`);
  }
  const error = { code: settled.refusal.code, message: `step ${step}: ${settled.refusal.reason}`, step };
  return { execution: fail(withMarks(runtime, snapshot, outcome), error, FREE, outcome.observation) };
}

/** The record with what results leave on it: they were read, although what should follow was refused. */
function withMarks({ workflow }: Runtime, snapshot: Snapshot, outcome: Settlement): Execution {
  const { execution } = snapshot;
  const settled = settle(workflow, snapshot, { ...outcome, result: null });
  if (!settled.ok) return execution;
  const { toolUse, untrusted } = settled.update.execution;
  return { ...execution, ...(toolUse ? { toolUse } : {}), ...(untrusted ? { untrusted } : {}) };
}

async function askPerson(action: Action, pending: Extract<Pending, { kind: "question" }>): Promise<Settlement> {
  const { runtime, snapshot, lease, forks } = action;
  const { store, clock, workflow } = runtime;
  const deadline = workflow.steps[snapshot.execution.step]?.deadline;
  const asked = questionRequest(pending, forks, deadline && clock.now() + deadline.afterMs);
  await store.addRequests(lease.taskId, pending.decision, forks, [asked]);
  for (;;) {
    const row = await store.request(lease.taskId, asked.id);
    if (row?.answer?.type === "text") {
      const { text } = row.answer;
      const answer = { kind: "answer", question: pending.question, text, at: clock.now() } as const;
      // In the run of an agent outside it may be the agent's, and what that has read nobody knows.
      const isAgents = outsideOf(action.config.configurable) !== null;
      const observation: Observation = isAgents ? { ...answer, untrusted: true } : answer;
      return { observation, result: null, usage: NO_USAGE, untrusted: workflow.untrustedMessages || isAgents };
    }
    // The row may be older than this run, and its time with it.
    const request = row?.request ?? asked;
    if (isExpired(request, clock.now())) {
      const observation: Observation = { kind: "expired", what: pending.question };
      // A release may have taken the deadline away: then the step decides again.
      return deadline ? expired(deadline.to, observation) : { observation, result: null, usage: NO_USAGE };
    }
    faultPoint("before-interrupt");
    await pause(action, [request]);
  }
}
