import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, INTERRUPT, MemorySaver } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { answer, compile, defineWorkflow, describeTask, field, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";

const interview = defineWorkflow({
  name: "interview",
  version: 1,
  goal: "Ask for two things.",
  state: { colour: field(z.string()), size: field(z.number()) },
  initial: "asking",
  steps: {
    asking: { writes: ["colour", "size"], to: ["asking", "done"] },
    done: { requires: ["colour", "size"], final: true },
  },
});

const TWO_QUESTIONS = [
  { ask: "Which colour?" },
  { patch: { colour: "red" }, ask: "Which size?" },
  { patch: { size: 3 }, next: "done" },
];

const folders: string[] = [];
function databaseFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "statecard-"));
  folders.push(folder);
  return join(folder, "tasks.db");
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const config = { configurable: { thread_id: "t-1" } };

/** Every place that tasks can live in; each opening stands for another process. */
const places = [
  {
    name: "a SQLite store",
    place: () => {
      const file = databaseFile();
      return () => ({ store: sqliteStore(file) });
    },
  },
  {
    name: "LangGraph's MemorySaver",
    place: () => {
      const checkpointer = new MemorySaver();
      return () => ({ checkpointer });
    },
  },
  {
    name: "LangGraph's own SqliteSaver",
    place: () => {
      const checkpointer = SqliteSaver.fromConnString(":memory:");
      return () => ({ checkpointer });
    },
  },
];

