import { compile, defineTool, defineWorkflow, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import type { OpenPlace } from "../../src/compile/store.ts";
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
  const listed = async () => (await openApprovals(store, { limit: 10 })).approvals.map(({ row }) => row.taskId);
  expect(await listed()).toEqual(["t"]);
  compile(order(2, "charge"), { store, model });
  const lease = await store.acquire("t");
  expect(await store.migrate(lease, "keep")).toMatchObject({ kind: "migrated" });
  await store.release(lease);
  expect((await store.tasks()).map(({ taskId }) => taskId).toSorted()).toEqual(["t", "t/settle/1.0"]);
  expect(await listed()).toEqual(["t"]);
});

test("pages go on behind what was shown, and hold nothing twice", async () => {
  const store = sqliteStore(":memory:");
  const model = scriptedModel(
    Array.from({ length: 4 }, () => ({ calls: [{ tool: "pay", args: { amount: 5 } }], next: "done" })),
  );
  const config = (thread_id: string) => ({ configurable: { thread_id } });
  await compile(order(1, "settle"), { store, model }).invoke({ message: "go" }, config("b"));
  for (const taskId of ["a", "c", "d"])
    await compile(payment, { store, model }).invoke({ message: "go" }, config(taskId));
  const pages: string[][] = [];
  for (let after: OpenPlace | undefined; ;) {
    const { approvals, next } = await openApprovals(store, { limit: 2, ...(after ? { after } : {}) });
    pages.push(approvals.map(({ row }) => row.taskId));
    if (!next) break;
    after = next;
  }
  expect(pages).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
});
