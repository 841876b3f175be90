import { Command } from "@langchain/langgraph";
import type { TaskDescription } from "../compile/describe.ts";
import { openRequests } from "../compile/open-requests.ts";
import type { TaskStore } from "../compile/store.ts";
import { WorkflowError } from "../errors.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import { NAMED_REPLIES } from "../people/replies.ts";
import type { Request } from "../people/requests.ts";
import { usage } from "./exit.ts";

/** What a person does about a request. */
export type Verdict =
  | { readonly verb: "answer"; readonly text: string }
  | { readonly verb: "approve" }
  | { readonly verb: "reject"; readonly reason: string }
  | { readonly verb: "edit"; readonly args: Readonly<Record<string, unknown>> };

export interface VerdictOptions {
  readonly answer?: string;
  readonly approve?: boolean;
  readonly reject?: string;
  readonly edit?: string;
}

/**
 * The one answer on a command line; null where there is none.
 *
 * @throws USAGE where there are several, a rejection has no reason, or an edit is no JSON object.
 */
export function verdictOf({ answer, approve, reject, edit }: VerdictOptions): Verdict | null {
  const given: Verdict[] = [];
  if (answer !== undefined) given.push({ verb: "answer", text: answer });
  if (approve) given.push({ verb: "approve" });
  if (reject !== undefined) given.push({ verb: "reject", reason: reasonOf(reject) });
  if (edit !== undefined) given.push({ verb: "edit", args: argumentsOf(edit) });
  if (given.length > 1) throw usage(`choose one of ${given.map(({ verb }) => `--${verb}`).join(" and ")}`);
  return given[0] ?? null;
}

function reasonOf(text: string): string {
  if (text.trim() === "") throw usage("--reject needs a reason: the model is told it, and acts on it");
  return text;
}

/** @throws USAGE. */
function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (isPlainObject(args)) return args;
  throw usage(
    `an edit is a JSON object with the arguments to change, such as {"amount": 50}, not ${shorten(text, 60)}`,
  );
}

/**
 * The resume value for a verdict, bound to the request as it is stored now.
 *
 * @param id which request, where one is named.
 * @throws TASK_NOT_WAITING, AMBIGUOUS_REPLY, UNKNOWN_REQUEST, INVALID_REPLY. What is not open any more
 * and finished tasks are refused by the graph.
 */
export async function replyTo(
  store: TaskStore,
  task: TaskDescription,
  verdict: Verdict,
  id: string | undefined,
): Promise<Command> {
  const { taskId } = task;
  const open = await openRequests(store, taskId, await store.head(taskId));
  const request = await targetOf(store, task, open, id);
  if (!request) return new Command({ resume: formOf(verdict, undefined) });
  checkVerb(taskId, request, verdict);
  const named = { id: request.id, shown: request.digest, reply: formOf(verdict, request) };
  return new Command({ resume: { [NAMED_REPLIES]: [named] } });
}

/** The request that is meant; null where the graph itself knows better why there is none. */
async function targetOf(
  store: TaskStore,
  { taskId, status, step }: TaskDescription,
  open: readonly Request[],
  id: string | undefined,
): Promise<Request | null> {
  const ids = open.map((request) => request.id).join(", ") || "nothing";
  if (id !== undefined) {
    const request = open.find((candidate) => candidate.id === id) ?? (await store.request(taskId, id))?.request;
    if (request) return request;
    throw new WorkflowError("UNKNOWN_REQUEST", `task ${taskId} has no request ${shorten(id, 60)}; open now: ${ids}`, {
      details: { taskId, id },
    });
  }
  const [only] = open;
  if (open.length > 1) {
    const asked = open.map((request) => `${request.id} (${shorten(request.question, 80)})`).join(", ");
    throw new WorkflowError(
      "AMBIGUOUS_REPLY",
      `task ${taskId} waits for ${open.length}: ${asked}; name one with --request`,
      {
        details: { taskId, open },
      },
    );
  }
  if (!only && status !== "completed" && status !== "failed") {
    const message = `task ${taskId} asks nothing now (it is ${status} at ${step}); resume it without an answer to let it go on`;
    throw new WorkflowError("TASK_NOT_WAITING", message, { details: { taskId } });
  }
  return only ?? null;
}

function checkVerb(taskId: string, { id, kind }: Request, { verb }: Verdict): void {
  const verbs = { question: ["answer"], approval: ["approve", "reject", "edit"], unknown: ["approve", "reject"] }[kind];
  if (verbs.includes(verb)) return;
  const what = {
    question: "asks a question",
    approval: "asks for an approval",
    unknown: "asks whether a call has happened",
  }[kind];
  const how = verbs.map((each) => `--${each}`).join(" or ");
  throw new WorkflowError("INVALID_REPLY", `request ${id} of task ${taskId} ${what}: answer it with ${how}`, {
    details: { taskId, id },
  });
}

/** A verdict as LangGraph's clients send it. An edit names what it changes; other arguments stay. */
function formOf(verdict: Verdict, request: Request | undefined): unknown {
  switch (verdict.verb) {
    case "answer":
      return verdict.text;
    case "approve":
      return { type: "approve" };
    case "reject":
      return { type: "reject", message: verdict.reason };
    case "edit":
      return {
        type: "edit",
        edited_action: { name: request?.tool ?? "", args: { ...request?.args, ...verdict.args } },
      };
  }
}
