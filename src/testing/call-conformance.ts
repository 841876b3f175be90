import assert from "node:assert/strict";
import type { TaskStore } from "../compile/store.ts";
import { isWorkflowError, type ErrorCode } from "../errors.ts";
import { requestDigest, type Answer, type Request } from "../people/requests.ts";
import type { CallResult } from "../state/execution.ts";
import type { Holder, Intent } from "../tools/journal.ts";
import type { StoreCheck } from "./store-conformance.ts";
import { StoredTask } from "./stored-task.ts";

type MakeCheck = (name: string, body: (store: TaskStore, taskId: string) => Promise<void>) => StoreCheck;

async function refuses(code: ErrorCode, work: () => Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => isWorkflowError(error, code), `expected ${code}`);
}

function approval(id: string, rule: Partial<Request> = {}): Request {
  const content = { kind: "approval" as const, question: "pay: amount 5", tool: "pay", args: { amount: 5 } };
  return { id, ...content, digest: requestDigest(content), ...rule };
}

const intent = (repeat = false): Intent => ({
  key: "1.0",
  digest: "d",
  decision: 1,
  tool: "pay",
  timeoutMs: 60_000,
  repeat,
});
const result: CallResult = { id: "1.0", tool: "pay", status: "ok", value: "paid" };

/** A task at its first step, with its lease and head. */
async function started(store: TaskStore, taskId: string): Promise<{ holder: Holder; head: string }> {
  const { lease, head } = await StoredTask.start(store, taskId);
  return { holder: lease, head };
}

