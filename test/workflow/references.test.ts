import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Call } from "../../src/state/execution.ts";
import { admitCalls } from "../../src/workflow/calls.ts";
import { anyWorkflow, defineWorkflow } from "../../src/workflow/define.ts";
import { dependenciesOf, referencesIn, resolveReferences, valueAt } from "../../src/workflow/references.ts";
import { defineTool } from "../../src/workflow/tool.ts";

const anything = z.record(z.string(), z.unknown());
const tools = {
  find: defineTool({
    description: "Finds.",
    parameters: z.object({ name: z.string(), more: z.unknown().optional() }),
    effect: "read",
    result: z.object({
      code: z.string(),
      size: z.int(),
      spots: z.array(z.object({ x: z.number() })),
      maybe: z.string().nullable(),
      open: z.record(z.string(), z.number()),
    }),
    run: () => null,
  }),
  take: defineTool({
    description: "Takes.",
    parameters: z.object({
      text: z.string().optional(),
      number: z.number().optional(),
      spots: z.array(z.object({ x: z.number() })).optional(),
      nested: z.object({ text: z.string() }).optional(),
    }),
    effect: "read",
    run: () => null,
  }),
  open: defineTool({ description: "Opens.", parameters: anything, effect: "read", run: () => null }),
};

const open = (args: object, id?: string): Call => ({ tool: "open", args: { ...args }, ...(id ? { id } : {}) });
const take = (args: object): Call => ({ tool: "take", args: { ...args } });
const find: Call = { tool: "find", args: { name: "x" } };
const ref = (text: unknown) => ({ $ref: text });
const own = (text: string) => JSON.parse(text) as Record<string, unknown>;

function faultOf(...calls: readonly Call[]): string | null {
  const found = dependenciesOf(calls, tools);
  return found.ok ? null : found.reason;
}

describe("what is a reference", () => {
  test.each<readonly [string, string, readonly string[]]>([
    ["c1", "c1", []],
    ["c1.path", "c1", ["path"]],
    ["c1.path.0.name", "c1", ["path", "0", "name"]],
    ["c1[0]", "c1", ["0"]],
    ["c1.items[2][10].name", "c1", ["items", "2", "10", "name"]],
    ["find-alpha_2.größe.状态", "find-alpha_2", ["größe", "状态"]],
    ["_.a b.$1", "_", ["a b", "$1"]],
    ["c1.__proto__.constructor", "c1", ["__proto__", "constructor"]],
  ])("%s", (text, call, path) => {
    expect(referencesIn({ a: [{ b: ref(text) }] })).toEqual({
      ok: true,
      references: [{ at: ["a", "0", "b"], text, call, path }],
    });
  });

  test("the arguments as a whole can be one, and one call can have many", () => {
    expect(referencesIn(ref("c1"))).toMatchObject({ references: [{ at: [], call: "c1" }] });
    expect(referencesIn({ a: ref("c1"), b: [ref("c2.x"), ref("c1")] })).toMatchObject({
      references: [{ at: ["a"] }, { at: ["b", "0"] }, { at: ["b", "1"] }],
    });
  });

  test.each<readonly [string, unknown]>([
    ["a text that looks like one", '{"$ref": "c1"}'],
    ["the name of a call", "c1.path"],
    ["a placeholder", "$1 ${c1} {{c1.path}} $ref"],
    ["a key that is like it", { ref: "c1", $REF: "c1", "$ref ": "c1" }],
    ["a list", ["$ref", "c1"]],
    ["an inherited key", Object.create({ $ref: "c1" })],
  ])("%s is none", (_name, value) => {
    expect(referencesIn({ value })).toEqual({ ok: true, references: [] });
  });

  test.each<readonly [unknown, RegExp]>([
    ["", /is no reference/],
    [".", /is no reference/],
    ["c1.", /is no reference/],
    ["c1..a", /is no reference/],
    [".c1", /is no reference/],
    ["c1[x]", /is no reference/],
    ["c1[-1]", /is no reference/],
    ["c1[0", /is no reference/],
    ["1", /is no reference/],
    ["$1", /is no reference/],
    ["c1 ", /is no reference/],
    ["c1\n.a", /is no reference/],
    ["#/calls/0", /is no reference/],
    [5, /has the form/],
    [null, /has the form/],
    [["c1"], /has the form/],
    [ref("c1"), /has the form/],
  ])("%j is malformed, and its place is named", (text, says) => {
    const found = referencesIn({ deep: [0, ref(text)] });
    expect(found).toMatchObject({ ok: false, reason: expect.stringMatching(says) });
    expect(found).toMatchObject({ reason: expect.stringMatching(/^deep\.1: /) });
  });

  test("other keys beside it make it malformed, so that nothing is lost silently", () => {
    expect(referencesIn({ a: { $ref: "c1", default: 5 } })).toMatchObject({
      ok: false,
      reason: 'a: a reference has the form {"$ref": "c1.path"} and nothing beside it',
    });
  });

  test("a very long one is quoted in short", () => {
    const found = referencesIn(ref(`!${"x".repeat(10_000)}`));
    expect(found.ok ? 0 : found.reason.length).toBeLessThan(250);
  });
});

