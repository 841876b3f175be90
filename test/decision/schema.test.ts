import { describe, expect, test } from "vitest";
import { defineTool, defineWorkflow, field, planField } from "statecard";
import { z } from "zod";
import { decisionSchema, offeredMoves, workflowSchema, type JsonSchema } from "../../src/decision/schema.ts";
import { anyWorkflow, type AnyWorkflow } from "../../src/workflow/define.ts";

const EMPTY = { kind: null, count: null, tags: null, place: null, notes: null, seen: null };

const wide = defineWorkflow({
  name: "wide",
  version: 1,
  state: {
    kind: field(z.enum(["a", "b"])).describe("which kind"),
    count: field(z.int().min(1).max(9)).clearable(),
    tags: field(z.array(z.string().min(1).max(20)).max(5)),
    place: field(
      z.object({
        city: z.string(),
        zip: z
          .string()
          .regex(/^\d{5}$/)
          .optional(),
        spots: z.array(z.object({ x: z.number(), label: z.string().default("-") })).optional(),
        kind: z.union([z.string(), z.number()]),
      }),
    ),
    notes: field(z.array(z.string())).appendOnly(),
    seen: field(z.string()).runtimeOnly(),
  },
  initial: "start",
  steps: {
    start: {
      writes: ["kind", "count", "tags", "place"],
      to: [
        "start",
        "check",
        "finish",
        "locked",
        { to: "guarded", when: (state) => state.count !== null && state.count > 3, because: "count must be over 3" },
      ],
    },
    check: {
      to: ["finish", "start", { to: "guarded", when: (state) => state.kind === "a", because: "only for a" }],
    },
    guarded: { writes: ["notes"], to: ["finish"] },
    locked: { requires: ["seen"], to: ["done"] },
    finish: {
      requires: ["kind", "count"],
      run: () => ({ patch: { seen: "x" }, next: "done" }),
      to: ["done", "locked"],
    },
    done: { final: true },
  },
});
const workflow = anyWorkflow(wide);

function schemaOf(step: string, state: Record<string, unknown> = EMPTY, of: AnyWorkflow = workflow) {
  return decisionSchema(of, step, state);
}

function properties(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return schema.properties as Readonly<Record<string, JsonSchema>>;
}

/** The schema of a patch's fields: its nullable wrapper taken off. */
function patchFields(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  const [patch] = (properties(schema).patch?.anyOf ?? []) as JsonSchema[];
  return patch ? properties(patch) : {};
}

describe("the offered moves", () => {
  test("are the open ones, and those that the step's own patch can open", () => {
    expect(offeredMoves(workflow, "start", EMPTY)).toEqual(["start", "check", "finish", "guarded"]);
  });

  test("leave out a step whose required fields the step may not write", () => {
    expect(offeredMoves(workflow, "check", EMPTY)).toEqual(["start"]);
    expect(offeredMoves(workflow, "check", { ...EMPTY, kind: "b", count: 1 })).toEqual(["finish", "start"]);
  });

  test("leave out a guarded step where nothing that the step writes can open it", () => {
    expect(offeredMoves(workflow, "check", { ...EMPTY, kind: "b" })).not.toContain("guarded");
    expect(offeredMoves(workflow, "check", { ...EMPTY, kind: "a" })).toContain("guarded");
  });

  test("are none at the end, and none of a step that does not exist", () => {
    expect(offeredMoves(workflow, "done", EMPTY)).toEqual([]);
    expect(offeredMoves(workflow, "nowhere", EMPTY)).toEqual([]);
  });
});

