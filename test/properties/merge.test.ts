import fc from "fast-check";
import { field, type Field, type Fields, type Refusal } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { emptyState, type State } from "../../src/state/fields.ts";
import { applyPatch, type Change, type CrossFieldCheck, type PatchResult, type Writer } from "../../src/state/patch.ts";
import { admitDecision, applyDecision } from "../../src/workflow/advance.ts";
import type { Decision } from "../../src/workflow/record.ts";
import { anyWorkflow, defineWorkflow, type AnyWorkflow, type Snapshot } from "../../src/workflow/define.ts";

// ---------------------------------------------------------------- random fields, states and changes

const shortText = fc.string({ maxLength: 12 });
const keys = fc.constantFrom("a", "b", "constructor", "toString", "long key");
const wholeNumber = fc.integer({ min: -50, max: 50 });

const contact = z.object({ email: z.string().optional(), city: z.string().optional() });
const profile = z.object({ name: z.string(), age: z.number().optional(), contact: contact.optional() });
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 3 });
const partialContact = fc.record({ email: orNull(shortText), city: orNull(shortText) }, { requiredKeys: [] });
const partialProfile = fc.record(
  { name: orNull(shortText), age: orNull(wholeNumber), contact: orNull(partialContact) },
  { requiredKeys: [] },
);

/** A kind of field: its schema, and values that a patch for it may well hold. */
interface Kind {
  readonly name: string;
  readonly schema: z.ZodType;
  readonly values: fc.Arbitrary<unknown>;
  readonly isList?: true;
}

const KINDS: readonly Kind[] = [
  { name: "text", schema: z.string().max(10), values: shortText },
  { name: "number", schema: z.number(), values: wholeNumber },
  { name: "boolean", schema: z.boolean(), values: fc.boolean() },
  { name: "enum", schema: z.enum(["P1", "P2", "P3"]), values: fc.constantFrom("P1", "P2", "P3") },
  { name: "profile", schema: profile, values: partialProfile },
  {
    name: "strict object",
    schema: z.strictObject({ left: contact.optional(), right: z.string().optional() }),
    values: fc.record({ left: orNull(partialContact), right: orNull(shortText) }, { requiredKeys: [] }),
  },
  {
    name: "record of numbers",
    schema: z.record(z.string(), z.number()),
    values: fc.dictionary(keys, orNull(wholeNumber), { maxKeys: 4 }),
  },
  {
    name: "record of anything",
    schema: z.record(z.string(), z.unknown()),
    values: fc.dictionary(keys, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }),
  },
  {
    name: "list of texts",
    schema: z.array(z.string().max(10)),
    values: fc.array(shortText, { maxLength: 4 }),
    isList: true,
  },
  {
    name: "list of objects",
    schema: z.array(z.object({ id: z.number() })).max(6),
    values: fc.array(fc.record({ id: wholeNumber }), { maxLength: 4 }),
    isList: true,
  },
];

const NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
// A patch must be safe even where `defineWorkflow` was not asked whether these are good names.
const HOSTILE_NAMES = ["alpha", "beta", "constructor", "gamma", "toString", "delta"];

interface Declared {
  readonly name: string;
  readonly kind: Kind;
  readonly field: Field<unknown>;
}

const declaredField = (name: string): fc.Arbitrary<Declared> =>
  fc
    .record({
      kind: fc.constantFrom(...KINDS),
      nature: fc.constantFrom("plain", "plain", "writeOnce", "clearable", "clearable", "appendOnly"),
      runtimeOnly: fc.nat({ max: 7 }).map((number) => number === 0),
      maxBytes: fc.constantFrom(8, 40, 16_384, 16_384),
    })
    .map(({ kind, nature, runtimeOnly, maxBytes }) => {
      let declared = field(kind.schema).maxBytes(maxBytes);
      if (nature === "writeOnce") declared = declared.writeOnce();
      if (nature === "clearable") declared = declared.clearable();
      if (nature === "appendOnly" && kind.isList) {
        declared = (declared as Field<unknown[]>).appendOnly();
      }
      if (runtimeOnly) declared = declared.runtimeOnly();
      return { name, kind, field: declared };
    });

