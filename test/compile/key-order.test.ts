import { setImmediate as turn } from "node:timers/promises";
import { compile, defineTool, defineWorkflow, planField, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";

const config = { configurable: { thread_id: "t" } };

/** Runs calls as one plan; `write` remembers when it began and ended. */
async function run(calls: readonly object[]) {
  const log: string[] = [];
  const look = defineTool({
    description: "Finds a key.",
    parameters: z.object({}),
    effect: "read",
    run: () => ({ key: "k", text: "no number" }),
  });
  const write = defineTool({
    description: "Writes under a key.",
    parameters: z.object({
      name: z.string(),
      key: z.string(),
      size: z.number().optional(),
      after: z.string().optional(),
    }),
    effect: "write",
    conflicts: ({ key }) => key,
    async run({ name, key }) {
      log.push(`${name} begins`);
      for (let index = 0; index < 20; index++) await turn();
      log.push(`${name} ends`);
      return { name, key };
    },
  });
  const workflow = defineWorkflow({
    name: "writing",
    version: 1,
    state: { plan: planField() },
    tools: { look, write },
    initial: "work",
    steps: {
      work: { plan: { into: "plan", maxReplans: 0 }, tools: ["look", "write"], to: ["done"] },
      done: { final: true },
    },
  });
  const model = scriptedModel([{ calls: [...calls] }, { next: "done" }]);
  const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
  const { plan } = await graph.invoke({ message: "go" }, config);
  return { log, statuses: plan?.calls.map(({ id, status }) => `${id} ${status}`) };
}

const look = { id: "look", tool: "look", args: {} };
const write = (id: string, more: object = {}) => ({
  id,
  tool: "write",
  args: { name: id, key: { $ref: "look.key" }, ...more },
});

test("calls whose keys are known from a result only still run one at a time, in order", async () => {
  const { log } = await run([look, write("one"), write("two"), write("three")]);
  expect(log).toEqual(["one begins", "one ends", "two begins", "two ends", "three begins", "three ends"]);
});

test("a call that waited for an earlier one's key runs when that one turns out not to run at all", async () => {
  // The second is looked at first, since another waits for it.
  const misfit = write("one", { size: { $ref: "look.text" } });
  const { log, statuses } = await run([look, misfit, write("two"), write("three", { after: { $ref: "two.name" } })]);
  expect(statuses).toEqual(["look ok", "one refused", "two ok", "three ok"]);
  expect(log).toEqual(["two begins", "two ends", "three begins", "three ends"]);
});
