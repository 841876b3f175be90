import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digest } from "../../src/internal/digest.ts";
import {
  canonicalJson,
  frozenCopy,
  isPlainObject,
  jsonBytes,
  jsonEqual,
  shorten,
  type Json,
} from "../../src/internal/json.ts";

const json = fc.oneof(
  fc.jsonValue(),
  fc
    .dictionary(fc.constantFrom("__proto__", "constructor", "a", "10", "9"), fc.jsonValue())
    .map((made) => made as Json),
) as fc.Arbitrary<Json>;

/** The same value with the keys of every object in the opposite order. */
function reversed(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value as Record<string, Json>).toReversed();
  return Object.fromEntries(entries.map(([key, item]) => [key, reversed(item)]));
}

const copy = (value: Json) => JSON.parse(JSON.stringify(value)) as Json;

describe("jsonEqual", () => {
  test("holds for a copy, in whatever order the keys come", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(jsonEqual(value, copy(value))).toBe(true);
        expect(jsonEqual(value, reversed(value))).toBe(true);
      }),
    );
  });

  test("agrees with canonical JSON about any two values, and is symmetric", () => {
    const near = json.chain((value) => fc.tuple(fc.constant(value), fc.oneof(json, fc.constant(reversed(value)))));
    fc.assert(
      fc.property(near, ([one, other]) => {
        const same = canonicalJson(one) === canonicalJson(other);
        expect(jsonEqual(one, other)).toBe(same);
        expect(jsonEqual(other, one)).toBe(same);
      }),
      { numRuns: 500 },
    );
  });

  test.each<readonly [string, unknown, unknown]>([
    ["a list and an object with its keys", ["a"], { 0: "a" }],
    ["an empty list and an empty object", [], {}],
    ["null and an empty object", null, {}],
    ["a number and its text", 1, "1"],
    ["false and null", false, null],
    ["lists of another order", [1, 2], [2, 1]],
    ["a list and its beginning", [1, 2], [1]],
    ["an inherited key and an own one", {}, JSON.parse('{"toString":1}')],
    ["an own __proto__ key and none", JSON.parse('{"__proto__":{"a":1}}'), { a: 1 }],
    ["a key that is null and a key that is absent", { a: null }, {}],
  ])("tells apart %s", (_name, one, other) => {
    expect(jsonEqual(one, other)).toBe(false);
    expect(jsonEqual(other, one)).toBe(false);
  });

  test("takes 0 and -0 for the same number, as JSON does", () => {
    expect(jsonEqual(JSON.parse("-0"), 0)).toBe(true);
    expect(jsonEqual({ a: [-0] }, { a: [0] })).toBe(true);
  });
});

describe("canonicalJson and digest", () => {
  test("canonical JSON is JSON of the same value", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(copy(value));
      }),
    );
  });

  test("the order of keys changes neither the text nor the digest", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
        expect(digest(reversed(value))).toBe(digest(value));
      }),
    );
  });

  test("digests never change from release to release, since approvals and requests are bound to them", () => {
    expect(digest({ tool: "pay", arguments: { amount: 5, to: "Ann" } })).toBe("5IotTaLXHMmonW2VPWvW_O");
    expect(digest(["网络", null, 1.5, true])).toBe("1GUeB7B5qF59L7X3mO_mXE");
  });

  test("a digest is 22 characters that fit into addresses and file names", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(digest(value)).toMatch(/^[\w-]{22}$/);
      }),
    );
  });

  test("a small edit gives another digest", () => {
    expect(digest({ amount: 5 })).not.toBe(digest({ amount: 5000 }));
    expect(digest({ amount: 5 })).not.toBe(digest({ amount: "5" }));
  });
});

describe("frozenCopy", () => {
  test("gives an equal value in which nothing can be changed, and leaves the original alone", () => {
    fc.assert(
      fc.property(json, (value) => {
        const original = structuredClone(value);
        const frozen = frozenCopy(value);
        expect(frozen).toEqual(original);
        expect(unfrozen(frozen)).toEqual([]);
      }),
    );
    const original = { list: [{ a: 1 }] };
    const frozen = frozenCopy(original);
    expect(() => frozen.list.push({ a: 2 })).toThrow(TypeError);
    original.list.push({ a: 3 });
    expect(frozen).toEqual({ list: [{ a: 1 }] });
    expect(Object.isFrozen(original)).toBe(false);
  });
});

function unfrozen(value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return [...(Object.isFrozen(value) ? [] : [value]), ...Object.values(value).flatMap(unfrozen)];
}

test("a plain object is one made from a literal or from JSON", () => {
  for (const value of [{}, { a: 1 }, Object.create(null), JSON.parse('{"__proto__":1}')])
    expect(isPlainObject(value)).toBe(true);
  for (const value of [null, undefined, [], "a", 1, new Date(0), new Map(), () => 1, new URL("http://127.0.0.1")])
    expect(isPlainObject(value)).toBe(false);
});

test("bytes are those of UTF-8 JSON", () => {
  expect(jsonBytes("网络")).toBe(8);
  expect(jsonBytes({ a: 1 })).toBe(7);
  expect(jsonBytes(null)).toBe(4);
});

test("a shortened text says how much is missing, and a short one stays as it is", () => {
  expect(shorten("abcdef", 6)).toBe("abcdef");
  expect(shorten("abcdefgh", 6)).toBe("abcdef… (2 more characters)");
});
