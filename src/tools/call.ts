import { inspect } from "node:util";
import { jsonCopy, notJson, shorten } from "../internal/json.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import type { Call, CallResult } from "../state/execution.ts";
import type { AnyTool, Reconciled, ToolContext } from "../workflow/tool.ts";

/** The largest result of a call that is kept, in bytes of JSON. */
const MAX_RESULT_BYTES = 65_536;
const MAX_ERROR_CHARACTERS = 2000;
/** What a timer can wait at most; above it fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

export type CallContext = Omit<ToolContext, "signal">;

/**
 * Runs a tool's body once, under its time limit. Whatever the body does after the limit is ignored. It
 * never throws: an exception is a result that the model can act on. A body that returns at once costs no
 * timer; one that never gives way cannot be interrupted by anything.
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
  const running = new RunningCall(context, aborted);
  let value: unknown;
  try {
    // A copy: what a body does to its arguments must not reach the record.
    const returned = tool.run(jsonCopy(call.args) as never, running);
    // Query builders and promises of other kinds only begin when somebody waits for them.
    value = isThenable(returned) ? await inTime(Promise.resolve(returned), tool.timeoutMs) : returned;
  } catch (error) {
    if (error !== TIMEOUT) return { id, tool: call.tool, status: "error", error: told(error) };
    running.abort();
    const said = `${call.tool} did not end within ${tool.timeoutMs} ms; it may have happened or not`;
    return { id, tool: call.tool, status: "timeout", error: said };
  } finally {
    running.end();
  }
  // The body has ended well: whatever its result looks like, that is no error of the call.
  return okResult(id, call, value);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

const TIMEOUT = Symbol("timeout");

/** @throws TIMEOUT. */
async function inTime(work: Promise<unknown>, timeoutMs: number): Promise<unknown> {
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

/** Asks a tool whether a call that left no result has happened; null where it cannot tell. */
export async function reconcileCall(
  id: string,
  call: Call,
  tool: AnyTool,
  context: CallContext,
): Promise<CallResult | "did not happen" | null> {
  let found: Reconciled = null;
  try {
    found =
      (await tool.reconcile?.(jsonCopy(call.args) as never, {
        ...context,
        signal: AbortSignal.timeout(tool.timeoutMs),
      })) ?? null;
  } catch {
    return null;
  }
  if (!found) return null;
  return found.happened ? okResult(id, call, found.value) : "did not happen";
}

function okResult(id: string, call: Call, value: unknown): CallResult {
  const plain = value === undefined ? null : value;
  const ok = { id, tool: call.tool, status: "ok" as const };
  let text: string;
  try {
    const problem = notJson(plain);
    // Dates and the like have a form of their own in JSON; the model may read what there is.
    if (problem)
      return { ...ok, value: cut(asText(plain), MAX_ERROR_CHARACTERS), error: `its result is no JSON: ${problem}` };
    text = JSON.stringify(plain);
  } catch (error) {
    return { ...ok, value: null, error: `its result cannot be stored: ${told(error)}` };
  }
  if (Buffer.byteLength(text) > MAX_RESULT_BYTES)
    return { ...ok, value: cut(JSON.stringify(redactDeep(plain)), MAX_RESULT_BYTES / 4) };
  return { ...ok, value: JSON.parse(text) as unknown };
}

function asText(value: unknown): string {
  return typeof value === "object" ? inspect(redactDeep(value), { depth: 6, breakLength: Infinity }) : String(value);
}

/** What is cut has to be clean before: half a secret is not recognised any more. */
function cut(text: string, length: number): string {
  return shorten(redact(text), length);
}

function told(error: unknown): string {
  let text: string;
  try {
    text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    text = inspect(error, { depth: 1 });
  }
  return cut(text, MAX_ERROR_CHARACTERS);
}