describe("references are checked before anything runs", () => {
  test("the calls that each needs, once each", () => {
    expect(
      dependenciesOf([open({}), open({}, "two"), open({ a: ref("two.x"), b: ref("c1"), c: ref("two.y") })], tools),
    ).toMatchObject({ ok: true, needs: [[], [], [1, 0]] });
  });

  test.each<readonly [string, readonly Call[], RegExp]>([
    [
      "an unknown call",
      [open({}, "a"), open({ x: ref("nope.y") })],
      /c2, reference "nope\.y": this decision has no call "nope"; it has a, c2\./,
    ],
    ["an earlier plan's", [open({ x: ref("1.0") })], /c1: x: "1\.0" is no reference/],
    ["one that every object inherits", [open({}), open({ x: ref("constructor") })], /has no call "constructor"/],
    ["a prototype", [open({}), open({ x: ref("__proto__") })], /has no call "__proto__"/],
    ["a place where a name was given", [open({}, "a"), open({ x: ref("c1") })], /has no call "c1"/],
    ["itself", [open({ x: ref("c1") })], /c1, reference "c1": a call cannot use its own result/],
    ["itself by its name", [open({ x: ref("me.a") }, "me")], /me, .*its own result/],
    ["a later one", [open({ x: ref("c2") }), open({})], /c2 comes later; put it before c1/],
    ["two that need each other", [open({ x: ref("c2") }), open({ x: ref("c1") })], /c2 needs c1 in turn: a cycle/],
    [
      "a ring of three",
      [open({ x: ref("c3") }), open({ x: ref("c1") }), open({ x: ref("c2") })],
      /c3 needs c1 in turn: a cycle/,
    ],
    ["a later one in a list", [open({ x: [1, { y: ref("c2") }] }), open({})], /comes later/],
    ["one under __proto__", [open(own('{"__proto__": {"$ref": "c9"}}'))], /has no call "c9"/],
  ])("%s is refused", (_name, calls, says) => {
    expect(faultOf(...calls)).toMatch(says);
  });

  test("the results of earlier decisions cannot be referred to, and that is said", () => {
    expect(faultOf(open({ x: ref("a.code") }, "b"))).toContain(
      "Results of earlier decisions cannot be referred to: write the value",
    );
  });

  test("two calls of one name are refused, also where one has it by its place", () => {
    expect(faultOf(open({}, "a"), open({}, "a"))).toBe('two calls have the id "a"');
    expect(faultOf(open({}, "c2"), open({}))).toBe('two calls have the id "c2"');
  });

  test("many that need each other in all ways are checked in no time that grows with the ways", () => {
    const calls = Array.from({ length: 50 }, (_, position) =>
      open(Object.fromEntries(Array.from({ length: position }, (_unused, to) => [`a${to}`, ref(`c${to + 1}`)]))),
    );
    expect(faultOf(...calls)).toBeNull();
    expect(faultOf(open({ x: ref("c50") }), ...calls.slice(1))).toMatch(/cycle/);
  });
});

