import { expect, test } from "vitest";
import { StoredTask, storedWorkflow } from "../../src/testing/stored-task.ts";
import { onBothDialects } from "../support/stores.ts";

onBothDialects((dialect) => {
  test("lists follow what happened last, within a second and over many", async () => {
    const time = { now: Date.UTC(2030, 0, 1) };
    const store = dialect.open({ now: () => time.now });
    const tasks = new Map<string, StoredTask>();
    const touch = async (taskId: string, afterMs: number) => {
      time.now += afterMs;
      const task = tasks.get(taskId) ?? (await StoredTask.start(store, taskId));
      tasks.set(taskId, task);
      await task.decide();
    };
    const ids = async () => (await store.tasks({ tenant: "" })).map(({ taskId }) => taskId);
    for (const taskId of ["a", "b", "c"]) await touch(taskId, 2000);
    expect(await ids()).toEqual(["c", "b", "a"]);
    await touch("a", 1);
    expect(await ids()).toEqual(["a", "c", "b"]);
    await touch("c", 1);
    expect(await ids()).toEqual(["c", "a", "b"]);
    await touch("b", 60_000);
    expect(await ids()).toEqual(["b", "c", "a"]);
    // A page goes on behind a task, also within its second.
    const [first, second] = await store.tasks({ limit: 2 });
    expect((await store.tasks(first ? { after: first } : {})).map(({ taskId }) => taskId)).toEqual(["c", "a"]);
    expect((await store.tasks(second ? { after: second } : {})).map(({ taskId }) => taskId)).toEqual(["a"]);
    const untouched = async (since: number) =>
      (await store.untouchedTasks({ workflow: storedWorkflow.name, since, limit: 9 })).map(({ taskId }) => taskId);
    expect(await untouched(time.now + 1)).toEqual(["a", "c", "b"]);
    expect(await untouched(time.now)).toEqual(["a", "c"]);
    expect(await untouched(time.now - 60_000)).toEqual(["a"]);
  });

  test("threads of other LangGraph programs are in no list", async () => {
    const store = dialect.open();
    const config = { configurable: { thread_id: "foreign", checkpoint_ns: "" } };
    const checkpoint = { v: 4, id: "1", ts: new Date(0).toISOString(), channel_values: { note: "x" } };
    await store.checkpointer.put(
      config,
      { ...checkpoint, channel_versions: {}, versions_seen: {} },
      { source: "input", step: -1, parents: {} },
    );
    expect(await store.checkpointer.getTuple(config)).toBeDefined();
    expect((await store.tasks()).some(({ taskId }) => taskId === "foreign")).toBe(false);
  });
});