describe("the schema of a decision", () => {
  test("has next as an enumeration of exactly the offered moves, or null", () => {
    for (const step of ["start", "check", "guarded"]) {
      const { next } = properties(schemaOf(step).schema);
      const offered = offeredMoves(workflow, step, EMPTY);
      expect(next ? next.enum : [null]).toEqual([...offered, null]);
    }
  });

  test("has no next where nothing is offered", () => {
    expect(properties(schemaOf("guarded").schema)).not.toHaveProperty("next");
    expect(properties(schemaOf("guarded", { ...EMPTY, kind: "a", count: 1 }).schema)).toHaveProperty("next");
  });

  test("has only the fields in patch that the step may write", () => {
    expect(Object.keys(patchFields(schemaOf("start").schema))).toEqual(["kind", "count", "tags", "place"]);
    expect(Object.keys(patchFields(schemaOf("guarded").schema))).toEqual(["notes"]);
    expect(properties(schemaOf("check").schema)).not.toHaveProperty("patch");
  });

  test("offers to clear only what can be cleared", () => {
    expect(JSON.stringify(properties(schemaOf("start").schema).clear)).toContain('"enum":["count"]');
    expect(properties(schemaOf("guarded").schema)).not.toHaveProperty("clear");
    expect(properties(schemaOf("check").schema)).not.toHaveProperty("clear");
  });

  test("keeps what a field means", () => {
    expect(patchFields(schemaOf("start").schema).kind).toMatchObject({ description: "which kind" });
  });

  test("lets every field of a patch be null, which means unchanged, nested ones too", () => {
    const fields = patchFields(schemaOf("start").schema);
    for (const schema of Object.values(fields)) expect(schema.anyOf).toContainEqual({ type: "null" });
    const [place] = (fields.place?.anyOf ?? []) as JsonSchema[];
    for (const schema of Object.values(properties(place as JsonSchema))) {
      expect(JSON.stringify(schema)).toContain('"null"');
    }
  });

  test.each(["start", "check", "guarded", "done"])("is one that strict output modes accept in step %s", (step) => {
    const { schema, strict } = schemaOf(step);
    expect(strict).toBe(true);
    expect(strictFaults(schema)).toEqual([]);
  });

  test("is the same text at each call, so that prompt caches hit", () => {
    const texts = [1, 2, 3].map(() => JSON.stringify(schemaOf("start").schema));
    expect(new Set(texts).size).toBe(1);
  });
});

interface Tree {
  name: string;
  children: Tree[];
}
const tree: z.ZodType<Tree> = z.object({
  name: z.string(),
  get children() {
    return z.array(tree);
  },
});
const address = z.object({ street: z.string() }).meta({ id: "Address" });

function withField(schema: z.ZodType) {
  const single = defineWorkflow({
    name: "single",
    version: 1,
    state: { value: field(schema) },
    initial: "start",
    steps: { start: { writes: ["value"], to: ["done"] }, done: { final: true } },
  });
  return schemaOf("start", { value: null }, anyWorkflow(single));
}

describe("strictness", () => {
  test.each([
    ["a record", z.record(z.string(), z.string())],
    ["a record deep inside", z.object({ list: z.array(z.object({ map: z.record(z.string(), z.number()) })) })],
    ["a record with fixed keys", z.record(z.enum(["a", "b"]), z.number())],
    ["anything", z.unknown().refine((value) => value !== null)],
    ["an object with more keys", z.looseObject({ a: z.string() })],
    [
      "alternatives told apart by a key",
      z.discriminatedUnion("kind", [z.object({ kind: z.literal("a") }), z.object({ kind: z.literal("b") })]),
    ],
  ])("is given up for %s, which no strict output mode can express", (_what, schema) => {
    expect(withField(schema).strict).toBe(false);
  });

  test.each([
    ["a text", z.string().min(1).max(9)],
    ["a number in bounds", z.number().min(0).lt(1)],
    ["a literal", z.literal("a")],
    ["literals", z.literal(["a", 2])],
    ["a union", z.union([z.string(), z.array(z.number())])],
    ["an object with options", z.object({ a: z.string().optional(), b: z.number().default(1) })],
    ["a nullable inside", z.object({ a: z.string().nullable() })],
    ["a list of objects", z.array(z.object({ a: z.array(z.string()) }))],
    ["an e-mail address", z.email()],
    ["a date", z.iso.datetime()],
    ["a pattern", z.string().regex(/^[A-Z]{2}\d+$/)],
  ])("is kept for %s", (_what, schema) => {
    const derived = withField(schema);
    expect(derived.strict).toBe(true);
    expect(strictFaults(derived.schema)).toEqual([]);
  });

  test.each([
    ["a pair", z.tuple([z.string(), z.object({ a: z.string().optional() })])],
    ["a tree", tree],
    ["a named part", z.object({ home: address, work: address })],
    ["a web address", z.url()],
    ["a pattern that looks ahead", z.string().regex(/^(?!x)a/)],
  ])("is claimed for %s only where a strict output mode accepts the schema", (_what, schema) => {
    const derived = withField(schema);
    expect(derived.strict ? strictFaults(derived.schema) : []).toEqual([]);
  });

  test.each([
    ["a tree", tree],
    ["a named part", z.object({ home: address, work: address })],
  ])("or not, references of %s lead to a part of the field, never into nothing or to the decision", (_what, schema) => {
    expect(referenceFaults(withField(schema).schema)).toEqual([]);
  });
});