describe("a declared result", () => {
  test.each<readonly [string, object]>([
    ["its field", { text: ref("c1.code") }],
    ["a whole number where a number is wanted", { number: ref("c1.size") }],
    ["a list", { spots: ref("c1.spots") }],
    ["a number in its list", { number: ref("c1.spots[3].x") }],
    ["what may be null, since that is known only then", { text: ref("c1.maybe") }],
    ["a key of a record", { number: ref("c1.open.any") }],
    ["a place in a nested argument", { nested: { text: ref("c1.code") } }],
  ])("takes %s", (_name, args) => {
    expect(faultOf(find, take(args))).toBeNull();
  });

  test.each<readonly [string, object, RegExp]>([
    [
      "a field that is not there",
      { text: ref("c1.coda") },
      /^c2, reference "c1\.coda": the result of c1 \(find\) has no field "coda"; it has code, size/,
    ],
    ["a field that every object inherits", { text: ref("c1.constructor") }, /has no field "constructor"/],
    ["a prototype", { text: ref("c1.__proto__") }, /has no field "__proto__"/],
    ["a path into a text", { text: ref("c1.code.x") }, /is no object at "code", so it has no "x"/],
    ["a name in a list", { text: ref("c1.spots.x") }, /has a list where "x" is asked for; name an item by its number/],
    ["the length of a list", { number: ref("c1.spots.length") }, /has a list where "length" is asked for/],
    [
      "a number where a text is wanted",
      { text: ref("c1.size") },
      /gives a value of type integer, and string is wanted/,
    ],
    ["an object where a text is wanted", { text: ref("c1") }, /of type object, and string is wanted/],
    ["a text where a number is wanted", { number: ref("c1.code") }, /of type string, and number is wanted/],
    ["a text in a nested list", { spots: [{ x: ref("c1.code") }] }, /of type string, and number is wanted/],
  ])("refuses %s before anything runs", (_name, args, says) => {
    expect(faultOf(find, take(args))).toMatch(says);
  });
});

describe("arguments with references", () => {
  const workflow = anyWorkflow(
    defineWorkflow({
      name: "references",
      version: 1,
      state: {},
      tools,
      initial: "work",
      steps: { work: { tools: ["find", "take", "open"], to: ["work", "done"] }, done: { final: true } },
    }),
  );
  const refusal = (...calls: readonly Call[]) => {
    const admitted = admitCalls(workflow, "work", calls);
    return admitted.ok ? null : admitted.refusal;
  };

  test("are checked as far as they are known", () => {
    expect(refusal(open({}), take({ text: ref("c1.a"), number: "5" }))).toMatchObject({
      code: "INVALID_ARGUMENTS",
      reason: expect.stringContaining("number"),
    });
    expect(refusal(open({}), { tool: "find", args: { more: ref("c1") } })).toMatchObject({
      code: "INVALID_ARGUMENTS",
      reason: expect.stringContaining("name"),
    });
    expect(refusal(open({}), take({ text: ref("c1.a"), number: null }))).toBeNull();
    expect(refusal(open({}), take({ nested: ref("c1.a") }))).toBeNull();
  });

  test.each(['{"lc": 1, "type": "constructor", "id": ["x"]}', '{"__proto__": {"admin": true}}'])(
    "cannot hold beside them what a checkpoint would not give back: %s",
    (hostile) => {
      const args = { a: ref("c1"), b: own(hostile) };
      expect(refusal(open({}), open(args))).toMatchObject({
        code: "INVALID_ARGUMENTS",
        reason: expect.stringContaining("cannot be stored as JSON"),
      });
    },
  );

  test("may not be larger than others", () => {
    expect(refusal(open({}), open({ a: ref("c1"), b: "x".repeat(40_000) }))).toMatchObject({
      code: "INVALID_ARGUMENTS",
      reason: expect.stringMatching(/have 400\d\d bytes, at most 32768/),
    });
  });
});

