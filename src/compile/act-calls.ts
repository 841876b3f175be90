import { setTimeout as sleep } from "node:timers/promises";
import { WorkflowError } from "../errors.ts";
import { digest } from "../internal/digest.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { Call, CallResult, Pending } from "../state/execution.ts";
import { setAside } from "../tools/artifacts.ts";
import { reconcileCall, runCall, type CallContext } from "../tools/call.ts";
import type { Intent } from "../tools/journal.ts";
import { readyCalls, type Scheduled } from "../tools/schedule.ts";
import type { Settlement } from "../workflow/settle.ts";
import { checkArguments, dependenciesIn } from "../workflow/calls.ts";
import { unmetExpectation } from "../workflow/expectations.ts";
import { callName, resolveReferences, type Dependencies } from "../workflow/references.ts";
import { isFromOutside } from "../workflow/take-in.ts";
import type { AnyTool } from "../workflow/tool.ts";
import { itemsAtOnce } from "./act-map.ts";
import { pause, type Action } from "./action.ts";
import { CallApprovals } from "./call-approvals.ts";
import { cutDown, settlementOf, withArguments, type Turn } from "./call-results.ts";
import { wholeValue } from "./whole-value.ts";

const LOOK_AGAIN_MS = 100;
const LOOK_FOR_RESULT_MS = 25;

type CallsPending = Extract<Pending, { kind: "calls" }>;

const WAITING: Turn = { kind: "waiting" };

/** A call that code and people let run, as it is to run. */
interface Allowed {
  readonly call: Call;
  /** True where it is not what was decided: references were resolved, or a person edited it. */
  readonly isChanged: boolean;
}

/**
 * Carries out the calls of a decision: asks for the approvals that are needed, runs what may run, and
 * pauses for what is open. A call waits only for what it uses and for what it would conflict with. The
 * journal makes a second run of this harmless.
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
      return settlementOf(action, pending, turns);
    }
    action.config.signal?.throwIfAborted();
  }
}

/** The calls of one decision, each with how far it has come. */
class Calls {
  private readonly action: Action;
  private readonly pending: CallsPending;
  private readonly dependencies: Dependencies;
  private readonly approvals: CallApprovals;
  private readonly turns: (Turn | null)[];
  /** The calls as they are asked about: references resolved. */
  private readonly resolved: (Call | null)[];
  /** The calls that may run as soon as there is a place for them. Nobody is asked about one of these again. */
  private readonly allowed: (Allowed | null)[];
  /** Whether text from outside may have reached a call's arguments, where that is known. */
  private readonly tainted = new Map<number, boolean>();
  private readonly parallel: number;
  private running = 0;
  private failure: { readonly error: unknown } | null = null;

  constructor(action: Action, pending: CallsPending) {
    const { workflow } = action.runtime;
    const dependencies = dependenciesIn(workflow, action.snapshot.execution.step, pending.calls);
    // A release may have declared a result's shape since.
    if (!dependencies.ok) throw new WorkflowError("INVALID_REFERENCE", dependencies.reason);
    this.action = action;
    this.pending = pending;
    this.dependencies = dependencies;
    this.approvals = new CallApprovals(action, pending);
    this.turns = pending.calls.map(() => null);
    this.resolved = pending.calls.map((call, position) => (dependencies.references[position]?.length ? null : call));
    this.allowed = pending.calls.map(() => null);
    const { step } = action.snapshot.execution;
    this.parallel = pending.origin === "map" ? itemsAtOnce(workflow, step) : workflow.parallelCalls;
  }

  /** Takes every call as far as it goes without waiting. */
  async advance(): Promise<readonly Turn[]> {
    this.approvals.forget();
    /** How many calls had ended when each was looked at. */
    const looked = new Map<number, number>();
    for (;;) {
      if (this.failure) throw this.failure.error;
      const ended = this.ended();
      const next = readyCalls(this.scheduled()).filter((position) => {
        const at = looked.get(position);
        return at === undefined || (at < ended && this.turns[position]?.kind === "waiting");
      });
      if (next.length === 0) return this.turns.map((turn) => turn ?? WAITING);
      for (const position of next) {
        looked.set(position, ended);
        if (this.allowed[position] && this.isFull()) continue;
        this.turns[position] = null;
        const turn = await this.next(position);
        // A call that ended at once has put its result there itself.
        this.turns[position] ??= turn;
        // What waited for it may go on.
        if (this.turns[position]?.kind === "settled" && next.length < this.turns.length) break;
      }
    }
  }

