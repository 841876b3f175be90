import { answer, compile, defineTool, defineWorkflow, field, signedIn, sqliteStore, wakeDue } from "statecard";
import { scriptedModel } from "statecard/testing";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const config = { configurable: { thread_id: "t" } };
const asAda = { configurable: { thread_id: "t", ...signedIn("ada") } };

const approving = defineWorkflow({
  name: "approving",
  version: 1,
  state: { note: field(z.string()).writeOnce() },
  tools: {
    send: defineTool({
      description: "Sends.",
      parameters: z.object({ to: z.string() }),
      effect: "write",
      run: () => "sent",
    }),
  },
  initial: "talking",
  steps: {
    talking: { writes: ["note"], to: ["talking", "sending"] },
    sending: {
      requires: ["note"],
      tools: ["send"],
      approve: ["send"],
      deadline: { afterMs: 1000, to: "talking" },
      to: ["talking", "done"],
    },
    done: { final: true },
  },
});

describe.each(["store", "in-process"] as const)("an override (%s)", (kind) => {
  const where = () => (kind === "store" ? { store: sqliteStore(":memory:") } : { checkpointer: new MemorySaver() });

  test("moves a task past the table, with a name and a reason in the log", async () => {
    const graph = compile(approving, { model: scriptedModel([{ ask: "What?" }]), ...where() });
    await graph.invoke({ message: "hello" }, config);
    await graph.override(asAda, { step: "done", values: { note: "closed by hand" }, reason: "duplicate" });
    const { values } = await graph.getState(config);
    expect(values).toMatchObject({
      note: "closed by hand",
      execution: { step: "done", status: "completed", pending: null },
    });
    const event = (await graph.runtime.store.events("t")).at(-1);
    expect(event).toMatchObject({
      kind: "override",
      data: { who: "ada", reason: "duplicate", from: "talking", to: "done" },
    });
    await expect(graph.invoke({ message: "again" }, config)).rejects.toMatchObject({ code: "TASK_FINISHED" });
  });

  test("is refused without a name, without a reason, and outside the schema, and changes nothing", async () => {
    const graph = compile(approving, { model: scriptedModel([{ ask: "What?" }]), ...where() });
    await graph.invoke({ message: "hello" }, config);
    const before = await graph.getState(config);
    const refused = [
      [config, { step: "done", reason: "because" }, "OVERRIDE_REFUSED"],
      [
        { configurable: { thread_id: "t", __statecard_person: { name: "ada" } } },
        { step: "done", reason: "x" },
        "OVERRIDE_REFUSED",
      ],
      [asAda, { step: "done", reason: " " }, "OVERRIDE_REFUSED"],
      [asAda, { step: "nowhere", reason: "x" }, "INVALID_UPDATE"],
      [asAda, { values: { note: 5 }, reason: "x" }, "INVALID_UPDATE"],
      [asAda, { values: { other: 5 }, reason: "x" }, "INVALID_UPDATE"],
    ] as const;
    for (const [who, change, code] of refused) {
      await expect(graph.override(who, change)).rejects.toMatchObject({ code });
    }
    expect(await graph.getState(config)).toEqual(before);
    // The task goes on where it was.
    expect((await graph.runtime.store.head("t"))?.execution.pending).not.toBeNull();
  });

  test("goes on from where it was put", async () => {
    const model = scriptedModel([{ ask: "What?" }, { calls: [{ tool: "send", args: { to: "bob" } }], next: "done" }]);
    const graph = compile(approving, { model, ...where() });
    await graph.invoke({ message: "hello" }, config);
    await graph.override(asAda, { step: "sending", reason: "the note is known" });
    await graph.invoke(null, config);
    expect((await graph.getState(config)).tasks[0]?.interrupts).toHaveLength(1);
  });
});

test("an approval that runs out of time leads where the deadline says, and cannot be given any more", async () => {
  const clock = { time: 1_000_000, now: () => clock.time };
  const model = scriptedModel([
    { patch: { note: "n" }, next: "sending" },
    { calls: [{ tool: "send", args: { to: "bob" } }], next: "done" },
    { ask: "It took too long. Again?" },
  ]);
  const graph = compile(approving, { model, store: sqliteStore(":memory:", { clock }), clock });
  const paused = await graph.invoke({ message: "hello" }, config);
  expect(paused.execution.step).toBe("sending");
  clock.time += 999;
  expect(await wakeDue(graph)).toEqual([]);
  clock.time += 1;
  await expect(graph.invoke(answer(paused, "approve"), asAda)).rejects.toMatchObject({ code: "APPROVAL_EXPIRED" });
  expect(await wakeDue(graph)).toEqual(["t"]);
  const { values } = await graph.getState(config);
  expect(values.execution).toMatchObject({ step: "talking", pending: { kind: "question" } });
  expect(model.prompts[2]).toContain("send refused: the time to approve it is over");
});

test("a question that runs out of time leads where the deadline says", async () => {
  const clock = { time: 1_000_000, now: () => clock.time };
  const asking = defineWorkflow({
    name: "asking",
    version: 1,
    state: { note: field(z.string()) },
    initial: "asking",
    steps: {
      asking: { writes: ["note"], deadline: { afterMs: 10, to: "given_up" }, to: ["given_up"] },
      given_up: { final: true },
    },
  });
  const graph = compile(asking, {
    model: scriptedModel([{ ask: "Well?" }]),
    store: sqliteStore(":memory:", { clock }),
    clock,
  });
  await graph.invoke({ message: "hello" }, config);
  clock.time += 10;
  const done = await graph.invoke(null, config);
  expect(done.execution).toMatchObject({
    status: "completed",
    step: "given_up",
    observation: { kind: "expired", what: "Well?" },
  });
});
