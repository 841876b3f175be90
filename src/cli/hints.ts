import type { WaitingRequest } from "../compile/describe.ts";
import { systemUser } from "../internal/system-user.ts";
import { shellWord, type Terminal } from "./terminal.ts";

/** The options of a command that the next one needs too. */
export interface SameTask {
  readonly db?: string;
  readonly graph?: string;
}

/** What the next command is to answer. */
export interface Answering {
  readonly request: WaitingRequest;
  /** True where the request has to be named, since others are open too. */
  readonly several: boolean;
  /** The words of the answer; an answer or approval to be filled in unless given. */
  readonly reply?: readonly string[];
}

/** The command that goes on with a task, to be copied into a shell. */
export function howToResume(terminal: Terminal, taskId: string, options: SameTask, answering?: Answering): string {
  const words = ["npx statecard resume"];
  // An id that looks like an option has to stand behind a double dash.
  const dashed = taskId.startsWith("-");
  if (!dashed) words.push(shellWord(taskId));
  if (options.db !== undefined) words.push("--db", shellWord(withoutPassword(options.db)));
  if (options.graph !== undefined) words.push("--graph", shellWord(options.graph));
  if (answering) words.push(...answerWords(terminal, answering));
  if (dashed) words.push("--", shellWord(taskId));
  return words.join(" ");
}

/** A password in a connection is not printed; PGPASSWORD or a password file brings it back. */
export function withoutPassword(database: string): string {
  return database.replace(/^(postgres(?:ql)?:\/\/[^:@/]*):[^@]*@/, "$1@");
}

/** The command that answers the first of a task's requests, or lets it go on where it has none. */
export function howToAnswer(
  terminal: Terminal,
  taskId: string,
  options: SameTask,
  waiting: readonly WaitingRequest[] = [],
): string {
  const [request] = waiting;
  return howToResume(terminal, taskId, options, request && { request, several: waiting.length > 1 });
}

function answerWords(terminal: Terminal, { request, several, reply = [] }: Answering): readonly string[] {
  const { more } = terminal.marks;
  const named = several ? ["--request", shellWord(request.id)] : [];
  if (request.kind === "question") return [...named, `--answer "${more}"`];
  const [verb = "--approve", ...rest] = reply;
  return [...named, ...asSomebody(request, more), verb, ...rest];
}

/** Where the person at this command line may not approve, or has done so: as whom somebody else would. */
function asSomebody({ approvers, approvedBy = [] }: WaitingRequest, more: string): readonly string[] {
  const user = systemUser();
  if ((approvers?.includes(user) ?? true) && !approvedBy.includes(user)) return [];
  const next = approvers?.find((name) => !approvedBy.includes(name));
  return ["--as", next === undefined ? `"${more}"` : shellWord(next)];
}
