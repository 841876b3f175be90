import { compile, defineTool, defineWorkflow, planField, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";

test("whether text from outside reached a call is found out once for each call, however many ways lead to it", async () => {
  // Our own data, so that every way back has to be looked at to know that none brings text from outside.
  const add = defineTool({
    description: "Adds.",
    parameters: z.object({ numbers: z.array(z.number()) }),
    effect: "read",
    trusted: true,
    run: ({ numbers }) =>
      Math.min(
        1000,
        numbers.reduce((sum, number) => sum + number, 0),
      ),
  });
  const workflow = defineWorkflow({
    name: "adding",
    version: 1,
    state: { plan: planField() },
    tools: { add },
    initial: "work",
    steps: { work: { plan: { into: "plan" }, tools: ["add"], to: ["done"] }, done: { final: true } },
  });
  // Each uses the two before it: more than ten billion ways lead from the last to the first.
  const calls = Array.from({ length: 50 }, (_, index) => {
    const numbers = index < 2 ? [1] : [{ $ref: `c${index}` }, { $ref: `c${index - 1}` }];
    return { tool: "add", args: { numbers } };
  });
  const model = scriptedModel([{ calls }, { next: "done" }]);
  const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
  const { plan } = await graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
  expect(plan?.calls.map(({ result }) => result).slice(0, 7)).toEqual([1, 1, 2, 3, 5, 8, 13]);
  expect(plan).toMatchObject({ met: true, concluded: true });
});
