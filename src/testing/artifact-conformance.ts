import assert from "node:assert/strict";
import type { TaskStore } from "../compile/store.ts";
import type { CallResult } from "../state/execution.ts";
import type { Intent, NewArtifact } from "../tools/journal.ts";
import type { StoreCheck } from "./store-conformance.ts";
import { StoredTask } from "./stored-task.ts";

type MakeCheck = (name: string, body: (store: TaskStore, taskId: string) => Promise<void>) => StoreCheck;

function intent(key: string, digest = "d", repeat = false): Intent {
  return { key, digest, decision: Number.parseInt(key, 10), tool: "search", timeoutMs: 60_000, repeat };
}

function artifact(id: string, text: string): NewArtifact {
  return { id, tool: "search", kind: "text", text, bytes: Buffer.byteLength(text) };
}

function naming({ id }: NewArtifact, key: string): CallResult {
  return { id: key, tool: "search", status: "ok", value: "shown", artifact: id };
}

/** What every store has to do with large results that are set aside. */
export function artifactChecks(check: MakeCheck): readonly StoreCheck[] {
  return [
    check("a large result is kept with its call, unchanged, and found by its id", async (store, taskId) => {
      const { lease, head } = await StoredTask.start(store, taskId);
      const text = `\uFEFFGrüße \u0000 \u{1F44B}\r\n${"x".repeat(700_000)}\n\nthe end`;
      const whole = artifact("1.0-0a1b2c3d", text);
      await store.intend(lease, head, intent("1.0"));
      assert.equal(await store.recordResult(lease, intent("1.0"), naming(whole, "1.0"), whole), true);
      const found = await store.artifact(taskId, whole.id);
      assert.ok(found);
      const { at, ...rest } = found;
      assert.deepEqual(rest, whole);
      assert.equal(typeof at, "number");
      assert.deepEqual(await store.artifacts(taskId), [{ id: whole.id, tool: "search", bytes: whole.bytes, at }]);
      assert.equal((await store.resultOf(taskId, intent("1.0")))?.artifact, whole.id);
    }),
    check("a result without one leaves none, and other tasks see none", async (store, taskId) => {
      const { lease, head } = await StoredTask.start(store, taskId);
      await store.intend(lease, head, intent("1.0"));
      await store.recordResult(lease, intent("1.0"), { id: "1.0", tool: "search", status: "ok", value: "small" });
      assert.deepEqual(await store.artifacts(taskId), []);
      const whole = artifact("1.1-0a1b2c3d", "whole");
      await store.intend(lease, head, intent("1.1"));
      await store.recordResult(lease, intent("1.1"), naming(whole, "1.1"), whole);
      assert.equal(await store.artifact(taskId, "1.0-0a1b2c3d"), null);
      assert.equal(await store.artifact(`${taskId}-other`, whole.id), null);
      assert.deepEqual(await store.artifacts(`${taskId}-other`), []);
    }),
    check("what comes with a result that is not taken is not kept either", async (store, taskId) => {
      const { lease, head } = await StoredTask.start(store, taskId);
      const [late, right] = [artifact("1.0-00000001", "late"), artifact("1.0-00000002", "right")];
      await store.intend(lease, head, intent("1.0"));
      await store.letGo(lease, intent("1.0"));
      await store.release(lease);
      const next = await store.acquire(taskId);
      await store.intend(next, head, intent("1.0", "d", true));
      assert.equal(await store.recordResult(lease, intent("1.0"), naming(late, "1.0"), late), false);
      assert.equal(await store.recordResult(next, intent("1.0"), naming(right, "1.0"), right), true);
      assert.equal(await store.recordResult(next, intent("1.0"), naming(late, "1.0"), late), false);
      assert.deepEqual(
        (await store.artifacts(taskId)).map(({ id }) => id),
        [right.id],
      );
    }),
    check("branches that got different results for a call keep both, and the same one once", async (store, taskId) => {
      const { lease, head } = await StoredTask.start(store, taskId);
      const texts = ["one branch", "another branch", "one branch"];
      for (const [index, text] of texts.entries()) {
        const whole = artifact(text === "one branch" ? "1.0-00000001" : "1.0-00000002", text);
        const call = intent("1.0", `d${index}`);
        await store.intend(lease, head, call);
        assert.equal(await store.recordResult(lease, call, naming(whole, "1.0"), whole), true);
      }
      assert.deepEqual((await store.artifacts(taskId)).map(({ id }) => id).toSorted(), [
        "1.0-00000001",
        "1.0-00000002",
      ]);
      assert.equal((await store.artifact(taskId, "1.0-00000001"))?.text, "one branch");
      assert.equal((await store.artifact(taskId, "1.0-00000002"))?.text, "another branch");
    }),
    check("a deleted task leaves no artifact", async (store, taskId) => {
      const { lease, head } = await StoredTask.start(store, taskId);
      const whole = artifact("1.0-0a1b2c3d", "whole");
      await store.intend(lease, head, intent("1.0"));
      await store.recordResult(lease, intent("1.0"), naming(whole, "1.0"), whole);
      await store.deleteTask(taskId);
      assert.equal(await store.artifact(taskId, whole.id), null);
      assert.deepEqual(await store.artifacts(taskId), []);
    }),
  ];
}
