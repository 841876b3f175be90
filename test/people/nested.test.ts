import { Command, INTERRUPT } from "@langchain/langgraph";
import {
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  signedIn,
  sqliteStore,
  wakeDue,
  type ApprovalRule,
} from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { rebuild } from "../../src/storage/export/rebuild.ts";

const DEADLINE_MS = 60_000;
const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });

/** A workflow that runs another one as its step, whose payment needs an approval. */
function parent(rule: true | ApprovalRule, clock = { now: () => Date.now() }) {
  const paid: number[] = [];
  const pay = defineTool({
    description: "Pays.",
    parameters: z.object({ amount: z.number() }),
    effect: "write",
    approve: rule,
    run: ({ amount }) => {
      paid.push(amount);
    },
  });
  const child = defineWorkflow({
    name: "child",
    version: 1,
    state: { note: field(z.string()) },
    tools: { pay },
    initial: "paying",
    steps: {
      paying: { tools: ["pay"], writes: ["note"], to: ["done"], deadline: { afterMs: DEADLINE_MS, to: "done" } },
      done: { final: true },
    },
  });
  const workflow = defineWorkflow({
    name: "parent",
    version: 1,
    state: { note: field(z.string()) },
    initial: "working",
    steps: { working: { workflow: child, to: ["done"] }, done: { final: true } },
  });
  const model = scriptedModel([{ calls: [{ tool: "pay", args: { amount: 5 } }], next: "done" }]);
  return { paid, graph: compile(workflow, { model, clock, store: sqliteStore(":memory:", { clock }) }) };
}

test("a named approval of a workflow within a workflow is asked for and given at the parent", async () => {
  const { paid, graph } = parent({ approvers: ["ada"] });
  const paused = await graph.invoke({}, as("eve"));
  expect(paused[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "w1.0/a1.0.0", approvers: ["ada"] }]);
  const approve = new Command({ resume: "approve" });
  await expect(graph.invoke(approve, as("eve"))).rejects.toMatchObject({ code: "APPROVER_UNKNOWN" });
  expect((await graph.invoke(approve, as("ada"))).execution.status).toBe("completed");
  expect(paid).toEqual([5]);
});

test("two people approve within a workflow", async () => {
  const { paid, graph } = parent({ count: 2 });
  await graph.invoke({}, as("eve"));
  const approve = new Command({ resume: "approve" });
  await graph.invoke(approve, as("ada"));
  await expect(graph.invoke(approve, as("ada"))).rejects.toMatchObject({ code: "ALREADY_APPROVED" });
  expect(paid).toEqual([]);
  expect((await graph.invoke(approve, as("bob"))).execution.status).toBe("completed");
  expect(paid).toEqual([5]);
});

test("an edit within a workflow is checked as one of a workflow of its own", async () => {
  const { paid, graph } = parent(true);
  await graph.invoke({}, as("eve"));
  const edit = (amount: unknown) => new Command({ resume: { type: "edit", args: { amount } } });
  await expect(graph.invoke(edit("much"), as("ada"))).rejects.toMatchObject({ code: "INVALID_REPLY" });
  expect((await graph.invoke(edit("7"), as("ada"))).execution.status).toBe("completed");
  expect(paid).toEqual([7]);
});

test("an expired approval within a workflow goes on as its step's deadline says", async () => {
  const time = { now: Date.UTC(2030, 0, 1) };
  const { paid, graph } = parent(true, { now: () => time.now });
  await graph.invoke({}, as("eve"));
  time.now += DEADLINE_MS;
  const late = graph.invoke(new Command({ resume: "approve" }), as("ada"));
  await expect(late).rejects.toMatchObject({ code: "APPROVAL_EXPIRED" });
  expect((await graph.invoke(null, as("eve"))).execution.status).toBe("completed");
  expect(paid).toEqual([]);
});

/** A workflow whose step asks within a time; what comes after its end is given. */
function within(again: object, clock: { readonly at: number; readonly now: () => number }) {
  const asking = defineWorkflow({
    name: "asking",
    version: 1,
    state: {},
    initial: "first",
    steps: {
      first: { to: ["again", "done"], deadline: { afterMs: DEADLINE_MS, to: "again" } },
      again: { to: ["done"], ...again },
      done: { final: true },
    },
  });
  const outer = defineWorkflow({
    name: "outer",
    version: 1,
    state: {},
    initial: "working",
    steps: { working: { workflow: asking, to: ["done"] }, done: { final: true } },
  });
  const store = sqliteStore(":memory:", { clock });
  const model = scriptedModel([{ ask: "Which?" }, { ask: "Really none?" }, { next: "done" }]);
  const graph = compile(outer, { model, clock, store });
  const asked = async () => (await describeTask(store, "t")).waiting?.map(({ question }) => question) ?? [];
  return { store, graph, asked };
}

test("a question within a workflow that expired is not open any more when another is asked", async () => {
  const clock = { at: Date.UTC(2030, 0, 1), now: () => clock.at };
  const { store, graph, asked } = within({}, clock);
  await graph.invoke({}, as("eve"));
  clock.at += DEADLINE_MS;
  expect(await wakeDue(graph)).toEqual(["t"]);
  expect(await asked()).toEqual(["Really none?"]);
  expect(await wakeDue(graph)).toEqual([]);
  const { task, events } = await store.exportTask("t");
  expect(rebuild(events).tasks[0]?.requests).toEqual(task.requests);
  const late = new Command({ resume: { "w1.0/q1.0": "the first" } });
  await expect(graph.invoke(late, as("ada"))).rejects.toMatchObject({ code: "STALE_RESUME" });
  expect((await graph.invoke(new Command({ resume: "none" }), as("ada"))).execution.status).toBe("completed");
});