  private ended(): number {
    return this.turns.filter((turn) => turn?.kind === "settled").length;
  }

  private isFull(): boolean {
    return this.running >= this.parallel;
  }

  private scheduled(): readonly Scheduled[] {
    return this.turns.map((turn, position) => ({
      needs: this.dependencies.needs[position] ?? [],
      keys: this.keysOf(position),
      state: turn?.kind === "settled" ? "settled" : turn?.kind === "running" ? "running" : "waiting",
    }));
  }

  private keysOf(position: number): readonly string[] | null {
    const { tool = "" } = this.pending.calls[position] ?? {};
    const conflicts = this.action.runtime.workflow.tools[tool]?.conflicts;
    if (!conflicts) return [];
    const call = this.allowed[position]?.call ?? this.resolved[position];
    if (!call) return null;
    try {
      return [conflicts(call.args as never) ?? []].flat();
    } catch (error) {
      const said = shorten(error instanceof Error ? error.message : String(error));
      throw new WorkflowError("STEP_FAILED", `the conflicts of ${tool} threw: ${said}`, { cause: error });
    }
  }

  /** Where a call stands that has everything that it needs. */
  private async next(position: number): Promise<Turn> {
    const allowed = this.allowed[position] ?? (await this.ask(position));
    if ("kind" in allowed) return allowed;
    this.allowed[position] = allowed;
    // An edit, or a value in place of a reference, may have led it to what another call holds.
    if (allowed.isChanged && !readyCalls(this.scheduled()).includes(position)) return WAITING;
    return this.start(position, allowed.call, allowed.isChanged ? allowed.call.args : undefined);
  }

  /** Asks code and people whether a call may run. */
  private async ask(position: number): Promise<Allowed | Turn> {
    const decided = this.pending.calls[position];
    if (!decided) throw new Error(`there is no call at position ${position}`);
    const call = this.resolved[position] ?? (await this.resolve(position, decided));
    if ("status" in call) return { kind: "settled", result: call };
    this.resolved[position] = call;
    const verdict = await this.approvals.verdict(position, call, this.isTainted(position));
    if (verdict.kind === "done") return { kind: "settled", result: verdict.result };
    if (verdict.kind === "asked") return verdict;
    if (verdict.kind === "refused") {
      const { result } = this.refused(position, call, verdict.reason);
      const told = redactDeep(withArguments(result, verdict.edited?.args));
      return { kind: "settled", result: told, ...(verdict.isLate ? { isLate: true } : {}) };
    }
    return { call: verdict.call, isChanged: verdict.isEdited || call !== decided };
  }

  /** A call with the values in place of its references, or the result that says why that cannot be. */
  private async resolve(position: number, call: Call): Promise<Call | CallResult> {
    const { runtime, lease } = this.action;
    const values = new Map<string, unknown>();
    for (const needed of this.dependencies.needs[position] ?? []) {
      const turn = this.turns[needed];
      const other = this.pending.calls[needed];
      if (turn?.kind !== "settled" || !other) throw new Error(`call ${position} was due before call ${needed}`);
      const name = callName(other, needed);
      if (turn.result.status !== "ok") {
        const error = `it uses the result of ${name} (${other.tool}), which is ${turn.result.status}`;
        return this.unrun(position, call, "cancelled", "NEEDED_CALL_FAILED", error);
      }
      const value = await wholeValue(runtime.store, lease.taskId, turn.result);
      if (other.expect && unmetExpectation(value, other.expect) !== null) {
        const error = `it uses the result of ${name} (${other.tool}), which is not as expected`;
        return this.unrun(position, call, "cancelled", "NEEDED_CALL_UNMET", error);
      }
      values.set(name, value);
    }
    const resolved = resolveReferences(call.args, (name) => values.get(name));
    if (!resolved.ok) return this.unrun(position, call, "refused", "INVALID_REFERENCE", resolved.reason);
    const tool = runtime.workflow.tools[call.tool];
    const checked = tool && checkArguments(call.tool, tool, resolved.args);
    if (checked && !checked.ok) {
      const texts = (this.dependencies.references[position] ?? []).map(({ text }) => text).join(", ");
      const reason = `${checked.reason} (with the values of ${texts})`;
      return this.unrun(position, call, "refused", "INVALID_ARGUMENTS", reason);
    }
    return { ...call, args: checked ? checked.args : resolved.args };
  }

