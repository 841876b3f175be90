import type { Execution } from "../../state/execution.ts";
import { cacheRule, type CacheRule, type ProviderName } from "../cache-rules.ts";
import type { BarMode } from "./input.ts";

/** What the choice between a bar that is replaced and one that is kept depends on. */
export interface BarModeInput {
  /** The size of the bar. */
  readonly barTokens: number;
  /** How many more prompts of this task will carry a bar. */
  readonly turnsExpected: number;
  /**
   * The tokens of the prompt that the provider's cache no longer finds when the bar before is taken out: none with
   * a breakpoint before the bar, the model's answer with a free longest prefix, a turn and the bar where only whole
   * units match, all of the history where the only breakpoint is the last block.
   */
  readonly lostTokens: number;
  /** The price of a cached token, of a written one, as parts of an ordinary one's. */
  readonly cachedPrice: number;
  readonly writePrice: number;
}

export interface BarModeChoice {
  readonly mode: BarMode;
  /** What either would cost over these turns, in tokens at full price. */
  readonly replaceCost: number;
  readonly appendCost: number;
  readonly explanation: string;
}

/**
 * Chooses whether each prompt carries only the newest bar or all of them. Kept bars are read again, cached, in
 * every later prompt; a replaced one changes the prompt before its end, so that what follows is not found in
 * the cache. Where both cost the same, the bar is replaced: the prompt stays smaller. Pure.
 */
export function chooseBarMode(input: BarModeInput): BarModeChoice {
  const { barTokens, turnsExpected, lostTokens, cachedPrice, writePrice } = input;
  const turns = Math.max(turnsExpected, 0);
  const later = Math.max(turns - 1, 0);
  const appendCost = writePrice * barTokens * turns + (cachedPrice * barTokens * turns * later) / 2;
  const replaceCost = barTokens * turns + later * (1 - cachedPrice) * lostTokens;
  const mode = replaceCost <= appendCost ? "replace" : "append";
  const costs = `over ${turns} turns ${barTokens} tokens a bar cost ${Math.round(replaceCost)} tokens replaced (${Math.round(lostTokens)} a turn are not found in the cache) and ${Math.round(appendCost)} kept`;
  return { mode, replaceCost, appendCost, explanation: `${mode}: ${costs}` };
}

/**
 * The mode of a bar in our own prompts, and why. There it stands behind the last breakpoint with lines that change
 * anyway, so that replacing it loses nothing: it is kept only where that was asked for. The measured share of
 * cached tokens counts for what the cache gives. Pure.
 */
export function barModeIn(
  { provider }: { readonly provider?: ProviderName | CacheRule },
  asked: "auto" | BarMode | undefined,
  barTokens: number,
  { decisions, usage }: Pick<Execution, "decisions" | "usage">,
): BarModeChoice {
  const rule = cacheRule(provider ?? "unknown");
  const isMeasured = usage.cachedTokens > 0 && usage.inputTokens > 0;
  const hits = isMeasured ? Math.min(1, usage.cachedTokens / usage.inputTokens) : 1;
  const choice = chooseBarMode({
    barTokens,
    // As many turns as there have been are the best guess at how many there will be.
    turnsExpected: Math.max(1, decisions),
    lostTokens: 0,
    cachedPrice: rule.read * hits + (1 - hits),
    writePrice: rule.write,
  });
  if (asked === undefined || asked === "auto" || asked === choice.mode) return choice;
  return { ...choice, mode: asked, explanation: `${asked}, as it was asked for; ${choice.explanation}` };
}
