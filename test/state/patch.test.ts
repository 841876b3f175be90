import { field, type Fields, type Refusal } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { emptyState, type State } from "../../src/state/fields.ts";
import { applyPatch, type Change, type CrossFieldCheck, type Writer } from "../../src/state/patch.ts";

const fields = {
  goal: field(z.string()).writeOnce(),
  priority: field(z.enum(["P1", "P2", "P3"])),
  note: field(z.string()).clearable(),
  short: field(z.string()).maxBytes(10),
  log: field(z.array(z.string())).appendOnly(),
  tags: field(z.array(z.string())),
  customer: field(
    z.object({ name: z.string(), contact: z.object({ email: z.string(), phone: z.string().optional() }).optional() }),
  ),
  attempts: field(z.number()).runtimeOnly(),
};
const ANYONE: Writer = { kind: "model" };

function apply(change: Change, values: State = {}, writer: Writer = ANYONE, own: Fields = fields) {
  return applyPatch(own, { ...emptyState(own), ...values }, change, writer);
}

function stateAfter(change: Change, values: State = {}, writer: Writer = ANYONE, own: Fields = fields): State {
  const result = apply(change, values, writer, own);
  if (!result.ok) throw new Error(`refused: ${result.refusal.reason}`);
  return result.state;
}

function refusalOf(change: Change, values: State = {}, writer: Writer = ANYONE, own: Fields = fields): Refusal {
  const result = apply(change, values, writer, own);
  if (result.ok) throw new Error("was not refused");
  return result.refusal;
}

describe("a change under the merge contract", () => {
  test("sets a field and names it as changed", () => {
    expect(apply({ patch: { priority: "P1" } })).toEqual({
      ok: true,
      state: { ...emptyState(fields), priority: "P1" },
      changes: { priority: "P1" },
    });
  });

  test("merges objects deeply and keeps what it does not mention", () => {
    const customer = { name: "Ann", contact: { email: "ann@example.org" } };
    const state = stateAfter({ patch: { customer: { contact: { phone: "12" } } } }, { customer });
    expect(state.customer).toEqual({ name: "Ann", contact: { email: "ann@example.org", phone: "12" } });
  });

  test("erases nothing by null: a model that must name every field sets only one", () => {
    const before = {
      goal: "repair",
      priority: "P2",
      note: "hurry",
      customer: { name: "Ann", contact: { email: "a" } },
    };
    const patch = { goal: null, priority: "P1", note: null, tags: null, customer: { name: null, contact: null } };
    expect(stateAfter({ patch, clear: null }, before)).toEqual({ ...emptyState(fields), ...before, priority: "P1" });
  });

  test("changes nothing without a patch", () => {
    for (const change of [{}, { patch: null, clear: null }, { patch: {}, clear: [] }]) {
      expect(apply(change, { note: "kept" })).toMatchObject({ ok: true, changes: {} });
    }
  });

  test("reports no change where the value is what it was", () => {
    expect(apply({ patch: { tags: ["a"] } }, { tags: ["a"] })).toMatchObject({ ok: true, changes: {} });
  });

  test("replaces a list", () => {
    expect(stateAfter({ patch: { tags: ["c"] } }, { tags: ["a", "b"] }).tags).toEqual(["c"]);
  });

  test("adds to an append-only list: several items, one item, or the whole list over again", () => {
    const before = { log: ["a", "b"] };
    expect(stateAfter({ patch: { log: ["c", "d"] } }, before).log).toEqual(["a", "b", "c", "d"]);
    expect(stateAfter({ patch: { log: "c" } }, before).log).toEqual(["a", "b", "c"]);
    expect(stateAfter({ patch: { log: ["a", "b", "c"] } }, before).log).toEqual(["a", "b", "c"]);
    expect(stateAfter({ patch: { log: ["b"] } }, before).log).toEqual(["a", "b", "b"]);
    expect(stateAfter({ patch: { log: [] } }, before).log).toEqual(["a", "b"]);
    expect(stateAfter({ patch: { log: ["a"] } }).log).toEqual(["a"]);
  });

  test("clears a clearable field, and only on request", () => {
    expect(apply({ clear: ["note"] }, { note: "old" })).toMatchObject({ ok: true, changes: { note: null } });
    expect(apply({ clear: ["note"] })).toMatchObject({ ok: true, changes: {} });
  });

  test("clears a field that is named twice once", () => {
    expect(apply({ clear: ["note", "note"] }, { note: "old" })).toMatchObject({ ok: true, changes: { note: null } });
  });

  test("writes the same value into a write-once field as often as it likes", () => {
    expect(apply({ patch: { goal: "repair" } }, { goal: "repair" })).toMatchObject({ ok: true, changes: {} });
  });

  test("takes null inside a list's items as absent, since strict output modes have to send it", () => {
    const own = { rows: field(z.array(z.object({ id: z.string(), note: z.string().optional() }))) };
    const patch = {
      rows: [
        { id: "a", note: null },
        { id: "b", note: "second" },
      ],
    };
    expect(stateAfter({ patch }, {}, ANYONE, own).rows).toEqual([{ id: "a" }, { id: "b", note: "second" }]);
  });

  test("takes null where the schema asks for a value or null, since nothing else can say it", () => {
    const own = { entry: field(z.object({ name: z.string(), note: z.string().nullable() })) };
    expect(stateAfter({ patch: { entry: { name: "a", note: null } } }, {}, ANYONE, own).entry).toEqual({
      name: "a",
      note: null,
    });
  });

  test("lets code and inputs write what the runtime keeps", () => {
    for (const kind of ["code", "input"] as const) {
      expect(stateAfter({ patch: { attempts: 2 } }, {}, { kind }).attempts).toBe(2);
    }
  });

  test("fields may be named like what every object inherits", () => {
    const own = { constructor: field(z.string()), toString: field(z.string()).clearable() };
    const state = stateAfter({ patch: { constructor: "a" }, clear: ["toString"] }, { toString: "b" }, ANYONE, own);
    expect(Object.entries(state)).toEqual([
      ["constructor", "a"],
      ["toString", null],
    ]);
  });
});