const HOSTILE_JSON = [
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"a":{"__proto__":{"polluted":true}},"contact":{"__proto__":{"polluted":true}}}',
  '[{"__proto__":{"polluted":true}}]',
  '{"name":null,"contact":null,"left":null}',
  '{"name":{"name":{"name":"deep"}}}',
  "[null,null]",
  "[[[[]]]]",
];

const hostileValue = fc.oneof(
  fc.constantFrom(...HOSTILE_JSON).map((text): unknown => JSON.parse(text)),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    Number.NaN,
    Infinity,
    "",
    "x".repeat(20_000),
    Array.from({ length: 5000 }, () => "item"),
    {},
  ),
);

const changeFor = (declared: readonly Declared[]): fc.Arbitrary<Change> => {
  const names = declared.map(({ name }) => name);
  const values = declared.map(({ name, kind }) => {
    const value = fc.oneof(
      { weight: 8, arbitrary: kind.values },
      { weight: 1, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: hostileValue },
    );
    return fc.option(value, { nil: undefined, freq: 1 }).map((one) => [name, one] as const);
  });
  const unknown = fc.oneof(
    { weight: 12, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.constantFrom("nowhere", "__proto__", "valueOf"), hostileValue).map((one) => [one]),
    },
  );
  const clear = fc.array(fc.constantFrom(...names, ...names, "nowhere", "__proto__"), { maxLength: 2 });
  return fc
    .record({ values: fc.tuple(...values), unknown, clear: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, clear) })
    .map((made) => ({
      patch: ownEntries([...made.values.filter(([, value]) => value !== undefined), ...made.unknown]),
      clear: made.clear,
    }));
};

/** A plain object with exactly these own keys, `__proto__` included. */
function ownEntries(entries: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  return Object.fromEntries(entries);
}

interface Scene {
  /** What a counterexample is printed as. */
  readonly [fc.toStringMethod]: () => string;
  readonly declared: readonly Declared[];
  readonly fields: Fields;
  readonly state: State;
  readonly changes: readonly Change[];
  readonly writer: Writer;
}

const scene = (changes: number, names = HOSTILE_NAMES): fc.Arbitrary<Scene> =>
  fc
    .integer({ min: 1, max: names.length })
    .chain((count) => fc.tuple(...names.slice(0, count).map(declaredField)))
    .chain((declared) => {
      const names = declared.map(({ name }) => name);
      return fc
        .record({
          values: fc.tuple(...declared.map(({ kind }) => fc.option(kind.values, { freq: 3 }))),
          changes: fc.array(changeFor(declared), { minLength: changes, maxLength: changes }),
          kind: fc.constantFrom("model" as const, "model" as const, "code" as const),
          writes: fc.option(fc.subarray(names, { minLength: Math.ceil(names.length / 2) }), {
            nil: undefined,
            freq: 1,
          }),
        })
        .map(({ values, changes, kind, writes }): Scene => {
          const entries = declared.map(({ name, field }, index): [string, unknown] => {
            const checked = field.check(values[index]);
            return [name, checked.ok ? checked.value : null];
          });
          const writer: Writer = { kind, ...(writes ? { writes } : {}) };
          const fields = Object.fromEntries(declared.map(({ name, field }) => [name, field]));
          return {
            [fc.toStringMethod]: () => fc.stringify({ fields: declared.map(describeField), entries, changes, writer }),
            declared,
            fields,
            state: deepFreeze(Object.fromEntries(entries)),
            changes: deepFreeze(changes),
            writer,
          };
        });
    });

function describeField({ name, kind, field }: Declared): string {
  const { maxBytes, ...rules } = field.rules;
  const set = Object.entries(rules).flatMap(([rule, on]) => (on === true ? [rule] : []));
  return [name, kind.name, ...set, `${maxBytes} bytes`].join(", ");
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}

const RUNS = { numRuns: 400 };

const applied = (scene: Scene, state: State, change: Change, writer = scene.writer): PatchResult =>
  applyPatch(scene.fields, state, change, writer);

