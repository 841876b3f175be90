import { INTERRUPT } from "@langchain/langgraph";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import { askedConsent, consentEditFault, distinctRequests } from "../people/consent-request.ts";
import { countVote } from "../people/votes.ts";
import { readReplies } from "../people/replies.ts";
import { isPassedOn, type Answer, type Request, type Vote } from "../people/requests.ts";
import { checkArguments, coerceArguments, readJson, unknownArguments } from "../workflow/calls.ts";
import { isFinished } from "../workflow/next-step.ts";
import { asksNothing, checkWorkflow, taskFinished, unknownTask } from "./admit-input.ts";
import { askerOf, interceptedEdit, type Asker } from "./intercepted-edit.ts";
import { answerable, openRequests } from "./open-requests.ts";
import type { Runtime } from "./runtime.ts";
import type { TaskHead, TaskStore } from "./store.ts";

/** The resume value of a Command; anything else in it would go around the table. */
export function resumeOf(command: { goto?: unknown; update?: unknown; resume?: unknown }): unknown {
  const goesAround =
    (Array.isArray(command.goto) ? command.goto.length > 0 : Boolean(command.goto)) || Boolean(command.update);
  if (goesAround) {
    throw new WorkflowError(
      "ILLEGAL_COMMAND",
      "Command goto and update would go around the transition table; only resume is taken",
    );
  }
  if (command.resume === undefined)
    throw new WorkflowError("ILLEGAL_COMMAND", "the Command is empty; only resume is taken");
  return command.resume;
}

/** The requests that people were shown: the list inside the stored interrupt; without one, what is open. */
async function shownRequests(
  runtime: Runtime,
  taskId: string,
): Promise<{ requests: readonly Request[]; interruptId?: string }> {
  const { store } = runtime;
  const tuple = await store.checkpointer.getTuple({ configurable: { thread_id: taskId, checkpoint_ns: "" } });
  const written = tuple?.pendingWrites?.find((write) => write[1] === INTERRUPT)?.[2];
  const first = (Array.isArray(written) ? written[0] : written) as
    | { id?: string; value?: { requests?: Request[] } }
    | undefined;
  if (first?.value?.requests) {
    return { requests: first.value.requests, ...(first.id === undefined ? {} : { interruptId: first.id }) };
  }
  return { requests: await openRequests(store, taskId, await store.head(taskId)) };
}

/**
 * Stores the answers in a resume value as rows, before any run and without the lease. When it
 * returns, somebody has to wake the task.
 *
 * @throws WRONG_WORKFLOW, TASK_FINISHED, TASK_CANCELLED, TASK_NOT_WAITING, STALE_RESUME, and TASK_BUSY (with `details.recorded`) where the running owner will see the answers by itself.
 */
export async function recordReplies(
  runtime: Runtime,
  taskId: string,
  resume: unknown,
  who: string | null,
): Promise<void> {
  const { store, workflow, clock } = runtime;
  const head = await store.head(taskId);
  if (!head) throw unknownTask(taskId);
  checkWorkflow(workflow, taskId, head);
  if (head.execution.status === "failed") throw asksNothing(taskId, head.execution);
  if (isFinished(workflow, head.execution)) throw taskFinished(taskId, head);
  const shown = await shownRequests(runtime, taskId);
  const open = await openOrShown(runtime, taskId, head, shown.requests);
  const ready: { request: Request; vote: Vote }[] = [];
  for (const reply of readReplies(resume, shown.requests, shown.interruptId)) {
    const request = open.find((candidate) => candidate.id === reply.id);
    if (!request) throw await notOpen(store, taskId, head, reply.id, open);
    const isEdit = reply.answer.type === "edit" && !askedConsent(request);
    const asker = isEdit ? await askerOf(store, workflow, taskId, request.id) : null;
    const answer = redactDeep(checkEdited(asker, request, reply.answer));
    const vote = {
      answer,
      who,
      ...(reply.shown === undefined ? {} : { shown: reply.shown }),
      ...(reply.reason === undefined ? {} : { reason: redact(reply.reason) }),
    };
    await addShown(store, taskId, head, request);
    // All of them are judged before any is written.
    countVote(taskId, request.id, await store.request(taskId, request.id), vote, clock.now());
    if (asker && answer.type === "edit") {
      const refusal = interceptedEdit(asker, request, answer.args);
      if (refusal !== null) throw notTaken(request.id, refusal);
    }
    ready.push({ request, vote });
  }
  let mustWake = false;
  for (const { request, vote } of ready) {
    const owner = await store.answer(taskId, request.id, vote);
    mustWake ||= owner !== "running";
  }
  if (!mustWake) {
    throw new WorkflowError("TASK_BUSY", `the answer is recorded; the process that runs task ${taskId} will use it`, {
      details: { taskId, recorded: true },
    });
  }
}

