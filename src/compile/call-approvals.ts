import { digest } from "../internal/digest.ts";
import { approvalRequest, neededApproval, suffices, unknownRequest, type NeededApproval } from "../people/approvals.ts";
import { isExpired } from "../people/expiry.ts";
import type { Request, RequestRow } from "../people/requests.ts";
import type { Call, CallResult, Pending } from "../state/execution.ts";
import { intercept } from "../tools/intercept.ts";
import { checkArguments, coerceArguments } from "../workflow/calls.ts";
import type { Action } from "./action.ts";

/** Whether a call may run, by code and by people. */
export type Verdict =
  | { readonly kind: "allowed"; readonly call: Call; readonly isEdited: boolean }
  /** It has run, so nobody is asked any more. */
  | { readonly kind: "done"; readonly result: CallResult }
  /** `edited` is what a person made of the call, where that is what was refused. */
  | { readonly kind: "refused"; readonly reason: string; readonly edited?: Call; readonly isLate?: true }
  | { readonly kind: "asked"; readonly request: Request };

/** One round of asking people about a call. */
interface Round {
  readonly number: number;
  readonly call: Call;
  readonly isEdited: boolean;
  /** Who has just edited it; null where nobody was signed in, undefined where it was not edited since the last round. */
  readonly editor: string | null | undefined;
}

/** Asks interceptors and people about the calls of one decision. */
export class CallApprovals {
  private readonly action: Action;
  private readonly pending: Extract<Pending, { kind: "calls" }>;
  /** The requests of this decision; read only where one is needed, since most calls need none. */
  private rows: Map<string, RequestRow> | null = null;

  constructor(action: Action, pending: Extract<Pending, { kind: "calls" }>) {
    this.action = action;
    this.pending = pending;
  }

  /** Answers may have come since. */
  forget(): void {
    this.rows = null;
  }

  /** @param isTainted true where its arguments may come from text from outside. */
  async verdict(position: number, call: Call, isTainted: boolean): Promise<Verdict> {
    const { runtime, snapshot } = this.action;
    const tool = runtime.workflow.tools[call.tool];
    const isPrivileged = isTainted && tool?.privileged === true;
    const first = { number: 0, call, isEdited: false, editor: undefined };
    if (!isPrivileged && !tool?.intercept && runtime.workflow.intercept.length === 0) {
      // Most calls need nobody.
      if (!neededApproval(runtime.workflow, snapshot.execution.step, call, snapshot.state))
        return { kind: "allowed", call, isEdited: false };
    }
    return this.round(position, first, isPrivileged);
  }

  /** @param why why its tool's `reconcile` could not tell, where that is a fault of it. */
  async askWhetherItHappened(id: string, call: Call, why: string | null): Promise<Request> {
    const told = why === null ? "" : ` The reconcile of ${call.tool} could not tell: it ${why}.`;
    const row = await this.row(id, () => {
      // To say that it did not happen runs it again, so those who may approve it are asked.
      const asked = unknownRequest(id, call, this.needed(call, false)?.approvers);
      return { ...asked, question: asked.question + told };
    });
    return row.request;
  }

  private needed(call: Call, isPrivileged: boolean): NeededApproval | null {
    const { runtime, snapshot } = this.action;
    const declared = neededApproval(runtime.workflow, snapshot.execution.step, call, snapshot.state);
    return declared ?? (isPrivileged ? { count: 1 } : null);
  }