describe.each(places)("with $name", ({ place }) => {
  test("a task waits, resumes by answer() in another process, and asks its second question (K9)", async () => {
    const open = place();
    const model = scriptedModel(TWO_QUESTIONS);
    const first = await compile(interview, { model, ...open() }).invoke({}, config);
    expect(first[INTERRUPT]?.[0]?.value?.question).toBe("Which colour?");
    expect(first.execution.status).toBe("waiting_user");

    const second = await compile(interview, { model, ...open() }).invoke(answer(first, "red"), config);
    expect(second[INTERRUPT]?.[0]?.value?.question).toBe("Which size?");
    expect(second.colour).toBe("red");

    const last = await compile(interview, { model, ...open() }).invoke(answer(second, "3"), config);
    expect(last).toMatchObject({ colour: "red", size: 3, execution: { status: "completed", step: "done" } });
    expect(last[INTERRUPT]).toBeUndefined();
    model.assertConsumed();
  });

  test("a bare wake-up of a waiting task asks the same again and calls no model", async () => {
    const open = place();
    const model = scriptedModel(TWO_QUESTIONS);
    const first = await compile(interview, { model, ...open() }).invoke({}, config);
    const woken = await compile(interview, { model, ...open() }).invoke(null, config);
    expect(woken[INTERRUPT]?.[0]?.value).toEqual(first[INTERRUPT]?.[0]?.value);
    expect(model.prompts).toHaveLength(1);
  });

  test("new input on a waiting task answers its only question", async () => {
    const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), ...place()() });
    await graph.invoke({}, config);
    const second = await graph.invoke({ message: "red" }, config);
    expect(second.execution.observation).toMatchObject({ kind: "answer", question: "Which colour?", text: "red" });
  });

  test("an answer to an older, already answered question is stale and the new one still waits (K6)", async () => {
    const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), ...place()() });
    const first = await graph.invoke({}, config);
    await graph.invoke(answer(first, "red"), config);
    await expect(graph.invoke(answer(first, "blue"), config)).rejects.toMatchObject({ code: "STALE_RESUME" });
    const { waiting } = await describeTask(graph.runtime.store, "t-1");
    expect(waiting?.[0]?.question).toBe("Which size?");
    await graph.invoke({ message: "3" }, config);
    expect((await describeTask(graph.runtime.store, "t-1")).state.colour).toBe("red");
  });

  test.each([
    ["plain text", "red"],
    ["langchain's middleware", { decisions: [{ type: "respond", message: "red" }] }],
    ["Agent Inbox", [{ type: "response", args: "red" }]],
    ["a map from request ids", { "q1.0": "red" }],
  ])("a reply in the form of %s is understood", async (_name, resume) => {
    const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), ...place()() });
    await graph.invoke({}, config);
    const second = await graph.invoke(new Command({ resume }), config);
    expect(second.execution.observation).toMatchObject({ kind: "answer", text: "red" });
  });

  test("a reply by LangGraph's interrupt id is understood, one for another interrupt is stale", async () => {
    const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), ...place()() });
    const first = await graph.invoke({}, config);
    const id = first[INTERRUPT]?.[0]?.id ?? "";
    const other = id.replaceAll(/[0-9a-f]/g, "0");
    await expect(graph.invoke(new Command({ resume: { [other]: "blue" } }), config)).rejects.toMatchObject({
      code: "STALE_RESUME",
    });
    const second = await graph.invoke(new Command({ resume: { [id]: "red" } }), config);
    expect(second.execution.observation).toMatchObject({ text: "red" });
  });

  test("a finished task refuses answers and input", async () => {
    const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), ...place()() });
    await graph.invoke({}, config);
    await graph.invoke({ message: "red" }, config);
    const second = await graph.invoke({ message: "3" }, config);
    expect(second.execution.status).toBe("completed");
    await expect(graph.invoke({ message: "4" }, config)).rejects.toMatchObject({ code: "TASK_FINISHED" });
    await expect(graph.invoke(new Command({ resume: "4" }), config)).rejects.toMatchObject({ code: "TASK_FINISHED" });
    expect((await graph.invoke(null, config)).execution.revision).toBe(second.execution.revision);
  });

  test("a fork before a question asks it anew, and the old branch's answer does not count", async () => {
    const model = scriptedModel([
      ...TWO_QUESTIONS,
      { ask: "Which colour?" },
      { patch: { colour: "blue", size: 1 }, next: "done" },
    ]);
    const graph = compile(interview, { model, ...place()() });
    await graph.invoke({}, config);
    await graph.invoke({ message: "red" }, config);
    await graph.invoke({ message: "3" }, config);
    const history = [];
    for await (const snapshot of graph.getStateHistory(config)) history.push(snapshot);
    const beforeFirst = history.findLast((snapshot) => snapshot.next[0] === "asking");
    const forked = await graph.invoke(null, beforeFirst?.config);
    expect(forked[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "q1.1", question: "Which colour?" }]);
    const end = await graph.invoke(answer(forked, "blue"), config);
    expect(end).toMatchObject({ colour: "blue", size: 1, execution: { status: "completed" } });
  });

  test("an answer that is empty, too large or no text is refused and the question still waits", async () => {
    const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), ...place()() });
    const first = await graph.invoke({}, config);
    for (const [text, code] of [
      [" ", "INVALID_MESSAGE"],
      ["x".repeat(1_000_000), "MESSAGE_TOO_LARGE"],
      ["a\u0000b", "INVALID_MESSAGE"],
    ] as const) {
      await expect(graph.invoke(answer(first, text), config)).rejects.toMatchObject({ code });
    }
    expect((await describeTask(graph.runtime.store, "t-1")).waiting).toHaveLength(1);
  });
});

test("a failed task says why and can be tried again in place; its limits stay used", async () => {
  const bad = { next: "nowhere" };
  const model = scriptedModel([bad, bad, bad, { patch: { colour: "red", size: 1 }, next: "done" }]);
  const graph = compile(interview, { model, store: sqliteStore(":memory:") });
  const failed = await graph.invoke({}, config);
  expect(failed.execution).toMatchObject({
    status: "failed",
    refused: 3,
    lastError: { code: "ILLEGAL_TRANSITION", step: "asking" },
  });
  await expect(graph.invoke(new Command({ resume: "x" }), config)).rejects.toMatchObject({
    code: "TASK_NOT_WAITING",
    message: expect.stringMatching(/it failed \(ILLEGAL_TRANSITION\); resume it without an answer to try again/),
  });
  await expect(graph.invoke({ message: "x" }, config)).rejects.toMatchObject({ code: "TASK_UNFINISHED" });
  const again = await graph.invoke(null, config);
  expect(again.execution).toMatchObject({ status: "completed", refused: 3, decisions: 1, usage: { calls: 4 } });
});