/** What is open; with another LangGraph saver, the rows of calls ended with the process that asked, and the stored interrupt tells. */
async function openOrShown(
  { store }: Runtime,
  taskId: string,
  head: TaskHead,
  shown: readonly Request[],
): Promise<readonly Request[]> {
  const open = await answerable(store, taskId, head);
  const { pending } = head.execution;
  if (pending?.kind !== "calls" || store.guarantees === "store") return open;
  const rows = await store.requests(taskId, pending.decision, head.forks);
  return rows.length > 0 ? open : shown;
}

async function notOpen(
  store: TaskStore,
  taskId: string,
  head: TaskHead,
  id: string,
  open: readonly Request[],
): Promise<WorkflowError> {
  const known = await store.request(taskId, id);
  const distinct = distinctRequests(open);
  const now = distinct.map((request) => request.id).join(", ") || "nothing";
  const details = { taskId, id, open: distinct };
  const isUsed = known?.answer && known.decision !== head.execution.pending?.decision;
  if (known && isUsed && known.request.kind !== "question" && !askedConsent(known.request)) {
    const message = `approval ${id} of task ${taskId} was used already: an approval holds once; open now: ${now}`;
    return new WorkflowError("APPROVAL_USED", message, { details });
  }
  const code = known || isOlder(id, head.execution.decisions) ? "STALE_RESUME" : "UNKNOWN_REQUEST";
  const message = `request ${id} of task ${taskId} is not open${code === "STALE_RESUME" ? " any more" : ""}; open now: ${now}`;
  return new WorkflowError(code, message, { details });
}

/** An edit is checked like a new action; texts from forms become what the schema wants. */
function checkEdited(asker: Asker | null, request: Request, answer: Answer): Answer {
  if (answer.type === "edit" && askedConsent(request)) {
    const args = { ...answer.args, kinds: readJson(answer.args.kinds) };
    const fault = consentEditFault(request, args);
    if (fault === null) return { type: "edit", args };
    throw notTaken(request.id, fault);
  }
  if (answer.type !== "edit" || request.tool === undefined) return answer;
  const tool = asker?.workflow.tools[request.tool];
  // Where nobody knows here who asked, whoever did judges.
  if (!tool) return answer;
  const args = coerceArguments(tool, answer.args);
  const [unknown] = unknownArguments(tool, answer.args);
  const checked =
    unknown === undefined
      ? checkArguments(request.tool, tool, args)
      : {
          ok: false as const,
          reason: `${request.tool} has no argument "${shorten(unknown, 60)}"; it has ${Object.keys(request.args ?? {}).join(", ")}`,
        };
  // Kept as it was given: a schema that transforms its input is applied once, where the call is made.
  if (checked.ok) return { type: "edit", args };
  throw notTaken(request.id, checked.reason);
}

function notTaken(id: string, why: string): WorkflowError {
  return new WorkflowError("INVALID_REPLY", `the edit was not taken: ${why}`, { details: { id } });
}

/**
 * Makes sure that the row is there: with another LangGraph saver, it ended with the process that asked. What a workflow
 * within passed on is not added, since it may just have been withdrawn.
 */
export async function addShown(
  store: TaskStore,
  taskId: string,
  head: TaskHead,
  request: Request | undefined,
): Promise<void> {
  const { pending } = head.execution;
  if (request && pending && !isPassedOn(request.id))
    await store.addRequests(taskId, pending.decision, head.forks, [request]);
}

/** Ids carry the number of the decision that asked, so an old one is told from a wrong one. */
function isOlder(requestId: string, decisions: number): boolean {
  const number = /^[qwau](\d+)\./.exec(requestId)?.[1];
  return number !== undefined && Number(number) <= decisions;
}
