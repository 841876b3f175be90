import { compile, defineWorkflow, Memories, Memory, wakeDue } from "statecard";
import { expect, test } from "vitest";
import { ownerOf } from "../../src/memory/owner.ts";
import { onBothDialects } from "../support/stores.ts";

const HOUR = 60 * 60 * 1000;
const waiting = defineWorkflow({
  name: "waiting",
  version: 1,
  state: {},
  initial: "asking",
  steps: { asking: { to: ["done"], run: () => ({ ask: "Well?" }) }, done: { final: true } },
});

onBothDialects((dialect) => {
  test("waking up cleans the memories up, one process a day", async () => {
    const clock = { time: Date.UTC(2026, 10, 30, 12), now: () => clock.time };
    const open = () => {
      const store = dialect.open(clock);
      const memories = new Memories({ store: store.memory(), user: "ann" });
      return {
        graph: compile(waiting, { store, memories, clock }),
        memories,
        memory: new Memory(store.memory(), { user: "ann" }),
        store,
      };
    };
    const [one, other] = [open(), open()];
    const passing = () => one.memory.remember({ type: "fact", text: "It rains." });
    const left = async () => (await other.memory.list()).length;
    await passing();
    await one.memory.remember({ type: "preference", text: "Likes tea." });
    expect(await wakeDue(one.graph)).toEqual([]);
    expect(await left()).toBe(2);

    clock.time += 25 * HOUR;
    const done = await Promise.all([1, 2, 3, 4].map((n) => (n % 2 ? one : other).memories.cleanUpDaily()));
    expect(done.filter((deleted) => deleted !== null)).toEqual([1]);
    expect(await left()).toBe(1);

    // Once more on the same day: nothing happens, although there would be something to do.
    await passing();
    clock.time += 10 * HOUR;
    await wakeDue(other.graph);
    expect(await left()).toBe(2);
    clock.time += 24 * HOUR;
    await wakeDue(other.graph);
    expect(await left()).toBe(1);

    const namespaces = await one.store.memory().listNamespaces();
    expect(namespaces.filter((namespace) => ownerOf(namespace) !== null)).toEqual([["memory", "user=ann"]]);
    expect(await one.store.memory().search(["statecard"])).toHaveLength(1);
  });
});
