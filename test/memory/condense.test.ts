import fc from "fast-check";
import { expect, test } from "vitest";
import { condense } from "../../src/memory/condense.ts";

function log(lines: number): string {
  return Array.from({ length: lines }, (_, index) => {
    const stamp = `2026-03-01T10:${String(Math.floor(index / 60) % 60).padStart(2, "0")}:${String(index % 60).padStart(2, "0")}`;
    if (index % 100 === 17) return `${stamp} ERROR db: connection to 10.0.0.${index % 7} refused after ${index} ms`;
    if (index === 333) return `${stamp} FATAL disk /dev/sda1 is full`;
    if (index % 10 === 3) return `${stamp} WARN slow query ${index}`;
    return `${stamp} INFO request ${index} served`;
  }).join("\n");
}

test("a log becomes its counts, its levels, its time span and its gravest kinds of lines with their numbers", () => {
  expect(condense(log(1000), 1000).split("\n")).toEqual([
    "log of 1000 lines: FATAL 1, ERROR 10, WARN 99, INFO 890; from 2026-03-01T10:00:00 to 2026-03-01T10:16:39",
    "L334: 2026-03-01T10:05:33 FATAL disk /dev/sda1 is full",
    "L18 (10 like it): 2026-03-01T10:00:17 ERROR db: connection to 10.0.0.3 refused after 17 ms",
    "L4 (99 like it): 2026-03-01T10:00:03 WARN slow query 3",
    "L1 (890 like it): 2026-03-01T10:00:00 INFO request 0 served",
  ]);
});

test("empty lines do not shift the numbers", () => {
  const text = `\n\nINFO ${"start ".repeat(30)}\r\n\r\nERROR broken\r\n${"INFO on and on\n".repeat(50)}`;
  expect(condense(`first\n${text}`, 500)).toContain("L6: ERROR broken");
});

test("a level in the middle of a message is none", () => {
  const prose =
    "He said that there was no problem at all with anything that they had ever looked at, no error. ".repeat(30);
  expect(condense(prose, 400)).not.toContain("log of");
});

test("a short text stays as it is", () => {
  expect(condense("  The user likes tea.\n", 100)).toBe("The user likes tea.");
});

test("of other texts the beginning and the end are kept, and it is said what is missing", () => {
  const text = `The contract is with Smith. ${"It goes on and on. ".repeat(500)}It ends in May.`;
  const short = condense(text, 300);
  expect(short).toMatch(/^The contract is with Smith\./);
  expect(short).toMatch(/It ends in May\.$/);
  expect(short).toMatch(/… \d+ of \d+ characters in 1 lines left out …/);
});

test("whatever the text, it becomes short enough, keeps whole characters, and gives the same again", () => {
  const line = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.constantFrom("ERROR x", "INFO y", "\r", "😀".repeat(90)),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 60 }), fc.integer({ min: 200, max: 1200 }), (lines, limit) => {
      const short = condense(lines.join("\n"), limit);
      expect(short.length).toBeLessThanOrEqual(limit);
      expect(/\p{Surrogate}/u.test(short) && !/\p{Surrogate}/u.test(lines.join("\n"))).toBe(false);
      expect(condense(short, limit)).toBe(short);
    }),
  );
});

test("very many lines are condensed in one pass", () => {
  const short = condense(log(100).concat("\n").repeat(2000), 1000);
  expect(short).toMatch(/^log of 200000 lines: /);
});
