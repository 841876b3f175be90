import { Recent } from "../internal/recent.ts";
import { countTokens } from "../internal/tokens.ts";

// Counting takes 85 microseconds for a kilobyte, and most parts of a prompt were counted for the one before.
const counted = new Recent<number>(1024);

/** The tokens of a part of a prompt, remembered for the next prompt that has the same part. */
export function partTokens(text: string): number {
  return counted.get(text, () => countTokens(text));
}

/**
 * At most how many tokens a text has, counted line by line: of a state, most lines were counted for the
 * prompt before. Tokens do not reach over the end of a line, but for line ends themselves.
 */
export function tokensAtMost(text: string): number {
  return text.split("\n").reduce((sum, line) => sum + partTokens(line) + 1, 0);
}

/** About how many tokens a text has, without counting. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

/** Whether a text has at most so many tokens. A token is at least a byte, so short texts need no count. */
export function fitsIn(text: string, tokens: number): boolean {
  return text.length * 3 <= tokens || Buffer.byteLength(text) <= tokens || partTokens(text) <= tokens;
}
