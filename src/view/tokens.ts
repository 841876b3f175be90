import { countTokens } from "../internal/tokens.ts";

// Counting takes 85 microseconds for a kilobyte, and most parts of a prompt were counted for the one before.
const MOST = 1024;
const counted = new Map<string, number>();

/** The tokens of a part of a prompt, remembered for the next prompt that has the same part. */
export function partTokens(text: string): number {
  let tokens = counted.get(text);
  if (tokens !== undefined) {
    // The least recently used goes first.
    counted.delete(text);
  } else {
    tokens = countTokens(text);
    if (counted.size >= MOST) counted.delete(counted.keys().next().value ?? "");
  }
  counted.set(text, tokens);
  return tokens;
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
