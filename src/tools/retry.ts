import { setTimeout } from "node:timers/promises";
import { MAX_TIMER_MS } from "../internal/clock.ts";
import type { RetryRule } from "../workflow/tool.ts";
import { kindsOf, saysRetryable } from "./tool-error.ts";

const DEFAULT_DELAY_MS = 200;

/**
 * How long to wait before a body is started again after an error: exponential, with full jitter, so that
 * many callers do not come back together. Null where it is not to be started again.
 *
 * @param tries how often it was started so far.
 */
export function retryDelay(rule: RetryRule | undefined, tries: number, error: unknown): number | null {
  if (!rule || tries >= rule.tries || !isWorthIt(rule, error)) return null;
  return Math.random() * (rule.delayMs ?? DEFAULT_DELAY_MS) * 2 ** (tries - 1);
}

function isWorthIt({ on }: RetryRule, error: unknown): boolean {
  try {
    const said = saysRetryable(error);
    if (said !== null) return said;
    if (typeof on !== "function") return kindsOf(error).some((kind) => on.includes(kind));
    // Only a clear yes counts; a promise, for instance, is none.
    const verdict: unknown = on(error);
    return verdict === true;
  } catch {
    return false;
  }
}

/** Waits, or until the signal fires. */
export async function sleep(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  await setTimeout(Math.min(delayMs, MAX_TIMER_MS), undefined, signal ? { signal } : {}).catch(() => undefined);
}
