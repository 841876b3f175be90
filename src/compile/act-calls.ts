import { setTimeout as sleep } from "node:timers/promises";
import { digest } from "../internal/digest.ts";
import { redactDeep } from "../internal/redact.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { approvalRequest, neededApproval, suffices, unknownRequest } from "../people/approvals.ts";
import { isExpired } from "../people/expiry.ts";
import type { Request, RequestRow } from "../people/requests.ts";
import { NO_USAGE, type Call, type CallResult, type Pending } from "../state/execution.ts";
import { reconcileCall, runCall, type CallContext } from "../tools/call.ts";
import type { Intent } from "../tools/journal.ts";
import type { Settlement } from "../workflow/advance.ts";
import { checkArguments, coerceArguments } from "../workflow/calls.ts";
import type { AnyTool } from "../workflow/tool.ts";
import { expired, pause, type Action } from "./action.ts";

const LOOK_AGAIN_MS = 100;
const LOOK_FOR_RESULT_MS = 25;

type CallsPending = Extract<Pending, { kind: "calls" }>;

/** What one call of the decision needs next. */
type Turn =
  | { readonly kind: "settled"; readonly result: CallResult; readonly isLate?: true }
  | { readonly kind: "running"; readonly done: Promise<void> }
  /** Another attempt of it may still end. */
  | { readonly kind: "elsewhere" }
  | { readonly kind: "asked"; readonly request: Request };

/**
 * Carries out the calls of a decision: asks for the approvals that are needed, runs what may run, and
 * pauses for what is open. Calls do not wait for one another. The journal makes a second run of this
 * harmless.
 */
export async function actCalls(action: Action, pending: CallsPending): Promise<Settlement> {
  const calls = new Calls(action, pending);
  for (;;) {
    const turns = await calls.advance();
    const running = turns.flatMap((turn) => (turn.kind === "running" ? [turn.done] : []));
    const asked = turns.flatMap((turn) => (turn.kind === "asked" ? [turn.request] : []));
    if (running.length > 0) {
      // An answer may come while other calls run.
      const look = asked.length > 0 ? [sleep(LOOK_AGAIN_MS)] : [];
      const first = [...running, ...look];
      await (first.length === 1 ? first[0] : Promise.race(first));
    } else if (turns.some((turn) => turn.kind === "elsewhere")) {
      await sleep(LOOK_FOR_RESULT_MS);
    } else if (asked.length > 0) {
      faultPoint("before-interrupt");
      await pause(action, asked);
    } else {
      return settlement(action, pending, turns);
    }
    action.config.signal?.throwIfAborted();
  }
}

function settlement(action: Action, pending: CallsPending, turns: readonly Turn[]): Settlement {
  const settled = turns.filter((turn) => turn.kind === "settled");
  const results = settled.map((turn) => turn.result);
  const { patch, clear, next, calls } = pending;
  const deadline = action.runtime.workflow.steps[action.snapshot.execution.step]?.deadline;
  if (deadline && settled.some((turn) => turn.isLate)) return expired(deadline.to, { kind: "results", results });
  const allOk = results.every((result) => result.status === "ok");
  return {
    observation: { kind: "results", results },
    result: allOk ? { patch, clear, next, calls } : null,
    usage: NO_USAGE,
  };
}

/** One round of asking people about a call. */
interface Round {
  readonly number: number;
  readonly call: Call;
  readonly isEdited: boolean;
  /** Who has just edited it; null where nobody was signed in, undefined where it was not edited since the last round. */
  readonly editor: string | null | undefined;
}

/** The calls of one decision, each with how far it has come. */
class Calls {
  private readonly action: Action;
  private readonly pending: CallsPending;
  private readonly turns: (Turn | null)[];
  /** The requests of this decision; read only where one is needed, since most calls need none. */
  private rows: Map<string, RequestRow> | null = null;
  private failure: { readonly error: unknown } | null = null;