/** The states that a scene's changes lead through, refused ones left out; writer is code, so that more get through. */
function statesThrough(scene: Scene): readonly { readonly state: State; readonly change: Change }[] {
  const seen: { state: State; change: Change }[] = [{ state: scene.state, change: {} }];
  let { state } = scene;
  for (const change of scene.changes) {
    const result = applied(scene, state, change, { kind: "code" });
    if (!result.ok) continue;
    state = result.state;
    seen.push({ state, change });
  }
  return seen;
}

// ---------------------------------------------------------------- a naive model of the merge contract

/** What an object has of its own under a name; every object inherits `constructor` and `__proto__`. */
function own<T>(object: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Every leaf of a value with its path. Lists and scalars are leaves, and so is an empty object. */
function leaves(value: unknown, path: readonly string[] = []): readonly { path: readonly string[]; leaf: unknown }[] {
  if (value === null || value === undefined) return [];
  if (!isObject(value)) return [{ path, leaf: value }];
  return [{ path, leaf: {} }, ...Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]))];
}

/** Writes leaf after leaf into a copy of the current value. */
function writeLeaves(current: unknown, value: unknown): unknown {
  const root = new Map<string, unknown>([["value", toMap(current)]]);
  for (const { path, leaf } of leaves(value)) {
    let target = root;
    const steps = ["value", ...path];
    for (const step of steps.slice(0, -1)) target = target.get(step) as Map<string, unknown>;
    const last = steps.at(-1) ?? "";
    if (!isObject(leaf)) target.set(last, leaf);
    else if (!(target.get(last) instanceof Map)) target.set(last, new Map());
  }
  return fromMap(root.get("value"));
}

function toMap(value: unknown): unknown {
  return isObject(value) ? new Map(Object.entries(value).map(([key, item]) => [key, toMap(item)])) : value;
}

function fromMap(value: unknown): unknown {
  return value instanceof Map
    ? Object.fromEntries([...(value as Map<string, unknown>)].map(([key, item]) => [key, fromMap(item)]))
    : value;
}

function sortedText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedText).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "nothing";
  const entries = Object.keys(value).toSorted();
  return `{${entries.map((key) => `${JSON.stringify(key)}:${sortedText(value[key])}`).join(",")}}`;
}

const startsWith = (list: readonly unknown[], start: readonly unknown[]) =>
  sortedText(list.slice(0, start.length)) === sortedText(start);

function added(current: unknown, value: unknown): unknown {
  const present: readonly unknown[] = Array.isArray(current) ? (current as unknown[]) : [];
  const items: readonly unknown[] = Array.isArray(value) ? (value as unknown[]) : [value];
  const isWhole = Array.isArray(value) && present.length > 0 && startsWith(items, present);
  return isWhole ? items : [...present, ...items];
}

function isJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.values(value).every(isJson);
}

type Fault = Pick<Refusal, "code" | "field">;

/** What must become of a change: every fault that it has, or the state after it. */
function expected(scene: Scene, change: Change): { readonly faults: readonly Fault[]; readonly state: State } {
  const { fields, state, writer } = scene;
  const faults: Fault[] = [];
  const next = new Map(Object.entries(state));
  const mayTouch = (name: string): Fault | undefined => {
    if (!Object.keys(fields).includes(name)) return { code: "UNKNOWN_FIELD", field: name };
    if (own(fields, name)?.rules.runtimeOnly && writer.kind === "model") return { code: "RUNTIME_ONLY", field: name };
    if (writer.writes?.includes(name) === false) return { code: "FIELD_NOT_WRITABLE", field: name };
    return undefined;
  };
  const sets = Object.entries(change.patch ?? {}).filter(([, value]) => value !== null);
  for (const [name, value] of sets) {
    const forbidden = mayTouch(name);
    const declared = own(fields, name);
    if (forbidden || !declared) {
      faults.push(forbidden ?? { code: "UNKNOWN_FIELD", field: name });
      continue;
    }
    const current = state[name];
    const merged = declared.rules.appendOnly ? added(current, value) : writeLeaves(current, value);
    const parsed = declared.schema.safeParse(merged);
    if (!isJson(merged) || !parsed.success) faults.push({ code: "INVALID_FIELD", field: name });
    else if (Buffer.byteLength(JSON.stringify(parsed.data)) > declared.rules.maxBytes)
      faults.push({ code: "FIELD_TOO_LARGE", field: name });
    else if (declared.rules.writeOnce && current !== null && sortedText(parsed.data) !== sortedText(current))
      faults.push({ code: "WRITE_ONCE", field: name });
    else next.set(name, parsed.data);
  }
  for (const name of change.clear ?? []) {
    const forbidden = mayTouch(name);
    if (forbidden) faults.push(forbidden);
    const isSet = sets.some(([set]) => set === name);
    const isKept = own(state, name) !== null && !own(fields, name)?.rules.clearable;
    if (!forbidden && isSet) faults.push({ code: "INVALID_DECISION", field: name });
    if (!forbidden && isKept) faults.push({ code: "NOT_CLEARABLE", field: name });
    if (!forbidden && !isSet && !isKept) next.set(name, null);
  }
  return { faults, state: Object.fromEntries(next) };
}