/** The keywords and formats that OpenAI's strict mode knows. */
const KEYWORDS = new Set(
  "type properties required additionalProperties items enum const anyOf description title $ref $defs format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems".split(
    " ",
  ),
);
const FORMATS = new Set("date-time time date duration email hostname ipv4 ipv6 uuid".split(" "));

/** Walks a schema and says what a strict output mode would reject. */
function strictFaults(root: JsonSchema): readonly string[] {
  const faults = [...referenceFaults(root)];
  walk(root, (schema, path) => {
    for (const key of Object.keys(schema)) if (!KEYWORDS.has(key)) faults.push(`${path}: ${key}`);
    if (!["type", "enum", "const", "anyOf", "$ref"].some((key) => key in schema)) faults.push(`${path}: no type`);
    const types = new Set([schema.type].flat());
    if (types.has("object")) {
      const names = Object.keys(schema.properties ?? {});
      if (schema.additionalProperties !== false) faults.push(`${path}: additionalProperties`);
      if (JSON.stringify(schema.required) !== JSON.stringify(names)) faults.push(`${path}: required`);
    }
    if (types.has("array") && typeof schema.items !== "object") faults.push(`${path}: items`);
    if (schema.format !== undefined && !FORMATS.has(String(schema.format))) faults.push(`${path}: format`);
    if (/\(\?[=!<]/.test(String(schema.pattern))) faults.push(`${path}: pattern looks around`);
  });
  if (root.type !== "object") faults.push("the root is no object");
  return faults;
}

function referenceFaults(root: JsonSchema): readonly string[] {
  const faults: string[] = [];
  walk(root, (schema, path) => {
    if (typeof schema.$ref !== "string") return;
    const target = resolve(root, schema.$ref);
    if (target === undefined) faults.push(`${path}: ${schema.$ref} leads into nothing`);
    if (target === root) faults.push(`${path}: ${schema.$ref} leads to the decision`);
  });
  return faults;
}

function resolve(root: JsonSchema, reference: string): unknown {
  let target: unknown = root;
  for (const name of reference.split("/").slice(1)) target = (target as Record<string, unknown> | undefined)?.[name];
  return target;
}

function walk(schema: JsonSchema, visit: (schema: JsonSchema, path: string) => void, path = "#"): void {
  visit(schema, path);
  for (const key of ["items", "additionalProperties"]) {
    if (typeof schema[key] === "object") walk(schema[key] as JsonSchema, visit, `${path}/${key}`);
  }
  for (const key of ["anyOf", "oneOf", "allOf", "prefixItems"]) {
    for (const [index, item] of ((schema[key] ?? []) as JsonSchema[]).entries()) {
      walk(item, visit, `${path}/${key}/${index}`);
    }
  }
  for (const key of ["properties", "$defs"]) {
    for (const [name, item] of Object.entries((schema[key] ?? {}) as Record<string, JsonSchema>)) {
      walk(item, visit, `${path}/${key}/${name}`);
    }
  }
}

describe("the phases of a plan", () => {
  const branch: z.ZodType = z.object({
    name: z.string(),
    get under() {
      return z.array(branch);
    },
  });
  const tool = (parameters: z.ZodType) =>
    defineTool({ description: "Works.", parameters, effect: "read", run: () => null } as never);
  const planning = anyWorkflow(
    defineWorkflow({
      name: "planning",
      version: 1,
      state: { plan: planField(), note: field(z.string()).clearable() },
      tools: {
        find: tool(z.object({ name: z.string().describe("whose"), most: z.number().optional() })),
        sort: tool(z.object({ tree: branch })),
      },
      initial: "work",
      steps: {
        work: { plan: { into: "plan" }, tools: ["find", "sort"], writes: ["note"], to: ["done"] },
        done: { final: true },
      },
    } as never),
  );
  const of = (phase: "plan" | "act" | "conclude" | "close" | null) =>
    decisionSchema(planning, "work", { plan: null, note: null }, phase);
  const parts = (phase: Parameters<typeof of>[0]) => Object.keys(properties(of(phase).schema));

  test("a plan is calls or a question; a conclusion is anything but calls", () => {
    expect(parts("plan")).toEqual(["reasoning", "because", "calls", "ask"]);
    for (const phase of ["conclude", "close"] as const) {
      expect(parts(phase)).toEqual(["reasoning", "because", "patch", "clear", "next", "ask", "reply"]);
    }
    const all = ["reasoning", "because", "patch", "clear", "next", "calls", "ask", "reply"];
    expect(parts("act")).toEqual(all);
    expect(parts(null)).toEqual(all);
  });

  test("open arguments name the tools only, and no strict mode is asked to enforce them", () => {
    const open = (phase: Parameters<typeof of>[0]) =>
      decisionSchema(planning, "work", { plan: null, note: null }, phase, "open");
    const { schema, strict } = open("act");
    expect(strict).toBe(false);
    const [list] = (properties(schema).calls?.anyOf ?? []) as { items: JsonSchema }[];
    expect(list?.items).toMatchObject({ properties: { tool: { enum: ["find", "sort"] }, args: { type: "object" } } });
    expect(JSON.stringify(schema)).not.toContain("whose");
    const [planned] = (properties(open("plan").schema).calls?.anyOf ?? []) as { items: { required: string[] } }[];
    expect(planned?.items.required).toEqual(["tool", "args", "id", "expect"]);
    expect(open("close").strict).toBe(true);
  });

  const callsOf = (phase: Parameters<typeof of>[0]) => {
    const [list] = (properties(of(phase).schema).calls?.anyOf ?? []) as { items: { anyOf: JsonSchema[] } }[];
    return list?.items.anyOf ?? [];
  };

  test("only the calls of a plan have ids, expectations, and references in place of values", () => {
    for (const call of callsOf("plan")) {
      expect(Object.keys(properties(call))).toEqual(["tool", "args", "id", "expect"]);
    }
    for (const call of callsOf("act")) expect(Object.keys(properties(call))).toEqual(["tool", "args"]);
    const args = (phase: "plan" | "act") => properties(properties(callsOf(phase)[0] as JsonSchema).args as JsonSchema);
    expect(args("plan").name).toMatchObject({ description: "whose", anyOf: [{}, { required: ["$ref"] }] });
    expect(JSON.stringify(args("act"))).not.toContain('"required":["$ref"]');
  });

  test.each(["plan", "act", "conclude", "close"] as const)("strict output modes accept the one of %s", (phase) => {
    const { schema, strict } = of(phase);
    expect(strict).toBe(true);
    expect(strictFaults(schema)).toEqual([]);
  });

  test("each is the same text at each call, so that prompt caches hit", () => {
    expect(JSON.stringify(of("plan"))).toBe(JSON.stringify(of("plan")));
  });
});

describe("the schema of all steps", () => {
  test("offers what some model may do in some step, and strict output modes accept it", () => {
    const { schema, strict } = workflowSchema(workflow);
    expect(strict).toBe(schemaOf("start").strict);
    const given = properties(schema);
    expect(given.next).toEqual({
      type: ["string", "null"],
      enum: ["start", "check", "finish", "locked", "guarded", "done", null],
    });
    const [patch] = (given.patch?.anyOf ?? []) as JsonSchema[];
    expect(Object.keys(properties(patch as JsonSchema))).toEqual(["kind", "count", "tags", "place", "notes"]);
    expect(strictFaults(schema)).toEqual([]);
    expect(workflowSchema(workflow).schema).toBe(schema);
  });
});
