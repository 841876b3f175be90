import { digest } from "../internal/digest.ts";
import { shorten } from "../internal/json.ts";
import type { Call, CallResult, ToolUse } from "../state/execution.ts";

const SEEN_RESULTS = 8;
const FAILED_LINES = 3;

/**
 * How often each tool was used, after the results of a decision. Pure. Entries of the log are read with it, as with
 * `expected` in replay.ts, so what it makes of results may never change.
 */
export function usedNow(
  before: Readonly<Record<string, ToolUse>>,
  calls: readonly Call[],
  results: readonly CallResult[],
): Record<string, ToolUse> {
  const now: Record<string, ToolUse> = { ...before };
  for (const [position, result] of results.entries()) {
    if (result.status === "refused" || result.status === "cancelled") continue;
    const use = now[result.tool] ?? { calls: 0, stale: 0, seen: [], failed: [] };
    const { status, value = null, error, artifact } = result;
    // A shortened value tells less than the name of the whole, which holds its digest.
    const mark = digest([status, artifact?.split("-").at(-1) ?? value, error ?? null]).slice(0, 8);
    const isNew = !use.seen.includes(mark);
    const args = result.args ?? calls[position]?.args ?? {};
    const line = `${shorten(JSON.stringify(args), 80)}: ${shorten((error ?? status).replaceAll(/\s+/g, " "), 80)}`;
    now[result.tool] = {
      calls: use.calls + 1,
      stale: isNew ? 0 : use.stale + 1,
      seen: isNew ? [...use.seen, mark].slice(-SEEN_RESULTS) : use.seen,
      failed: status === "ok" ? [] : [...use.failed, line].slice(-FAILED_LINES),
    };
  }
  return now;
}
