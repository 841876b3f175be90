import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, defineTool, defineWorkflow, field, sqliteStore, type ToolContext } from "statecard";
import { tool as langChainTool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { scriptedModel } from "statecard/testing";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { allowPaths } from "../../src/tools/interceptors.ts";
import { fromLangChain } from "../../src/tools/langchain.ts";
import { ToolError } from "../../src/tools/tool-error.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "reports-")));
writeFileSync(join(folder, "2025-q3.txt"), "revenue 412");
afterAll(() => rmSync(folder, { recursive: true }));

/** A task that reads reports; every body that runs is noted. */
function reports() {
  const ran: string[] = [];
  const note = (what: string, { idempotencyKey }: ToolContext) => ran.push(`${what} ${idempotencyKey.split("/")[1]}`);
  const path = z.object({ path: z.string() });
  const list = defineTool({
    description: "Lists a folder.",
    effect: "read",
    parameters: path,
    intercept: allowPaths([folder]),
    run: async (args, context) => {
      note(`list ${args.path}`, context);
      return readdir(join(folder, args.path));
    },
  });
  const read = defineTool({
    description: "Reads a report.",
    effect: "read",
    parameters: path,
    intercept: allowPaths([folder]),
    run: async (args, context) => {
      note(`read ${args.path}`, context);
      return readFile(join(folder, args.path), "utf8").catch((cause: unknown) => {
        throw new ToolError(`there is no report ${args.path}`, { type: "NOT_FOUND", hint: "list the folder", cause });
      });
    },
  });
  const workflow = defineWorkflow({
    name: "reports",
    version: 1,
    goal: "Find the revenue of the third quarter.",
    state: { revenue: field(z.number()) },
    tools: { list, read },
    initial: "looking",
    steps: { looking: { tools: ["list", "read"], writes: ["revenue"], to: ["done"] }, done: { final: true } },
  });
  return { workflow, ran };
}

const call = (tool: string, args: Record<string, unknown>) => ({ calls: [{ tool, args }] });

test("unknown tool, wrong arguments, a forbidden path, an exception: each goes back to the model, which mends it", async () => {
  const { workflow, ran } = reports();
  const model = scriptedModel([
    call("open", { path: "q3.txt" }),
    call("read", { file: "q3.txt" }),
    call("read", { path: "/etc/passwd" }),
    call("read", { path: "q3.txt" }),
    call("list", { path: "." }),
    call("read", { path: "2025-q3.txt" }),
    { patch: { revenue: 412 }, next: "done" },
  ]);
  const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
  const done = await graph.invoke({ message: "What was it?" }, { configurable: { thread_id: "t" } });
  expect(done).toMatchObject({ revenue: 412, execution: { status: "completed", refused: 2 } });
  // What was refused has never run.
  expect(ran.map((line) => line.replace(/ \S+$/, ""))).toEqual(["read q3.txt", "list .", "read 2025-q3.txt"]);
  expect(model.prompts[1]).toContain('has no tool "open"; its tools are list, read');
  expect(model.prompts[2]).toContain("the arguments of read do not fit");
  expect(model.prompts[3]).toContain("read refused");
  expect(model.prompts[3]).toContain("/etc/passwd");
  expect(model.prompts[3]).toContain(`the allowed folders: ${folder}`);
  expect(model.prompts[4]).toContain("read error");
  expect(model.prompts[4]).toContain("there is no report q3.txt");
  expect(model.prompts[5]).toContain("2025-q3.txt");
});

test("the workflow's interceptors check every tool, before any person is asked", async () => {
  const { workflow, ran } = reports();
  const model = scriptedModel([
    call("read", { path: "2025-q3.txt" }),
    call("list", { path: "." }),
    { patch: { revenue: 0 }, next: "done" },
  ]);
  const steps = { ...workflow.steps, looking: { ...workflow.steps.looking, approve: ["read"] } };
  const guarded = { ...workflow, steps, intercept: [() => ({ refuse: "closed on Sundays" })] } as typeof workflow;
  const graph = compile(guarded, { model, store: sqliteStore(":memory:") });
  const done = await graph.invoke({ message: "What was it?" }, { configurable: { thread_id: "t" } });
  expect(done.execution.status).toBe("completed");
  expect(ran).toEqual([]);
  expect(model.prompts[1]).toContain("read refused: closed on Sundays");
  expect(model.prompts[2]).toContain("list refused: closed on Sundays");
});

test("a LangChain tool runs in a workflow; a pause that it raises by itself is an error", async () => {
  const fields = { description: "Asks.", schema: z.object({}) };
  const echo = fromLangChain(
    langChainTool(async () => "hello", { ...fields, name: "echo" }),
    { effect: "read" },
  );
  const ask = fromLangChain(
    langChainTool(async () => interrupt("may I?"), { ...fields, name: "ask" }),
    { effect: "read" },
  );
  const workflow = defineWorkflow({
    name: "asking",
    version: 1,
    state: {},
    tools: { ask, echo },
    initial: "work",
    steps: { work: { tools: ["ask", "echo"], to: ["done"] }, done: { final: true } },
  });
  const model = scriptedModel([{ calls: [{ tool: "echo", args: {} }] }, call("ask", {}), { next: "done" }]);
  const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
  const done = await graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
  expect(done.execution.status).toBe("completed");
  expect(model.prompts[1]).toContain("hello");
  expect(model.prompts[2]).toContain("ask error: it tried to pause or move the task");
});
