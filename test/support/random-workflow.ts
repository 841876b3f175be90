import fc from "fast-check";
import { defineWorkflow, field, type AnyWorkflow, type Field } from "statecard";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { z } from "zod";

/** Random choices that a seed repeats. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** A number from 0 up to, but without, 1 (mulberry32). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("nothing to pick from");
    return items[this.below(items.length)] as T;
  }

  some<T>(items: readonly T[], probability: number): T[] {
    return items.filter(() => this.chance(probability));
  }
}

export type FieldKind = "text" | "choice" | "count" | "flag" | "list" | "record" | "object";

export interface FieldPlan {
  readonly name: string;
  readonly kind: FieldKind;
  readonly writeOnce: boolean;
  readonly appendOnly: boolean;
  readonly clearable: boolean;
  readonly runtimeOnly: boolean;
  readonly maxBytes: number | null;
}

export interface GuardPlan {
  readonly kind: "known" | "unknown" | "longer";
  readonly field: string;
}

export interface StepPlan {
  readonly name: string;
  readonly by: "model" | "code" | "nobody";
  /** Null: not declared, so a code step may write all. */
  readonly writes: readonly string[] | null;
  readonly requires: readonly string[];
  readonly to: readonly { readonly step: string; readonly guard: GuardPlan | null }[];
  readonly maxDecisions: number | null;
}

/** A random workflow as plain data, so that a failing one can be read. */
export interface WorkflowPlan {
  readonly fields: readonly FieldPlan[];
  readonly steps: readonly StepPlan[];
  readonly input: readonly string[];
  /** Two fields of which at most one may have a value. */
  readonly exclusive: readonly [string, string] | null;
  readonly maxDecisions: number;
}

const SCHEMAS: Readonly<Record<FieldKind, z.ZodType>> = {
  text: z.string().max(200),
  choice: z.enum(["P1", "P2", "P3"]),
  count: z.number().int().min(0).max(9),
  flag: z.boolean(),
  list: z.array(z.string().max(20)),
  record: z.record(z.string(), z.unknown()),
  object: z.object({ a: z.string().optional(), b: z.object({ c: z.number().optional() }).optional() }),
};
export const schemaOf = (plan: FieldPlan): z.ZodType => SCHEMAS[plan.kind];
export const DEFAULT_MAX_BYTES = 16_384;
export const DEFAULT_STEP_LIMIT = 25;

// Names that mean something elsewhere: to JSON, to decisions, to LangGraph's serializer.
const FIELD_NAMES = ["note", "lc", "type", "id", "größe", "next_", "patch", "length", "kwargs", "status", "a-b", "_x"];
const STEP_NAMES = ["init", "ask", "schritt", "状态", "step-2", "next", "running", "failed", "loop_7", "End"];

const guardPlan = (fields: readonly string[]): fc.Arbitrary<GuardPlan> =>
  fc.record({
    kind: fc.constantFrom<GuardPlan["kind"]>("known", "known", "unknown", "longer"),
    field: fc.constantFrom(...fields),
  });

const fieldPlan = (name: string): fc.Arbitrary<FieldPlan> =>
  fc
    .record({
      kind: fc.constantFrom<FieldKind>("text", "choice", "count", "flag", "list", "list", "record", "record", "object"),
      rule: fc.constantFrom("none", "once", "append", "append", "clearable", "runtime"),
      maxBytes: fc.option(fc.constantFrom(150, 400, 4000), { freq: 3 }),
    })
    .map(({ kind, rule, maxBytes }) => ({
      name,
      kind,
      writeOnce: rule === "once",
      appendOnly: rule === "append" && kind === "list",
      clearable: rule === "clearable",
      runtimeOnly: rule === "runtime",
      maxBytes,
    }));

