import { isExpired } from "../people/expiry.ts";
import type { WaitingRequest } from "../compile/describe.ts";
import { askedConsent } from "../people/consent-request.ts";
import { howToResume, type SameTask } from "./hints.ts";
import { emphasise, lasting, printable, printableLines, shellWord, type Terminal } from "./terminal.ts";

/** Whom a request waits for. */
export function whoIsAsked({ kind, approvers, count = 1, approvedBy = [] }: WaitingRequest): string {
  if (kind !== "approval") return "you";
  const names = approvers?.map(printable);
  if (approvedBy.length > 0) {
    const more = `${count - approvedBy.length} more of ${names ? `${count} approvers from ${names.join(", ")}` : `${count} approvers`}`;
    return `${more} (approved by ${approvedBy.map(printable).join(", ")})`;
  }
  if (count > 1) return names ? `${count} of ${names.join(", ")}` : `${count} approvers`;
  return names?.join(" or ") ?? "an approver";
}

/** Until when a request takes an answer, as an age is told; empty where it does for ever. */
export function expiry({ expiresAt }: WaitingRequest, now: number): string {
  if (expiresAt === undefined) return "";
  return now < expiresAt ? `expires in ${lasting(expiresAt - now)}` : `expired ${lasting(now - expiresAt)} ago`;
}

/** What a request asks and of whom, on one line. */
export function asksLine(request: WaitingRequest, now: number): string {
  const until = expiry(request, now);
  return `waiting for ${whoIsAsked(request)}: ${printable(request.question)}${until ? `   ${until}` : ""}`;
}

/** For a person: what a task waits for, and the commands that answer it. */
export function waitingLines(
  terminal: Terminal,
  taskId: string,
  options: SameTask,
  waiting: readonly WaitingRequest[],
): readonly string[] {
  const now = Date.now();
  const several = waiting.length > 1;
  return waiting.flatMap((request) => {
    const command = (...reply: readonly string[]) =>
      howToResume(terminal, taskId, options, { request, several, reply });
    const asked =
      request.kind === "question" && request.expiresAt === undefined
        ? printableLines(request.question)
        : asksLine(request, now);
    const head = emphasise(terminal, "bold", several ? `${asked} (${request.id})` : asked);
    if (isExpired(request, now))
      return [head, `Too late to answer. Go on with:  ${howToResume(terminal, taskId, options)}`];
    if (request.kind === "question") return [head, `Waiting for an answer. Go on with:  ${command()}`];
    const others = [`Or refuse with:  ${command("--reject", `"${terminal.marks.more}"`)}`];
    const consent = askedConsent(request);
    // Of a single kind of data nothing could be left out; else the kinds are all that can be changed.
    if (request.kind === "approval" && consent?.kinds.length !== 1) {
      const args = consent ? { kinds: consent.kinds } : (request.args ?? {});
      others.push(`Or change with:  ${command("--edit", shellWord(JSON.stringify(args)))}`);
    }
    return [head, `Go on with:  ${command()}`, ...(several ? [] : others)];
  });
}
