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
  const total = prompt.reduce((sum, part) => sum + tokensOfPart(part), 0);
  if (rule.match === "breakpoints") return paidByBreakpoints(rule, earlier, prompt, total);
  const found =
    rule.match === "none" ? 0 : rule.match === "prefix" ? longestPrefix(earlier, prompt) : longestUnit(earlier, prompt);
  const cached = cacheable(rule, found);
  return { total, cached, written: 0, paid: total - cached * (1 - rule.read) };
}

// A prompt is reckoned with for itself, and again as what later ones begin with.
const counted = new WeakMap<PromptPart, number>();

function tokensOfPart(part: PromptPart): number {
  const tokens = counted.get(part) ?? partTokens(part.text);
  counted.set(part, tokens);
  return tokens;
}

/** How much of a known beginning the rule lets a provider read from its cache. Pure. */
export function cacheable(rule: CacheRule, tokens: number): number {
  if (rule.match === "none" || tokens < rule.minimum) return 0;
  return Math.floor(tokens / rule.step) * rule.step;
}

function longestPrefix(earlier: readonly Prompt[], prompt: Prompt): number {
  return tokensOf(prompt, longest(earlier.map((one) => commonLength(one, prompt))));
}

/** A unit is what two prompts in a row had in common; a later one has to begin with all of it. */
function longestUnit(earlier: readonly Prompt[], prompt: Prompt): number {
  const units = earlier.slice(1).flatMap((second, index) => {
    const unit = commonLength(earlier[index] ?? [], second);
    return isLonger(unit, commonLength(second, prompt)) ? [] : [unit];
  });
  return tokensOf(prompt, longest(units));
}

function paidByBreakpoints(rule: CacheRule, earlier: readonly Prompt[], prompt: Prompt, total: number): Paid {
  const marks = prompt.flatMap((part, index) => (part.isMarked ? [index] : [])).slice(-rule.breakpoints);
  const upTo = (index: number) => prompt.slice(0, index + 1).reduce((sum, part) => sum + tokensOfPart(part), 0);
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

/** How far two prompts are the same: whole parts, and characters of the next one. */
interface Length {
  readonly parts: number;
  readonly characters: number;
}

function commonLength(a: Prompt, b: Prompt): Length {
  const parts = commonParts(a, b);
  const [left, right] = [a[parts], b[parts]];
  if (!left || !right || left.role !== right.role) return { parts, characters: 0 };
  let characters = 0;
  while (characters < left.text.length && left.text[characters] === right.text[characters]) characters++;
  return { parts, characters };
}

function isLonger(a: Length, b: Length): boolean {
  return a.parts > b.parts || (a.parts === b.parts && a.characters > b.characters);
}

function longest(lengths: readonly Length[]): Length {
  return lengths.reduce((best, one) => (isLonger(one, best) ? one : best), { parts: 0, characters: 0 });
}

/** The tokens of a prompt's beginning. The last token of a part that is cut may reach beyond it. */
function tokensOf(prompt: Prompt, { parts, characters }: Length): number {
  const whole = prompt.slice(0, parts).reduce((sum, part) => sum + tokensOfPart(part), 0);
  const cut = prompt[parts]?.text.slice(0, characters) ?? "";
  return whole + Math.max(0, countTokens(cut) - 1);
}