/** Random workflows with a sound structure: every step can be reached and can reach an end. */
export function workflowPlans(): fc.Arbitrary<WorkflowPlan> {
  const names = fc.record({
    fields: fc.shuffledSubarray(FIELD_NAMES, { minLength: 2, maxLength: 6 }),
    steps: fc.shuffledSubarray(STEP_NAMES, { minLength: 3, maxLength: 6 }),
    finals: fc.integer({ min: 1, max: 2 }),
  });
  return names.chain(({ fields, steps, finals }) => {
    const ends = ["done", "given_up"].slice(0, finals);
    return fc
      .record({
        fields: fc.tuple(...fields.map(fieldPlan)),
        steps: fc.tuple(...steps.map((name, index) => stepPlan(name, index, steps, ends, fields))),
        endRequires: fc.array(fc.subarray(fields, { maxLength: 1 }), { minLength: 2, maxLength: 2 }),
        input: fc.subarray(fields),
        exclusive: fc.option(fc.shuffledSubarray(fields, { minLength: 2, maxLength: 2 }), { freq: 1 }),
        maxDecisions: fc.constantFrom(7, 60, 400, 400, 400, 1000, 1000, 1000),
      })
      .map((drawn): WorkflowPlan => {
        const final = ends.map((name, index): StepPlan => ({
          name,
          by: "nobody",
          writes: null,
          // The last step can always end: else a task could only fail.
          requires: index === 0 ? [] : (drawn.endRequires[index] ?? []),
          to: [],
          maxDecisions: null,
        }));
        return sound({
          fields: drawn.fields,
          steps: [...drawn.steps, ...final],
          input: drawn.input,
          exclusive: drawn.exclusive ? [drawn.exclusive[0] ?? "", drawn.exclusive[1] ?? ""] : null,
          maxDecisions: drawn.maxDecisions,
        });
      });
  });
}

function stepPlan(
  name: string,
  index: number,
  steps: readonly string[],
  ends: readonly string[],
  fields: readonly string[],
): fc.Arbitrary<StepPlan> {
  const onward = steps[index + 1] ?? ends[0] ?? "done";
  const first = steps[0] ?? name;
  const others = [...steps, ...ends].filter((other) => other !== onward);
  return fc
    .record({
      by: fc.constantFrom<StepPlan["by"]>("model", "model", "model", "model", "code"),
      writes: fc.subarray([...fields], { minLength: 1 }),
      declared: fc.boolean(),
      requires: fc.subarray([...fields], { maxLength: 2 }),
      loops: fc.integer({ min: 0, max: 19 }),
      more: fc.subarray(others, { maxLength: Math.min(3, others.length) }),
      guards: fc.array(fc.option(guardPlan(fields), { freq: 2 }), { minLength: 5, maxLength: 5 }),
      maxDecisions: fc.option(fc.constantFrom(2, 60, 300, 300, 1000, 1000, 1000, 1000), { freq: 8 }),
    })
    .map((drawn) => {
      // An open way back to the first step, which requires nothing, keeps most tasks going for long.
      const back = drawn.loops > 0 && onward !== first ? [first] : [];
      const targets = [onward, ...new Set([...back, ...drawn.more])];
      return {
        name,
        by: drawn.by,
        writes: drawn.by === "code" && !drawn.declared ? null : drawn.writes,
        requires: index === 0 ? [] : drawn.requires,
        to: targets.map((step, at) => ({ step, guard: back.includes(step) ? null : (drawn.guards[at] ?? null) })),
        maxDecisions: drawn.maxDecisions,
      };
    });
}

/** Mends what defineWorkflow would refuse: runtime-only fields in model steps, fields that nobody writes, unused ends. */
function sound(plan: WorkflowPlan): WorkflowPlan {
  const codeWrites = plan.steps.some((step) => step.by === "code" && step.writes === null);
  const fields = plan.fields.map((one) => ({ ...one, runtimeOnly: one.runtimeOnly && codeWrites }));
  const runtimeOnly = new Set(fields.filter((one) => one.runtimeOnly).map((one) => one.name));
  const reached = new Set(plan.steps.flatMap((step) => step.to.map((move) => move.step)));
  const used = plan.steps.filter((step) => step.by !== "nobody" || reached.has(step.name));
  const steps = used.map((step) =>
    step.by === "model" ? { ...step, writes: (step.writes ?? []).filter((name) => !runtimeOnly.has(name)) } : step,
  );
  const written = new Set(
    steps.flatMap((step) =>
      step.by === "code" && step.writes === null ? fields.map((one) => one.name) : (step.writes ?? []),
    ),
  );
  const input = fields.map((one) => one.name).filter((name) => plan.input.includes(name) || !written.has(name));
  return { ...plan, fields, steps, input };
}

