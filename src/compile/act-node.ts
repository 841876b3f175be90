import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import { isExpired } from "../people/expiry.ts";
import { questionRequest, type Request, type RequestRow } from "../people/requests.ts";
import { NO_USAGE, type Observation, type Pending } from "../state/execution.ts";
import { settle, type Settlement } from "../workflow/advance.ts";
import { fail, FREE, type Decision } from "../workflow/record.ts";
import type { ChildResult, RuntimeStep, Snapshot } from "../workflow/define.ts";
import { openMoves } from "../workflow/next-step.ts";
import { actCalls } from "./act-calls.ts";
import { expired, pause, type Action } from "./action.ts";
import { snapshotOf, type ChannelValues } from "./channels.ts";
import type { ChildStanding } from "./child.ts";
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
    const outcome = await carryOut(action, pending);
    faultPoint("before-commit");
    return commit(runtime, snapshot, outcome);
  };
}

function carryOut(action: Action, pending: Pending): Promise<Settlement> {
  switch (pending.kind) {
    case "question":
      return askPerson(action, pending);
    case "calls":
      return actCalls(action, pending);
    case "workflow":
      return runChild(action, pending);
  }
}

function commit(runtime: Runtime, snapshot: Snapshot, outcome: Settlement): Record<string, unknown> {
  const settled = settle(runtime.workflow, snapshot, outcome);
  if (settled.ok) return { ...settled.update.changes, execution: settled.update.execution };
  if (outcome.observation.kind === "results" && outcome.result?.calls) {
    // What was done stays done: the results commit, the patch and the move do not.
    const note = `the patch and the move were dropped: ${settled.refusal.reason}`;
    return commit(runtime, snapshot, { ...outcome, observation: { ...outcome.observation, note }, result: null });
  }
  const { step } = snapshot.execution;
  const error = { code: settled.refusal.code, message: `step ${step}: ${settled.refusal.reason}`, step };
  return { execution: fail(snapshot.execution, error, FREE, outcome.observation) };
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
      const observation: Observation = { kind: "answer", question: pending.question, text: row.answer.text };
      return { observation, result: null, usage: NO_USAGE };
    }
    // The row may be older than this run, and its time with it.
    const request = row?.request ?? asked;
    if (isExpired(request, clock)) {
      const observation: Observation = { kind: "expired", what: pending.question };
      // A release may have taken the deadline away: then the step decides again.
      return deadline ? expired(deadline.to, observation) : { observation, result: null, usage: NO_USAGE };
    }
    faultPoint("before-interrupt");
    await pause(action, [request]);
  }
}

async function runChild(action: Action, pending: Extract<Pending, { kind: "workflow" }>): Promise<Settlement> {
  const { runtime, snapshot, lease, forks, config } = action;
  const { step } = snapshot.execution;
  const runner = runtime.children[step];
  const declared = runtime.workflow.steps[step];
  if (!runner || !declared) throw new WorkflowError("ILLEGAL_STATE", `step ${step} runs no workflow`);
  const childId = `${lease.taskId}/${pending.startedAt ?? step}/${pending.decision}.${forks}`;
  const prefix = `w${pending.decision}.${forks}/`;
  const passed = new Set<string>();
  // An answer that came in time is passed on before the child looks at the clock.
  const earlier = await runtime.store.requests(lease.taskId, pending.decision, forks);
  let news = await passAll(
    action,
    childId,
    earlier.filter((row) => row.answer !== null),
    prefix,
  );
  for (;;) {
    const standing = await runner.run(childId, pending.input, config, news);
    if (standing.kind === "ended") {
      const outcome = childOutcome(runtime, snapshot, declared, pending, standing);
      runtime.endedChildren.set(lease.taskId, [...(runtime.endedChildren.get(lease.taskId) ?? []), childId]);
      return outcome;
    }
    const asked = standing.requests.map((request) => ({ ...request, id: prefix + request.id }));
    await runtime.store.addRequests(lease.taskId, pending.decision, forks, asked);
    await copyVotes(action, childId, standing.requests, prefix);
    const answered = await answersFor(action, asked);
    for (const { request } of answered) {
      // Without this, an answer that does not settle the child's request would be passed on for ever.
      if (passed.has(request.id)) throw notSettled(lease.taskId, request.id);
      passed.add(request.id);
    }
    news = await passAll(action, childId, answered, prefix);
    if (!news) await pause(action, asked);
  }
}

