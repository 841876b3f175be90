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
  const holds = new Holds(calls);
  const ready = calls.flatMap((call, position) => {
    // In order: what it asks is about the calls before this one.
    const isHeldBack = holds.next(call, position);
    if (call.state !== "waiting" || !call.needs.every((other) => calls[other]?.state === "settled")) return [];
    return isHeldBack ? [] : [position];
  });
  if (ready.length < 2) return ready;
  const heights = chainHeights(calls);
  return ready.toSorted((a, b) => (heights[b] ?? 0) - (heights[a] ?? 0) || a - b);
}

/**
 * Which keys are taken while the calls are gone through in order, each once. An earlier call whose keys are not
 * known yet might turn out to have the same. A later one can run already where an edit has given this one its key
 * since.
 */
class Holds {
  private readonly earlier = new Set<string>();
  private isUnknownEarlier = false;
  /** The last running call of each key; of those whose keys are not known, under null. */
  private readonly lastRunning = new Map<string | null, number>();

  constructor(calls: readonly Scheduled[]) {
    for (const [position, { keys, state }] of calls.entries()) {
      if (state === "running") for (const key of keys ?? [null]) this.lastRunning.set(key, position);
    }
  }

  /** Whether a call is held back; from then on it may hold back others. */
  next({ keys, state }: Scheduled, position: number): boolean {
    const isHeldBack =
      keys !== null &&
      keys.length > 0 &&
      (this.isUnknownEarlier || this.runsLater(null, position) || keys.some((key) => this.isTaken(key, position)));
    if (state !== "settled") {
      if (keys === null) this.isUnknownEarlier = true;
      else for (const key of keys) this.earlier.add(key);
    }
    return isHeldBack;
  }

  private isTaken(key: string, position: number): boolean {
    return this.earlier.has(key) || this.runsLater(key, position);
  }

  private runsLater(key: string | null, position: number): boolean {
    return (this.lastRunning.get(key) ?? -1) > position;
  }
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
