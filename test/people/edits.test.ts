import { Command, INTERRUPT } from "@langchain/langgraph";
import { compile, defineTool, defineWorkflow, field, signedIn, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
const resume = (id: string, reply: unknown) => new Command({ resume: { [id]: reply } });
const edit = (amount: number) => ({ type: "edit", args: { order: "1", amount } });

/** Payments that need a person, and that code refuses above 100. */
function payments(approve: (args: { amount: number }) => boolean | { approvers: readonly string[] } = () => true) {
  const paid: number[] = [];
  const pay = defineTool({
    description: "Pays.",
    parameters: z.object({ order: z.string(), amount: z.number() }),
    effect: "write",
    intercept: ({ amount }) => (amount > 100 ? { refuse: "over the limit of 100" } : null),
    approve,
    run: ({ amount }) => {
      paid.push(amount);
      return "paid";
    },
  });
  const workflow = defineWorkflow({
    name: "payments",
    version: 1,
    state: { note: field(z.string()) },
    tools: { pay },
    initial: "paying",
    steps: { paying: { tools: ["pay"], writes: ["note"], to: ["paying", "done"] }, done: { final: true } },
  });
  const model = scriptedModel([
    { calls: [{ tool: "pay", args: { order: "1", amount: 5 } }], next: "done" },
    { patch: { note: "told" }, next: "done" },
  ]);
  const store = sqliteStore(":memory:");
  return { paid, model, store, workflow, graph: compile(workflow, { model, store }) };
}

describe("an edit to what code refuses is no answer: whoever edits is told, and the request waits", () => {
  const notTaken = {
    code: "INVALID_REPLY",
    message: expect.stringContaining("the edit was not taken: over the limit of 100") as string,
  };

  test("of the task itself", async () => {
    const { paid, store, graph } = payments();
    await graph.invoke({ message: "go" }, as("ada"));
    await expect(graph.invoke(resume("a1.0.0", edit(500)), as("ada"))).rejects.toMatchObject(notTaken);
    expect((await store.request("t", "a1.0.0"))?.answer).toBeNull();
    expect((await graph.invoke(resume("a1.0.0", edit(60)), as("ada"))).execution.status).toBe("completed");
    expect(paid).toEqual([60]);
  });

  test.each([
    ["a workflow within it", "w1.0/a1.0.0"],
    ["one of several workflows within it", "w1.0.1/a1.0.0"],
  ])("of %s", async (_what, id) => {
    const { paid, store, model, workflow } = payments();
    const isList = id.startsWith("w1.0.1");
    const next = "done" as const;
    const parent = defineWorkflow({
      name: "parent",
      version: 1,
      state: { note: field(z.string()) },
      initial: "running",
      steps: {
        running: isList
          ? {
              to: ["done"],
              map: { over: () => [1, 2], workflow, input: () => ({}), output: () => ({ next }), parallel: 1 },
            }
          : { to: ["done"], workflow, output: () => ({ next }) },
        done: { final: true },
      },
    });
    const calls = [{ tool: "pay", args: { order: "1", amount: 5 } }];
    const script = scriptedModel([{ calls, next }, ...(isList ? [{ calls, next }] : [])]);
    const graph = compile(parent, { model: isList ? script : model, store });
    await graph.invoke({ message: "go" }, as("ada"));
    if (isList) await graph.invoke(resume("w1.0.0/a1.0.0", "approve"), as("ada"));
    await expect(graph.invoke(resume(id, edit(500)), as("ada"))).rejects.toMatchObject(notTaken);
    expect((await graph.invoke(resume(id, edit(60)), as("ada"))).execution.status).toBe("completed");
    expect(paid).toEqual(isList ? [5, 60] : [60]);
  });
});

test("texts of a form are judged by the tool of the workflow that asked, whatever others within have of that name", async () => {
  const { paid, store, workflow } = payments();
  const other = payments().workflow;
  const next = "done" as const;
  const middle = defineWorkflow({
    name: "middle",
    version: 1,
    state: {},
    initial: "first",
    steps: {
      first: { to: ["second", "done"], workflow, output: () => ({ next }) },
      second: { to: ["done"], workflow: other, output: () => ({ next }) },
      done: { final: true },
    },
  });
  const outer = defineWorkflow({
    name: "outer",
    version: 1,
    state: {},
    initial: "running",
    steps: { running: { to: ["done"], workflow: middle, output: () => ({ next }) }, done: { final: true } },
  });
  const model = scriptedModel([{ calls: [{ tool: "pay", args: { order: "1", amount: 5 } }], next }]);
  const graph = compile(outer, { model, store });
  await graph.invoke({ message: "go" }, as("ada"));
  const texts = (amount: string) => resume("w1.0/w1.0/a1.0.0", { type: "edit", args: { order: "1", amount } });
  for (const [amount, why] of [
    ["500", "over the limit of 100"],
    ["much", "the arguments of pay do not fit"],
  ] as const) {
    const refusal = { code: "INVALID_REPLY", message: expect.stringContaining(why) as string };
    await expect(graph.invoke(texts(amount), as("ada"))).rejects.toMatchObject(refusal);
  }
  expect((await graph.invoke(texts("60"), as("ada"))).execution.status).toBe("completed");
  expect(paid).toEqual([60]);
});

describe("an edited call that does not run: model and log are told which call that was", () => {
  test("where code refuses it", async () => {
    const { paid, model, store, graph } = payments();
    await graph.invoke({ message: "go" }, as("ada"));
    // An answer that was taken before code refused such calls, or that came through a parent.
    await store.answer("t", "a1.0.0", { answer: { type: "edit", args: { order: "1", amount: 500 } }, who: "ada" });
    const done = await graph.invoke(null, as("ada"));
    expect(done.execution.status).toBe("completed");
    expect(paid).toEqual([]);
    expect(model.prompts[1]).toContain('1.0 pay refused: with {order: "1", amount: 500}: over the limit of 100');
    const log = JSON.stringify((await store.events("t")).filter(({ kind }) => kind === "result"));
    expect(log).toContain('"args":{"order":"1","amount":500}');
  });

  test("where another person rejects it", async () => {
    const { paid, model, graph } = payments(({ amount }) => amount < 50 || { approvers: ["bob"] });
    await graph.invoke({ message: "go" }, as("ada"));
    const again = await graph.invoke(resume("a1.0.0", edit(60)), as("ada"));
    expect(again[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "a1.0.0e1", args: { amount: 60 } }]);
    await graph.invoke(resume("a1.0.0e1", { type: "reject", message: "too dear" }), as("bob"));
    expect(paid).toEqual([]);
    expect(model.prompts[1]).toContain('1.0 pay refused: with {order: "1", amount: 60}: too dear');
  });
});
