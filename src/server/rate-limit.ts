import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";

export interface Rate {
  /** How many requests a second may come in the long run. */
  readonly perSecond: number;
  /** How many may come at once. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** So many identities are remembered; a full bucket need not be. */
const MANY = 10_000;

/** A token bucket for each identity. */
export class RateLimit {
  private readonly rate: Rate;
  private readonly clock: Clock;
  private readonly buckets = new Map<string, Bucket>();

  constructor(rate: Rate, clock: Clock) {
    this.rate = rate;
    this.clock = clock;
  }

  /** @throws RATE_LIMITED, with the seconds to wait. */
  take(who: string): void {
    const { perSecond, burst } = this.rate;
    const now = this.clock.now();
    const bucket = this.buckets.get(who) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    if (!this.buckets.has(who)) this.add(who, bucket);
    if (bucket.tokens < 1) {
      const retryAfter = Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond));
      const message = `more than ${perSecond} requests a second; try again in ${retryAfter} s`;
      throw new WorkflowError("RATE_LIMITED", message, { retryable: true, details: { retryAfter } });
    }
    bucket.tokens -= 1;
  }

  private add(who: string, bucket: Bucket): void {
    if (this.buckets.size >= MANY) {
      const [oldest] = this.buckets.keys();
      if (oldest !== undefined) this.buckets.delete(oldest);
    }
    this.buckets.set(who, bucket);
  }
}