  constructor(action: Action, pending: CallsPending) {
    this.action = action;
    this.pending = pending;
    this.turns = pending.calls.map(() => null);
  }

  /** Takes every call as far as it goes without waiting. */
  async advance(): Promise<readonly Turn[]> {
    if (this.failure) throw this.failure.error;
    this.rows = null;
    const turns: Turn[] = [];
    for (const [position, call] of this.pending.calls.entries()) {
      const before = this.turns[position];
      if (before?.kind === "settled" || before?.kind === "running") {
        turns.push(before);
        continue;
      }
      this.turns[position] = null;
      const turn = await this.next(position, { number: 0, call, isEdited: false, editor: undefined });
      // A call that ended at once has put its result there itself.
      this.turns[position] ??= turn;
      turns.push(turn);
    }
    return turns;
  }

  private async allRows(): Promise<Map<string, RequestRow>> {
    if (this.rows) return this.rows;
    const { runtime, lease, forks } = this.action;
    const rows = await runtime.store.requests(lease.taskId, this.pending.decision, forks);
    this.rows = new Map(rows.map((row) => [row.request.id, row]));
    return this.rows;
  }

  /** Where a call stands, going through the rounds in which people were asked about it. */
  private async next(position: number, round: Round): Promise<Turn> {
    const { runtime, snapshot, forks } = this.action;
    const { call, editor } = round;
    const edited = round.isEdited ? call.args : undefined;
    const needed = neededApproval(runtime.workflow, snapshot.execution.step, call, snapshot.state);
    // Who edits a call has approved what it is now.
    const isEnough = (people: readonly (string | null)[]) => needed === null || suffices(needed, people);
    if (!needed || (editor !== undefined && isEnough([editor]))) return this.start(position, call, edited);
    // What has run needs no approval any more, whatever the rule became since: a correction or a release may have changed it.
    const done = await runtime.store.resultOf(this.action.lease.taskId, {
      key: this.key(position),
      digest: digest([call.tool, call.args]),
    });
    if (done) return { kind: "settled", result: done };
    const id = `a${this.pending.decision}.${position}.${forks}${round.number > 0 ? `e${round.number}` : ""}`;
    if (needed.approvers && needed.approvers.length < needed.count) {
      return this.refused(position, call, "no one may approve it: step and tool name different people");
    }
    const row = await this.row(id, () => approvalRequest(id, call, needed, runtime.clock.now()), editor);
    if (row.request.digest !== digest([call.tool, call.args])) {
      return this.refused(position, call, "what was shown for approval is not this call");
    }
    const { answer, answeredBy, approvedBy } = row;
    const another = { ...round, number: round.number + 1 };
    if (answer?.type === "approve") {
      if (isEnough([...new Set([...approvedBy, answeredBy])])) return this.start(position, call, edited);
      // A release has made the rule stricter since it was asked, so it is asked again.
      return this.next(position, { ...another, editor: undefined });
    }
    if (answer?.type === "reject") return this.refused(position, call, answer.reason || "a person rejected it");
    if (answer?.type === "edit") {
      const tool = runtime.workflow.tools[call.tool];
      const checked = tool && checkArguments(call.tool, tool, coerceArguments(tool, answer.args));
      // Through a parent's graph an edit comes unchecked.
      if (checked && !checked.ok) return this.refused(position, call, `an edit was not taken: ${checked.reason}`);
      const args = checked ? checked.args : { ...answer.args };
      return this.next(position, { ...another, call: { tool: call.tool, args }, isEdited: true, editor: answeredBy });
    }
    if (isExpired(row.request, runtime.clock.now())) {
      return { ...this.refused(position, call, "the time to approve it is over"), isLate: true };
    }
    return { kind: "asked", request: row.request };
  }

