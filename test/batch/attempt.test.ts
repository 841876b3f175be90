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

test("many attempts at once listen to the same signal, and nobody is warned", async () => {
  const warned: Error[] = [];
  const note = (warning: Error) => void warned.push(warning);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  let begun = 0;
  let open = () => {};
  const all = new Promise<void>((resolve) => (open = resolve));
  const meeting = defineWorkflow({
    name: "meeting",
    version: 1,
    state: {},
    initial: "begun",
    steps: {
      begun: {
        to: ["ended"],
        run: async () => {
          if (++begun === 12) open();
          await all;
          return { next: "ended" };
        },
      },
      ended: { final: true },
    },
  });
  const graph = compile(meeting, { store: sqliteStore(":memory:") }) as never;
  const [cut, stop] = [new AbortController().signal, new AbortController().signal];
  const ours = { graph, input: {}, limits: {}, stop, cut, onTakenUp: () => {} };
  await Promise.all(Array.from({ length: 12 }, (_, index) => attempt({ ...ours, taskId: `t${index}` })));
  // The process tells of warnings after what has raised them.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warned).toEqual([]);
});
