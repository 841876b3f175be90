/** Where the runtime gets the time from; tests and simulations pass their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** What a timer can wait at most; above it fires at once. */
export const MAX_TIMER_MS = 2_147_483_647;
