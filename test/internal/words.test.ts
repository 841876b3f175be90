import fc from "fast-check";
import { expect, test } from "vitest";
import { matchOf, queryWords, wordsOf } from "../../src/internal/words.ts";

const match = (query: string, text: string) => matchOf(queryWords(query), new Set(wordsOf(text)));

test.each([
  ["English endings do not matter", "preferred languages", "The user prefers one language"],
  ["capitals and accents as they are typed do not matter", "CAFÉ", "cafe\u0301 on the corner"],
  ["words that say nothing are not looked for", "what is the colour of it", "colour: red"],
  ["identifiers fall into their parts", "order 4711", "order_id=4711"],
  ["full-width letters are letters", "ＡＰＩ", "the api"],
  ["Chinese is found by its words", "用户偏好德语", "这位用户偏好用德语回答"],
  ["Japanese is found by its words", "東京の天気", "天気予報：東京は晴れ"],
  ["Thai is found by its words", "ภาษาไทย", "ผู้ใช้ชอบภาษาไทย"],
  ["one character of Chinese is enough", "茶", "她喜欢喝茶"],
])("%s", (_, query, text) => {
  expect(match(query, text)).toBe(1);
});

test("Korean endings cost only a part of a word", () => {
  const part = match("언어를", "언어는 한국어");
  expect(part).toBeGreaterThan(0);
  expect(part).toBeLessThan(1);
});

test("a match is the share of the query's words", () => {
  expect(match("red green blue yellow", "red and blue")).toBe(0.5);
  expect(match("red", "green")).toBe(0);
  expect(match("", "green")).toBe(0);
  expect(match("?!", "green")).toBe(0);
});

test("where a query has nothing but words that say nothing, those count", () => {
  expect(match("who are you", "who is there")).toBeGreaterThan(0);
});

test("any text is found by a word of its own, and neither texts nor queries grow without end", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
      const words = wordsOf(text);
      expect(words.length).toBeLessThanOrEqual(250);
      const grams = queryWords(text).flatMap((word) => word.grams);
      expect(queryWords(text).length).toBeLessThanOrEqual(12);
      expect(words.length > 0).toBe(grams.length > 0);
      for (const word of words) expect(word).not.toMatch(/[\s\0]/);
    }),
  );
  const long = wordsOf("字".repeat(5) + Array.from({ length: 9000 }, (_, index) => `w${index}`).join(" "));
  expect(long).toHaveLength(250);
  expect(queryWords("漢字".repeat(3000)).flatMap(({ grams }) => grams).length).toBeLessThanOrEqual(24);
});
