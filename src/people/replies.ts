import { WorkflowError } from "../errors.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import type { Answer, Request } from "./requests.ts";

/** An answer that names the request it is for. */
export interface Reply {
  readonly id: string;
  readonly answer: Answer;
  /** The digest of what the person was shown. */
  readonly shown?: string;
  /** Why, for the log. */
  readonly reason?: string;
}

/** The key under which our own `answer(...)` sends named replies through LangGraph's resume. */
export const NAMED_REPLIES = "__statecard_replies";

// A child workflow's begin with the run that asks, one of a list with its place in the list: `w3.0/`, `w3.0.1/`.
const REQUEST_ID = /^(?:w\d+\.\d+(?:\.\d+)?\/)*(?:[qc]\d+\.\d+|[au]\d+\.\d+\.\d+(?:e\d+)?)$/;
const INTERRUPT_ID = /^[0-9a-f]{32}$/;

/**
 * Reads a LangGraph resume value as answers to the requests that were shown. Understood are: a plain
 * text; a map from request ids; LangGraph's own map from interrupt ids; `{decisions: [...]}` of
 * langchain's middleware and Agent Chat UI; the list of Agent Inbox; and our own `answer(...)`. Pure.
 *
 * @param shown the requests in the interrupt as it was stored, never recomputed ones.
 * @throws STALE_RESUME, AMBIGUOUS_REPLY or INVALID_REPLY.
 */
export function readReplies(resume: unknown, shown: readonly Request[], interruptId?: string): readonly Reply[] {
  if (isPlainObject(resume)) {
    const named = resume[NAMED_REPLIES];
    if (Array.isArray(named)) return named.map((item) => readNamed(item, shown));
    const keys = Object.keys(resume);
    if (keys.length > 0 && keys.every((key) => INTERRUPT_ID.test(key))) {
      const [key] = keys;
      if (keys.length > 1 || key === undefined || (interruptId !== undefined && key !== interruptId)) {
        throw new WorkflowError(
          "STALE_RESUME",
          `interrupt ${keys.join(", ")} is not the open one; read the task again and answer what it asks now`,
        );
      }
      return readReplies(resume[key], shown);
    }
    if (Array.isArray(resume.decisions)) return byPosition(resume.decisions, shown);
    if (keys.length > 0 && keys.every((key) => shown.some((request) => request.id === key))) {
      return shown
        .filter((request) => Object.hasOwn(resume, request.id))
        .map((request) => toReply(request, resume[request.id]));
    }
  }
  if (
    isPlainObject(resume) &&
    Object.keys(resume).length > 0 &&
    Object.keys(resume).every((key) => REQUEST_ID.test(key))
  ) {
    return Object.entries(resume).map(([id, reply]) => toNamedReply(id, reply, shown));
  }
  if (Array.isArray(resume) && resume.length > 0 && resume.every((item) => isPlainObject(item) && "type" in item)) {
    return byPosition(resume, shown);
  }
  return byPosition([resume], shown);
}

function readNamed(item: unknown, shown: readonly Request[]): Reply {
  if (isPlainObject(item) && typeof item.id === "string") {
    const { id, reply } = item;
    const request = shown.find((candidate) => candidate.id === id);
    return {
      id,
      answer: request ? readAnswer(request, reply) : readUnseen(id, reply),
      ...(typeof item.shown === "string" ? { shown: item.shown } : {}),
      ...(typeof item.reason === "string" && item.reason.trim() !== "" ? { reason: checkText(item.reason) } : {}),
    };
  }
  throw new WorkflowError("INVALID_REPLY", "a named reply needs the id of its request");
}

