import { isWorkflowError, WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { Request, RequestRow } from "../people/requests.ts";
import type { Observation, Pending } from "../state/execution.ts";
import type { Settlement } from "../workflow/settle.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { ChildResult, RuntimeStep } from "../workflow/step.ts";
import { openMoves } from "../workflow/next-step.ts";
import type { Decision } from "../workflow/record.ts";
import { pause, type Action } from "./action.ts";
import { taskFinished } from "./admit-input.ts";
import { childTaskId, type ChildRunner, type ChildStanding } from "./child.ts";
import { answerable } from "./open-requests.ts";
import type { Runtime } from "./runtime.ts";

/** A child workflow as its parent's step runs it. */
export interface ChildCall {
  readonly runner: ChildRunner;
  readonly childId: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** What the ids of its requests begin with in the parent. */
  readonly prefix: string;
  /** The requests whose answers have been passed on in this run. */
  readonly passed: Set<string>;
}

/** Runs the workflow that is a step of another, as a task of its own. */
export async function actChild(action: Action, pending: Extract<Pending, { kind: "workflow" }>): Promise<Settlement> {
  const { runtime, snapshot, lease, forks } = action;
  const { step } = snapshot.execution;
  const runner = runtime.children[step];
  const declared = runtime.workflow.steps[step];
  const childId = childTaskId(lease.taskId, snapshot.execution, forks);
  if (!runner || !declared || childId === null)
    throw new WorkflowError("ILLEGAL_STATE", `step ${step} runs no workflow`);
  const prefix = `w${pending.decision}.${forks}/`;
  const child: ChildCall = { runner, childId, input: pending.input, prefix, passed: new Set() };
  for (;;) {
    const standing = await runChild(action, pending.decision, child);
    if (standing.kind === "ended") {
      const outcome = childOutcome(runtime, snapshot, declared, pending, standing);
      runtime.endedChildren.set(lease.taskId, [...(runtime.endedChildren.get(lease.taskId) ?? []), childId]);
      return outcome;
    }
    await pause(action, standing.requests);
  }
}

/**
 * Runs a child workflow as far as it goes. What it asks is asked again under the parent's ids, and answers are
 * passed on: so whoever looks at the parent sees it.
 *
 * @returns its end, or what it waits for, under the parent's ids.
 */
export async function runChild(action: Action, decision: number, child: ChildCall): Promise<ChildStanding> {
  const { runtime, lease, forks, config } = action;
  const { runner, childId, input, prefix, passed } = child;
  const { execution } = action.snapshot;
  const isUntrusted = execution.untrusted === true && !runtime.workflow.steps[execution.step]?.trusted;
  // An answer that came in time is passed on before the child looks at the clock.
  const { store } = runtime;
  const earlier = await store.requests(lease.taskId, decision, forks, prefix);
  let news = await passAll(action, childId, earlier, prefix);
  const known = new Set(earlier.map(({ request }) => request.id));
  let open = earlier.filter(({ answer }) => answer === null).map(({ request }) => request.id);
  /** Nobody has to answer at the parent what the child asks no more: it has expired, or was decided elsewhere. */
  const ask = async (requests: readonly Request[]) => {
    const asked = requests.map((request) => ({ ...request, id: prefix + request.id }));
    const ids = asked.map(({ id }) => id);
    const isSame = ids.every((id) => known.has(id)) && open.every((id) => ids.includes(id));
    if (!isSame) await store.replaceRequests(lease, { decision, forks, prefix }, asked);
    for (const id of ids) known.add(id);
    open = ids;
    return asked;
  };
  const askAnew = async () => ask(await answerable(store, childId, await store.look(childId)));
  for (;;) {
    await requireGoingOn(runtime, lease.taskId);
    const standing = await runner.run(childId, input, config, news, isUntrusted).catch(async (error: unknown) => {
      // It may have gone on before it failed. Where that cannot be told, its error still counts.
      await askAnew().catch(() => {});
      throw error;
    });
    const asked = await ask(standing.kind === "ended" ? [] : standing.requests);
    if (standing.kind === "ended") return standing;
    await copyVotes(action, childId, standing.requests, prefix);
    const answered = await answersFor(action, asked);
    for (const { request } of answered) {
      // Without this, an answer that does not settle the child's request would be passed on for ever.
      if (passed.has(request.id)) throw notSettled(lease.taskId, request.id);
      passed.add(request.id);
    }
    news = await passAll(action, childId, answered, prefix);
    if (!news) return { kind: "waiting", requests: asked };
  }
}

/**
 * A child runs under a lease of its own, so the loss of its parent's does not hold it back.
 *
 * @throws TASK_CANCELLED.
 */
async function requireGoingOn({ store }: Runtime, taskId: string): Promise<void> {
  const head = await store.head(taskId);
  if (head?.execution.status === "cancelled") throw taskFinished(taskId, head);
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
  const child: ChildResult = { state: ended.state, status: ended.status, error: ended.error };
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
  const { usage, untrusted } = ended;
  return { observation, result: { ...result, next: next ?? null }, usage, untrusted };
}
