import { compile, defineWorkflow, field, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { removeEnded } from "../../src/compile/prune.ts";
import { namesWithin } from "../../src/workflow/within.ts";

const child = defineWorkflow({
  name: "errand",
  version: 1,
  state: {},
  initial: "begun",
  steps: { begun: { to: ["over"], run: () => ({ next: "over" }) }, over: { final: true } },
});
const talk = defineWorkflow({
  name: "talk",
  version: 1,
  state: { name: field(z.string()) },
  initial: "asking",
  steps: {
    asking: { writes: ["name"], to: ["asking", "sending", "done"] },
    sending: { workflow: child, to: ["done"] },
    done: { final: true },
  },
});
const at = (taskId: string) => ({ configurable: { thread_id: taskId } });
const ends = { patch: { name: "Ada" }, next: "done" };

/** Tasks in every standing, on a clock that the test holds. */
async function manyTasks() {
  const clock = { at: 0, now: () => clock.at };
  const store = sqliteStore(":memory:", { clock });
  const start = (taskId: string, ...answers: object[]) =>
    compile(talk, { model: scriptedModel(answers), store, clock }).invoke({ message: "hello" }, at(taskId));
  await start("completed", ends);
  await start("waiting", { ask: "Who?" });
  await start("cancelled", { ask: "Who?" });
  await compile(talk, { model: scriptedModel([]), store, clock }).cancel(at("cancelled"));
  await expect(start("failed")).rejects.toThrow();
  const errands = compile(child, { store, clock });
  for (const parent of ["waiting", "completed", "gone"]) await errands.invoke({}, at(`${parent}/sending/1.0`));
  clock.at = 1000;
  await start("completed later", ends);
  const ids = async () => (await store.tasks()).map(({ taskId }) => taskId).toSorted();
  return { store, ids };
}

test("what ended before a time is removed with all that is stored of it, and nothing else", async () => {
  const { store, ids } = await manyTasks();
  const all = await ids();
  const pruning = { store, workflows: namesWithin([talk]), before: 1000 };
  expect(await removeEnded({ ...pruning, isDry: true })).toBe(4);
  expect(await ids()).toEqual(all);
  expect(await removeEnded(pruning)).toBe(4);
  // The parent that waits may not have taken its child's result in.
  expect(await ids()).toEqual(["completed later", "failed", "waiting", "waiting/sending/1.0"]);
  expect(await store.events("completed")).toEqual([]);
  expect(await removeEnded(pruning)).toBe(0);
});

test("a task that somebody has in hand is left", async () => {
  const { store, ids } = await manyTasks();
  await store.acquire("cancelled");
  expect(await removeEnded({ store, workflows: namesWithin([talk]), before: 1000 })).toBe(3);
  expect(await ids()).toContain("cancelled");
});

test("children of a list of workflows go as those of a single one", async () => {
  const store = sqliteStore(":memory:");
  const visits = defineWorkflow({
    name: "visits",
    version: 1,
    state: {},
    initial: "visiting",
    steps: {
      visiting: {
        map: { over: () => [1, 2], workflow: child, input: () => ({}), output: () => ({ next: "done" }) },
        to: ["done"],
      },
      done: { final: true },
    },
  });
  const errands = compile(child, { store });
  for (const item of [0, 1]) await errands.invoke({}, at(`gone/visiting/1.0.${item}`));
  expect(await removeEnded({ store, workflows: namesWithin([visits]), before: Infinity })).toBe(2);
});

test("a workflow that is a step of several is looked at once", async () => {
  const { store } = await manyTasks();
  const workflows = namesWithin([talk, child]);
  expect(await removeEnded({ store, workflows, before: 1000, isDry: true })).toBe(4);
  expect(await removeEnded({ store, workflows, before: 1000 })).toBe(4);
});
