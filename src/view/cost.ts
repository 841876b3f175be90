import { countTokens } from "../internal/tokens.ts";
import type { CacheRule } from "./cache-rules.ts";
import { partTokens } from "./tokens.ts";

/** A part of a prompt that is sent as one block. */
export interface PromptPart {
  readonly role: string;
  readonly text: string;
  /** Whether a cache breakpoint stands at its end. */
  readonly isMarked: boolean;
}
export type Prompt = readonly PromptPart[];

/** What a prompt costs under a cache rule. */
export interface Paid {
  readonly total: number;
  readonly cached: number;
  readonly written: number;
  /** In uncached tokens' worth. */
  readonly paid: number;
}

/**
 * Plays a provider's prompt cache: what a prompt costs after those that were sent before it. Nothing
 * is forgotten between them. Pure.
 *
 * @param earlier the task's earlier prompts, oldest first; put other tasks' before them for a warm cache.
 */
export function paidTokens(rule: CacheRule, earlier: readonly Prompt[], prompt: Prompt): Paid {
  const total = prompt.reduce((sum, part) => sum + partTokens(part.text), 0);
  if (rule.match === "breakpoints") return paidByBreakpoints(rule, earlier, prompt, total);
  const found =
    rule.match === "none" ? 0 : rule.match === "prefix" ? longestPrefix(earlier, prompt) : longestUnit(earlier, prompt);
  const cached = cacheable(rule, found);
  return { total, cached, written: 0, paid: total - cached * (1 - rule.read) };
}

/** How much of a known beginning the rule lets a provider read from its cache. Pure. */
function cacheable(rule: CacheRule, tokens: number): number {
  if (rule.match === "none" || tokens < rule.minimum) return 0;
  return Math.floor(tokens / rule.step) * rule.step;
}

function longestPrefix(earlier: readonly Prompt[], prompt: Prompt): number {
  return Math.max(0, ...earlier.map((one) => commonTokens(one, prompt)));
}

/** A unit is what two prompts in a row had in common; a later one has to begin with all of it. */
function longestUnit(earlier: readonly Prompt[], prompt: Prompt): number {
  const units = earlier.slice(1).map((second, index) => {
    const unit = commonTokens(earlier[index] ?? [], second);
    return commonTokens(second, prompt) >= unit ? unit : 0;
  });
  return Math.max(0, ...units);
}

function paidByBreakpoints(rule: CacheRule, earlier: readonly Prompt[], prompt: Prompt, total: number): Paid {
  const marks = prompt.flatMap((part, index) => (part.isMarked ? [index] : [])).slice(-rule.breakpoints);
  const upTo = (index: number) => prompt.slice(0, index + 1).reduce((sum, part) => sum + partTokens(part.text), 0);
  let readAt = -1;
  for (const one of earlier) {
    const common = commonParts(one, prompt);
    for (let index = common - 1; index > readAt; index--) {
      const isFound = one[index]?.isMarked && marks.some((mark) => mark >= index && mark - index <= rule.lookBack);
      if (isFound && upTo(index) >= rule.minimum) readAt = index;
    }
  }
  const cached = readAt < 0 ? 0 : upTo(readAt);
  const last = marks.at(-1);
  const stable = last === undefined ? 0 : upTo(last);
  const written = stable >= rule.minimum ? Math.max(0, stable - cached) : 0;
  return { total, cached, written, paid: total - cached * (1 - rule.read) + written * (rule.write - 1) };
}

function commonParts(a: Prompt, b: Prompt): number {
  let index = 0;
  while (
    index < a.length &&
    index < b.length &&
    a[index]?.text === b[index]?.text &&
    a[index]?.role === b[index]?.role
  ) {
    index++;
  }
  return index;
}

function commonTokens(a: Prompt, b: Prompt): number {
  const whole = commonParts(a, b);
  const tokens = b.slice(0, whole).reduce((sum, part) => sum + partTokens(part.text), 0);
  const [left, right] = [a[whole], b[whole]];
  if (!left || !right || left.role !== right.role) return tokens;
  let same = 0;
  while (same < left.text.length && left.text[same] === right.text[same]) same++;
  // The last token of the common part may reach beyond it.
  return tokens + Math.max(0, countTokens(right.text.slice(0, same)) - 1);
}

/** What the choice between appending and a new snapshot depends on; sizes in tokens, near enough. */
export interface ChoiceInput {
  readonly rule: CacheRule;
  /** Which share of what should have been read from the cache was; null where nothing is measured. */
  readonly hitRate: number | null;
  /** The fixed beginning. */
  readonly fixed: number;
  /** The snapshot that stands, and what every call since has added to it, the call to come included. */
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
  /** The next call's cost either way. */
  readonly append: number;
  readonly snapshot: number;
  /** What carrying older text has cost since the snapshot, and what a new one costs once. */
  readonly carried: number;
  readonly renewal: number;
}

/**
 * Whether the next prompt goes on from the snapshot that stands or takes a new one. A new one is taken
 * when it is cheaper at once, or when carrying what was appended has cost as much as it would: so the sum
 * is never more than twice that of the best choice in hindsight. Pure.
 */
export function choose(input: ChoiceInput): Choice {
  const { rule, fixed, standing, added, tail, fresh, freshAdded, freshTail } = input;
  const price = (known: number, fresh: number, rest: number) => priceOf(rule, input.hitRate, known, fresh, rest);
  const calls = added.length;
  let before = standing;
  let carried = 0;
  let append = 0;
  for (const [index, size] of added.entries()) {
    // What the tail restates has grown bit by bit.
    const restated = freshTail + ((tail - freshTail) * (index + 1)) / calls;
    append = price(fixed + before, size, restated);
    if (index > 0) carried += Math.max(0, append - price(fixed + fresh, size, freshTail));
    before += size;
  }
  const snapshot = price(fixed, fresh + freshAdded, freshTail);
  const renewal = snapshot - price(fixed + fresh, freshAdded, freshTail);
  const take = append >= snapshot || carried >= renewal ? "snapshot" : "append";
  return { take, append, snapshot, carried, renewal };
}

/** The price of a prompt: what was sent before, what is sent again later, and what is sent once. */
function priceOf(rule: CacheRule, hitRate: number | null, known: number, added: number, rest: number): number {
  const read = rule.read + (1 - rule.read) * (1 - (hitRate ?? 1));
  const cached = cacheable(rule, known);
  const stable = known + added;
  const isWritten = rule.match === "breakpoints" && stable >= rule.minimum;
  return cached * read + (stable - cached) * (isWritten ? rule.write : 1) + rest;
}

/** The choice in a sentence. Pure. */
export function explainChoice(choice: Choice): string {
  const [append, snapshot, carried, renewal] = [choice.append, choice.snapshot, choice.carried, choice.renewal].map(
    (tokens) => Math.round(tokens),
  );
  const next = `the next call costs ${append} tokens' worth appended, ${snapshot} with a new snapshot`;
  return choice.append >= choice.snapshot
    ? `new snapshot: ${next}`
    : `${choice.take === "append" ? "append" : "new snapshot"}: ${next}; older text has cost ${carried} since the last, a new one costs ${renewal} once`;
}
