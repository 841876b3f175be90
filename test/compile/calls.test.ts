import { Command, INTERRUPT } from "@langchain/langgraph";
import { answer, compile, defineTool, defineWorkflow, field, signedIn, sqliteStore } from "statecard";
import { onFaultPoint, scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";

/** A workflow that pays, and the list of payments that really happened. */
function payments(approve?: unknown) {
  const ledger: { order: string; amount: number; key: string }[] = [];
  const pay = defineTool({
    description: "Pays.",
    parameters: z.object({ order: z.string(), amount: z.number() }),
    effect: "write",
    run: ({ order, amount }, { idempotencyKey }) => {
      if (order === "broken") throw new Error("no such order");
      ledger.push({ order, amount, key: idempotencyKey });
      return { receipt: `r-${order}` };
    },
  });
  const look = defineTool({
    description: "Looks.",
    parameters: z.object({ order: z.string() }),
    effect: "read",
    run: ({ order }) => ({ order, open: true }),
  });
  const workflow = defineWorkflow({
    name: "payments",
    version: 1,
    state: { note: field(z.string()) },
    tools: { pay, look },
    initial: "acting",
    steps: {
      acting: {
        tools: ["pay", "look"],
        writes: ["note"],
        to: ["acting", "done"],
        ...(approve ? { approve: approve as never } : {}),
      },
      done: { final: true },
    },
  });
  return { workflow, ledger };
}

const config = { configurable: { thread_id: "t" } };
const call = (order: string, amount: number) => ({ tool: "pay", args: { order, amount } });

test("calls run, and the patch and the move commit with their results", async () => {
  const { workflow, ledger } = payments();
  const model = scriptedModel([
    { calls: [call("77", 5), { tool: "look", args: { order: "77" } }], patch: { note: "paid" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(result.execution.status).toBe("completed");
  expect(result.note).toBe("paid");
  expect(ledger).toEqual([{ order: "77", amount: 5, key: expect.stringMatching(/^t\/1\.0\//) }]);
  expect(result.execution.observation).toMatchObject({
    kind: "results",
    results: [
      { id: "1.0", tool: "pay", status: "ok", value: { receipt: "r-77" } },
      { id: "1.1", tool: "look", status: "ok", value: { order: "77", open: true } },
    ],
  });
});

test("where a call fails, its patch and move are dropped and the model sees why", async () => {
  const { workflow, ledger } = payments();
  const model = scriptedModel([
    { calls: [call("broken", 5), call("78", 6)], patch: { note: "paid" }, next: "done" },
    { patch: { note: "failed" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(result.note).toBe("failed");
  expect(ledger).toHaveLength(1);
  expect(model.prompts[1]).toMatch(/1\.0 pay error\b.*no such order/);
  expect(model.prompts[1]).toContain("1.1 pay ok");
});

test("unknown tools and wrong arguments go back to the model with the reason", async () => {
  const { workflow } = payments();
  const model = scriptedModel([
    { calls: [{ tool: "play", args: {} }] },
    { calls: [{ tool: "pay", args: { order: "1" } }] },
    { next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(result.execution.refused).toBe(2);
  expect(model.prompts[1]).toContain('no tool "play"');
  expect(model.prompts[2]).toContain("amount");
});

test("two calls that need approval are both asked for; approve one, reject the other", async () => {
  const { workflow, ledger } = payments(["pay"]);
  const model = scriptedModel([
    { calls: [call("1", 5), call("2", 6), { tool: "look", args: { order: "1" } }], next: "done" },
    { next: "done" },
  ]);
  const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
  const paused = await graph.invoke({ message: "go" }, config);
  const requests = paused[INTERRUPT]?.[0]?.value?.requests ?? [];
  expect(requests.map(({ id, kind, tool }) => ({ id, kind, tool }))).toEqual([
    { id: "a1.0.0", kind: "approval", tool: "pay" },
    { id: "a1.1.0", kind: "approval", tool: "pay" },
  ]);
  expect(ledger).toEqual([]);
  const half = await graph.invoke(
    new Command({ resume: { "a1.1.0": { type: "reject", message: "too dear" } } }),
    config,
  );
  expect(half[INTERRUPT]?.[0]?.value?.requests.map(({ id }) => id)).toEqual(["a1.0.0"]);
  const done = await graph.invoke(answer(half, "approve"), config);
  expect(done.execution.status).toBe("completed");
  expect(ledger.map(({ order }) => order)).toEqual(["1"]);
  expect(model.prompts[1]).toContain("1.1 pay refused: too dear");
});

test("one person cannot fill a quorum of two, and nobody who is not signed in counts", async () => {
  const { workflow, ledger } = payments({ pay: { count: 2, approvers: ["ada", "bob", "eve"] } });
  const graph = compile(workflow, {
    model: scriptedModel([{ calls: [call("1", 5)], next: "done" }]),
    store: sqliteStore(":memory:"),
  });
  const paused = await graph.invoke({ message: "go" }, config);
  const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
  await expect(graph.invoke(answer(paused, "approve"), config)).rejects.toMatchObject({ code: "APPROVER_UNKNOWN" });
  await expect(graph.invoke(answer(paused, "approve"), as("mallory"))).rejects.toMatchObject({
    code: "APPROVER_UNKNOWN",
  });
  const first = await graph.invoke(answer(paused, "approve"), as("ada"));
  expect(first[INTERRUPT]).toHaveLength(1);
  await expect(graph.invoke(answer(paused, "approve"), as("ada"))).rejects.toMatchObject({ code: "ALREADY_APPROVED" });
  expect(ledger).toEqual([]);
  const done = await graph.invoke(answer(paused, "approve"), as("bob"));
  expect(done.execution.status).toBe("completed");
  expect(ledger).toHaveLength(1);
  await expect(graph.invoke(answer(paused, "approve"), as("eve"))).rejects.toMatchObject({ code: "TASK_FINISHED" });
});

test("an edited amount is checked again", async () => {
  const rule = (args: { amount: number }) => args.amount > 100 && { count: args.amount > 1000 ? 2 : 1 };
  const { workflow, ledger } = payments({ pay: rule });
  const graph = compile(workflow, {
    model: scriptedModel([{ calls: [call("1", 500)], next: "done" }]),
    store: sqliteStore(":memory:"),
  });
  const paused = await graph.invoke({ message: "go" }, config);
  const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
  const edit = (amount: unknown) =>
    new Command({
      resume: { decisions: [{ type: "edit", editedAction: { name: "pay", args: { order: "1", amount } } }] },
    });
  await expect(graph.invoke(edit("much"), as("ada"))).rejects.toMatchObject({ code: "INVALID_REPLY" });
  const again = await graph.invoke(edit("5000"), as("ada"));
  expect(again[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "a1.0.0e1", args: { amount: 5000 }, count: 2 }]);
  await expect(graph.invoke(answer(again, "approve"), as("ada"))).rejects.toMatchObject({ code: "ALREADY_APPROVED" });
  await expect(graph.invoke(answer(paused, "approve"), as("bob"))).rejects.toMatchObject({ code: "STALE_RESUME" });
  const done = await graph.invoke(answer(again, "approve"), as("bob"));
  expect(done.execution.status).toBe("completed");
  expect(ledger).toMatchObject([{ amount: 5000 }]);
});

test("a rule that a release has made stricter holds for a call that waits already", async () => {
  const lax = payments({ pay: { count: 1 } });
  const store = sqliteStore(":memory:");
  const model = scriptedModel([{ calls: [call("1", 5)], next: "done" }]);
  const paused = await compile(lax.workflow, { model, store }).invoke({ message: "go" }, config);
  const strict = payments({ pay: { count: 2 } });
  const graph = compile(strict.workflow, { model, store });
  const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
  const again = await graph.invoke(answer(paused, "approve"), as("ada"));
  expect(again[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "a1.0.0e1", count: 2, args: { amount: 5 } }]);
  expect(strict.ledger).toEqual([]);
  await graph.invoke(answer(again, "approve"), as("ada"));
  const done = await graph.invoke(answer(again, "approve"), as("bob"));
  expect(done.execution.status).toBe("completed");
  expect(strict.ledger).toHaveLength(1);
});

test("what a person says about one attempt counts for no other", async () => {
  const clock = { time: 1_000_000, now: () => clock.time };
  const { workflow, ledger } = payments();
  const store = sqliteStore(":memory:", { clock });
  const graph = () =>
    compile(workflow, { model: scriptedModel([{ calls: [call("1", 5)], next: "done" }]), store, clock });
  const crashAfterCall = async (input: unknown) => {
    onFaultPoint((point) => {
      if (point === "after-call") throw new Error("killed");
    });
    await expect(graph().invoke(input as never, config)).rejects.toThrow("killed");
    onFaultPoint(null);
    clock.time += 60_000;
  };
  await crashAfterCall({ message: "go" });
  ledger.pop();
  const first = await graph().invoke(null, config);
  expect(first[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "u1.0.0", kind: "unknown" }]);
  // It did not happen, so it is run again; and again nobody knows how that ended.
  await crashAfterCall(answer(first, "reject"));
  expect(ledger).toHaveLength(1);
  const second = await graph().invoke(null, config);
  expect(second[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "u1.0.0e2", kind: "unknown" }]);
  const done = await graph().invoke(answer(second, "approve"), config);
  expect(done.execution.status).toBe("completed");
  expect(ledger).toHaveLength(1);
});

test.each([
  ["with tools", { tools: ["pay"] as const }, "{patch, clear, next, calls, ask, reply, because}"],
  ["without tools", {}, "{patch, clear, next, ask, reply, because}"],
])("code in a step %s is told what it may return", async (_what, step, told) => {
  const pay = defineTool({ description: "Pays.", parameters: z.object({}), effect: "write", run: () => "paid" });
  const workflow = defineWorkflow({
    name: "telling",
    version: 1,
    state: {},
    tools: { pay },
    initial: "working",
    steps: {
      working: { ...step, to: ["paying"], run: () => ({ goto: "done" }) as object },
      paying: { tools: ["pay"], to: ["done"] },
      done: { final: true },
    },
  });
  const run = compile(workflow).invoke({ message: "go" }, config);
  await expect(run).rejects.toMatchObject({ code: "STEP_FAILED", message: expect.stringContaining(told) as string });
});
