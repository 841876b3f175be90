import { getEventListeners } from "node:events";
import { compile, defineWorkflow, sqliteStore } from "statecard";
import { expect, onTestFinished, test, vi } from "vitest";
import { attempt } from "../../src/batch/attempt.ts";

const workflow = defineWorkflow({
  name: "short",
  version: 1,
  state: {},
  initial: "begun",
  steps: { begun: { to: ["ended"], run: () => ({ next: "ended" }) }, ended: { final: true } },
});

const graphOf = () => compile(workflow, { store: sqliteStore(":memory:") }) as never;

test("an attempt leaves nothing behind at the signals of whoever runs tasks for weeks", async () => {
  const cut = new AbortController();
  const stop = new AbortController();
  // What this makes lives as long as somebody listens to it, and LangGraph does for ever.
  const any = vi.spyOn(AbortSignal, "any");
  onTestFinished(() => any.mockRestore());
  const ours = { input: {}, limits: {}, stop: stop.signal, cut: cut.signal, onTakenUp: () => {} };
  const graph = graphOf();
  for (const taskId of ["a", "b", "c"]) await attempt({ ...ours, graph, taskId });
  expect(getEventListeners(cut.signal, "abort")).toEqual([]);
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  expect(any.mock.calls.filter(([signals]) => [...signals].includes(cut.signal))).toEqual([]);
});

test("an attempt ends at once when it is cut, before it begins and while it runs", async () => {
  const cut = new AbortController();
  cut.abort(new Error("enough"));
  const stop = new AbortController().signal;
  const ours = { input: {}, limits: {}, stop, onTakenUp: () => {} };
  await expect(attempt({ ...ours, cut: cut.signal, graph: graphOf(), taskId: "a" })).rejects.toThrow("enough");
  const later = new AbortController();
  const hangs = defineWorkflow({
    name: "hangs",
    version: 1,
    state: {},
    initial: "begun",
    steps: {
      begun: { to: ["ended"], run: () => (later.abort(new Error("now")), new Promise<never>(() => {})) },
      ended: { final: true },
    },
  });
  const graph = compile(hangs, { store: sqliteStore(":memory:") }) as never;
  await expect(attempt({ ...ours, cut: later.signal, graph, taskId: "b" })).rejects.toThrow("now");
});
