import { expect, test } from "vitest";
import { StoredTask, storedWorkflow } from "../../src/testing/stored-task.ts";
import { onBothDialects } from "../support/stores.ts";

onBothDialects((dialect) => {
  test("a note that a task is to be run is struck out once it was kept, unless it was asked for again", async () => {
    const at = Date.UTC(2030, 0, 1);
    const store = dialect.open({ now: () => at });
    await store.addWake("t");
    const [wake] = await store.wakes("t");
    expect(wake).toEqual({ taskId: "t", count: 1, at, workflow: null });
    await store.addWake("t");
    if (wake) await store.removeWake(wake);
    expect(await store.wakes()).toEqual([{ taskId: "t", count: 2, at, workflow: null }]);
    await store.removeWake({ taskId: "t", count: 2, at });
    expect(await store.wakes()).toEqual([]);
  });

  test("a note that was made since another was struck out stays, whoever has read the other one", async () => {
    const time = { now: Date.UTC(2030, 0, 1) };
    const store = dialect.open({ now: () => time.now });
    await store.addWake("t");
    const [wake] = await store.wakes("t");
    if (!wake) throw new Error("there is no note");
    // Two servers have read it; one runs the task and strikes it out, then somebody answers.
    await store.removeWake(wake);
    time.now += 1;
    await store.addWake("t");
    await store.removeWake(wake);
    expect(await store.wakes()).toEqual([{ taskId: "t", count: 1, at: time.now, workflow: null }]);
  });

  test("says of which workflow its task is", async () => {
    const store = dialect.open();
    await StoredTask.start(store, "known");
    await store.addWake("known");
    expect(await store.wakes("known")).toMatchObject([{ workflow: storedWorkflow.name }]);
    await store.deleteTask("known");
    expect(await store.wakes("known")).toEqual([]);
  });

  test("goes with its task, as the keys of clients do", async () => {
    const store = dialect.open();
    const claim = { tenant: "", who: "ada", key: "k", digest: "d", taskId: "t" };
    await store.addWake("t");
    expect(await store.claimKey(claim)).toEqual({ digest: "d", taskId: "t", isNew: true });
    expect(await store.claimKey({ ...claim, digest: "e", taskId: "u" })).toEqual({
      digest: "d",
      taskId: "t",
      isNew: false,
    });
    expect(await store.claimKey({ ...claim, who: "bob", taskId: "u" })).toMatchObject({ taskId: "u", isNew: true });
    await store.deleteTask("t");
    expect(await store.wakes()).toEqual([]);
    expect(await store.claimKey({ ...claim, taskId: "v" })).toMatchObject({ taskId: "v", isNew: true });
  });

  test("a key is kept for a week", async () => {
    const time = { now: Date.UTC(2030, 0, 1) };
    const store = dialect.open({ now: () => time.now });
    const claim = { tenant: "acme", who: "ada", key: "old", digest: "d", taskId: "t" };
    await store.claimKey(claim);
    time.now += 6 * 24 * 3_600_000;
    expect(await store.claimKey({ ...claim, taskId: "u" })).toMatchObject({ taskId: "t" });
    time.now += 2 * 24 * 3_600_000;
    expect(await store.claimKey({ ...claim, taskId: "u" })).toMatchObject({ taskId: "u", isNew: true });
  });
});