/** Whether a guard is open in a state. */
export function isOpen(guard: GuardPlan, state: Readonly<Record<string, unknown>>): boolean {
  const value = state[guard.field] ?? null;
  if (guard.kind === "known") return value !== null;
  if (guard.kind === "unknown") return value === null;
  return Array.isArray(value) ? value.length > 1 : value !== null;
}

function fieldOf(plan: FieldPlan): Field<unknown> {
  let made: Field<unknown> = field(schemaOf(plan)).describe(`a ${plan.kind}`);
  if (plan.writeOnce) made = made.writeOnce();
  if (plan.appendOnly) made = (made as unknown as Field<string[]>).appendOnly();
  if (plan.clearable) made = made.clearable();
  if (plan.runtimeOnly) made = made.runtimeOnly();
  return plan.maxBytes === null ? made : made.maxBytes(plan.maxBytes);
}

/** What the steps of a random workflow are carried out by. */
export interface Bodies {
  readonly modelOf: (step: StepPlan) => BaseChatModel;
  readonly runOf: (step: StepPlan) => (state: Readonly<Record<string, unknown>>) => Promise<object>;
}

/** Declares the workflow of a plan. */
export function buildWorkflow(plan: WorkflowPlan, bodies: Bodies): AnyWorkflow {
  const steps = plan.steps.map((step) => {
    if (step.by === "nobody") return [step.name, { final: true, requires: step.requires }];
    const to = step.to.map(({ step: target, guard }) =>
      guard
        ? {
            to: target,
            when: (state: Record<string, unknown>) => isOpen(guard, state),
            because: `${guard.field} is not ${guard.kind}`,
          }
        : target,
    );
    const declared = {
      to,
      requires: step.requires,
      ...(step.writes ? { writes: step.writes } : {}),
      ...(step.maxDecisions === null ? {} : { maxDecisions: step.maxDecisions }),
      ...(step.by === "code" ? { run: bodies.runOf(step) } : { model: bodies.modelOf(step) }),
    };
    return [step.name, declared];
  });
  const { exclusive } = plan;
  const check = (state: Readonly<Record<string, unknown>>) =>
    exclusive && exclusive.every((name) => (state[name] ?? null) !== null) && `only one of ${exclusive.join(" and ")}`;
  const definition = {
    name: "random",
    version: 1,
    state: Object.fromEntries(plan.fields.map((one) => [one.name, fieldOf(one)])),
    input: plan.input,
    checks: exclusive ? { exclusive: check } : {},
    initial: plan.steps[0]?.name ?? "",
    steps: Object.fromEntries(steps) as object,
    maxDecisions: plan.maxDecisions,
  };
  return defineWorkflow(definition as never) as unknown as AnyWorkflow;
}

/** A value that fits a field's schema. */
export function fittingValue(plan: FieldPlan, random: Random): unknown {
  switch (plan.kind) {
    case "text":
      return random.pick(["x", "network", "打印机 ✓", '{{$1}} {"$ref":"a"}', "</state>", "null"]);
    case "choice":
      return random.pick(["P1", "P2", "P3"]);
    case "count":
      return random.below(10);
    case "flag":
      return random.chance(0.5);
    case "list":
      return random.pick([[], ["one"], ["one", "two"], [`item ${random.below(100)}`]]);
    case "record":
      return random.pick([{}, { k: "v" }, { deep: { list: [1, { x: null }] } }, { [`k${random.below(5)}`]: true }]);
    case "object":
      return random.pick([{}, { a: "x" }, { b: { c: random.below(5) } }, { a: null, b: { c: 1 } }]);
  }
}