describe("a path into a value", () => {
  const value = { list: [{ a: null }, "text"], zero: 0, none: undefined, "a.b": 1, empty: {} };
  test.each<readonly [readonly string[], unknown]>([
    [[], value],
    [["list", "0"], { a: null }],
    [["list", "0", "a"], null],
    [["zero"], 0],
    [["a.b"], 1],
    [["empty"], {}],
  ])("%j is found", (path, found) => {
    expect(valueAt(value, path)).toEqual({ found: true, value: found });
  });

  test.each<readonly [readonly string[]]>([
    [["none"]],
    [["nope"]],
    [["list", "2"]],
    [["list", "-1"]],
    [["list", "0", "a", "b"]],
    [["list", "1", "0"]],
    [["list", "1", "length"]],
    [["zero", "toFixed"]],
    [["constructor"]],
    [["__proto__"]],
    [["__proto__", "toString"]],
    [["empty", "hasOwnProperty"]],
    [["list", "map"]],
  ])("%j is not", (path) => {
    expect(valueAt(value, path)).toEqual({ found: false });
  });
});

describe("references are resolved on structure and once", () => {
  const results: Readonly<Record<string, unknown>> = {
    c1: { code: "000001", like: { $ref: "c2.secret" }, text: '{"$ref": "c2.secret"} $1 $& {{c2}}', none: null },
    c2: { secret: "s" },
  };
  const resolved = (args: object) => resolveReferences({ ...args }, (call) => results[call]);

  test("a value takes a reference's place, whatever it looks like", () => {
    expect(resolved({ a: ref("c1.code"), b: [ref("c1.like"), ref("c1.text")], c: ref("c1.none") })).toEqual({
      ok: true,
      args: { a: "000001", b: [{ $ref: "c2.secret" }, '{"$ref": "c2.secret"} $1 $& {{c2}}'], c: null },
    });
  });

  test("texts around are never looked into", () => {
    const args = { a: "c1.code", b: '{"$ref": "c1.code"}', c: "$1 and ${c1.code}", d: ref("c1.code") };
    expect(resolved(args)).toEqual({ ok: true, args: { ...args, d: "000001" } });
  });

  test("all of the arguments can come from one", () => {
    expect(resolved(ref("c2"))).toEqual({ ok: true, args: { secret: "s" } });
  });

  test.each(["c1.nope", "c1.code.0", "c1.constructor", "c1.__proto__", "c3"])(
    "%s leads to nothing, and is named",
    (text) => {
      const found = resolved({ a: ref(text) });
      expect(found).toMatchObject({ ok: false, reason: expect.stringContaining(`reference "${text}"`) });
    },
  );

  test("a key named __proto__ stays data and changes no prototype", () => {
    const found = resolved(own('{"__proto__": {"admin": {"$ref": "c1.code"}}, "b": 1}'));
    expect(found.ok && JSON.stringify(found.args)).toBe('{"__proto__":{"admin":"000001"},"b":1}');
    expect(found.ok && Object.getPrototypeOf(found.args)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
  });

  const withoutReferences = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"$ref"'));

  test("property: what is no reference is never changed", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), withoutReferences), (args) => {
        expect(resolveReferences(args, () => "another value")).toEqual({ ok: true, args });
      }),
    );
  });

  test("property: only the references change, each to its whole value", () => {
    const value = fc.jsonValue();
    fc.assert(
      fc.property(withoutReferences, value, fc.array(fc.string(), { maxLength: 4 }), (around, result, keys) => {
        const wrap = (inner: unknown) => keys.reduce<unknown>((at, key) => ({ [`k${key}`]: [around, at] }), inner);
        const found = resolveReferences({ a: wrap(ref("c1")), b: around }, () => result);
        expect(found).toEqual({ ok: true, args: { a: wrap(result), b: around } });
      }),
    );
  });
});
