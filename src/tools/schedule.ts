/** A call of a decision as the scheduler sees it. */
export interface Scheduled {
  /** Positions of the calls whose results it uses. All come before it. */
  readonly needs: readonly number[];
  /** Calls that share a key run one at a time, in order; null while its arguments, and so its keys, are not known. */
  readonly keys: readonly string[] | null;
  readonly state: "waiting" | "running" | "settled";
}

/**
 * The waiting calls that may go on now: everything that they use is there, no earlier call with one of their
 * keys is unsettled, and none runs. Those that most others wait for come first. A call that waits, fails or
 * hangs so holds back only what depends on it. Pure.
 */
export function readyCalls(calls: readonly Scheduled[]): readonly number[] {
  const ready = calls.flatMap((call, position) => {
    if (call.state !== "waiting" || !call.needs.every((other) => calls[other]?.state === "settled")) return [];
    return isHeldBack(calls, position) ? [] : [position];
  });
  if (ready.length < 2) return ready;
  const heights = chainHeights(calls);
  return ready.toSorted((a, b) => (heights[b] ?? 0) - (heights[a] ?? 0) || a - b);
}

/**
 * An earlier call whose keys are not known yet might turn out to have the same. A later one can run already
 * where an edit has given this one its key since.
 */
function isHeldBack(calls: readonly Scheduled[], position: number): boolean {
  const keys = calls[position]?.keys ?? [];
  if (keys.length === 0) return false;
  return calls.some((other, index) => {
    const mayHold = index < position ? other.state !== "settled" : index > position && other.state === "running";
    return mayHold && (other.keys === null || other.keys.some((key) => keys.includes(key)));
  });
}

/** How many calls, one after the other, wait for each. */
function chainHeights(calls: readonly Scheduled[]): readonly number[] {
  const heights = calls.map(() => 0);
  for (let position = calls.length - 1; position >= 0; position--) {
    for (const needed of calls[position]?.needs ?? []) {
      heights[needed] = Math.max(heights[needed] ?? 0, (heights[position] ?? 0) + 1);
    }
  }
  return heights;
}
