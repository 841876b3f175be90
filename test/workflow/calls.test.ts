import { defineTool, defineWorkflow, field } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { decisionSchema } from "../../src/decision/schema.ts";
import { admitCalls, checkArguments } from "../../src/workflow/calls.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const when = z.object({ from: z.string().optional(), to: z.string().nullable() });
const tool = defineTool({
  description: "Finds.",
  parameters: z.object({
    filter: when,
    list: z.array(when).optional(),
    either: z.union([z.object({ name: z.string(), most: z.number().optional() }), z.string()]).optional(),
    nothing: z.string().nullable(),
    most: z.number().optional(),
  }),
  effect: "read",
  run: () => null,
});
const workflow = anyWorkflow(
  defineWorkflow({
    name: "w",
    version: 1,
    state: { note: field(z.string()) },
    tools: { find: tool },
    initial: "s",
    steps: { s: { tools: ["find"], writes: ["note"], to: ["done"] }, done: { final: true } },
  }),
);

// What a strict output mode makes of arguments, of which only `filter.to` was meant.
const STRICT = { filter: { from: null, to: "b" }, list: null, either: null, nothing: null, most: null };

test("a strict schema wants what may be left out, nested or not, and lets it be null", () => {
  const { schema, strict } = decisionSchema(workflow, "s", { note: null });
  expect(strict).toBe(true);
  const filter =
    '"filter":{"anyOf":[{"type":"object","properties":{"from":{"anyOf":[{"type":"string"},{"type":"null"}]}';
  expect(JSON.stringify(schema)).toContain(filter);
  expect(JSON.stringify(schema)).toContain('"required":["from","to"]');
});

test.each([
  ["nested", STRICT, { filter: { to: "b" }, nothing: null }],
  [
    "beside one that is a value",
    { ...STRICT, filter: { from: null, to: null } },
    { filter: { to: null }, nothing: null },
  ],
  [
    "in a list",
    { ...STRICT, list: [{ from: null, to: null }] },
    { filter: { to: "b" }, list: [{ to: null }], nothing: null },
  ],
])("a null that the schema does not take was left out: %s", (_where, args, taken) => {
  expect(checkArguments("find", tool, args)).toEqual({ ok: true, args: taken });
});

test("a null in one of several forms was left out", () => {
  const { either } = tool.parameters.shape;
  const one = defineTool({ description: "x", effect: "read", parameters: z.object({ either }), run: () => null });
  const checked = checkArguments("find", one, { either: { name: "a", most: null } });
  expect(checked).toEqual({ ok: true, args: { either: { name: "a" } } });
});

test("with references too, and what is really missing is still told", () => {
  const args = { ...STRICT, most: { $ref: "c1" } };
  const calls = [
    { tool: "find", args: STRICT },
    { tool: "find", args },
  ];
  expect(admitCalls(workflow, "s", calls)).toMatchObject({ ok: true });
  const missing = checkArguments("find", tool, { ...STRICT, filter: null });
  expect(missing).toMatchObject({ ok: false, reason: expect.stringContaining("filter: ") });
});
