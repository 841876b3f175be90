import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countTokens } from "../../src/internal/tokens.ts";

const encoding = createRequire(import.meta.url)("gpt-tokenizer/encoding/o200k_base") as {
  countTokens(text: string, options: object): number;
};
const plainCount = (text: string) => encoding.countTokens(text, { disallowedSpecial: new Set<string>() });

describe("countTokens", () => {
  test("counts known texts as o200k does", () => {
    expect(countTokens("")).toBe(0);
    expect(countTokens("hello world")).toBe(2);
    expect(countTokens("The quick brown fox jumps over the lazy dog.")).toBe(10);
  });

  test("equals the plain count for ordinary text of any length", () => {
    const word = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" });
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), (words) => {
        const text = words.join(" ");
        expect(countTokens(text)).toBe(plainCount(text));
      }),
      { numRuns: 50 },
    );
    const article = "Each step is a node; edges lead on, with numbers such as 12.5.\n\n".repeat(200);
    expect(countTokens(article)).toBe(plainCount(article));
  });

  test.each([
    ["Chinese", "网络连接不稳定,优先级是 P1,请开始处理。"],
    ["emoji", "👩‍👩‍👧‍👦 ok 🎉🎉 é"],
    ["JSON", '{"a":[1,2,{"b":null}],"c":"\\n"}'],
    ["half a surrogate pair", "a\ud83d b"],
  ])("equals the plain count for %s", (_name, text) => {
    expect(countTokens(text)).toBe(plainCount(text));
  });

  test("takes the spelling of a special token for ordinary text", () => {
    for (const text of ["<|endoftext|>", "a <|endofprompt|> b", "<|im_start|>system"]) {
      expect(countTokens(text)).toBe(plainCount(text));
      expect(countTokens(text)).toBeGreaterThan(3);
    }
  });

  test.each([
    ["letters", "abc", 900],
    ["Chinese", "网络连接不稳定", 300],
    ["emoji, shifted so that pieces would cut one in half", "😀", 1000],
    ["digits", "0123456789", 300],
    ["Base64", "iVBORw0KGgoAAAANSUhEUgAA", 120],
  ])("is at most a token a piece off for a long unbroken run of %s", (_name, unit, times) => {
    const text = `x${unit.repeat(times)}`;
    const pieces = Math.ceil(text.length / 512);
    expect(Math.abs(countTokens(text) - plainCount(text))).toBeLessThanOrEqual(pieces);
  });

  test("gets to an end on a hundred thousand characters without a break", () => {
    for (const unit of ["a", "=", "网", "😀"]) expect(countTokens(unit.repeat(100_000))).toBeGreaterThan(100);
  });

  test("gets to an end on a hundred thousand blanks", () => {
    for (const unit of [" ", "\n", "\t"]) expect(countTokens(unit.repeat(100_000))).toBeGreaterThan(100);
  });
});
