import { countTokens } from "../internal/tokens.ts";

// Counting takes 85 microseconds for a kilobyte, and most parts of a prompt were counted for the one before.
const MOST = 512;
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

/** About how many tokens a text has, without counting. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

/** Whether a text has at most so many tokens. A token is at least a byte, so short texts need no count. */
export function fitsIn(text: string, tokens: number): boolean {
  return text.length * 3 <= tokens || Buffer.byteLength(text) <= tokens || partTokens(text) <= tokens;
}