/** @returns whether there was anything. */
async function passAll(action: Action, childId: string, rows: readonly RequestRow[], prefix: string): Promise<boolean> {
  for (const row of rows) await passOn(action, childId, row, prefix);
  return rows.length > 0;
}

/** Whoever edited a call in the child has approved what it is now, so the parent's copy counts them too. */
async function copyVotes(
  { runtime: { store }, lease: { taskId } }: Action,
  childId: string,
  requests: readonly Request[],
  prefix: string,
) {
  for (const { id, count = 1 } of requests) {
    const voted = count > 1 ? ((await store.request(childId, id))?.approvedBy ?? []) : [];
    const known = voted.length > 0 ? await store.request(taskId, prefix + id) : null;
    if (!known || known.answer) continue;
    for (const who of voted.filter((name) => !known.approvedBy.includes(name)))
      await store.answer(taskId, prefix + id, { answer: { type: "approve" }, who, inTime: true });
  }
}

function notSettled(taskId: string, id: string): WorkflowError {
  const message = `the answer to ${id} of task ${taskId} is not enough for the workflow that asked: its rule has changed since; start it anew`;
  return new WorkflowError("ILLEGAL_STATE", message, { details: { taskId, id } });
}

async function answersFor(action: Action, asked: readonly Request[]): Promise<readonly RequestRow[]> {
  const rows = await Promise.all(asked.map((request) => action.runtime.store.request(action.lease.taskId, request.id)));
  return rows.filter((row) => row !== null && row.answer !== null) as RequestRow[];
}

async function passOn(action: Action, childId: string, row: RequestRow, prefix: string): Promise<void> {
  const id = row.request.id.slice(prefix.length);
  const known = await action.runtime.store.request(childId, id);
  // The child may have been answered under its own id meanwhile; the first answer counts.
  if (!row.answer || !known || known.answer) return;
  const { answer, approvedBy, answeredBy } = row;
  // Where several had to approve, the child has to count each of them too; a crash may have come in between.
  const people = answer.type === "approve" ? [...new Set([...approvedBy, answeredBy])] : [answeredBy];
  for (const who of people.filter((name) => name === null || !known.approvedBy.includes(name))) {
    try {
      await action.runtime.store.answer(childId, id, { answer, who, inTime: true });
    } catch (error) {
      // It was answered under its own id meanwhile, or has enough approvals: the first answer counts.
      if (!isWorkflowError(error, "STALE_RESUME")) throw error;
    }
  }
}

function childOutcome(
  runtime: Runtime,
  snapshot: Snapshot,
  declared: RuntimeStep,
  pending: Extract<Pending, { kind: "workflow" }>,
  ended: Extract<ChildStanding, { kind: "ended" }>,
): Settlement {
  const { step } = snapshot.execution;
  const child: ChildResult = { state: ended.state, status: ended.status };
  if (ended.status === "failed" && !declared.output) {
    throw new WorkflowError("STEP_FAILED", `workflow ${pending.workflow} in step ${step} failed: ${ended.error}`);
  }
  let result: Decision;
  try {
    result = redactDeep(declared.output?.(child) ?? {});
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError("STEP_FAILED", `output of step ${step} threw: ${said}`, { cause: error });
  }
  // Where the table leaves one way only, the child's end takes it.
  const open = openMoves(runtime.workflow, step, { ...snapshot.state, ...result.patch });
  const next = result.next ?? (open.length === 1 ? open[0] : null);
  const observation: Observation = { kind: "workflow", workflow: pending.workflow, status: ended.status };
  return { observation, result: { ...result, next: next ?? null }, usage: ended.usage };
}
