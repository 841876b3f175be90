import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compact, compactInline, compactMember } from "../../src/view/compact.ts";
import { readCompact } from "../support/read-compact.ts";

describe("compact JSON", () => {
  test("objects with the same keys become a header and rows", () => {
    const order = {
      id: "#W1",
      status: "delivered",
      items: [
        { sku: "a1", price: 3.5, options: { color: "red", size: "M" } },
        { sku: "b2", price: 4, options: { color: "blue, dark", size: "L" } },
      ],
    };
    expect(compact(order)).toBe(
      [
        "id: #W1",
        "status: delivered",
        "items: [2] sku | price | options.color | options.size",
        "  a1 | 3.5 | red | M",
        '  b2 | 4 | "blue, dark" | L',
      ].join("\n"),
    );
  });

  test("so do the members of an object, and lists of lists", () => {
    expect(compact({ cards: { c1: { brand: "visa", last: 1 }, c2: { brand: "amex", last: 2 } } })).toBe(
      "cards: {2} brand | last\n  c1: visa | 1\n  c2: amex | 2",
    );
    expect(compact([[{ a: 1 }, { a: 2 }], [{ a: 3 }]])).toBe("[2+1] a\n 1\n 2\n 3");
  });

  test("rows that repeat the names they stand under do not say them again", () => {
    const variants = { "10": { item: "10", price: 3 }, "11": { item: "11", price: 4 } };
    expect(compact({ variants })).toBe("variants: {2 by item} price\n  10: 3\n  11: 4");
    // Where that is all a row has, it stays.
    expect(compact({ a: { id: "a" }, b: { id: "b" } })).toBe("{2} id\n a: a\n b: b");
  });

  test("what three rows or more have alike is said once, but not of a field, which changes bit by bit", () => {
    const flights = ["HAT1", "HAT2", "HAT3"].map((number, index) => ({
      number,
      from: "JFK",
      seats: { economy: 9, business: index },
    }));
    expect(compact(flights)).toBe(
      "[3] all {from: JFK, seats.economy: 9}, each number | seats.business\n HAT1 | 0\n HAT2 | 1\n HAT3 | 2",
    );
    expect(compact(flights.slice(0, 2))).toContain("[2] number | from | seats.economy | seats.business\n");
    expect(compactMember(flights)).toContain("[3] number | from | seats.economy | seats.business\n");
    // Each row has something of its own.
    expect(
      compact([
        { a: 1, b: 2 },
        { a: 1, b: 2 },
        { a: 1, b: 2 },
      ]),
    ).toBe("[3] all {b: 2}, each a\n 1\n 1\n 1");
  });

  test("an empty cell is no member, where most cells are filled", () => {
    const paid = { c1: { kind: "card", last: "7", id: "c1" }, g1: { kind: "gift", amount: 3, id: "g1" } };
    expect(compact({ paid })).toBe('paid: {2 by id} kind | last | amount\n  c1: card | "7" | \n  g1: gift |  | 3');
    expect(compact([{ a: 1 }, { b: 2 }])).toBe("[{a: 1}, {b: 2}]");
    expect(compact([{ a: 1, b: null }, { a: 2 }, { a: 3, b: "" }])).toBe('[3] a | b\n 1 | null\n 2 | \n 3 | ""');
  });

  test("what has a table itself is no cell of a row that lacks something", () => {
    const orders = ["A", "B"].map((id) => ({
      id,
      lines: [
        { sku: 1, count: 2 },
        { sku: 3, count: 4 },
      ],
    }));
    expect(compact([{ ...orders[0], note: "x" }, orders[1]])).toContain("lines: [2] sku | count");
  });

  test("a value however deep is written once", () => {
    let looked = 0;
    const deep = (depth: number): object => {
      const rows = [
        { a: 1, b: depth > 0 ? deep(depth - 1) : 1, c: 1 },
        { a: 1, c: 1 },
      ];
      Object.defineProperty(rows[1], "a", { enumerable: true, get: () => (looked++, 1) });
      return rows;
    };
    compact(deep(16));
    expect(looked).toBeLessThan(10_000);
  });

  test("no member is taken from where all objects have it", () => {
    const rows = (more: object) =>
      compact([
        { a: 1, b: 2, toString: "x" },
        { a: 1, b: 2, ...more },
      ]);
    expect(rows({})).not.toBe(rows({ toString: null }));
    expect(rows({})).not.toContain("native code");
  });

  test("members without a value share a line", () => {
    expect(compact({ id: 1, gone: null, why: null })).toBe("id: 1\nnull: gone, why");
    expect(compact({ id: 1, gone: null })).toBe("id: 1\ngone: null");
    expect(compact({ null: 1, a: null, b: null })).toBe('"null": 1\nnull: a, b');
  });

  test("strings stand bare only where they can be nothing else", () => {
    expect(
      compactInline(["plain text", "10.5", "true", "null", "", " a", "a: b", "a|b", "x\ny", "-", "[1]", "07"]),
    ).toBe('[plain text, "10.5", "true", "null", "", " a", "a: b", "a|b", "x\\ny", "-", "[1]", "07"]');
    expect(compactInline({ "a b": 1, ok: "2024-05-15", 12: "x" })).toBe('{12: x, "a b": 1, ok: 2024-05-15}');
  });

  // Every value can be read back, so no two values have the same text.
  test("is never ambiguous", () => {
    const text = fc.oneof(fc.string(), fc.constantFrom("a", "a | b", "[2] a | b", "{2} a", "- x", "x: y", "1", "…"));
    const key = fc.oneof(
      {
        arbitrary: fc.constantFrom("a", "b", "c.d", "12", "a b", "[2]", "null", "by", "toString", "constructor"),
        weight: 4,
      },
      { arbitrary: fc.string(), weight: 1 },
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "medium", withCrossShrink: true },
        tie("leaf"),
        tie("list"),
        tie("object"),
        tie("rows"),
        tie("members"),
        tie("named"),
        tie("sparse"),
      ),
      leaf: fc.oneof(
        text,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
      ),
      list: fc.array(tie("value"), { maxLength: 4 }),
      object: fc.dictionary(key, tie("value"), { maxKeys: 4 }),
      rows: fc.array(fc.record({ a: tie("value"), b: tie("leaf") }), { minLength: 1, maxLength: 3 }),
      sparse: fc.array(
        fc.record(
          {
            a: fc.constantFrom(1, "x | y", null),
            b: tie("leaf"),
            toString: tie("leaf"),
            "c.d": fc.record({ e: tie("leaf"), f: fc.constant("") }),
          },
          { requiredKeys: [] },
        ),
        { minLength: 2, maxLength: 6 },
      ),
      members: fc.dictionary(key, fc.record({ x: tie("value"), "y z": tie("leaf") }), { maxKeys: 3 }),
      named: fc
        .tuple(fc.uniqueArray(key, { maxLength: 3 }), key, tie("value"))
        .map(([names, by, value]) => Object.fromEntries(names.map((name) => [name, { other: value, [by]: name }]))),
    }));
    fc.assert(
      fc.property(value, (given) => {
        const json: unknown = JSON.parse(JSON.stringify(given));
        expect(readCompact(compact(json))).toEqual(json);
      }),
      { numRuns: 3000 },
    );
  });
});