function byPosition(replies: readonly unknown[], shown: readonly Request[]): readonly Reply[] {
  if (shown.length === 0) {
    throw new WorkflowError(
      "TASK_NOT_WAITING",
      "nothing waits for an answer; read the task again to see what it does now",
    );
  }
  const ids = replies.map((reply) => (isPlainObject(reply) && isRequestId(reply.id) ? reply.id : null));
  const named = ids.filter((id) => id !== null);
  const allNamed = named.length === replies.length && new Set(named).size === named.length && named.length > 0;
  if (allNamed) return named.map((id, index) => toNamedReply(id, replies[index], shown));
  // Where only some are named, the order of the others would be a guess.
  if (replies.length !== shown.length || named.length > 0) {
    const open = shown.map((request) => request.id);
    throw new WorkflowError(
      "AMBIGUOUS_REPLY",
      `${replies.length} answers for ${shown.length} open requests; name each by its id, once: ${open.join(", ")}`,
      { details: { open: shown } },
    );
  }
  return shown.map((request, index) => toReply(request, replies[index]));
}

function isRequestId(id: unknown): id is string {
  return typeof id === "string" && REQUEST_ID.test(id);
}

function toNamedReply(id: string, reply: unknown, shown: readonly Request[]): Reply {
  const request = shown.find((candidate) => candidate.id === id);
  return request ? toReply(request, reply) : { id, answer: readUnseen(id, reply) };
}

function toReply(request: Request, reply: unknown): Reply {
  return { id: request.id, shown: request.digest, answer: readAnswer(request, reply) };
}

/** An answer to a request that is not among those shown: its id tells the kind, and it will be refused with a reason. */
function readUnseen(id: string, reply: unknown): Answer {
  return /(?:^|\/)q/.test(id) ? readText(reply) : readVerdict(undefined, reply);
}

function readAnswer(request: Request, reply: unknown): Answer {
  return request.kind === "question" ? readText(reply) : readVerdict(request, reply);
}

const APPROVE = new Set(["approve", "approved", "accept", "yes", "y", "ok"]);
const REJECT = new Set(["reject", "rejected", "ignore", "no", "n"]);
// Turned down, but nothing said about whether a call has happened: running it again may do it twice.
const VAGUE = new Set(["ignore", "response", "respond"]);

/** An approval, rejection or edit in any of the known shapes. Nothing unclear counts as an approval. */
function readVerdict(request: Request | undefined, reply: unknown): Answer {
  const word = typeof reply === "string" ? reply : isPlainObject(reply) ? reply.type : undefined;
  const said = typeof word === "string" ? word.trim().toLowerCase() : "";
  if (reply === true || APPROVE.has(said)) {
    if (!isPlainObject(reply) || !request || bringsOnlyWhatWasShown(request, reply)) return { type: "approve" };
    throw new WorkflowError(
      "INVALID_REPLY",
      `the approval of ${request.id} brings another action than the one that was shown; send an edit to change it`,
    );
  }
  if (reply === false) return { type: "reject", reason: "" };
  if (request?.kind === "unknown" && VAGUE.has(said)) {
    const message = `say of ${request.id} whether it happened: approve if it did, reject if not`;
    throw new WorkflowError("INVALID_REPLY", message);
  }
  if (isPlainObject(reply)) {
    // Agent Inbox: an answer in words to an action is a reason not to do it.
    if (REJECT.has(said) || said === "response" || said === "respond")
      return { type: "reject", reason: reasonIn(reply) };
    if (said === "edit") return readEdit(request, reply);
  }
  if (REJECT.has(said)) return { type: "reject", reason: "" };
  throw new WorkflowError(
    "INVALID_REPLY",
    `cannot read ${shorten(JSON.stringify(reply) ?? "nothing", 80)} as a verdict; send approve, {type: "reject", message}, or {type: "edit", args}`,
  );
}