describe("a refused change says the field, the rule and why", () => {
  test("UNKNOWN_FIELD lists the fields that there are", () => {
    const refusal = refusalOf({ patch: { prio: "P1" } }, {}, { kind: "model", writes: ["priority", "note"] });
    expect(refusal).toMatchObject({ code: "UNKNOWN_FIELD", field: "prio" });
    expect(refusal.reason).toBe('there is no field "prio"; the fields are: priority, note');
    expect(refusalOf({ clear: ["prio"] })).toMatchObject({
      code: "UNKNOWN_FIELD",
      field: "prio",
      reason: 'cannot clear "prio": there is no such field',
    });
  });

  test("UNKNOWN_FIELD is also the answer to names that every object inherits", () => {
    for (const name of ["constructor", "toString", "__proto__"]) {
      const patch = JSON.parse(`{"${name}":{"polluted":true}}`) as Record<string, unknown>;
      expect(refusalOf({ patch })).toMatchObject({ code: "UNKNOWN_FIELD", field: name });
      expect(refusalOf({ clear: [name] })).toMatchObject({ code: "UNKNOWN_FIELD", field: name });
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test("FIELD_NOT_WRITABLE lists what the step may write, for setting and for clearing", () => {
    const writer: Writer = { kind: "model", writes: ["priority"] };
    const expected = {
      code: "FIELD_NOT_WRITABLE",
      field: "note",
      reason: 'this step may not write "note"; it may write: priority',
    };
    expect(refusalOf({ patch: { note: "x" } }, {}, writer)).toEqual(expected);
    expect(refusalOf({ clear: ["note"] }, { note: "x" }, writer)).toEqual(expected);
    expect(refusalOf({ patch: { note: "x" } }, {}, { kind: "code", writes: [] }).reason).toContain("nothing");
  });

  test("RUNTIME_ONLY holds for a model even where the step declares the field", () => {
    const refusal = refusalOf({ patch: { attempts: 3 } }, {}, { kind: "model", writes: ["attempts"] });
    expect(refusal).toEqual({
      code: "RUNTIME_ONLY",
      field: "attempts",
      reason: '"attempts" is kept by the runtime; leave it out',
    });
  });

  test("WRITE_ONCE holds for every writer, for whole values and for parts of one", () => {
    for (const kind of ["model", "code", "input"] as const) {
      const refusal = refusalOf({ patch: { goal: "break" } }, { goal: "repair" }, { kind });
      expect(refusal).toEqual({
        code: "WRITE_ONCE",
        field: "goal",
        reason: '"goal" already has its value and never changes again; leave it out',
      });
    }
    const own = { limits: field(z.object({ budget: z.number(), until: z.string().optional() })).writeOnce() };
    const added = refusalOf({ patch: { limits: { until: "May" } } }, { limits: { budget: 5 } }, ANYONE, own);
    expect(added).toMatchObject({ code: "WRITE_ONCE", field: "limits" });
  });

  test("NOT_CLEARABLE names the field", () => {
    expect(refusalOf({ clear: ["priority"] }, { priority: "P1" })).toEqual({
      code: "NOT_CLEARABLE",
      field: "priority",
      reason: '"priority" cannot be cleared',
    });
    expect(refusalOf({ clear: ["goal"] }, { goal: "repair" })).toMatchObject({ code: "NOT_CLEARABLE", field: "goal" });
    expect(refusalOf({ clear: ["log"] }, { log: ["a"] })).toMatchObject({ code: "NOT_CLEARABLE", field: "log" });
  });

  test("INVALID_FIELD says where in the value and what was expected", () => {
    const wrong = refusalOf({ patch: { customer: { name: "Ann", contact: { email: 5 } } } });
    expect(wrong).toMatchObject({ code: "INVALID_FIELD", field: "customer" });
    expect(wrong.reason).toContain('"customer": at contact.email: ');
    expect(wrong.reason).toContain("expected string");
    expect(refusalOf({ patch: { priority: "P9" } })).toMatchObject({ code: "INVALID_FIELD", field: "priority" });
    expect(refusalOf({ patch: { log: [1] } })).toMatchObject({ code: "INVALID_FIELD", field: "log" });
    expect(refusalOf({ patch: { attempts: Number.NaN } }, {}, { kind: "code" }).code).toBe("INVALID_FIELD");
  });

  test("FIELD_TOO_LARGE counts bytes of JSON in UTF-8, up to the limit and not one more", () => {
    expect(stateAfter({ patch: { short: "12345678" } }).short).toBe("12345678");
    expect(refusalOf({ patch: { short: "123456789" } })).toEqual({
      code: "FIELD_TOO_LARGE",
      field: "short",
      reason: '"short": 11 bytes, at most 10 are allowed',
    });
    expect(refusalOf({ patch: { short: "网络连" } }).reason).toContain("11 bytes");
    expect(refusalOf({ patch: { note: "x".repeat(16_384) } }).reason).toContain("at most 16384");
  });

  test("FIELD_TOO_LARGE holds for the whole list that an append-only field would become", () => {
    const own = { log: field(z.array(z.string())).appendOnly().maxBytes(20) };
    expect(refusalOf({ patch: { log: ["0123456789"] } }, { log: ["01234"] }, ANYONE, own)).toMatchObject({
      code: "FIELD_TOO_LARGE",
      field: "log",
    });
  });

  test("CHECK_FAILED says the rule's name and its reason, and looks at the state as it would be", () => {
    const checks: Readonly<Record<string, CrossFieldCheck>> = {
      "urgent needs a note": (state) => state.priority === "P1" && state.note === null && "P1 without a note",
    };
    const state = emptyState(fields);
    expect(applyPatch(fields, state, { patch: { priority: "P1" } }, ANYONE, checks)).toEqual({
      ok: false,
      refusal: { code: "CHECK_FAILED", reason: 'rule "urgent needs a note": P1 without a note' },
    });
    expect(applyPatch(fields, state, { patch: { priority: "P1", note: "fire" } }, ANYONE, checks).ok).toBe(true);
    const urgent = { ...state, priority: "P1", note: "fire" };
    expect(applyPatch(fields, urgent, { clear: ["note"] }, ANYONE, checks)).toMatchObject({ ok: false });
  });

  test("INVALID_DECISION where one change both sets and clears a field, whatever value it has", () => {
    const both = { patch: { note: "new" }, clear: ["note"] };
    const expected = { code: "INVALID_DECISION", field: "note", reason: '"note" is both set and cleared; do one' };
    expect(refusalOf(both)).toEqual(expected);
    expect(refusalOf(both, { note: "old" })).toEqual(expected);
    expect(refusalOf(both, { note: "new" })).toEqual(expected);
  });

  test("the good half of a bad patch is refused with it", () => {
    const result = apply({ patch: { priority: "P1", goal: 5 } });
    expect(result).toMatchObject({ ok: false, refusal: { field: "goal" } });
    expect("state" in result).toBe(false);
  });

  test("a refusal stays short, however long the names and values that it is about", () => {
    const long = "x".repeat(1_000_000);
    const patches = [{ [long]: 1 }, { goal: { [long]: 1 } }, { priority: long }, { note: long }];
    for (const patch of patches) expect(JSON.stringify(refusalOf({ patch })).length).toBeLessThan(5000);
    expect(JSON.stringify(refusalOf({ clear: [long] })).length).toBeLessThan(5000);
    const own = { exact: field(z.strictObject({ a: z.string() })) };
    const nested = refusalOf({ patch: { exact: { [long]: 1 } } }, {}, ANYONE, own);
    expect(JSON.stringify(nested).length).toBeLessThan(5000);
  });
});

describe("what a checkpoint would not give back", () => {
  const own = { anything: field(z.record(z.string(), z.unknown())), list: field(z.array(z.unknown())).appendOnly() };
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const bad: readonly (readonly [string, unknown])[] = [
    ["NaN", Number.NaN],
    ["an infinite number", Infinity],
    ["a big integer", 1n],
    ["a date", new Date(0)],
    ["a map", new Map([["a", 1]])],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a value that holds itself", cycle],
  ];

  test.each(bad)("%s is refused as INVALID_FIELD even where the schema lets it by", (_name, value) => {
    const writer: Writer = { kind: "code" };
    expect(refusalOf({ patch: { anything: { value } } }, {}, writer, own)).toMatchObject({
      code: "INVALID_FIELD",
      field: "anything",
    });
    expect(refusalOf({ patch: { list: [value] } }, {}, writer, own)).toMatchObject({
      code: "INVALID_FIELD",
      field: "list",
    });
  });
});

describe("rules that would contradict each other", () => {
  test("a write-once or append-only field cannot be emptied and filled anew by way of clear", () => {
    const own = {
      once: field(z.string()).writeOnce().clearable(),
      log: field(z.array(z.string())).appendOnly().clearable(),
    };
    const before = { once: "first", log: ["first"] };
    for (const name of ["once", "log"]) {
      expect(apply({ clear: [name] }, before, { kind: "code" }, own)).toMatchObject({
        ok: false,
        refusal: { code: "NOT_CLEARABLE", field: name },
      });
    }
  });
});