test("nor where what comes after it fails: the task has failed, and is not run again for it", async () => {
  const clock = { at: Date.UTC(2030, 0, 1), now: () => clock.at };
  let tries = 0;
  const run = () => {
    tries++;
    throw new Error("the service is gone");
  };
  const { store, graph, asked } = within({ run }, clock);
  await graph.invoke({}, as("eve"));
  clock.at += DEADLINE_MS;
  await expect(wakeDue(graph)).rejects.toMatchObject({ code: "STEP_FAILED" });
  expect(await wakeDue(graph)).toEqual([]);
  expect(tries).toBe(1);
  expect(await asked()).toEqual([]);
  expect(await describeTask(store, "t")).toMatchObject({ status: "failed", lastError: { code: "STEP_FAILED" } });
});

test("a run that has lost its task takes back nothing of what the next one asks", async () => {
  const clock = { at: Date.UTC(2030, 0, 1), now: () => clock.at };
  const { store, graph, asked } = within({}, clock);
  const replace = store.replaceRequests.bind(store);
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  let settled: Promise<unknown> = Promise.resolve();
  const stalled = new Promise<void>((resolve) => {
    store.replaceRequests = (...asks) => {
      store.replaceRequests = replace;
      resolve();
      settled = gate.then(() => replace(...asks));
      return settled as Promise<void>;
    };
  });
  const stop = new AbortController();
  const first = graph.invoke({}, { ...as("eve"), signal: stop.signal });
  await stalled;
  stop.abort();
  await expect(first).rejects.toThrow();
  clock.at += DEADLINE_MS;
  await graph.invoke(null, as("eve"));
  expect(await asked()).toEqual(["Really none?"]);
  goOn();
  await expect(settled).rejects.toMatchObject({ code: "STALE_WRITE" });
  expect(await asked()).toEqual(["Really none?"]);
  const reply = new Command({ resume: { "w1.0/q2.0": "none" } });
  expect((await graph.invoke(reply, as("ada"))).execution.status).toBe("completed");
});

test("what a workflow within fails with is told, though its requests cannot be read any more", async () => {
  const clock = { at: Date.UTC(2030, 0, 1), now: () => clock.at };
  let isAway = false;
  const run = () => {
    isAway = true;
    throw new Error("its own fault");
  };
  const { store, graph } = within({ run }, clock);
  const look = store.look.bind(store);
  store.look = (taskId) => (isAway ? Promise.reject(new Error("away")) : look(taskId));
  await graph.invoke({}, as("eve"));
  clock.at += DEADLINE_MS;
  await expect(graph.invoke(null, as("eve"))).rejects.toMatchObject({
    code: "STEP_FAILED",
    message: expect.stringContaining("its own fault") as string,
  });
});

test("a step that gives a workflow no such input as it needs is told from a wrong input of the task", async () => {
  const child = defineWorkflow({
    name: "child",
    version: 1,
    state: { order: field(z.string()) },
    input: ["order"],
    initial: "packing",
    steps: { packing: { requires: ["order"], to: ["done"], run: () => ({ next: "done" }) }, done: { final: true } },
  });
  const outer = defineWorkflow({
    name: "outer",
    version: 1,
    state: {},
    initial: "working",
    steps: { working: { workflow: child, input: () => ({}), to: ["done"] }, done: { final: true } },
  });
  const store = sqliteStore(":memory:");
  await expect(compile(outer, { store }).invoke({}, as("eve"))).rejects.toMatchObject({
    code: "STEP_FAILED",
    message: expect.stringMatching(/^workflow child refused the input of step working: .*order/) as string,
  });
  expect(await describeTask(store, "t")).toMatchObject({ status: "failed", lastError: { code: "STEP_FAILED" } });
});

test("an answer to one of a list writes nothing for those that still wait", async () => {
  const asks = defineWorkflow({
    name: "asks",
    version: 1,
    state: {},
    initial: "asking",
    steps: {
      asking: { to: ["done"], run: (_, { observation }) => (observation ? { next: "done" } : { ask: "Well?" }) },
      done: { final: true },
    },
  });
  const map = { over: () => [1, 2, 3], workflow: asks, input: () => ({}), output: () => ({ next: "done" as const }) };
  const outer = defineWorkflow({
    name: "outer",
    version: 1,
    state: {},
    initial: "working",
    steps: { working: { map, to: ["done"] }, done: { final: true } },
  });
  const store = sqliteStore(":memory:");
  const graph = compile(outer, { store });
  await graph.invoke({}, as("eve"));
  const replace = store.replaceRequests.bind(store);
  const replaced: string[] = [];
  store.replaceRequests = (holder, place, requests) => {
    replaced.push(place.prefix);
    return replace(holder, place, requests);
  };
  await graph.invoke(new Command({ resume: { "w1.0.1/q1.0": "yes" } }), as("eve"));
  expect(replaced).toEqual([]);
});
