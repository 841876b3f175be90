import { WorkflowError, type ErrorCode } from "../errors.ts";
import { isExpired } from "./expiry.ts";
import { isPassedOn, requestDigest, type Answer, type RequestRow, type Vote } from "./requests.ts";

/** What a vote comes to: the request's final answer, or one approval of several. */
export type Counted = { readonly final: Answer } | { readonly approvedBy: string };

/**
 * Judges an answer against its request, the same for every store. Pure.
 *
 * @throws UNKNOWN_REQUEST, STALE_RESUME where it was answered already, withdrawn or is not what was shown,
 * APPROVAL_CHANGED, APPROVAL_EXPIRED, APPROVER_UNKNOWN, ALREADY_APPROVED, INVALID_REPLY.
 */
export function countVote(taskId: string, id: string, row: RequestRow | null, vote: Vote, now: number): Counted {
  const refuse = (code: ErrorCode, why: string): never => {
    throw new WorkflowError(code, `request ${id} of task ${taskId} ${why}`, { details: { taskId, id } });
  };
  if (!row) {
    // What a workflow within asks no more is gone.
    if (isPassedOn(id))
      return refuse("STALE_RESUME", "is not open any more; read the task again to see what it asks now");
    throw new WorkflowError(
      "UNKNOWN_REQUEST",
      `task ${taskId} has no request ${id}; read the task again to see what it asks`,
      { details: { taskId, id } },
    );
  }
  const { request } = row;
  const { answer, who } = vote;
  if (row.answer) return refuse("STALE_RESUME", "was already answered; read the task again to see what it asks now");
  const changed = request.kind === "question" ? "STALE_RESUME" : "APPROVAL_CHANGED";
  if (vote.shown !== undefined && vote.shown !== request.digest) {
    refuse(changed, "is not what was shown; read the task again");
  }
  if (requestDigest(request) !== request.digest) {
    refuse(changed, "was changed after it was asked: its content does not match its digest; nothing was approved");
  }
  if (!vote.inTime && request.expiresAt !== undefined && isExpired(request, now)) {
    const at = new Date(request.expiresAt).toISOString();
    refuse("APPROVAL_EXPIRED", `expired at ${at}; resume the task without an answer, and it goes on from there`);
  }
  if ((request.kind === "question") !== (answer.type === "text")) {
    refuse("INVALID_REPLY", request.kind === "question" ? "is answered by a text" : "is approved or rejected");
  }
  if (request.kind === "unknown" && answer.type === "edit") {
    refuse("INVALID_REPLY", "is about a call that was begun already: say whether it happened, its arguments are past");
  }
  const { approvers, count = 1 } = request;
  if (who === null && (approvers ?? (count > 1 ? [] : null)) !== null) {
    refuse("APPROVER_UNKNOWN", "needs to know who answers, and nobody is signed in; answer by command line or token");
  }
  if (approvers && who !== null && !approvers.includes(who)) {
    refuse("APPROVER_UNKNOWN", `takes no answer from ${who}; it is for ${approvers.join(", ")}`);
  }
  if (answer.type !== "approve" || count <= 1) return { final: answer };
  const person = who ?? "";
  if (row.approvedBy.includes(person)) {
    refuse("ALREADY_APPROVED", `was approved by ${person} already; ${count} different people have to`);
  }
  return row.approvedBy.length + 1 >= count ? { final: answer } : { approvedBy: person };
}
