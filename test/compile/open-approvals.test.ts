import { compile, defineTool, defineWorkflow, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { openApprovals } from "../../src/compile/open-approvals.ts";

const pay = defineTool({
  description: "Pays.",
  parameters: z.object({ amount: z.number() }),
  effect: "write",
  approve: true,
  run: () => "paid",
});

const payment = defineWorkflow({
  name: "payment",
  version: 1,
  state: {},
  tools: { pay },
  initial: "paying",
  steps: { paying: { tools: ["pay"], to: ["done"] }, done: { final: true } },
});

const order = (version: number, step: string) =>
  defineWorkflow({
    name: "order",
    version,
    state: {},
    ...(version > 1 ? { migrations: { [version]: { renameSteps: { settle: step } } } } : {}),
    initial: step,
    steps: { [step]: { workflow: payment, to: ["done"] }, done: { final: true } },
  });

test("what a child workflow asks is listed once, also where its step has another name since", async () => {
  const store = sqliteStore(":memory:");
  const model = scriptedModel([{ calls: [{ tool: "pay", args: { amount: 5 } }], next: "done" }]);
  await compile(order(1, "settle"), { store, model }).invoke({ message: "go" }, { configurable: { thread_id: "t" } });
  const listed = async () => (await openApprovals(store, await store.tasks())).map(({ row }) => row.taskId);
  expect(await listed()).toEqual(["t"]);
  compile(order(2, "charge"), { store, model });
  const lease = await store.acquire("t");
  expect(await store.migrate(lease, "keep")).toMatchObject({ kind: "migrated" });
  await store.release(lease);
  expect((await store.tasks()).map(({ taskId }) => taskId).toSorted()).toEqual(["t", "t/settle/1.0"]);
  expect(await listed()).toEqual(["t"]);
});