// ---------------------------------------------------------------- laws

describe("the merge contract", () => {
  test("does what a naive model of it does, for any fields, state, change and writer", () => {
    let accepted = 0;
    let refused = 0;
    fc.assert(
      fc.property(scene(1), (scene) => {
        const [change = {}] = scene.changes;
        const model = expected(scene, change);
        const result = applied(scene, scene.state, change);
        if (result.ok) {
          expect(model.faults).toEqual([]);
          expect(sortedText(result.state)).toBe(sortedText(model.state));
          accepted++;
        } else {
          const { code, field } = result.refusal;
          expect(model.faults).toContainEqual({ code, field });
          refused++;
        }
      }),
      { numRuns: 2000 },
    );
    // Neither side may be starved by the generators.
    expect(accepted).toBeGreaterThan(200);
    expect(refused).toBeGreaterThan(200);
  });

  test("a change applied twice equals the change applied once, append-only fields aside", () => {
    fc.assert(
      fc.property(scene(3), (scene) => {
        for (const { state, change } of statesThrough(scene)) {
          const adds = Object.keys(change.patch ?? {}).some((name) => own(scene.fields, name)?.rules.appendOnly);
          if (adds) continue;
          const again = applied(scene, state, change, { kind: "code" });
          expect(again).toMatchObject({ ok: true, changes: {} });
          expect(again.ok && again.state).toEqual(state);
        }
      }),
      RUNS,
    );
  });

  test("the order of keys does not matter", () => {
    fc.assert(
      fc.property(scene(1), (scene) => {
        const [change = {}] = scene.changes;
        const turned: Change = {
          patch: reversed(change.patch) as Record<string, unknown>,
          clear: change.clear?.toReversed(),
        };
        const one = applied(scene, scene.state, change);
        const other = applied(scene, scene.state, turned);
        expect(other.ok).toBe(one.ok);
        if (one.ok && other.ok) expect(sortedText(other.state)).toBe(sortedText(one.state));
      }),
      RUNS,
    );
  });

  test("null and absent mean unchanged: nulls strewn into a change alter nothing about it", () => {
    fc.assert(
      fc.property(scene(1), (scene) => {
        const [change = {}] = scene.changes;
        const strewn = strewNulls(change.patch ?? {}, scene.state) as Record<string, unknown>;
        const one = applied(scene, scene.state, change);
        const other = applied(scene, scene.state, { ...change, patch: strewn });
        expect(other.ok).toBe(one.ok);
        if (one.ok && other.ok) expect(sortedText(other.state)).toBe(sortedText(one.state));
      }),
      RUNS,
    );
  });

  test("a change of nothing but nulls, at any depth, changes nothing", () => {
    fc.assert(
      fc.property(scene(0), (scene) => {
        const written = Object.entries(scene.state).filter(([, value]) => value !== null);
        const patch = onlyNulls(Object.fromEntries(written));
        expect(applied(scene, scene.state, { patch }, { kind: "code" })).toEqual({
          ok: true,
          state: scene.state,
          changes: {},
        });
      }),
      RUNS,
    );
  });

  test("changes of different fields commute", () => {
    fc.assert(
      fc.property(scene(2), (scene) => {
        const [first = {}, second = {}] = scene.changes;
        const taken = new Set([...Object.keys(first.patch ?? {}), ...(first.clear ?? [])]);
        const disjoint: Change = {
          patch: ownEntries(Object.entries(second.patch ?? {}).filter(([name]) => !taken.has(name))),
          clear: second.clear?.filter((name) => !taken.has(name)),
        };
        const forth = inTurn(scene, [first, disjoint]);
        const back = inTurn(scene, [disjoint, first]);
        expect(back.map(({ ok }) => ok).toReversed()).toEqual(forth.map(({ ok }) => ok));
        expect(sortedText(back.at(-1)?.state)).toBe(sortedText(forth.at(-1)?.state));
      }),
      RUNS,
    );
  });

  test("only clear deletes, only clearable fields, and never a key inside a value", () => {
    fc.assert(
      fc.property(scene(5), (scene) => {
        let before = emptyState(scene.fields);
        for (const { state, change } of statesThrough(scene)) {
          for (const [name, value] of Object.entries(before)) {
            if (value === null) continue;
            if (state[name] === null) {
              expect(change.clear).toContain(name);
              expect(own(scene.fields, name)?.rules.clearable).toBe(true);
            } else {
              expect(lostKeys(value, state[name])).toEqual([]);
            }
          }
          before = state;
        }
      }),
      { numRuns: 200 },
    );
  });

  test("a write-once field never changes after it has been set", () => {
    fc.assert(
      fc.property(scene(6), (scene) => {
        for (const { name } of scene.declared.filter((one) => one.field.rules.writeOnce)) {
          const values = statesThrough(scene).map(({ state }) => state[name]);
          const set = values.filter((value) => value !== null).map(sortedText);
          expect(new Set(set).size).toBeLessThanOrEqual(1);
          expect(values.slice(values.findIndex((value) => value !== null))).toSatisfy(
            (rest: unknown[]) => set.length === 0 || !rest.includes(null),
          );
        }
      }),
      RUNS,
    );
  });

  test("an append-only list only ever grows, with what it had as its beginning", () => {
    fc.assert(
      fc.property(scene(6), (scene) => {
        for (const { name } of scene.declared.filter((one) => one.field.rules.appendOnly)) {
          let before: readonly unknown[] = [];
          for (const { state } of statesThrough(scene)) {
            const now = (state[name] ?? []) as readonly unknown[];
            expect(startsWith(now, before)).toBe(true);
            before = now;
          }
        }
      }),
      RUNS,
    );
  });

  test("any other list is replaced as a whole", () => {
    fc.assert(
      fc.property(scene(4), (scene) => {
        for (const { state, change } of statesThrough(scene)) {
          for (const [name, value] of Object.entries(change.patch ?? {})) {
            const rules = own(scene.fields, name)?.rules;
            if (Array.isArray(value) && !rules?.appendOnly)
              expect(sortedText(state[name])).toBe(sortedText(withoutHidden(value)));
          }
        }
      }),
      RUNS,
    );
  });
});