/** Agent Inbox sends an accepted action back, every argument as a text; what differs from what was shown is unclear. */
function bringsOnlyWhatWasShown(request: Request, reply: Readonly<Record<string, unknown>>): boolean {
  return [reply.edited_action, reply.editedAction, reply.args].every((part) => {
    if (part === undefined || part === null) return true;
    if (!isPlainObject(part)) return false;
    const named = actionIn(part);
    if (named && named.name !== (request.tool ?? request.kind)) return false;
    return Object.entries(named?.args ?? part).every(([name, value]) => asText(value) === asText(request.args?.[name]));
  });
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function reasonIn(reply: Readonly<Record<string, unknown>>): string {
  const text = [reply.message, reply.reason, reply.args].find((part) => typeof part === "string" && part.trim() !== "");
  return typeof text === "string" ? checkText(text) : "";
}

/** An edit may change the arguments, never the tool. */
function readEdit(request: Request | undefined, reply: Readonly<Record<string, unknown>>): Answer {
  const action = [reply.edited_action, reply.editedAction, reply.args].find(
    (part): part is Record<string, unknown> => isPlainObject(part) && actionIn(part) !== null,
  );
  const named = action && actionIn(action);
  if (named && request?.tool !== undefined && named.name !== request.tool) {
    throw new WorkflowError(
      "INVALID_REPLY",
      `an edit may change the arguments of ${request.tool}, not make it ${shorten(named.name, 60)}; reject it instead`,
    );
  }
  const args = named?.args ?? reply.args;
  if (isPlainObject(args)) return { type: "edit", args };
  throw new WorkflowError("INVALID_REPLY", 'an edit needs the new arguments: {type: "edit", args: {…}}');
}

/** An action with its name: Agent Inbox says `action`, langchain's middleware `name`. */
function actionIn(part: Readonly<Record<string, unknown>>) {
  const name = part.name ?? part.action;
  const args = part.args ?? part.arguments;
  return typeof name === "string" && isPlainObject(args) ? { name, args } : null;
}

/** The text of an answer in any of the known shapes. */
function readText(reply: unknown): Answer {
  if (typeof reply === "string") return { type: "text", text: checkText(reply) };
  if (typeof reply === "number" || typeof reply === "boolean") return { type: "text", text: String(reply) };
  if (isPlainObject(reply)) {
    const args = reply.args;
    const nested = isPlainObject(args) ? (args.answer ?? args.question) : args;
    for (const text of [reply.message, reply.answer, reply.text, nested]) {
      if (typeof text === "string") return { type: "text", text: checkText(text) };
    }
  }
  throw new WorkflowError(
    "INVALID_REPLY",
    `cannot read ${shorten(JSON.stringify(reply) ?? "nothing", 80)} as the answer to a question; send a text`,
  );
}

const MAX_MESSAGE_BYTES = 65_536;

// Control characters other than tab, line feed and carriage return, and halves of surrogate pairs.
const NOT_TEXT =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * Checks a message or answer from a person.
 *
 * @throws INVALID_MESSAGE where it is empty or no text, MESSAGE_TOO_LARGE above 64 KB.
 */
export function checkText(text: string): string {
  if (text.trim() === "") {
    throw new WorkflowError("INVALID_MESSAGE", "it is empty; write something, or start without a message to be asked");
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_MESSAGE_BYTES) {
    throw new WorkflowError(
      "MESSAGE_TOO_LARGE",
      `the message has ${bytes} bytes, at most ${MAX_MESSAGE_BYTES} are taken; shorten it, or put it into a file and name the file`,
    );
  }
  if (NOT_TEXT.test(text) || isBroken(text)) {
    throw new WorkflowError(
      "INVALID_MESSAGE",
      "the message is not text: it holds control characters or broken UTF-8; send plain UTF-8 text",
    );
  }
  return text;
}

/** Bytes that are no UTF-8 arrive as U+FFFD; a few of them may be a copied flaw, more are junk. */
function isBroken(text: string): boolean {
  const broken = text.match(/\ufffd/g)?.length ?? 0;
  return broken > 2 || (broken > 0 && text.replaceAll(/[\ufffd\s]/g, "") === "");
}