/** What every store has to do with approvals and with the journal of calls. */
export function callChecks(check: MakeCheck): readonly StoreCheck[] {
  const answer = (store: TaskStore, taskId: string, who: string | null, given: Answer, shown?: string) =>
    store.answer(taskId, "a1.0.0", { answer: given, who, ...(shown === undefined ? {} : { shown }) });
  const approve: Answer = { type: "approve" };
  return [
    check("several approvals are those of several people, and the last one decides", async (store, taskId) => {
      await store.addRequests(taskId, 1, 0, [approval("a1.0.0", { count: 2, approvers: ["ann", "bob"] })]);
      await refuses("APPROVER_UNKNOWN", () => answer(store, taskId, null, approve));
      await refuses("APPROVER_UNKNOWN", () => answer(store, taskId, "eve", approve));
      await answer(store, taskId, "ann", approve);
      await refuses("ALREADY_APPROVED", () => answer(store, taskId, "ann", approve));
      assert.equal((await store.request(taskId, "a1.0.0"))?.answer, null);
      assert.deepEqual((await store.request(taskId, "a1.0.0"))?.approvedBy, ["ann"]);
      await answer(store, taskId, "bob", approve);
      assert.deepEqual((await store.request(taskId, "a1.0.0"))?.answer, approve);
      await refuses("STALE_RESUME", () => answer(store, taskId, "bob", approve));
    }),
    check("one rejection decides, whatever the number of people", async (store, taskId) => {
      await store.addRequests(taskId, 1, 0, [approval("a1.0.0", { count: 2 })]);
      const rejected: Answer = { type: "reject", reason: "too dear" };
      await answer(store, taskId, "ann", rejected);
      assert.deepEqual((await store.request(taskId, "a1.0.0"))?.answer, rejected);
    }),
    check(
      "requests replace those that nobody has answered, with their approvals; what was answered stays",
      async (store, taskId) => {
        const { lease } = await StoredTask.start(store, taskId);
        const place = { decision: 1, forks: 0, prefix: "w1.0.1/" };
        const ids = ["w1.0.1/a1.0.0", "w1.0.1/a1.1.0", "w1.0.1/a1.2.0", "w1.0.10/a1.0.0"];
        const asked = ids.map((id) => approval(id, { count: 2 }));
        const [first = "", answered = "", added = "", elsewhere = ""] = ids;
        const open = async () => (await store.requests(taskId, 1, 0)).map(({ request: { id } }) => id).toSorted();
        await store.addRequests(taskId, 1, 0, [...asked.slice(0, 2), ...asked.slice(3)]);
        await store.answer(taskId, first, { answer: approve, who: "ann" });
        await store.answer(taskId, answered, { answer: { type: "reject", reason: "" }, who: "ann" });
        await store.replaceRequests(lease, place, asked.slice(2, 3));
        assert.deepEqual(await open(), [answered, added, elsewhere]);
        const inPlace = await store.requests(taskId, 1, 0, place.prefix);
        assert.deepEqual(inPlace.map(({ request: { id } }) => id).toSorted(), [answered, added]);
        await refuses("STALE_RESUME", () => store.answer(taskId, first, { answer: approve, who: "bob" }));
        assert.deepEqual((await store.request(taskId, answered))?.answer, { type: "reject", reason: "" });
        await store.replaceRequests(lease, place, asked.slice(0, 3));
        assert.deepEqual(await open(), ids);
        assert.deepEqual((await store.request(taskId, first))?.approvedBy, []);
        assert.deepEqual((await store.request(taskId, answered))?.answer, { type: "reject", reason: "" });
      },
    ),
    check("requests are replaced by whoever runs the task, and by nobody who has lost it", async (store, taskId) => {
      const { lease } = await StoredTask.start(store, taskId);
      const place = { decision: 1, forks: 0, prefix: "w1.0/" };
      await store.replaceRequests(lease, place, [approval("w1.0/a1.0.0")]);
      await store.release(lease);
      const next = await store.acquire(taskId);
      await refuses("STALE_WRITE", () => store.replaceRequests(lease, place, []));
      assert.equal((await store.requests(taskId, 1, 0)).length, 1);
      await store.replaceRequests(next, place, []);
      assert.deepEqual(await store.requests(taskId, 1, 0), []);
    }),
    check("of many that approve at once, one decides", async (store, taskId) => {
      await store.addRequests(taskId, 1, 0, [approval("a1.0.0")]);
      const tries = await Promise.allSettled(
        ["a", "b", "c", "d", "e"].map((who) => answer(store, taskId, who, approve)),
      );
      assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
    }),
    check(
      "an approval of something else than what was shown, or that has expired, is refused",
      async (store, taskId) => {
        await store.addRequests(taskId, 1, 0, [approval("a1.0.0"), approval("a1.1.0", { expiresAt: 1 })]);
        await refuses("APPROVAL_CHANGED", () => answer(store, taskId, "ann", approve, "another digest"));
        await refuses("APPROVAL_EXPIRED", () => store.answer(taskId, "a1.1.0", { answer: approve, who: "ann" }));
        await answer(store, taskId, "ann", approve, approval("a1.0.0").digest);
      },
    ),
    check("a call is new once; with its result it is done, also for the next owner", async (store, taskId) => {
      const { holder, head } = await started(store, taskId);
      assert.deepEqual(await store.intend(holder, head, intent()), { state: "new" });
      assert.equal(await store.recordResult(holder, intent(), result), true);
      assert.equal(await store.recordResult(holder, intent(), result), false);
      await store.release({ taskId, token: holder.token });
      const next = await store.acquire(taskId);
      assert.deepEqual(await store.intend(next, head, intent()), { state: "done", result });
    }),
    check("a call that was begun is waited for while its attempt may end, and then is begun", async (store, taskId) => {
      const { holder, head } = await started(store, taskId);
      await store.intend(holder, head, intent());
      await store.release({ taskId, token: holder.token });
      const next = await store.acquire(taskId);
      assert.deepEqual(await store.intend(next, head, intent()), { state: "alive" });
      await store.letGo(holder, intent());
      assert.deepEqual(await store.intend(next, head, intent()), { state: "begun", attempt: 1 });
      assert.deepEqual(await store.intend(next, head, intent(true)), { state: "new" });
      // The first attempt's place is taken: what it still brings is not.
      assert.equal(await store.recordResult(holder, intent(), result), false);
      assert.equal(await store.recordResult(next, intent(), result), true);
    }),
    check("an owner that has lost its lease begins no call", async (store, taskId) => {
      const { holder, head } = await started(store, taskId);
      await store.release({ taskId, token: holder.token });
      await store.acquire(taskId);
      await refuses("STALE_WRITE", () => store.intend(holder, head, intent()));
    }),
  ];
}
