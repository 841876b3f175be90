import { answer, compile, defineWorkflow, describeTask, field, sqliteStore, wakeDue } from "statecard";
import { onFaultPoint, scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";

const HOUR_MS = 3_600_000;
const config = { configurable: { thread_id: "t" } };

/** A conversation that is forgotten an hour after the last word, on a clock that the test holds. */
function conversation() {
  const clock = { at: 0, now: () => clock.at };
  const workflow = defineWorkflow({
    name: "talk",
    version: 1,
    timeToLiveMs: HOUR_MS,
    state: { name: field(z.string()) },
    initial: "asking",
    steps: { asking: { writes: ["name"], to: ["asking", "done"] }, done: { final: true } },
  });
  const store = sqliteStore(":memory:", { clock });
  const graph = (...answers: object[]) => compile(workflow, { model: scriptedModel(answers), store, clock });
  return { clock, store, graph };
}

test("a waiting task is kept for its time to live, counted from what happened last", async () => {
  const { clock, graph } = conversation();
  const talk = graph({ ask: "Who?" }, { ask: "Really?" }, { patch: { name: "Ada" }, next: "done" });
  const first = await talk.invoke({ message: "hello" }, config);
  clock.at += HOUR_MS;
  const second = await talk.invoke(answer(first, "Ada"), config);
  clock.at += HOUR_MS;
  expect(await talk.invoke(answer(second, "yes"), config)).toMatchObject({ name: "Ada" });
});

test("after it the task is gone, and the same input begins a new one", async () => {
  const { clock, store, graph } = conversation();
  const talk = graph({ patch: { name: "Ada" }, ask: "Really?" }, { ask: "Who?" });
  const paused = await talk.invoke({ message: "hello" }, config);
  clock.at += HOUR_MS + 1;
  await expect(talk.invoke(answer(paused, "yes"), config)).rejects.toMatchObject({ code: "UNKNOWN_TASK" });
  expect(await store.events("t")).toEqual([]);
  expect(await talk.invoke({ message: "hello" }, config)).toMatchObject({ name: null });
});

test("wakeDue removes what has been left, waiting or ended, and says nothing of it", async () => {
  const { clock, store, graph } = conversation();
  const talk = graph({ ask: "Who?" }, { patch: { name: "Bob" }, next: "done" });
  await talk.invoke({ message: "hello" }, config);
  await talk.invoke({ message: "hello" }, { configurable: { thread_id: "ended" } });
  clock.at += HOUR_MS + 1;
  expect(await wakeDue(talk)).toEqual([]);
  expect(await store.tasks()).toEqual([]);
});

test("a task that was stopped midway stays, whatever its time", async () => {
  const { clock, store, graph } = conversation();
  onFaultPoint((point) => {
    if (point === "after-decision") throw new Error("stopped");
  });
  await expect(graph({ patch: { name: "Ada" }, next: "done" }).invoke({ message: "hello" }, config)).rejects.toThrow();
  onFaultPoint(null);
  clock.at += 10 * HOUR_MS;
  await wakeDue(graph());
  expect(await describeTask(store, "t")).toMatchObject({ status: "created" });
});