  /** True where text from outside may have reached a call's arguments. */
  private isTainted(position: number): boolean {
    if (this.pending.untrusted) return true;
    const known = this.tainted.get(position);
    if (known !== undefined) return known;
    const { workflow } = this.action.runtime;
    const found = (this.dependencies.needs[position] ?? []).some((needed) => {
      const turn = this.turns[needed];
      return (turn?.kind === "settled" && isFromOutside(workflow, turn.result)) || this.isTainted(needed);
    });
    // What it uses has ended, so this does not change any more; and many ways may lead to one call.
    this.tainted.set(position, found);
    return found;
  }

  private unrun(
    position: number,
    call: Call,
    status: "refused" | "cancelled",
    errorType: string,
    error: string,
  ): CallResult {
    return { id: this.key(position), tool: call.tool, status, errorType, error: shorten(error, 500) };
  }

  private refused(position: number, call: Call, error: string): Extract<Turn, { kind: "settled" }> {
    return { kind: "settled", result: { id: this.key(position), tool: call.tool, status: "refused", error } };
  }

  private key(position: number): string {
    return `${this.pending.decision}.${position}`;
  }

  /** Writes the intent down and runs the call, unless the journal knows better. */
  private async start(position: number, call: Call, changed: Call["args"] | undefined, again = false): Promise<Turn> {
    const { runtime, lease, forks, checkpointId } = this.action;
    const tool = runtime.workflow.tools[call.tool];
    if (!tool) return this.refused(position, call, `there is no tool "${call.tool}" any more`);
    if (this.isFull()) return WAITING;
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
    if (known.state === "new") return this.run(position, call, tool, intent, changed);
    // What a person says about one attempt is true of no other.
    const id = `u${intent.key}.${forks}${known.attempt > 1 ? `e${known.attempt}` : ""}`;
    const verdict = await this.approvals.answerTo(id);
    if (verdict?.type === "approve") {
      const value = "a person confirmed that it happened";
      const result: CallResult = { id: intent.key, tool: call.tool, status: "ok", value };
      return { kind: "settled", result: withArguments(result, changed) };
    }
    if (verdict?.type === "reject") return this.start(position, call, changed, true);
    const found = await reconcileCall(intent.key, call, tool, this.context(intent));
    if (found.kind === "did not happen") return this.start(position, call, changed, true);
    if (found.kind === "happened") {
      // The attempt that began it is gone, so nobody else can write this down, and it can be found out again.
      return { kind: "settled", result: cutDown(intent.key, redactDeep(withArguments(found.result, changed))) };
    }
    return { kind: "asked", request: await this.approvals.askWhetherItHappened(id, call, found.why) };
  }

  private run(position: number, call: Call, tool: AnyTool, intent: Intent, changed: Call["args"] | undefined): Turn {
    const { config } = this.action;
    const work = async () => {
      const result = await runCall(intent.key, call, tool, this.context(intent), config.signal);
      faultPoint("after-call");
      // How a body ends that was cancelled says nothing about what it did.
      const cancelled = config.signal?.aborted === true && result.status === "error";
      if (cancelled) await this.action.runtime.store.letGo(this.action.lease, intent);
      this.turns[position] = cancelled ? null : await this.settle(intent, result, changed);
    };
    this.running++;
    // Nobody may be waiting for it at the moment, so an error is kept for whoever looks next.
    const done = work()
      .catch((error: unknown) => {
        this.failure ??= { error };
      })
      .finally(() => {
        this.running--;
      });
    return { kind: "running", done };
  }

  /** Writes a result down; null where another attempt has taken this one's place: then look again. */
  private async settle(intent: Intent, ended: CallResult, changed: Call["args"] | undefined): Promise<Turn | null> {
    const { runtime, lease } = this.action;
    const { result, artifact } = setAside(intent.key, redactDeep(withArguments(ended, changed)));
    const kept = await runtime.store.recordResult(lease, intent, result, artifact);
    faultPoint("after-result");
    return kept ? { kind: "settled", result } : null;
  }

  private context(intent: Intent): CallContext {
    const { runtime, lease, snapshot } = this.action;
    const { store } = runtime;
    return {
      taskId: lease.taskId,
      step: snapshot.execution.step,
      idempotencyKey: `${lease.taskId}/${intent.key}/${intent.digest.slice(0, 8)}`,
      clients: runtime.clients,
      clock: runtime.clock,
      state: snapshot.state,
      artifacts: { read: (id) => store.artifact(lease.taskId, id), list: () => store.artifacts(lease.taskId) },
    };
  }
}
