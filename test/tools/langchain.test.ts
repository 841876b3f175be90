import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool, DynamicTool, tool as langChainTool } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import { fromLangChain, type LangChainTool } from "../../src/tools/langchain.ts";
import { checkArguments } from "../../src/workflow/calls.ts";
import { run } from "../support/calls.ts";

const read = { effect: "read" } as const;

/** What comes out of a tool that returns this. */
async function outcome(returned: unknown, format?: "content_and_artifact") {
  const made = langChainTool(async () => returned, {
    name: "look",
    description: "Looks.",
    schema: z.object({}),
    ...(format ? { responseFormat: format } : {}),
  });
  return run(fromLangChain(made, read));
}

describe("arguments", () => {
  const zod4 = z.object({ city: z.string().min(1), days: z.number().default(3) });
  const json = {
    type: "object",
    properties: { city: { type: "string", minLength: 1 }, days: { type: "number", default: 3 } },
    required: ["city"],
    additionalProperties: false,
  } as const;
  const body = async (args: unknown) => args;
  const fields = { name: "weather", description: "Tells the weather." };

  test.each<readonly [string, LangChainTool]>([
    ["a zod schema", langChainTool(body, { ...fields, schema: zod4 })],
    ["a JSON schema", langChainTool(body, { ...fields, schema: json as never })],
    [
      "a schema of zod 3",
      langChainTool(body, {
        ...fields,
        schema: z3.object({ city: z3.string().min(1), days: z3.number().default(3) }) as never,
      }),
    ],
    ["a class of its own", new DynamicStructuredTool({ ...fields, schema: zod4, func: body })],
  ])("%s is taken over, checked, and filled in", async (_name, given) => {
    const made = fromLangChain(given, read);
    expect(made.description).toBe("Tells the weather.");
    expect(z.toJSONSchema(made.parameters)).toMatchObject({ type: "object", properties: { city: { minLength: 1 } } });
    expect(checkArguments("weather", made, { city: "" })).toMatchObject({ ok: false });
    expect(checkArguments("weather", made, { city: "Ulm" })).toEqual({ ok: true, args: { city: "Ulm", days: 3 } });
    expect(await run(made, { city: "Ulm", days: 3 })).toMatchObject({ status: "ok", value: { city: "Ulm", days: 3 } });
  });

  test("a tool that takes one text takes it as its input", async () => {
    const made = fromLangChain(new DynamicTool({ ...fields, func: async (input) => `sunny in ${input}` }), read);
    expect(checkArguments("weather", made, { input: "Ulm" })).toMatchObject({ ok: true });
    expect(await run(made, { input: "Ulm" })).toMatchObject({ status: "ok", value: "sunny in Ulm" });
  });

  test("a schema that changes values on the way changes them once", async () => {
    const schema = z.object({ days: z.string().transform(Number) });
    const made = fromLangChain(
      langChainTool(async ({ days }) => days + 1, { ...fields, schema }),
      read,
    );
    expect(checkArguments("weather", made, { days: "3" })).toEqual({ ok: true, args: { days: "3" } });
    expect(await run(made, { days: "3" })).toMatchObject({ status: "ok", value: 4 });
  });

  test("a tool without arguments has none", () => {
    const made = fromLangChain({ name: "now", invoke: async () => "noon" }, read);
    expect(checkArguments("now", made, {})).toEqual({ ok: true, args: {} });
  });

  test.each<readonly [string, unknown, string]>([
    ["no object", { type: "string" }, "no object"],
    ["conditions", { type: "object", if: { properties: { a: { const: 1 } } } }, "if/then/else"],
    ["what is elsewhere", { type: "object", properties: { a: { $ref: "https://x.example/a" } } }, "ref"],
    ["no schema at all", "text", "neither"],
  ])("a schema with %s is refused by the tool's name", (_name, schema, why) => {
    const make = () => fromLangChain({ name: "odd", schema, invoke: async () => null }, read);
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_WORKFLOW" }));
    expect(make).toThrow(/the arguments of the tool odd cannot be described/);
    expect(make).toThrow(why);
  });
});

describe("the declaration", () => {
  test("decides what the tool is, and may describe it anew", () => {
    const made = fromLangChain(
      { name: "pay", description: "Old.", invoke: async () => null },
      { effect: "write", description: "New.", approve: ({ amount }) => Number(amount) > 5, limit: 2 },
    );
    expect(made).toMatchObject({ description: "New.", effect: "write", repeatable: false, limit: 2 });
  });
});

describe("results", () => {
  test.each<readonly [string, unknown, unknown]>([
    ["a text", "sunny", "sunny"],
    ["JSON", { degrees: [20, 25] }, { degrees: [20, 25] }],
    ["a list that is no content", [{ type: "sun" }], [{ type: "sun" }]],
    ["an empty list", [], []],
    ["a message", new ToolMessage({ content: "sunny", tool_call_id: "1" }), "sunny"],
    [
      "content in parts",
      [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
      "a\nb",
    ],
    [
      "a picture",
      [
        { type: "text", text: "see" },
        { type: "image_url", image_url: { url: "data:image/png;base64,aGVsbG8=" } },
      ],
      "see\n[image (image/png), not shown]",
    ],
    [
      "a link",
      [{ type: "file", url: "https://x.example/a", mime_type: "text/csv" }],
      "[file (text/csv) https://x.example/a, not shown]",
    ],
  ])("%s", async (_name, returned, value) => {
    expect(await outcome(returned)).toMatchObject({ status: "ok", value });
  });

  test("of content and artifact, the content", async () => {
    expect(await outcome(["two rows", { rows: [1, 2] }], "content_and_artifact")).toMatchObject({
      status: "ok",
      value: "two rows",
    });
  });

  test("a message that says error is one", async () => {
    const message = new ToolMessage({ content: "no such city", tool_call_id: "1", status: "error" });
    expect(await outcome(message)).toMatchObject({ status: "error", error: "no such city" });
  });

  test("a command is not carried out", async () => {
    expect(await outcome(new Command({ goto: "elsewhere" }))).toMatchObject({
      status: "error",
      errorType: "UNSUPPORTED_RESULT",
    });
  });

  test("an exception is told, and the time limit ends it", async () => {
    const broken = langChainTool(
      async () => {
        throw Object.assign(new Error("no network"), { code: "ENETDOWN" });
      },
      { name: "look", description: "Looks.", schema: z.object({}) },
    );
    expect(await run(fromLangChain(broken, read))).toMatchObject({ status: "error", errorType: "ENETDOWN" });
    let seen: AbortSignal | undefined;
    const slow = langChainTool(
      async (_args, config) => {
        seen = config.signal;
        await new Promise(() => undefined);
      },
      { name: "look", description: "Looks.", schema: z.object({}) },
    );
    expect(await run(fromLangChain(slow, { ...read, timeoutMs: 50 }))).toMatchObject({ status: "timeout" });
    expect(seen?.aborted).toBe(true);
  });

  test("it gets the task, the step and the key as metadata", async () => {
    const given = langChainTool(async (_args, config) => config.metadata, {
      name: "look",
      description: "Looks.",
      schema: z.object({}),
    });
    expect(await run(fromLangChain(given, read))).toMatchObject({
      value: { taskId: "t", step: "work", idempotencyKey: "t/1.0/abcdef" },
    });
  });
});
