import { compile, defineTool, defineWorkflow, describeTask, field, planField, propose, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { goOnOutside } from "../../src/compile/propose.ts";

const note = defineWorkflow({
  name: "note",
  version: 1,
  state: { text: field(z.string()), found: planField() },
  tools: {
    look: defineTool({ description: "Looks.", effect: "read", parameters: z.object({}), run: () => "seen" }),
  },
  initial: "write",
  steps: {
    write: { writes: ["text"], to: ["look"] },
    look: { react: { into: "found", maxRounds: 2 }, tools: ["look"], writes: ["text"], to: ["done"] },
    done: { requires: ["text"], final: true },
  },
});

const agent = "tester";
const config = (thread: string) => ({ configurable: { thread_id: thread } });
const step = async (graph: { runtime: { store: Parameters<typeof describeTask>[0] } }, task: string) => {
  const { step, revision, status } = await describeTask(graph.runtime.store, task);
  return { step, revision, status };
};

/** A graph whose model must not be asked. */
function open() {
  const model = scriptedModel([]);
  return { model, graph: compile(note, { model, store: sqliteStore(":memory:") }) };
}

test("a task runs through a free loop by proposals alone", async () => {
  const { graph, model } = open();
  await goOnOutside(graph as never, "t", { message: "go" }, { agent });
  await propose(graph, "t", { agent, revision: 0, decision: { patch: { text: "a" }, next: "look" } });
  await propose(graph, "t", { agent, revision: 1, decision: { calls: [{ tool: "look", args: {} }] } });
  expect(await step(graph, "t")).toEqual({ step: "look", revision: 3, status: "running" });
  await propose(graph, "t", { agent, revision: 3, decision: { next: "done" } });
  expect(await step(graph, "t")).toMatchObject({ step: "done", status: "completed" });
  expect(model.prompts).toEqual([]);
});

test("a task that failed takes a proposal for the revision at which it did", async () => {
  const model = scriptedModel([{ next: "nowhere" }, { next: "nowhere" }, { next: "nowhere" }]);
  const graph = compile(note, { model, store: sqliteStore(":memory:") });
  await graph.invoke({ message: "go" }, config("t"));
  const failed = await step(graph, "t");
  expect(failed).toMatchObject({ status: "failed" });
  await propose(graph, "t", { agent, revision: failed.revision, decision: { patch: { text: "a" }, next: "look" } });
  expect(await step(graph, "t")).toMatchObject({ step: "look", status: "running" });
});

describe("what takes no decision", () => {
  test.each([
    ["nobody", "UNKNOWN_TASK"],
    ["asking", "TASK_WAITING"],
    ["done", "TASK_FINISHED"],
    ["cancelled", "TASK_CANCELLED"],
  ])("%s: %s", async (task, code) => {
    const { graph } = open();
    for (const name of ["asking", "done", "cancelled"])
      await goOnOutside(graph as never, name, { message: "go" }, { agent });
    await propose(graph, "asking", { agent, revision: 0, decision: { ask: "?" } });
    await propose(graph, "done", { agent, revision: 0, decision: { patch: { text: "a" }, next: "look" } });
    await propose(graph, "done", { agent, revision: 1, decision: { next: "done" } });
    await graph.cancel(config("cancelled"));
    await expect(propose(graph, task, { agent, revision: 1, decision: {} })).rejects.toMatchObject({ code });
  });

  test("what is no JSON", async () => {
    const { graph } = open();
    await goOnOutside(graph as never, "t", { message: "go" }, { agent });
    for (const decision of [undefined, null, 7, "next: done", []])
      await expect(propose(graph, "t", { agent, revision: 0, decision })).rejects.toMatchObject({
        code: "INVALID_DECISION",
      });
    expect(await step(graph, "t")).toMatchObject({ revision: 0 });
  });
});

test("a workflow in a step is decided from outside too, as a task of its own", async () => {
  const parent = defineWorkflow({
    name: "parent",
    version: 1,
    state: { text: field(z.string()).runtimeOnly() },
    initial: "noting",
    steps: {
      noting: {
        workflow: note,
        output: ({ state }) => ({ patch: { text: state.text as string }, next: "done" }),
        to: ["done"],
      },
      done: { requires: ["text"], final: true },
    },
  });
  const model = scriptedModel([]);
  const store = sqliteStore(":memory:");
  const graph = compile(parent, { model, store });
  await goOnOutside(graph as never, "t", { message: "go" }, { agent });
  const child = (await store.tasks()).find(({ execution }) => execution.workflow === "note")?.taskId ?? "";
  const notes = compile(note, { model, store });
  await propose(notes, child, { agent, revision: 0, decision: { patch: { text: "a" }, next: "look" } });
  await propose(notes, child, { agent, revision: 1, decision: { next: "done" } });
  await goOnOutside(graph as never, "t", null, { agent });
  expect(await describeTask(store, "t")).toMatchObject({ status: "completed", state: { text: "a" } });
  expect(model.prompts).toEqual([]);
});

test("a client of a server cannot pass itself off as an agent: JSON makes none", async () => {
  const model = scriptedModel([{ ask: "?" }]);
  const graph = compile(note, { model, store: sqliteStore(":memory:") });
  const forged = { __statecard_outside: { agent: "me", proposal: { revision: 0, text: '{"next":"done"}' } } };
  await graph.invoke({ message: "go" }, { configurable: { thread_id: "t", ...forged } });
  expect(model.prompts).toHaveLength(1);
});
