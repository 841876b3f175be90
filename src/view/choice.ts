import type { CacheRule } from "./cache-rules.ts";
import { cacheable } from "./cost.ts";

/** What the choice between going on and a new snapshot depends on; sizes in tokens, near enough. */
export interface ChoiceInput {
  readonly rule: CacheRule;
  /** Which share of what should have been read from the cache was; null where nothing is measured. */
  readonly hitRate: number | null;
  /** The model calls that the task has made. */
  readonly calls: number;
  /** The fixed beginning. */
  readonly fixed: number;
  /** The snapshot that stands, and what each call since has added to it, the call to come included. */
  readonly standing: number;
  readonly added: readonly number[];
  /** What is never cached. */
  readonly tail: number;
  /** The same with a snapshot taken now. */
  readonly fresh: number;
  readonly freshAdded: number;
  readonly freshTail: number;
}

/** What to send, and the numbers that say so, in uncached tokens' worth. */
export interface Choice {
  readonly take: "append" | "snapshot";
  /** How many calls it is reckoned for, the next one included. */
  readonly calls: number;
  /** What they cost if the next one goes on from the snapshot that stands, and if it takes a new one. */
  readonly append: number;
  readonly snapshot: number;
}

// A task is expected to go on for half as long as it has been running, within reason. (Tuned on recorded
// conversations with even numbers; shorter and longer horizons cost up to 4 % more there.)
const HORIZON = 0.5;
const FEWEST_CALLS = 6;
const MOST_CALLS = 20;

/**
 * Whether the next prompt goes on from the snapshot that stands or takes a new one. Reckons what the
 * next calls cost either way, each adding what calls have added so far: appended text is read from the
 * cache again and again, a new snapshot is paid in full once. Pure.
 */
export function choose(input: ChoiceInput): Choice {
  const { fixed, standing, added, tail, fresh, freshAdded, freshTail } = input;
  const calls = Math.min(MOST_CALLS, Math.max(FEWEST_CALLS, Math.ceil(input.calls * HORIZON)));
  const later = added.length > 1 ? added.slice(1) : added;
  const perCall = sum(later) / Math.max(1, later.length);
  // What the tail restates grows bit by bit.
  const growth = Math.max(0, tail - freshTail) / added.length;
  const run = { ...input, calls, perCall, growth };
  const last = added.at(-1) ?? 0;
  const append = costOf(run, fixed + standing + sum(added) - last, last, tail);
  const renewed = costOf(run, fixed, fresh + freshAdded, freshTail);
  const always = calls * priceOf(input, fixed, fresh + freshAdded, freshTail);
  const snapshot = Math.min(renewed, always);
  return { take: append <= snapshot ? "append" : "snapshot", calls, append, snapshot };
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}

interface Run extends ChoiceInput {
  readonly perCall: number;
  readonly growth: number;
}

/** What calls cost that all go on from one another. */
function costOf(run: Run, known: number, added: number, tail: number): number {
  let cost = priceOf(run, known, added, tail);
  let stable = known + added;
  for (let call = 1; call < run.calls; call++) {
    cost += priceOf(run, stable, run.perCall, tail + run.growth * call);
    stable += run.perCall;
  }
  return cost;
}

/** The price of a prompt: what was sent before, what will be sent again, and what is sent once. */
function priceOf({ rule, hitRate }: ChoiceInput, known: number, added: number, once: number): number {
  const read = rule.read + (1 - rule.read) * (1 - (hitRate ?? 1));
  const cached = cacheable(rule, known);
  const stable = known + added;
  const isWritten = rule.match === "breakpoints" && stable >= rule.minimum;
  return cached * read + (stable - cached) * (isWritten ? rule.write : 1) + once;
}

/** The choice in a sentence. Pure. */
export function explainChoice({ take, calls, append, snapshot }: Choice): string {
  const told = take === "append" ? "goes on" : "new snapshot";
  return `${told}: the next ${calls} calls cost about ${Math.round(append)} tokens' worth if it goes on, ${Math.round(snapshot)} with a new snapshot`;
}
