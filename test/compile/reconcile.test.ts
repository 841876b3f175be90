import { Command, INTERRUPT } from "@langchain/langgraph";
import { compile, defineTool, defineWorkflow, field, sqliteStore } from "statecard";
import { onFaultPoint, scriptedModel } from "statecard/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";

const config = { configurable: { thread_id: "t" } };

/** A task whose process ended between a payment and the record of it, in the hands of the next process. */
async function afterCrash(reconcile: () => unknown) {
  const clock = { time: 1_000_000, now: () => clock.time };
  const paid: string[] = [];
  const pay = defineTool({
    description: "Pays.",
    parameters: z.object({ order: z.string() }),
    effect: "write",
    run: ({ order }) => {
      paid.push(order);
      return { receipt: `r-${order}` };
    },
    reconcile: reconcile as never,
  });
  const workflow = defineWorkflow({
    name: "payments",
    version: 1,
    state: { receipt: field(z.string()).runtimeOnly() },
    tools: { pay },
    onResult: { pay: ({ value }) => ({ receipt: JSON.stringify(value) }) },
    initial: "paying",
    steps: { paying: { tools: ["pay"], to: ["paid"] }, paid: { final: true } },
  });
  const store = sqliteStore(":memory:", { clock });
  onTestFinished(async () => {
    onFaultPoint(null);
    await store.close();
  });
  const model = () => scriptedModel([{ calls: [{ tool: "pay", args: { order: "7" } }], next: "paid" }]);
  const graph = () => compile(workflow, { model: model(), store, clock });
  onFaultPoint((point) => {
    if (point === "after-call") throw new Error("killed");
  });
  await expect(graph().invoke({ message: "go" }, config)).rejects.toThrow("killed");
  onFaultPoint(null);
  clock.time += 60_000;
  return { graph, paid, store };
}

test("a yes of the wrong shape loses no result: a person is asked, and told what is wrong with it", async () => {
  const { graph, paid, store } = await afterCrash(() => ({ happened: true, result: { receipt: "r-7" } }));
  const paused = await graph().invoke(null, config);
  const [request] = paused[INTERRUPT]?.[0]?.value?.requests ?? [];
  expect(request).toMatchObject({ id: "u1.0.0", kind: "unknown" });
  expect(request?.question).toMatch(/^pay: order 7 was begun and left no result\. Did it happen\?/);
  expect(request?.question).toContain("The reconcile of pay could not tell: it gave no { happened: true, value }");
  expect(request?.question).toContain('value is missing, it has "result"');
  expect((await store.request("t", "u1.0.0"))?.request.question).toBe(request?.question);
  const done = await graph().invoke(new Command({ resume: { "u1.0.0": "approve" } }), config);
  expect(done).toMatchObject({
    receipt: '"a person confirmed that it happened"',
    execution: { status: "completed" },
  });
  expect(paid).toEqual(["7"]);
});

test("a yes with its value is the call's result, and nobody is asked", async () => {
  const { graph, paid } = await afterCrash(() => ({ happened: true, value: { receipt: "r-7" } }));
  const done = await graph().invoke(null, config);
  expect(done).toMatchObject({ receipt: '{"receipt":"r-7"}', execution: { status: "completed" } });
  expect(paid).toEqual(["7"]);
});
