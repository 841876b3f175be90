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
