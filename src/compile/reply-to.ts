import { Command } from "@langchain/langgraph";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { NAMED_REPLIES } from "../people/replies.ts";
import type { Request } from "../people/requests.ts";
import { asksNothing } from "./admit-input.ts";
import type { TaskDescription } from "./describe.ts";
import { openRequests } from "./open-requests.ts";
import type { TaskStore } from "./store.ts";

/** What a person does about a request. */
export type PersonsReply = Verdict & {
  /** Why, for the log; a rejection's own reason is told to the model. */
  readonly note?: string | undefined;
};

type Verdict =
  | { readonly verb: "answer"; readonly text: string }
  | { readonly verb: "approve" }
  | { readonly verb: "reject"; readonly reason: string }
  | { readonly verb: "edit"; readonly args: Readonly<Record<string, unknown>> };

/** How an answer is written where it is given, and what it was given to. */
export interface ReplyWords {
  readonly verb: (verb: PersonsReply["verb"]) => string;
  /** What names the request that is meant. */
  readonly request: string;
  /** The digest of what the person was shown; of what is stored now unless set. */
  readonly shown?: string | undefined;
  /** False where whoever answers may not be told what others are asked. */
  readonly tellsQuestions?: false;
}

/**
 * The resume value for a verdict, bound to the request as it is stored now.
 *
 * @param id which request, where one is named.
 * @param words how whoever answers writes it, for errors.
 * @throws TASK_NOT_WAITING, AMBIGUOUS_REPLY, UNKNOWN_REQUEST, INVALID_REPLY. What is not open any more
 * and finished tasks are refused by the graph.
 */
export async function replyTo(
  store: TaskStore,
  task: TaskDescription,
  verdict: PersonsReply,
  id: string | undefined,
  words: ReplyWords,
): Promise<Command> {
  const { taskId } = task;
  const open = await openRequests(store, taskId, await store.head(taskId));
  const request = await targetOf(store, task, open, { id, words });
  if (!request) return new Command({ resume: formOf(verdict, undefined) });
  checkVerb(taskId, request, verdict, words);
  const { note: reason } = verdict;
  const named = { id: request.id, shown: words.shown ?? request.digest, reply: formOf(verdict, request), reason };
  return new Command({ resume: { [NAMED_REPLIES]: [named] } });
}

/** The request that is meant; null where the graph itself knows better why there is none. */
async function targetOf(
  store: TaskStore,
  task: TaskDescription,
  open: readonly Request[],
  { id, words }: { id: string | undefined; words: ReplyWords },
): Promise<Request | null> {
  const { taskId, status } = task;
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
    const told = (request: Request) => (words.tellsQuestions === false ? request.kind : shorten(request.question, 80));
    const asked = open.map((request) => `${request.id} (${told(request)})`).join(", ");
    throw new WorkflowError(
      "AMBIGUOUS_REPLY",
      `task ${taskId} waits for ${open.length}: ${asked}; name one with ${words.request}`,
      {
        details: { taskId, open },
      },
    );
  }
  if (!only && (status === "created" || status === "running" || status === "failed")) throw asksNothing(taskId, task);
  return only ?? null;
}

const VERBS = {
  question: ["answer"],
  approval: ["approve", "reject", "edit"],
  unknown: ["approve", "reject"],
} as const satisfies Record<Request["kind"], readonly PersonsReply["verb"][]>;

function checkVerb(taskId: string, { id, kind }: Request, { verb }: PersonsReply, words: ReplyWords): void {
  const verbs: readonly PersonsReply["verb"][] = VERBS[kind];
  if (verbs.includes(verb)) return;
  const what = {
    question: "asks a question",
    approval: "asks for an approval",
    unknown: "asks whether a call has happened",
  }[kind];
  const how = verbs.map(words.verb).join(" or ");
  throw new WorkflowError("INVALID_REPLY", `request ${id} of task ${taskId} ${what}: answer it with ${how}`, {
    details: { taskId, id },
  });
}

/** A verdict as LangGraph's clients send it. An edit names what it changes; other arguments stay. */
function formOf(verdict: PersonsReply, request: Request | undefined): unknown {
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
