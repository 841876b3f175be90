import { WorkflowError } from "../errors.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import type { Call } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { Approval, ApprovalRule } from "../workflow/tool.ts";
import { requestDigest, type Request } from "./requests.ts";

/** An approval that a call needs, with the stricter of what its step and its tool demand. */
export interface NeededApproval {
  readonly approvers?: readonly string[];
  readonly count: number;
  readonly expiresAfterMs?: number;
}

/**
 * Which approval a call needs in a step, if any. Pure.
 *
 * @throws STEP_FAILED where a declared function throws.
 */
export function neededApproval(workflow: AnyWorkflow, step: string, call: Call, state: State): NeededApproval | null {
  const { approve } = workflow.steps[step] ?? {};
  const byStep = Array.isArray(approve)
    ? approve.includes(call.tool) || undefined
    : (approve as Readonly<Record<string, Approval | undefined>> | undefined)?.[call.tool];
  const byTool = workflow.tools[call.tool]?.approve;
  const rules = [byStep, byTool].flatMap((approval) => demanded(approval, step, call, state));
  if (rules.length === 0) return null;
  const counts = rules.map((rule) => rule.count ?? 1);
  const named = rules.flatMap((rule) => (rule.approvers ? [rule.approvers] : []));
  const [first, second] = named;
  const approvers = first && (second ? first.filter((name) => second.includes(name)) : first);
  const expiries = rules.flatMap((rule) => (rule.expiresAfterMs === undefined ? [] : [rule.expiresAfterMs]));
  const deadline = workflow.steps[step]?.deadline;
  if (deadline) expiries.push(deadline.afterMs);
  return {
    count: Math.max(...counts),
    ...(approvers ? { approvers } : {}),
    ...(expiries.length > 0 ? { expiresAfterMs: Math.min(...expiries) } : {}),
  };
}

/** Whether these people are the ones, and as many, as an approval needs; null stands for somebody unknown. Pure. */
export function suffices({ count, approvers }: NeededApproval, people: readonly (string | null)[]): boolean {
  const isNamed = (who: string | null) => who !== null && (approvers?.includes(who) ?? true);
  if (approvers || count > 1) return new Set(people.filter(isNamed)).size >= count;
  return people.length > 0;
}

function demanded(approval: Approval | undefined, step: string, call: Call, state: State): ApprovalRule[] {
  if (approval === undefined) return [];
  let asked: unknown;
  try {
    asked = typeof approval === "function" ? approval(call.args as never, state as never) : approval;
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError("STEP_FAILED", `the approval of ${call.tool} in step ${step} threw: ${said}`, {
      cause: error,
    });
  }
  if (asked === false) return [];
  const rule = asked === true ? {} : asked;
  if (!isRule(rule)) {
    if (asked instanceof Promise) asked.catch(() => undefined);
    const message = `the approval of ${call.tool} in step ${step} gave no clear answer; it has to return true, false or { approvers, count, expiresAfterMs } at once`;
    throw new WorkflowError("STEP_FAILED", message);
  }
  return rule.count === 0 ? [] : [rule];
}

/** Whether a function's answer is a rule: a number that is none must not let a call run. */
function isRule(value: unknown): value is ApprovalRule {
  if (!isPlainObject(value)) return false;
  const { approvers = [], count = 1, expiresAfterMs = 0 } = value;
  const isCount = typeof count === "number" && Number.isInteger(count) && count >= 0;
  const isTime = typeof expiresAfterMs === "number" && !Number.isNaN(expiresAfterMs);
  return isCount && isTime && Array.isArray(approvers) && approvers.every((name) => typeof name === "string");
}

/** The request for an approval of a call. Pure. */
export function approvalRequest(id: string, call: Call, needed: NeededApproval, now: number): Request {
  const content = { kind: "approval" as const, question: describeCall(call), tool: call.tool, args: call.args };
  return {
    id,
    ...content,
    digest: requestDigest(content),
    ...(needed.approvers ? { approvers: needed.approvers } : {}),
    ...(needed.count > 1 ? { count: needed.count } : {}),
    ...(needed.expiresAfterMs === undefined ? {} : { expiresAt: now + needed.expiresAfterMs }),
  };
}

/**
 * The request to find out whether a call that was begun has happened. Pure.
 *
 * @param approvers those who may approve the call: to say that it did not happen runs it again.
 */
export function unknownRequest(id: string, call: Call, approvers?: readonly string[]): Request {
  const question = `${describeCall(call)} was begun and left no result. Did it happen? Approve: it did. Reject: it did not, and it is run now.`;
  const content = { kind: "unknown" as const, question, tool: call.tool, args: call.args };
  return { id, ...content, digest: requestDigest(content), ...(approvers ? { approvers } : {}) };
}

/** A call in one line, for people. */
function describeCall(call: Call): string {
  const args = Object.entries(call.args).map(([name, value]) => `${name} ${shorten(plain(value), 80)}`);
  return `${call.tool}${args.length > 0 ? `: ${args.join(", ")}` : ""}`;
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