/** A value that fits no field, or only by accident. */
export function hostileValue(random: Random): unknown {
  return random.pick<() => unknown>([
    () => null,
    () => -1,
    () => 1e308,
    () => "P9",
    () => "y".repeat(random.pick([201, 201, 5000, 70_000])),
    () => [1, null, {}],
    () => ["z".repeat(random.pick([21, 20_000]))],
    () => ({ lc: 2, type: "undefined" }),
    () => ({ k: { lc: 2, type: "constructor", id: ["Map"], method: null, args: [[["a", 1]]] } }),
    () => ({
      lc: 1,
      type: "constructor",
      id: ["langchain_core", "messages", "HumanMessage"],
      kwargs: { content: "x" },
    }),
    () => ({ __overwrite__: "x" }),
    () => ({ $ref: "c1.path", a: 5, b: [] }),
    () => ({ constructor: { prototype: { polluted: true } }, toString: null }),
    () => JSON.parse('{"__proto__": {"polluted": true}, "k": 1}') as unknown,
    () => nested(40),
  ])();
}

function nested(depth: number): unknown {
  let value: unknown = "leaf";
  for (let level = 0; level < depth; level++) value = { a: value, b: [value === "leaf"] };
  return value;
}

/** What a step's decision was made to be: an honest one, or the name of an attack. */
export interface Made {
  readonly kind: string;
  readonly text: string;
}

const NOWHERE = [
  "act",
  "__start__",
  "__end__",
  "__input__",
  "nowhere",
  "constructor",
  "__proto__",
  "toString",
  "x".repeat(9000),
];
const NOT_A_DECISION = [
  "[]",
  "5",
  '"done"',
  "null",
  "",
  "{}",
  "I am done.",
  '{"next": {"to": "done"}}',
  '{"patch": [1]}',
];

