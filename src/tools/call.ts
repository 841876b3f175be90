import { inspect } from "node:util";
import { MAX_TIMER_MS } from "../internal/clock.ts";
import { isPlainObject, jsonCopy, notJson, shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { Call, CallResult } from "../state/execution.ts";
import type { AnyTool, ToolContext } from "../workflow/tool.ts";
import { retryDelay, sleep } from "./retry.ts";
import { clean, explainError } from "./tool-error.ts";

export type CallContext = Omit<ToolContext, "signal">;

const MAX_WHY = 300;

/**
 * Runs a tool's body under its time limit, again after an error that its rule of retries accepts. All
 * tries and the waits between them share the one limit. Whatever a body does after the limit is ignored.
 * It never throws: an exception is a result that the model can act on. A body that returns at once costs
 * no timer; one that never gives way cannot be interrupted by anything.
 *
 * @param aborted fires when the run is cancelled.
 */
export async function runCall(
  id: string,
  call: Call,
  tool: AnyTool,
  context: CallContext,
  aborted: AbortSignal | undefined,
): Promise<CallResult> {
  const endsAt = performance.now() + tool.timeoutMs;
  for (let tries = 1; ; tries++) {
    const { result, error } = await runOnce(id, call, tool, context, { aborted, endsAt });
    const told = tries > 1 ? { ...result, tries } : result;
    if (result.status !== "error") return told;
    const delayMs = retryDelay(tool.retry, tries, error);
    // A wait that leaves no time for the body would only hide the error behind a timeout.
    if (delayMs === null || performance.now() + delayMs >= endsAt) return told;
    await sleep(delayMs, aborted);
    if (aborted?.aborted) return told;
  }
}

/** One start of a body: how it ended, and what it threw. */
async function runOnce(
  id: string,
  call: Call,
  tool: AnyTool,
  context: CallContext,
  { aborted, endsAt }: { aborted: AbortSignal | undefined; endsAt: number },
): Promise<{ result: CallResult; error?: unknown }> {
  const running = new RunningCall(context, aborted);
  let value: unknown;
  try {
    // A copy: what a body does to its arguments must not reach the record.
    const returned = tool.run(jsonCopy(call.args) as never, running);
    // Query builders and promises of other kinds only begin when somebody waits for them.
    value = isThenable(returned) ? await inTime(Promise.resolve(returned), endsAt - performance.now()) : returned;
  } catch (error) {
    if (error !== TIMEOUT) {
      return { result: { id, tool: call.tool, status: "error", ...explainError(error) }, error };
    }
    running.abort();
    const said = `${call.tool} did not end within ${tool.timeoutMs} ms; it may have happened or not`;
    return { result: { id, tool: call.tool, status: "timeout", error: said, errorType: "TIMEOUT" } };
  } finally {
    running.end();
  }
  // The body has ended well: whatever its result looks like, that is no error of the call.
  return { result: okResult(id, call, value) };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

const TIMEOUT = Symbol("timeout");

/** @throws TIMEOUT. */
async function inTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    // oxlint-disable-next-line prefer-promise-reject-errors -- caught two lines up, and no error of the tool
    timer = setTimeout(() => reject(TIMEOUT), Math.min(timeoutMs, MAX_TIMER_MS));
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** The context of one call. Its signal is made when it is first looked at: most bodies never do. */
class RunningCall implements ToolContext {
  readonly taskId: string;
  readonly step: string;
  readonly idempotencyKey: string;
  readonly clients: ToolContext["clients"];
  readonly clock: ToolContext["clock"];
  readonly artifacts: ToolContext["artifacts"];
  readonly state: ToolContext["state"];
  declare readonly signal: AbortSignal;
  private readonly aborted: AbortSignal | undefined;
  private readonly cancel = () => this.abort();
  private controller: AbortController | null = null;
  private isOver = false;

  constructor(context: CallContext, aborted: AbortSignal | undefined) {
    this.taskId = context.taskId;
    this.step = context.step;
    this.idempotencyKey = context.idempotencyKey;
    this.clients = context.clients;
    this.clock = context.clock;
    this.artifacts = context.artifacts;
    this.state = context.state;
    this.aborted = aborted;
    // Own and enumerable, so that a copy of the context has it too.
    Object.defineProperty(this, "signal", { get: () => this.makeSignal(), enumerable: true });
  }

  private makeSignal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.isOver || this.aborted?.aborted) this.controller.abort();
      else this.aborted?.addEventListener("abort", this.cancel, { once: true });
    }
    return this.controller.signal;
  }

  abort(): void {
    this.isOver = true;
    this.controller?.abort();
  }

  end(): void {
    if (this.controller) this.aborted?.removeEventListener("abort", this.cancel);
  }
}