  /** Goes through the rounds in which people were asked about a call. */
  private async round(position: number, round: Round, isPrivileged: boolean): Promise<Verdict> {
    const { runtime, lease, snapshot, forks } = this.action;
    const { call, editor, isEdited } = round;
    // What has run needs no approval any more, whatever the rule became since: a correction or a release may have changed it.
    const key = `${this.pending.decision}.${position}`;
    const done = await runtime.store.resultOf(lease.taskId, { key, digest: digest([call.tool, call.args]) });
    if (done) return { kind: "done", result: done };
    const { taskId } = lease;
    const { step } = snapshot.execution;
    const refusal = intercept(runtime.workflow, runtime.workflow.tools[call.tool] ?? {}, call, {
      tool: call.tool,
      taskId,
      step,
      state: snapshot.state,
    });
    // The model is told which call was refused: not its own.
    const refuse = (reason: string) => ({ kind: "refused" as const, reason, ...(isEdited ? { edited: call } : {}) });
    if (refusal !== null) return refuse(refusal);
    const needed = this.needed(call, isPrivileged);
    // Who edits a call has approved what it is now.
    const isEnough = (people: readonly (string | null)[]) => needed === null || suffices(needed, people);
    if (!needed || (editor !== undefined && isEnough([editor]))) return { kind: "allowed", call, isEdited };
    const id = `a${this.pending.decision}.${position}.${forks}${round.number > 0 ? `e${round.number}` : ""}`;
    if (needed.approvers && needed.approvers.length < needed.count) {
      return refuse("no one may approve it: step and tool name different people");
    }
    const row = await this.row(id, () => approvalRequest(id, call, needed, runtime.clock.now()), editor);
    if (row.request.digest !== digest([call.tool, call.args])) {
      return refuse("what was shown for approval is not this call");
    }
    const { answer, answeredBy, approvedBy } = row;
    const another = { ...round, number: round.number + 1 };
    if (answer?.type === "approve") {
      if (isEnough([...new Set([...approvedBy, answeredBy])])) return { kind: "allowed", call, isEdited };
      // A release has made the rule stricter since it was asked, so it is asked again.
      return this.round(position, { ...another, editor: undefined }, isPrivileged);
    }
    if (answer?.type === "reject") return refuse(answer.reason || "a person rejected it");
    if (answer?.type === "edit") {
      const tool = runtime.workflow.tools[call.tool];
      const checked = tool && checkArguments(call.tool, tool, coerceArguments(tool, answer.args));
      // Through a parent's graph an edit comes unchecked.
      if (checked && !checked.ok) return refuse(`an edit was not taken: ${checked.reason}`);
      const args = checked ? checked.args : { ...answer.args };
      const changed = { ...another, call: { ...call, args }, isEdited: true, editor: answeredBy };
      return this.round(position, changed, isPrivileged);
    }
    if (isExpired(row.request, runtime.clock.now())) {
      return { ...refuse("the time to approve it is over"), isLate: true };
    }
    return { kind: "asked", request: row.request };
  }

  /** The answer to a request, where it is there and has one. */
  async answerTo(id: string): Promise<RequestRow["answer"]> {
    return (await this.allRows()).get(id)?.answer ?? null;
  }

  /** The row of a request, made where it is missing; an editor's approval of the edited call counts as one. */
  async row(id: string, make: () => Request, editor?: string | null): Promise<RequestRow> {
    const rows = await this.allRows();
    const known = rows.get(id);
    if (known) return known;
    const { runtime, lease, forks } = this.action;
    const { store } = runtime;
    const request = make();
    await store.addRequests(lease.taskId, this.pending.decision, forks, [request]);
    if (editor && (request.approvers?.includes(editor) ?? true)) {
      await store.answer(lease.taskId, id, { answer: { type: "approve" }, who: editor, shown: request.digest });
    }
    const row = await store.request(lease.taskId, id);
    if (!row) throw new Error(`request ${id} was added and is not there`);
    rows.set(id, row);
    return row;
  }

  private async allRows(): Promise<Map<string, RequestRow>> {
    if (this.rows) return this.rows;
    const { runtime, lease, forks } = this.action;
    const rows = await runtime.store.requests(lease.taskId, this.pending.decision, forks);
    this.rows = new Map(rows.map((row) => [row.request.id, row]));
    return this.rows;
  }
}