/** One answer. `known` has the fields that have a value; `honesty` is how probable an honest one is. */
export function makeDecision(
  plan: WorkflowPlan,
  step: StepPlan,
  known: ReadonlySet<string>,
  random: Random,
  honesty: number,
): Made {
  const honest = honestDecision(plan, step, known, random);
  if (random.chance(honesty)) return { kind: "honest", text: JSON.stringify(honest) };
  const names = plan.fields.map((one) => one.name);
  const foreign = plan.fields.filter((one) => !(step.writes ?? names).includes(one.name));
  const anywhere = [...plan.steps.map((other) => other.name), ...NOWHERE];
  const attacks: Readonly<Record<string, () => unknown>> = {
    anyStep: () => ({ ...honest, ask: undefined, next: random.pick(anywhere) }),
    outside: () => {
      const allowed = new Set(step.to.map((move) => move.step));
      return { ...honest, ask: undefined, next: random.pick(anywhere.filter((name) => !allowed.has(name))) };
    },
    allFields: () => ({
      ...honest,
      patch: Object.fromEntries(plan.fields.map((one) => [one.name, fittingValue(one, random)])),
    }),
    otherField: () => {
      const other = random.pick(foreign.length > 0 ? foreign : plan.fields);
      return { ...honest, patch: { ...honest.patch, [other.name]: fittingValue(other, random) } };
    },
    nulls: () => ({ ...honest, patch: Object.fromEntries(names.map((name) => [name, null])), clear: null, ask: null }),
    wrongTypes: () => ({
      ...honest,
      patch: Object.fromEntries(random.some(names, 0.5).map((name) => [name, hostileValue(random)])),
    }),
    oneWrongType: () => ({
      ...honest,
      patch: { [random.pick(step.writes?.length ? step.writes : names)]: hostileValue(random) },
    }),
    clear: () => ({ ...honest, patch: null, clear: random.some([...names, "execution", "__proto__"], 0.4) }),
    setAndClear: () => ({ ...honest, clear: Object.keys(honest.patch ?? {}) }),
    askAndReply: () => ({ ...honest, ask: "a?", reply: "b" }),
    askAndMove: () => ({ ...honest, ask: "where to?", next: random.pick(anywhere) }),
    noMove: () => ({ ...honest, next: null, ask: null }),
    record: () => ({
      ...honest,
      patch: { execution: { step: "done", status: "completed", revision: 99 }, message: "x", branch: "done" },
    }),
    extraKeys: () => ({ ...honest, goto: "done", update: {}, lg_name: "Command", execution: { step: "done" } }),
    hugeText: () => ({ ...honest, because: "b".repeat(4000), ask: "q".repeat(4000) }),
  };
  const raw: Readonly<Record<string, () => string>> = {
    prototypeKeys: () =>
      JSON.stringify(honest).replace(
        /^\{/,
        '{"__proto__": {"next": "done"}, "patch": {"__proto__": {"x": 1}, "constructor": 1}, ',
      ),
    broken: () => {
      const text = JSON.stringify({ ...honest, because: "cut off" });
      return text.slice(0, random.below(text.length));
    },
    dirty: () => `Sure {as you like}:\n\`\`\`json\n${JSON.stringify(honest).replace(/\}$/, ",}")}\n\`\`\`\nThat is it.`,
    noDecision: () => random.pick(NOT_A_DECISION),
  };
  const kind = random.pick([...Object.keys(attacks), ...Object.keys(raw)]);
  const text = raw[kind]?.() ?? JSON.stringify(attacks[kind]?.());
  return { kind, text };
}

interface Honest {
  readonly because: string;
  readonly patch?: Readonly<Record<string, unknown>>;
  readonly next?: string;
  readonly ask?: string;
  readonly reply?: string;
}

function honestDecision(plan: WorkflowPlan, step: StepPlan, known: ReadonlySet<string>, random: Random): Honest {
  const writable = plan.fields.filter((one) => step.writes === null || step.writes.includes(one.name));
  const avoided = new Set(
    plan.exclusive?.some((name) => known.has(name)) ? plan.exclusive.filter((name) => !known.has(name)) : [],
  );
  const written = writable.filter((one) => {
    if (avoided.has(one.name) || (one.writeOnce && known.has(one.name))) return false;
    // A list that only grows would soon be full.
    return random.chance(one.appendOnly && known.has(one.name) ? 0.05 : 0.5);
  });
  const patch = Object.fromEntries(written.map((one) => [one.name, fittingValue(one, random)]));
  if (plan.exclusive?.every((name) => name in patch)) delete patch[plan.exclusive[0]];
  const has = new Set([...known, ...Object.keys(patch)]);
  const ends = new Set(plan.steps.filter((other) => other.by === "nobody").map((other) => other.name));
  const open = step.to.filter(
    ({ step: target, guard }) =>
      requiresOf(plan, target).every((name) => has.has(name)) &&
      (!guard || has.has(guard.field) === (guard.kind !== "unknown")),
  );
  const onward = open.filter((move) => !ends.has(move.step));
  const target =
    onward.length > 0 && random.chance(0.98) ? random.pick(onward) : random.pick(open.length > 0 ? open : step.to);
  const base = { because: "it fits", ...(written.length > 0 ? { patch } : {}) };
  if (random.chance(0.04)) return { ...base, ask: `What about ${random.pick(plan.fields).name}?` };
  return { ...base, next: target.step, ...(random.chance(0.1) ? { reply: "I am on it." } : {}) };
}

const requiresOf = (plan: WorkflowPlan, name: string): readonly string[] =>
  plan.steps.find((step) => step.name === name)?.requires ?? [];

/** What a step may say according to the definition, and whether it did: nothing of the runtime is asked. */
export function decisionChecker(plan: WorkflowPlan, step: StepPlan): (text: string) => boolean {
  const writable = plan.fields.filter((one) => step.writes === null || step.writes.includes(one.name));
  const clearable = writable.filter((one) => one.clearable).map((one) => one.name);
  const text = z.string().max(10_000).nullish();
  const schema = z.strictObject({
    because: text,
    patch: z.strictObject(Object.fromEntries(writable.map((one) => [one.name, patchSchema(one)]))).nullish(),
    clear: z.array(z.enum(["", ...clearable])).nullish(),
    next: z.enum(step.to.map((move) => move.step)).nullish(),
    ask: text,
    reply: text,
  });
  return (answer) => {
    try {
      return schema.safeParse(JSON.parse(answer)).success;
    } catch {
      return false;
    }
  };
}

function patchSchema(plan: FieldPlan): z.ZodType {
  if (plan.kind !== "object") return schemaOf(plan).nullish();
  return z
    .strictObject({ a: z.string().nullish(), b: z.strictObject({ c: z.number().nullish() }).nullish() })
    .nullish();
}
