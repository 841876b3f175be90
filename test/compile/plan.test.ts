import { compile, defineTool, defineWorkflow, field, planField, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";

const config = { configurable: { thread_id: "t" } };

/** A small market: companies with codes, and figures by code. */
function research(options: { maxReplans?: number; maxRounds?: number } = {}) {
  const called: string[] = [];
  const search = defineTool({
    description: "Finds a company.",
    parameters: z.object({ name: z.string() }),
    effect: "read",
    result: z.object({ code: z.string() }),
    run: ({ name }) => {
      called.push(`search ${name}`);
      if (name === "unknown") throw new Error("no such company");
      return { code: name === "alpha" ? "000001" : "000002" };
    },
  });
  const figures = defineTool({
    description: "Gives the revenue of three periods.",
    parameters: z.object({ code: z.string() }),
    effect: "read",
    run: ({ code }) => {
      called.push(`figures ${code}`);
      return { code, revenue: code === "000001" ? [12.3, 14.1, 15.6] : [] };
    },
  });
  const workflow = defineWorkflow({
    name: "research",
    version: 1,
    state: { plan: planField(), answer: field(z.string()) },
    tools: { search, figures },
    initial: "looking",
    steps: {
      looking: { plan: { into: "plan", ...options }, tools: ["search", "figures"], writes: ["answer"], to: ["done"] },
      done: { requires: ["answer"], final: true },
    },
  });
  return { workflow, called };
}

const look = (name: string, id: string) => ({ id, tool: "search", args: { name } });
const figuresOf = (call: string, id: string, expect?: object[]) => ({
  id,
  tool: "figures",
  args: { code: { $ref: `${call}.code` } },
  ...(expect ? { expect } : {}),
});

test("a plan runs in the order of its references, is kept in the state, and is concluded", async () => {
  const { workflow, called } = research();
  const model = scriptedModel([
    { calls: [look("alpha", "a"), figuresOf("a", "f", [{ path: "revenue.2", is: "equal to", value: 15.6 }])] },
    { patch: { answer: "15.6" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(called).toEqual(["search alpha", "figures 000001"]);
  expect(result.answer).toBe("15.6");
  expect(result.plan).toMatchObject({
    mode: "plan",
    met: true,
    concluded: true,
    calls: [
      { id: "a", status: "ok", result: { code: "000001" } },
      { id: "f", args: { code: { $ref: "a.code" } }, status: "ok", result: { revenue: [12.3, 14.1, 15.6] } },
    ],
  });
});

test("an unmet expectation leads to another plan, then to a free loop, then to a truthful end", async () => {
  const { workflow } = research({ maxReplans: 1, maxRounds: 2 });
  const unmet = [look("beta", "a"), figuresOf("a", "f", [{ path: "revenue", is: "not empty" }])];
  const model = scriptedModel([
    { calls: unmet },
    { calls: unmet },
    { calls: [{ tool: "search", args: { name: "unknown" } }] },
    { calls: [{ tool: "search", args: { name: "unknown" } }] },
    { patch: { answer: "no figures of beta are known" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(result.execution.status).toBe("completed");
  expect(result.plan).toMatchObject({ mode: "free", replans: 1, rounds: 2, met: false });
  expect(result.execution.toolUse?.search).toMatchObject({ calls: 4 });
});