/** What a tool's `reconcile` has found out about a call that left no result. */
export type Found =
  | { readonly kind: "happened"; readonly result: CallResult }
  | { readonly kind: "did not happen" }
  /** `why` is null where there is no `reconcile`, or it says itself that it cannot know. */
  | { readonly kind: "unknown"; readonly why: string | null };

/** Asks a tool whether a call that left no result has happened. What it does not say clearly, or not in time, is unknown. */
export async function reconcileCall(id: string, call: Call, tool: AnyTool, context: CallContext): Promise<Found> {
  if (!tool.reconcile) return { kind: "unknown", why: null };
  const running = new RunningCall(context, undefined);
  try {
    const asked = Promise.resolve(tool.reconcile(jsonCopy(call.args) as never, running));
    return foundIn(id, call, await inTime(asked, tool.timeoutMs));
  } catch (error) {
    if (error === TIMEOUT) return { kind: "unknown", why: `did not end within ${tool.timeoutMs} ms` };
    const told = explainError(error);
    // Whoever may look at the task reads it, and not only who may see such data.
    const why = tool.sensitive === undefined ? `threw: ${told.error}` : `threw ${told.errorType ?? "something"}`;
    return { kind: "unknown", why: shorten(why, MAX_WHY) };
  } finally {
    running.abort();
  }
}

/** Only a clear yes with what came of it ends the call, and only a clear no lets it run again. */
function foundIn(id: string, call: Call, answer: unknown): Found {
  if (answer === null || answer === undefined) return { kind: "unknown", why: null };
  const fault = answerFault(answer);
  if (fault !== null || !isPlainObject(answer)) {
    const why = `gave no { happened: true, value }, { happened: false } or null: ${fault}`;
    return { kind: "unknown", why: clean(why, MAX_WHY) };
  }
  if (!answer.happened) return { kind: "did not happen" };
  return { kind: "happened", result: okResult(id, call, answer.value) };
}

/** What is wrong with the shape of an answer; its values are not told, since they may be sensitive. */
function answerFault(answer: unknown): string | null {
  if (!isPlainObject(answer)) return "it is no plain object";
  const { happened, value, ...others } = answer;
  if (typeof happened !== "boolean") return "happened is neither true nor false";
  const [other] = Object.keys(others);
  const beside = other === undefined ? null : `it has "${other}"`;
  if (happened && !Object.hasOwn(answer, "value")) return ["value is missing", beside].filter(Boolean).join(", ");
  if (!happened && value !== null && value !== undefined) return "it has a value of what did not happen";
  return beside;
}

function okResult(id: string, call: Call, value: unknown): CallResult {
  const plain = value === undefined ? null : value;
  const ok = { id, tool: call.tool, status: "ok" as const };
  let text: string;
  try {
    const problem = notJson(plain);
    // Dates and the like have a form of their own in JSON; the model may read what there is.
    if (problem) return { ...ok, value: clean(asText(plain)), error: `its result is no JSON: ${problem}` };
    text = JSON.stringify(plain);
  } catch (error) {
    return { ...ok, value: null, error: `its result cannot be stored: ${explainError(error).error}` };
  }
  return { ...ok, value: JSON.parse(text) as unknown };
}

function asText(value: unknown): string {
  return typeof value === "object" ? inspect(redactDeep(value), { depth: 6, breakLength: Infinity }) : String(value);
}
