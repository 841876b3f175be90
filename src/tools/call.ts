import { notJson, shorten } from "../internal/json.ts";
import type { Call, CallResult } from "../state/execution.ts";
import type { AnyTool, Reconciled, ToolContext } from "../workflow/tool.ts";

/** The largest result of a call that is kept, in bytes of JSON. */
const MAX_RESULT_BYTES = 65_536;
const MAX_ERROR_CHARACTERS = 2000;

export type CallContext = Omit<ToolContext, "signal">;

/**
 * Runs a tool's body once, under its time limit. Whatever the body does after the limit is ignored. It
 * never throws: an exception is a result that the model can act on.
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
  const controller = new AbortController();
  const outcome = (status: CallResult["status"], error: string): CallResult => ({ id, tool: call.tool, status, error });
  const cancel = () => controller.abort();
  aborted?.addEventListener("abort", cancel, { once: true });
  let timer: NodeJS.Timeout | undefined;
  const ended = new Promise<CallResult>((resolve) => {
    timer = setTimeout(() => {
      resolve(outcome("timeout", `${call.tool} did not end within ${tool.timeoutMs} ms; it may have happened or not`));
      cancel();
    }, tool.timeoutMs);
  });
  try {
    const body = Promise.resolve()
      .then(() => tool.run(call.args as never, { ...context, signal: controller.signal }))
      .then(
        (value) => okResult(id, call, value),
        (error: unknown) => outcome("error", told(error)),
      );
    return await Promise.race([body, ended]);
  } finally {
    clearTimeout(timer);
    aborted?.removeEventListener("abort", cancel);
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
      (await tool.reconcile?.(call.args as never, { ...context, signal: AbortSignal.timeout(tool.timeoutMs) })) ?? null;
  } catch {
    return null;
  }
  if (!found) return null;
  return found.happened ? okResult(id, call, found.value) : "did not happen";
}

function okResult(id: string, call: Call, value: unknown): CallResult {
  const plain = value === undefined ? null : value;
  const problem = notJson(plain);
  if (problem) {
    return {
      id,
      tool: call.tool,
      status: "ok",
      value: shorten(String(plain), MAX_ERROR_CHARACTERS),
      error: `its result is no JSON: ${problem}`,
    };
  }
  const text = JSON.stringify(plain);
  if (Buffer.byteLength(text) > MAX_RESULT_BYTES) {
    return { id, tool: call.tool, status: "ok", value: shorten(text, MAX_RESULT_BYTES / 4) };
  }
  return { id, tool: call.tool, status: "ok", value: JSON.parse(text) as unknown };
}

function told(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return shorten(text, MAX_ERROR_CHARACTERS);
}
