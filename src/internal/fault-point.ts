/** The places in the source where a test can make the process die, in the order of a decision with a call. */
export const FAULT_POINTS = [
  "before-decision",
  "after-decision",
  "before-act",
  "before-intent",
  "after-intent",
  "after-call",
  "after-result",
  "before-interrupt",
  "before-commit",
  "before-put",
  "inside-put",
  "after-put",
  "before-answer",
  "inside-answer",
  "after-answer",
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

let handler: ((point: FaultPoint) => void) | null = null;

/** A named place; nothing happens unless a test has set a handler. */
export function faultPoint(point: FaultPoint): void {
  handler?.(point);
}

/** Sets what happens at fault points; null for nothing. */
export function onFaultPoint(next: ((point: FaultPoint) => void) | null): void {
  handler = next;
}