  /** The row of a request, made where it is missing; an editor's approval of the edited call counts as one. */
  private async row(id: string, make: () => Request, editor?: string | null): Promise<RequestRow> {
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

  private refused(position: number, call: Call, error: string): Extract<Turn, { kind: "settled" }> {
    return { kind: "settled", result: { id: this.key(position), tool: call.tool, status: "refused", error } };
  }

  private key(position: number): string {
    return `${this.pending.decision}.${position}`;
  }

  /** Writes the intent down and runs the call, unless the journal knows better. */
  private async start(position: number, call: Call, edited: Call["args"] | undefined, again = false): Promise<Turn> {
    const { runtime, lease, forks, checkpointId } = this.action;
    const tool = runtime.workflow.tools[call.tool];
    if (!tool) return this.refused(position, call, `there is no tool "${call.tool}" any more`);
    const intent: Intent = {
      key: this.key(position),
      digest: digest([call.tool, call.args]),
      decision: this.pending.decision,
      tool: call.tool,
      timeoutMs: tool.timeoutMs,
      repeat: tool.repeatable || again,
    };
    faultPoint("before-intent");
    const known = await runtime.store.intend(lease, checkpointId, intent);
    faultPoint("after-intent");
    if (known.state === "done") return { kind: "settled", result: known.result };
    if (known.state === "alive") return { kind: "elsewhere" };
    if (known.state === "new") return this.run(position, call, tool, intent, edited);
    // What a person says about one attempt is true of no other.
    const id = `u${intent.key}.${forks}${known.attempt > 1 ? `e${known.attempt}` : ""}`;
    const verdict = (await this.allRows()).get(id)?.answer;
    if (verdict?.type === "approve") {
      const value = "a person confirmed that it happened";
      const result: CallResult = { id: intent.key, tool: call.tool, status: "ok", value };
      return { kind: "settled", result: edited ? { ...result, args: { ...edited } } : result };
    }
    if (verdict?.type === "reject") return this.start(position, call, edited, true);
    const found = await reconcileCall(intent.key, call, tool, this.context(intent));
    if (found === "did not happen") return this.start(position, call, edited, true);
    // The attempt that began it is gone, so nobody else can write this down, and it can be found out again.
    if (found) return { kind: "settled", result: redactDeep(edited ? { ...found, args: { ...edited } } : found) };
    const row = await this.row(id, () => unknownRequest(id, call));
    return { kind: "asked", request: row.request };
  }

  private run(position: number, call: Call, tool: AnyTool, intent: Intent, edited: Call["args"] | undefined): Turn {
    const { config } = this.action;
    const work = async () => {
      const result = await runCall(intent.key, call, tool, this.context(intent), config.signal);
      faultPoint("after-call");
      // How a body ends that was cancelled says nothing about what it did.
      const cancelled = config.signal?.aborted === true && result.status === "error";
      if (cancelled) await this.action.runtime.store.letGo(this.action.lease, intent);
      this.turns[position] = cancelled ? null : await this.settle(intent, result, edited);
    };
    // Nobody may be waiting for it at the moment, so an error is kept for whoever looks next.
    const done = work().catch((error: unknown) => {
      this.failure ??= { error };
    });
    return { kind: "running", done };
  }

  /** Writes a result down; null where another attempt has taken this one's place: then look again. */
  private async settle(intent: Intent, result: CallResult, edited: Call["args"] | undefined): Promise<Turn | null> {
    const { runtime, lease } = this.action;
    const told = redactDeep(edited ? { ...result, args: { ...edited } } : result);
    const kept = await runtime.store.recordResult(lease, intent, told);
    faultPoint("after-result");
    return kept ? { kind: "settled", result: told } : null;
  }

  private context(intent: Intent): CallContext {
    const { runtime, lease, snapshot } = this.action;
    return {
      taskId: lease.taskId,
      step: snapshot.execution.step,
      idempotencyKey: `${lease.taskId}/${intent.key}/${intent.digest.slice(0, 8)}`,
      clients: runtime.clients,
      clock: runtime.clock,
    };
  }
}
