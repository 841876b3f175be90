import { MemorySaver } from "@langchain/langgraph";
import { answer, compile, defineWorkflow, describeTask, field, signedIn, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { checkLegal } from "../../src/storage/legal.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { cancelled } from "../../src/workflow/record.ts";
import { replay, taskIn } from "../../src/workflow/replay.ts";
import { Gate } from "../support/http-api.ts";

const config = { configurable: { thread_id: "t" } };
const asAda = { configurable: { thread_id: "t", ...signedIn("ada") } };

const asking = defineWorkflow({
  name: "asking",
  version: 1,
  state: { note: field(z.string()) },
  input: ["note"],
  initial: "talking",
  steps: { talking: { writes: ["note"], to: ["talking", "done"] }, done: { final: true } },
});

describe.each(["store", "in-process"] as const)("cancelling (%s)", (kind) => {
  const where = () => (kind === "store" ? { store: sqliteStore(":memory:") } : { checkpointer: new MemorySaver() });

  test("ends a waiting task for good, with who and why in record and log", async () => {
    const graph = compile(asking, { model: scriptedModel([{ patch: { note: "x" }, ask: "Why?" }]), ...where() });
    const { store } = graph.runtime;
    const paused = await graph.invoke({ message: "hello" }, config);
    await graph.cancel(asAda, "asked twice");
    const task = await describeTask(store, "t");
    expect(task).toMatchObject({ status: "cancelled", step: "talking", revision: 2, state: { note: "x" } });
    expect(task.lastError).toEqual({
      code: "TASK_CANCELLED",
      message: "cancelled by ada: asked twice",
      step: "talking",
    });
    expect((await graph.getState(config)).next).toEqual([]);
    expect((await store.events("t")).at(-1)).toMatchObject({
      kind: "cancelled",
      data: { who: "ada", reason: "asked twice", from: "talking" },
    });
    const refused = { code: "TASK_CANCELLED", status: 409, message: expect.stringContaining("asked twice") };
    await expect(graph.invoke(answer(paused, "so"), config)).rejects.toMatchObject(refused);
    await expect(graph.invoke(null, config)).rejects.toMatchObject(refused);
    await expect(graph.invoke({ message: "again" }, config)).rejects.toMatchObject(refused);
    await expect(graph.cancel(config)).rejects.toMatchObject(refused);
  });

  test("keeps what a task was given before it began, and needs neither name nor reason", async () => {
    const graph = compile(asking, { model: scriptedModel([]), ...where() });
    await graph.invoke({ message: "hello", note: "given" }, { ...config, interruptBefore: "*" });
    await graph.cancel(config);
    const task = await describeTask(graph.runtime.store, "t");
    expect(task).toMatchObject({ status: "cancelled", revision: 1, state: { note: "given" } });
    expect(task.lastError?.message).toBe("cancelled");
  });

  test("is refused for what has ended or is not there", async () => {
    const graph = compile(asking, { model: scriptedModel([{ patch: { note: "x" }, next: "done" }]), ...where() });
    await expect(graph.cancel(config)).rejects.toMatchObject({ code: "UNKNOWN_TASK" });
    await graph.invoke({ message: "hello" }, config);
    await expect(graph.cancel(config)).rejects.toMatchObject({ code: "TASK_FINISHED" });
  });

  test("ends the child workflow that a task waits for", async () => {
    const parent = defineWorkflow({
      name: "parent",
      version: 1,
      state: {},
      initial: "asking",
      steps: { asking: { workflow: asking, to: ["done"] }, done: { final: true } },
    });
    const graph = compile(parent, { model: scriptedModel([{ ask: "Why?" }]), ...where() });
    await graph.invoke({ message: "hello" }, config);
    await graph.cancel(asAda, "enough");
    expect((await describeTask(graph.runtime.store, "t")).status).toBe("cancelled");
    expect(await describeTask(graph.runtime.store, "t/asking/1.0")).toMatchObject({
      status: "cancelled",
      lastError: { message: "cancelled by ada: enough" },
    });
  });
});

const coded = (begin: () => Promise<void>) =>
  defineWorkflow({
    name: "coded",
    version: 1,
    state: { note: field(z.string()).runtimeOnly() },
    initial: "working",
    steps: {
      working: { to: ["done"], run: async () => (await begin(), { patch: { note: "done" }, next: "done" }) },
      done: { final: true },
    },
  });

test("an owner in the middle of a step can commit nothing more, and is told why", async () => {
  const [begun, gate] = [new Gate(), new Gate()];
  const workflow = coded(() => (begun.open(), gate.passed));
  const store = sqliteStore(":memory:");
  const graph = compile(workflow, { store });
  const running = graph.invoke({}, config);
  running.catch(() => {});
  await begun.passed;
  await graph.cancel(asAda, "stop");
  gate.open();
  await expect(running).rejects.toMatchObject({
    code: "TASK_CANCELLED",
    message: expect.stringContaining("by ada: stop"),
  });
  expect(await describeTask(store, "t")).toMatchObject({ status: "cancelled", state: { note: null } });
});

test("of a list's child workflows that have not begun, none begins any more; one that just has is cancelled too", async () => {
  const items: string[] = [];
  const begun = { a: new Gate(), b: new Gate(), c: new Gate() };
  const gates = { a: new Gate(), b: new Gate(), c: new Gate() };
  const child = defineWorkflow({
    name: "child",
    version: 1,
    state: { item: field(z.enum(["a", "b", "c"])) },
    input: ["item"],
    initial: "working",
    steps: {
      working: {
        to: ["done"],
        run: async ({ item }) => {
          items.push(item ?? "none");
          begun[item ?? "c"].open();
          await gates[item ?? "c"].passed;
          return { next: "done" };
        },
      },
      done: { final: true },
    },
  });
  const map = {
    over: () => ["a", "b", "c"],
    workflow: child,
    parallel: 1,
    input: (item: unknown) => ({ item }),
    output: () => ({}),
  };
  const parent = defineWorkflow({
    name: "parent",
    version: 1,
    state: {},
    initial: "each",
    steps: { each: { map, to: ["done"] }, done: { final: true } },
  });
  const store = sqliteStore(":memory:");
  const graph = compile(parent, { store });
  const running = graph.invoke({ message: "go" }, config);
  running.catch(() => {});
  await begun.a.passed;
  const put = store.checkpointer.put.bind(store.checkpointer);
  vi.spyOn(store.checkpointer, "put").mockImplementation(async (...written) => {
    const [{ configurable }, , { source }] = written;
    if (configurable?.thread_id === "t" && source === "update") {
      gates.a.open();
      await begun.b.passed;
    }
    return put(...written);
  });
  await graph.cancel(asAda, "stop");
  expect((await describeTask(store, "t/each/1.0.1")).status).toBe("cancelled");
  gates.b.open();
  await expect(running).rejects.toMatchObject({ code: "TASK_CANCELLED" });
  expect(items).toEqual(["a", "b"]);
});

test("with another checkpointer a task that runs is left alone: nothing could stop it", async () => {
  const [begun, gate] = [new Gate(), new Gate()];
  const graph = compile(
    coded(() => (begun.open(), gate.passed)),
    { checkpointer: new MemorySaver() },
  );
  const running = graph.invoke({}, config);
  await begun.passed;
  await expect(graph.cancel(asAda)).rejects.toMatchObject({ code: "TASK_BUSY" });
  gate.open();
  expect((await running).execution.status).toBe("completed");
});

test("the log of a cancelled task leads to its record", async () => {
  const store = sqliteStore(":memory:");
  const graph = compile(asking, { model: scriptedModel([{ ask: "Why?" }]), store });
  await graph.invoke({ message: "hello" }, config);
  await graph.cancel(asAda, "no");
  const { tasks } = replay("t", await store.events("t"));
  expect(tasks).toEqual([taskIn((await graph.getState(config)).values)]);
});

test("no update and no forged permission cancels a task", async () => {
  const store = sqliteStore(":memory:");
  const graph = compile(asking, { model: scriptedModel([{ ask: "Why?" }]), store });
  await graph.invoke({ message: "hello" }, config);
  const { execution } = (await graph.getState(config)).values;
  const forged = {
    configurable: { ...config.configurable, __statecard_permit: { kind: "cancelled", who: "eve", reason: "" } },
  };
  const record = { ...execution, status: "cancelled" as const, pending: null, revision: execution.revision + 1 };
  await expect(graph.updateState(forged, { execution: record })).rejects.toMatchObject({ code: "ILLEGAL_STATE" });
  expect((await describeTask(store, "t")).status).toBe("waiting_user");
});

test("a task's own limit lowers its workflow's, and outlives a crash before the first decision", async () => {
  const store = sqliteStore(":memory:");
  const model = scriptedModel([{ next: "talking" }, { next: "talking" }, { next: "talking" }]);
  const graph = compile(asking, { model, store });
  const limited = { configurable: { thread_id: "t", maxDecisions: 2 } };
  await graph.invoke({ message: "hello" }, { ...limited, interruptBefore: "*" });
  const { execution } = await graph.invoke(null, config);
  expect(execution).toMatchObject({
    status: "failed",
    decisions: 2,
    maxDecisions: 2,
    lastError: { code: "TASK_LIMIT" },
  });
  const wrong = { configurable: { thread_id: "u", maxDecisions: 0 } };
  await expect(graph.invoke({ message: "hello" }, wrong)).rejects.toMatchObject({ code: "INVALID_INPUT" });
  expect(await store.head("u")).toBeNull();
});

test("a permission to cancel writes the cancelled record of a task that has not ended, and nothing else", async () => {
  const graph = compile(asking, { model: scriptedModel([{ patch: { note: "x" }, ask: "Why?" }]) });
  await graph.invoke({ message: "hello" }, config);
  const { execution: from, ...values } = (await graph.getState(config)).values;
  const by = { who: "ada", reason: "no" };
  const write = (base: typeof from, execution: typeof from) => () =>
    checkLegal(anyWorkflow(asking), {
      source: "update",
      from: base,
      execution,
      values: { ...values, execution },
      permission: { kind: "cancelled", ...by },
    });
  const record = cancelled(from, by);
  expect(write(from, record)).not.toThrow();
  const illegal = expect.objectContaining({ code: "ILLEGAL_STATE" });
  expect(write(from, { ...record, step: "done" })).toThrow(illegal);
  expect(write(from, { ...record, status: "completed" })).toThrow(illegal);
  expect(write(from, cancelled(from, { who: "eve", reason: "no" }))).toThrow(illegal);
  for (const status of ["completed", "cancelled"] as const) {
    const ended = { ...from, status, pending: null };
    expect(write(ended, cancelled(ended, by))).toThrow(illegal);
  }
});
