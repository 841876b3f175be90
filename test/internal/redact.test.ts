import { expect, test } from "vitest";
import { redact } from "../../src/internal/redact.ts";

// Put together here, so that no scanner takes them for real ones.
const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
const KEYS: readonly (readonly [string, string])[] = [
  ["an OpenAI key", `sk-${letters}`],
  ["an OpenAI project key", `sk-proj-${letters}_${letters}`],
  ["an Anthropic key", `sk-ant-api03-${letters}-${letters}`],
  ["a public key", `pk-lf-${letters}`],
  ["a GitHub token", `ghp_${letters}`],
  ["an AWS access key id", `AKIA${"ABCD1234".repeat(2)}`],
  ["a bearer token", `Bearer ${letters}.${letters}`],
];

test.each(KEYS)("%s is replaced, wherever it stands", (_name, key) => {
  for (const text of [key, `401: wrong key ${key}.`, `"${key}"`, `key=${key}&x=1`, `a\n${key}\nb`]) {
    expect(redact(text)).toContain("[redacted]");
    expect(redact(text)).not.toContain(letters);
    expect(redact(text)).not.toContain("ABCD1234");
  }
});

test("every key of a text is replaced, each time it is called", () => {
  const text = `${KEYS[0]?.[1]} and ${KEYS[4]?.[1]}`;
  expect(redact(text)).toBe("[redacted] and [redacted]");
  expect(redact(text)).toBe("[redacted] and [redacted]");
});

test("ordinary text stays as it is", () => {
  for (const text of ["", "the risk-free task-list of desk-top", "bearer of good news", "sk-1", "优先级是 P1, AKIA"]) {
    expect(redact(text)).toBe(text);
  }
});

test("a text full of what might begin a token is read in one go, and a token in it is found", () => {
  const token = ["eyJ" + letters, "eyJ" + letters, letters].join(".");
  const text = redact(`${"eyJ-".repeat(200_000)} ${token}`);
  expect(text).toHaveLength(800_011);
  expect(text.endsWith(" [redacted]")).toBe(true);
});
