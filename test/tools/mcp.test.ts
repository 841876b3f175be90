import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import type { LangChainTool } from "../../src/tools/langchain.ts";
import { mcpTools } from "../../src/tools/mcp.ts";
import { checkArguments } from "../../src/workflow/calls.ts";
import { run } from "../support/calls.ts";

const script = fileURLToPath(new URL("../support/mcp-server.ts", import.meta.url));
const client = new MultiServerMCPClient({
  mcpServers: { test: { transport: "stdio", command: process.execPath, args: ["--import", "tsx", script] } },
});
afterAll(() => client.close());

describe("tools of a real server", () => {
  test("come with their names, descriptions and arguments, and are taken for careful ones", async () => {
    const tools = await mcpTools(client);
    expect(Object.keys(tools).toSorted()).toEqual(["add", "break", "draw", "fail", "files_list", "hang", "say"]);
    expect(tools.add).toMatchObject({
      description: "Adds two numbers. (Its server says that it only reads and can be repeated without harm.)",
      effect: "write",
      repeatable: false,
      trusted: false,
    });
    expect(tools.files_list?.description).toBe("Lists. (Its server says that it may destroy something.)");
    const { add } = tools;
    if (!add) throw new Error("add is missing");
    expect(checkArguments("add", add, { a: "x" })).toMatchObject({ ok: false });
    expect(checkArguments("add", add, { a: 2 })).toEqual({ ok: true, args: { a: 2, b: 1 } });
  });

  test("hints count where they are believed, and a declaration counts more", async () => {
    const tools = await mcpTools(client, { say: { effect: "none", description: "Echo." } }, { believeHints: true });
    expect(tools.add).toMatchObject({ effect: "read", repeatable: true, trusted: false });
    expect(tools.say).toMatchObject({ effect: "none", description: "Echo." });
    expect(tools.draw).toMatchObject({ effect: "write", repeatable: false });
  });

  test("a tool is declared by either of its names, and left out by false", async () => {
    const tools = await mcpTools(client, { "files.list": { effect: "read", limit: 3 }, draw: false, say: false });
    expect(tools.files_list).toMatchObject({ effect: "read", limit: 3 });
    expect(Object.keys(tools)).not.toContain("draw");
    expect((await mcpTools(client, { files_list: { effect: "read" } })).files_list?.effect).toBe("read");
  });

  test.each<readonly [string, Record<string, unknown>, object]>([
    ["add", { a: 2, b: 3 }, { status: "ok", value: { sum: 5 } }],
    ["say", { what: "hello" }, { status: "ok", value: "hello\nhello" }],
    ["files_list", {}, { status: "ok", value: "a.txt" }],
    ["draw", {}, { status: "ok", value: "here\n[image (image/png), not shown]" }],
    ["fail", {}, { status: "error", errorType: "ToolException", error: expect.stringContaining("no such file") }],
    ["break", {}, { status: "error", errorType: "ToolException", error: expect.stringContaining("out of order") }],
  ])("%s answers", async (name, args, result) => {
    const tool = (await mcpTools(client))[name];
    if (!tool) throw new Error(`${name} is missing`);
    expect(await run(tool, args)).toMatchObject(result);
  });

  test("one that hangs is a timeout, and the server goes on", async () => {
    const { hang, say } = await mcpTools(client, { hang: { effect: "read", timeoutMs: 100 } });
    if (!hang || !say) throw new Error("a tool is missing");
    expect(await run(hang)).toMatchObject({ status: "timeout", errorType: "TIMEOUT" });
    expect(await run(say, { what: "still here" })).toMatchObject({ status: "ok" });
  });

  test("a declaration of a tool that is not there is a mistake", async () => {
    await expect(mcpTools(client, { fial: { effect: "read", approve: true } })).rejects.toMatchObject({
      code: "INVALID_WORKFLOW",
      message: expect.stringContaining('no server has a tool "fial"; there are: add'),
    });
  });
});

describe("names", () => {
  const named = (...names: readonly string[]): readonly LangChainTool[] =>
    names.map((name) => ({ name, invoke: async () => null }));

  test("what ours cannot hold is mapped", async () => {
    const long = "x".repeat(80);
    const tools = await mcpTools(named("a.b/c", "2nd", "größe", long, "constructor"));
    expect(Object.keys(tools)).toEqual(["a_b_c", "_2nd", "größe", "x".repeat(64), "constructor"]);
  });

  test("names that collide are told together", async () => {
    await expect(mcpTools(named("a.b", "a/b", "c", "c"))).rejects.toMatchObject({
      code: "INVALID_WORKFLOW",
      details: { faults: [{ path: "tools.a_b" }, { path: "tools.c" }] },
      message: expect.stringContaining('"a.b", "a/b" would all be named a_b'),
    });
  });
});
