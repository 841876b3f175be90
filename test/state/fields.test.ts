import { field } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { emptyState, pickState } from "../../src/state/fields.ts";

describe("a field", () => {
  test("is immutable: each rule gives a new field and leaves the old one", () => {
    const plain = field(z.array(z.string()));
    const before = structuredClone(plain.rules);
    const made = [
      plain.describe("why"),
      plain.writeOnce(),
      plain.appendOnly(),
      plain.clearable(),
      plain.runtimeOnly(),
      plain.maxBytes(5),
    ];
    expect(plain.rules).toEqual(before);
    expect(new Set([plain, ...made]).size).toBe(7);
    expect(made.map(({ rules }) => rules)).toEqual([
      { ...before, description: "why" },
      { ...before, writeOnce: true },
      { ...before, appendOnly: true },
      { ...before, clearable: true },
      { ...before, runtimeOnly: true },
      { ...before, maxBytes: 5 },
    ]);
  });

  test("keeps every rule in a chain", () => {
    const { rules } = field(z.array(z.string())).describe("log").maxBytes(9).runtimeOnly().appendOnly();
    expect(rules).toEqual({
      description: "log",
      writeOnce: false,
      appendOnly: true,
      clearable: false,
      runtimeOnly: true,
      maxBytes: 9,
    });
  });

  test("allows 16,384 bytes unless it says otherwise", () => {
    const text = field(z.string());
    expect(text.check("x".repeat(16_382)).ok).toBe(true);
    expect(text.check("x".repeat(16_383))).toEqual({
      ok: false,
      code: "FIELD_TOO_LARGE",
      reason: "16385 bytes, at most 16384 are allowed",
    });
  });

  test("gives the value as its schema makes it", () => {
    expect(field(z.object({ a: z.string().trim() })).check({ a: " b ", unknown: 1 })).toEqual({
      ok: true,
      value: { a: "b" },
    });
  });

  test("says where in a value it is wrong", () => {
    const rows = field(z.array(z.object({ id: z.string() })));
    const checked = rows.check([{ id: "a" }, { id: 2 }]);
    expect(checked).toMatchObject({ ok: false, code: "INVALID_FIELD" });
    expect(!checked.ok && checked.reason).toContain("at 1.id: ");
  });
});

describe("a state", () => {
  const fields = { a: field(z.string()), toString: field(z.number()) };

  test("has null for each field in the beginning", () => {
    expect(Object.entries(emptyState(fields))).toEqual([
      ["a", null],
      ["toString", null],
    ]);
  });

  test("is picked out of other values; what is absent is null, and nothing is inherited", () => {
    expect(Object.entries(pickState(fields, { a: "x", other: 1, execution: {} }))).toEqual([
      ["a", "x"],
      ["toString", null],
    ]);
  });
});
