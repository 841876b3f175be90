import type { CacheRule } from "./cache-rules.ts";
import { cacheable } from "./cost.ts";

/** What the choice between going on and a new snapshot depends on; sizes in tokens, near enough. */
export interface ChoiceInput {
  readonly rule: CacheRule;
  /** Which share of what should have been read from the cache was; null where nothing is measured. */
  readonly hitRate: number | null;
  /** The model calls that the task has made, and what each has added to its conversation. */
  readonly calls: number;
  readonly perCall: number;
  /** What a call has added to the state; 0 unless set. */
  readonly stateGrowth?: number;
  /** The fixed beginning. */
  readonly fixed: number;
  /** The prompt with a snapshot taken now, and the one that goes on; null where no snapshot stands. */
  readonly fresh: PromptSizes;
  readonly standing: PromptSizes | null;
}

/** A prompt's sizes after the fixed beginning. */
export interface PromptSizes {
  /** The description of the step that the snapshot was taken at: it has been sent before, with this snapshot or another. */
  readonly opening: number;
  /** What has been sent before. */
  readonly known: number;
  /** What is new and stays, and what is never cached. */
  readonly added: number;
  readonly tail: number;
  /** Which part of the tail restates what has changed since the snapshot. */
  readonly changes: number;
  /** Calls since the snapshot. */
  readonly calls: number;
}

/** What to send, and the numbers that say so, in uncached tokens' worth. */
export interface Choice {
  readonly take: "append" | "snapshot";
  /** Whether later prompts should go on from a snapshot that is taken now. */
  readonly isKept: boolean;
  /** How many calls it is reckoned for, the next one included. */
  readonly calls: number;
  /** What they cost if the next one goes on, if it takes a snapshot and the others go on, and if all take one. */
  readonly append: number | null;
  readonly snapshot: number;
  readonly always: number;
}

// A task is expected to go on for as long as it has been running, within reason. (Tuned on recorded
// conversations with even numbers; shorter and longer horizons cost up to 4 % more there.)
const FEWEST_CALLS = 6;
const MOST_CALLS = 20;
/** A new snapshot has to save this much, since the text that it leaves behind may still be of use. */
const WORTH = 1.2;
/** The calls of a task of which nothing is known yet. */
const USUAL_CALLS = 12;
/** Describing all steps has to save a third, since a model follows a step best that it sees alone. */
const WORTH_ALL_STEPS = 1.5;

/**
 * Whether the next prompt goes on from the snapshot that stands or takes a new one. Reckons what the
 * next calls cost either way, each adding what calls have added so far: appended text is read from the
 * cache again and again, a new snapshot is paid in full once. Pure.
 */
export function choose(input: ChoiceInput): Choice {
  const { fresh, standing } = input;
  const calls = Math.min(MOST_CALLS, Math.max(FEWEST_CALLS, input.calls));
  // What the tail restates grows bit by bit.
  const growth = standing ? standing.changes / Math.max(1, standing.calls) : 0;
  const goingOn = (sizes: PromptSizes) => costOf(input, sizes, calls, growth);
  const append = standing && goingOn(standing);
  const snapshot = goingOn(fresh);
  const always = costAnew(input, calls);
  const take = append !== null && append <= Math.min(snapshot, always) * WORTH ? "append" : "snapshot";
  return { take, isKept: snapshot < always, calls, append, snapshot, always };
}

/** What calls cost that all go on from one another. */
function costOf(input: ChoiceInput, sizes: PromptSizes, calls: number, growth: number) {
  const { rule, perCall } = input;
  const { known, added, tail, calls: since } = sizes;
  const fixed = input.fixed + sizes.opening;
  // What the last prompt and the one before it began with. Of a snapshot that is taken now nothing has been sent.
  let last = since > 0 ? fixed + known : fixed;
  let earlier = since > 0 ? Math.max(fixed, last - perCall) : fixed;
  let stable = fixed + known + added;
  let cost = 0;
  for (let call = 0; call < calls; call++) {
    // A unit is only there once two prompts have had it in common.
    const found = rule.match === "units" ? earlier : last;
    cost += priceOf(input, found, stable - found, tail + growth * call);
    earlier = last;
    last = stable;
    stable += perCall;
  }
  return cost;
}

/** What calls cost that all show the state anew, as it grows. */
function costAnew(input: ChoiceInput, calls: number): number {
  const { fixed, fresh, stateGrowth = 0 } = input;
  const { opening, known, added, tail } = fresh;
  let cost = 0;
  for (let call = 0; call < calls; call++) {
    cost += priceOf(input, fixed + opening, known + added + stateGrowth * call, tail);
  }
  return cost;
}

/**
 * Whether it costs much less to describe all steps at the beginning, which is the same for every task, than the task's
 * own step alone: where only the longer beginning is one that the provider caches. Reckoned for a dozen calls that
 * never leave the first step, with a beginning that other tasks have left in the cache; a lone task of one call pays
 * for all of it. Pure.
 *
 * @param own the tokens of the step's description, `all` those of all steps'.
 * @param fixed the tokens before it.
 */
export function isWholeCheaper(rule: CacheRule, fixed: number, own: number, all: number, perCall: number): boolean {
  const cost = (opening: number) => {
    const sizes: PromptSizes = { opening, known: 0, added: 0, tail: 0, changes: 0, calls: 0 };
    const input = { rule, hitRate: null, calls: USUAL_CALLS, perCall, fixed, fresh: sizes, standing: null };
    return costOf(input, sizes, USUAL_CALLS, 0);
  };
  return cost(all) * WORTH_ALL_STEPS < cost(own);
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
export function explainChoice({ calls, append, snapshot, always, take, isKept }: Choice): string {
  const cost = (tokens: number) => `${Math.round(tokens)}`;
  const ways = [
    ...(append === null ? [] : [`${cost(append)} going on`]),
    `${cost(snapshot)} from a new snapshot on`,
    `${cost(always)} with a new one each time`,
  ];
  const taken = take === "append" ? "goes on" : isKept ? "takes a new snapshot" : "shows the state anew";
  return `${taken}: the next ${calls} calls cost about ${ways.join(", ")}`;
}