test("limits survive a resume in another process", async () => {
  const patient = defineWorkflow({ ...interview, maxDecisions: 3 });
  const file = databaseFile();
  const model = scriptedModel([{ ask: "1?" }, { ask: "2?" }, { ask: "3?" }]);
  const open = () => compile(patient, { model, store: sqliteStore(file) });
  await open().invoke({}, config);
  await open().invoke({ message: "a" }, config);
  await open().invoke({ message: "b" }, config);
  const ended = await open().invoke({ message: "c" }, config);
  expect(ended.execution).toMatchObject({ status: "failed", decisions: 3, lastError: { code: "TASK_LIMIT" } });
  expect((await open().invoke(null, config)).execution.lastError?.code).toBe("TASK_LIMIT");
  expect(model.prompts).toHaveLength(3);
});

test("a decision without an action takes one superstep, one with an action two", async () => {
  const walk = defineWorkflow({
    name: "walk",
    version: 1,
    state: { note: field(z.string()) },
    initial: "one",
    steps: {
      one: { to: ["two"], run: () => ({ next: "two" }) },
      two: { to: ["three"], run: (_state, { observation }) => (observation ? { next: "three" } : { ask: "go on?" }) },
      three: { to: ["end"], run: () => ({ patch: { note: "x" }, next: "end" }) },
      end: { final: true },
    },
  });
  const graph = compile(walk, { store: sqliteStore(":memory:") });
  await graph.invoke({}, config);
  await graph.invoke({ message: "yes" }, config);
  const nodes: string[] = [];
  for await (const snapshot of graph.getStateHistory(config)) if (snapshot.next[0]) nodes.push(snapshot.next[0]);
  expect(nodes.toReversed()).toEqual(["__start__", "one", "two", "act", "two", "three"]);
});

test("a code step gets a frozen state, and what it throws says where and leaves the task resumable", async () => {
  let failures = 1;
  const fragile = defineWorkflow({
    name: "fragile",
    version: 1,
    state: { items: field(z.array(z.string())) },
    input: ["items"],
    initial: "work",
    steps: {
      work: {
        to: ["done"],
        run: (state, { clients }) => {
          if (failures-- > 0) throw new Error("disk gone");
          expect(() => (state.items as string[]).push("leak")).toThrow(TypeError);
          return { patch: { items: [...(state.items ?? []), String(clients.name)] }, next: "done" };
        },
      },
      done: { final: true },
    },
  });
  const graph = compile(fragile, { store: sqliteStore(":memory:"), clients: { name: "b" } });
  await expect(graph.invoke({ items: ["a"] }, config)).rejects.toMatchObject({
    code: "STEP_FAILED",
    message: /step work threw: disk gone/,
  });
  expect(await describeTask(graph.runtime.store, "t-1")).toMatchObject({
    status: "failed",
    lastError: { code: "STEP_FAILED", step: "work" },
  });
  expect(await graph.invoke(null, config)).toMatchObject({ items: ["a", "b"], execution: { status: "completed" } });
  expect((await describeTask(graph.runtime.store, "t-1")).lastError).toBeUndefined();
});

test("a plain SqliteSaver reads the file of our store", async () => {
  const file = databaseFile();
  const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), store: sqliteStore(file) });
  await graph.invoke({}, config);
  const tuple = await SqliteSaver.fromConnString(file).getTuple({ configurable: { thread_id: "t-1" } });
  expect(tuple?.checkpoint.channel_values.execution).toMatchObject({ step: "asking", status: "waiting_user" });
});

test("each step may have a model of its own", async () => {
  const planner = scriptedModel([{ patch: { colour: "red", size: 1 }, next: "done" }]);
  const own = defineWorkflow({
    ...interview,
    steps: { ...interview.steps, asking: { ...interview.steps.asking, model: planner } },
  });
  const graph = compile(own, { model: scriptedModel([]), store: sqliteStore(":memory:") });
  expect((await graph.invoke({}, config)).execution.status).toBe("completed");
  planner.assertConsumed();
});

test("usage, latency, time to first token and view size of every decision are in the log", async () => {
  const graph = compile(interview, { model: scriptedModel(TWO_QUESTIONS), store: sqliteStore(":memory:") });
  await graph.invoke({}, config);
  const decision = (await graph.runtime.store.events("t-1")).find((event) => event.kind === "decision");
  expect(decision?.data.usage).toMatchObject({ calls: 1 });
  expect(decision?.data.measures).toEqual({
    latencyMs: expect.any(Number),
    firstTokenMs: expect.any(Number),
    viewBytes: expect.any(Number),
  });
});