describe("safety of a change", () => {
  const checks: Readonly<Record<string, CrossFieldCheck>> = {
    "alpha goes with beta": (state) => state.alpha !== null && state.beta === null && "alpha without beta",
    "not too much at once": (state) => JSON.stringify(state).length > 400 && "the whole is too long",
  };
  const holds = (state: State) => Object.values(checks).every((check) => !check(state));

  test("a refused change changes nothing and gives no state", () => {
    let refused = 0;
    fc.assert(
      fc.property(scene(1), (scene) => {
        const [change = {}] = scene.changes;
        const stateBefore = structuredClone(scene.state);
        const changeBefore = structuredClone(change);
        const result = applyPatch(scene.fields, scene.state, change, scene.writer, checks);
        // Both were frozen: a write would have thrown.
        expect(scene.state).toEqual(stateBefore);
        expect(change).toEqual(changeBefore);
        if (result.ok) return;
        refused++;
        expect(Object.keys(result).toSorted()).toEqual(["ok", "refusal"]);
        expect(result.refusal.reason).not.toBe("");
      }),
      { numRuns: 800 },
    );
    expect(refused).toBeGreaterThan(100);
  });

  test("the state after a change satisfies every schema, every byte limit and every rule over several fields", () => {
    let checked = 0;
    fc.assert(
      fc.property(scene(4), (scene) => {
        let state = holds(scene.state) ? scene.state : emptyState(scene.fields);
        for (const change of scene.changes) {
          const result = applyPatch(scene.fields, state, change, scene.writer, checks);
          if (!result.ok) continue;
          ({ state } = result);
          checked++;
          expect(Object.keys(state).toSorted()).toEqual(Object.keys(scene.fields).toSorted());
          expect(holds(state)).toBe(true);
          for (const [name, value] of Object.entries(state)) {
            if (value === null) continue;
            expect(own(scene.fields, name)?.schema.safeParse(value).success).toBe(true);
            expect(Buffer.byteLength(JSON.stringify(value))).toBeLessThanOrEqual(
              own(scene.fields, name)?.rules.maxBytes ?? 0,
            );
            expect(isJson(value)).toBe(true);
          }
        }
      }),
      RUNS,
    );
    expect(checked).toBeGreaterThan(200);
  });

  test("the changes that a result names are exactly the fields whose values differ", () => {
    fc.assert(
      fc.property(scene(1), (scene) => {
        const [change = {}] = scene.changes;
        const result = applied(scene, scene.state, change);
        if (!result.ok) return;
        const differ = Object.keys(scene.fields).filter(
          (name) => sortedText(result.state[name]) !== sortedText(scene.state[name]),
        );
        expect(Object.keys(result.changes).toSorted()).toEqual(differ.toSorted());
        for (const name of differ) expect(result.changes[name]).toEqual(result.state[name]);
      }),
      RUNS,
    );
  });

  test("no change reaches a prototype", () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    fc.assert(
      fc.property(scene(4), fc.constantFrom(...HOSTILE_JSON), (scene, text) => {
        const attack = Object.fromEntries(Object.keys(scene.fields).map((name) => [name, JSON.parse(text) as unknown]));
        const states = statesThrough({ ...scene, changes: [...scene.changes, { patch: attack }] });
        for (const { state } of states) expect(oddPrototypes(state)).toEqual([]);
      }),
      RUNS,
    );
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test("a value nested tens of thousands of levels deep is refused, never a crash", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...KINDS.map(({ name }) => name)),
        fc.constantFrom(3000, 8000, 50_000),
        fc.constantFrom('{"a":', '{"contact":', '{"__proto__":', "["),
        (kind, depth, opening) => {
          const schema = KINDS.find(({ name }) => name === kind)?.schema ?? z.string();
          const closing = opening === "[" ? "]" : "}";
          const text = `${opening.repeat(depth)}1${closing.repeat(depth)}`;
          const fields = { value: field(schema) };
          const change = { patch: { value: JSON.parse(text) as unknown } };
          const result = applyPatch(fields, emptyState(fields), change, { kind: "model" });
          expect(result).toMatchObject({ ok: false, refusal: { field: "value" } });
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("decisions over random states", () => {
  const table = (scene: Scene): AnyWorkflow =>
    anyWorkflow(
      defineWorkflow({
        name: "random",
        version: 1,
        state: scene.fields,
        input: Object.keys(scene.fields),
        initial: "work",
        maxDecisions: Infinity,
        steps: {
          work: { to: ["work", "other", "done"], run: () => ({}) },
          other: { to: ["work"], requires: Object.keys(scene.fields).slice(0, 1), run: () => ({}) },
          done: { final: true },
        },
      }),
    );
  const words = fc.record(
    {
      next: fc.constantFrom(null, "work", "other", "done", "nowhere", "toString", "__proto__"),
      ask: fc.constantFrom(null, null, "Which one?"),
      reply: fc.constantFrom(null, null, "Done."),
      because: fc.constantFrom(null, "it is due"),
    },
    { requiredKeys: [] },
  );
  const decisions = fc.tuple(scene(3, NAMES), fc.array(words, { minLength: 3, maxLength: 3 }));
  const decide = (scene: Scene, words: readonly Decision[], index: number): Decision => ({
    ...scene.changes[index],
    ...words[index],
  });

  test("one decision applied twice equals the decision applied once, append-only fields included", () => {
    let admitted = 0;
    fc.assert(
      fc.property(decisions, ([scene, words]) => {
        const workflow = table(scene);
        let snapshot: Snapshot = { execution: newExecution(workflow), state: scene.state };
        for (const index of scene.changes.keys()) {
          const decision = decide(scene, words, index);
          const options = { number: snapshot.execution.decisions + 1, observation: null };
          const once = applyDecision(workflow, snapshot, decision, options);
          if (!once.ok) continue;
          admitted++;
          const after: Snapshot = {
            execution: once.update.execution,
            state: { ...snapshot.state, ...once.update.changes },
          };
          const twice = applyDecision(workflow, after, decision, options);
          expect(twice).toEqual({ ok: true, update: { changes: {}, execution: after.execution } });
          snapshot = after;
        }
      }),
      RUNS,
    );
    expect(admitted).toBeGreaterThan(100);
  });

  test("admitting a decision is pure: frozen input, the same answer each time, and nothing changed", () => {
    fc.assert(
      fc.property(decisions, ([scene, words]) => {
        const workflow = table(scene);
        const snapshot = deepFreeze({ execution: newExecution(workflow), state: scene.state });
        const before = structuredClone(snapshot);
        const decision = deepFreeze(decide(scene, words, 0));
        const first = admitDecision(workflow, snapshot, decision);
        expect(admitDecision(workflow, snapshot, decision)).toEqual(first);
        expect(snapshot).toEqual(before);
        expect("state" in first).toBe(first.ok);
      }),
      RUNS,
    );
  });

  test("a decision is admitted or refused as a whole: a refused move keeps its patch out", () => {
    fc.assert(
      fc.property(decisions, ([scene, words]) => {
        const workflow = table(scene);
        const snapshot = { execution: newExecution(workflow), state: scene.state };
        const decision = { ...decide(scene, words, 0), next: "nowhere" };
        const result = applyDecision(workflow, snapshot, decision, { number: 1, observation: null });
        expect(result.ok).toBe(false);
        expect(Object.keys(result).toSorted()).toEqual(["ok", "refusal"]);
      }),
      RUNS,
    );
  });
});

function inTurn(scene: Scene, changes: readonly Change[]): readonly { ok: boolean; state: State }[] {
  let { state } = scene;
  return changes.map((change) => {
    const result = applied(scene, state, change);
    if (result.ok) ({ state } = result);
    return { ok: result.ok, state };
  });
}

function reversed(value: unknown): unknown {
  if (!isObject(value)) return value;
  return ownEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

/** Adds a null for each key that the state has and the patch has not, at every level of objects. */
function strewNulls(patch: Readonly<Record<string, unknown>>, current: unknown): unknown {
  const present = isObject(current) ? Object.keys(current) : [];
  const missing = present.filter((key) => !Object.hasOwn(patch, key)).map((key): [string, unknown] => [key, null]);
  const given = Object.entries(patch).map(([key, item]): [string, unknown] => {
    const inner = isObject(current) && Object.hasOwn(current, key) ? current[key] : null;
    return [key, isObject(item) ? strewNulls(item, inner) : item];
  });
  return ownEntries([...given, ...missing]);
}

function onlyNulls(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return ownEntries(Object.entries(value).map(([key, item]) => [key, isObject(item) ? onlyNulls(item) : null]));
}

/** The keys of a value that a newer value of the same field lacks, at every level of objects. */
function lostKeys(before: unknown, after: unknown): readonly string[] {
  if (!isObject(before) || !isObject(after)) return [];
  return Object.entries(before).flatMap(([key, item]) =>
    Object.hasOwn(after, key) ? lostKeys(item, after[key]) : [key],
  );
}

/** Schemas leave out keys that they do not know; the only one in these lists is `__proto__`. */
function withoutHidden(value: readonly unknown[]): readonly unknown[] {
  return value.map((item) =>
    isObject(item) ? ownEntries(Object.entries(item).filter(([key]) => key === "id")) : item,
  );
}

function oddPrototypes(value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  const usual = Array.isArray(value) ? Array.prototype : Object.prototype;
  const own = Object.getPrototypeOf(value) === usual ? [] : [value];
  return [...own, ...Object.values(value).flatMap(oddPrototypes)];
}
