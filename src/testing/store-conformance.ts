import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { TaskStore } from "../compile/store.ts";
import { isWorkflowError, type ErrorCode } from "../errors.ts";
import { requestDigest, type OwnerState, type Request, type Vote } from "../people/requests.ts";
import { artifactChecks } from "./artifact-conformance.ts";
import { callChecks } from "./call-conformance.ts";
import { StoredTask } from "./stored-task.ts";
import { waitingChecks } from "./waiting-conformance.ts";

/** One promise of the store port, as a check for any test runner. */
export interface StoreCheck {
  readonly name: string;
  /** `store`: only stores that check every write keep this promise, see `TaskStore.guarantees`. */
  readonly needs: "any" | "store";
  /**
   * @param open a store, new or used: every check has tasks of its own. Whoever runs the checks closes it.
   * @throws AssertionError where the store breaks the promise.
   */
  run(open: () => Promise<TaskStore>): Promise<void>;
}

/**
 * What every `TaskStore` has to do, for the authors of one.
 *
 * @example
 * for (const check of storeChecks()) test(check.name, () => check.run(async () => sqliteStore(":memory:")));
 */
export function storeChecks(): readonly StoreCheck[] {
  return [
    ...leases,
    ...answers,
    ...callChecks(check),
    ...artifactChecks(check),
    ...logs,
    ...tasks,
    ...waitingChecks(check),
    ...guards,
  ];
}

function check(name: string, body: (store: TaskStore, taskId: string) => Promise<void>): StoreCheck {
  return { name, needs: "any", run: async (open) => body(await open(), `check-${randomUUID()}`) };
}

function guarded(name: string, body: (store: TaskStore, taskId: string) => Promise<void>): StoreCheck {
  return { ...check(name, body), needs: "store" };
}

async function refuses(code: ErrorCode, work: () => Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => isWorkflowError(error, code), `expected ${code}`);
}

function question(id: string, text = "How urgent is it?"): Request {
  return { id, kind: "question", question: text, digest: requestDigest({ kind: "question", question: text }) };
}

const vote = (text: string, shown?: string): Vote => ({
  answer: { type: "text", text },
  who: "ann",
  ...(shown === undefined ? {} : { shown }),
});

const leases: readonly StoreCheck[] = [
  check("a task has one owner at a time, and tokens grow", async (store, taskId) => {
    const lease = await store.acquire(taskId);
    await refuses("TASK_BUSY", () => store.acquire(taskId));
    await store.release(lease);
    const next = await store.acquire(taskId);
    assert.ok(next.token > lease.token, "the later token is the larger one");
    assert.equal(next.taskId, taskId);
  }),
  check("of many that want a task at once, one gets it", async (store, taskId) => {
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => store.acquire(taskId)));
    assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
  }),
  check("a lease holds one task only", async (store, taskId) => {
    await store.acquire(taskId);
    await store.acquire(`${taskId}-other`);
  }),
  check("an earlier owner can neither release nor renew nor mark the lease of the next", async (store, taskId) => {
    const earlier = await store.acquire(taskId);
    await store.release(earlier);
    await store.acquire(taskId);
    await store.addRequests(taskId, 1, 0, [question("q1.0")]);
    await store.running(earlier);
    await store.renew(earlier);
    await store.release(earlier);
    await refuses("TASK_BUSY", () => store.acquire(taskId));
    assert.equal(await store.answer(taskId, "q1.0", vote("P1")), "closing");
  }),
];

const answers: readonly StoreCheck[] = [
  check("requests are kept once, and found by decision and fork, by id", async (store, taskId) => {
    await store.addRequests(taskId, 2, 0, [question("q2.1"), question("q2.0")]);
    await store.addRequests(taskId, 2, 0, [question("q2.0", "another text")]);
    await store.addRequests(taskId, 2, 1, [question("q2.0.1")]);
    await store.addRequests(taskId, 3, 0, [question("q3.0")]);
    const found = await store.requests(taskId, 2, 0);
    assert.deepEqual(found.map((row) => row.request.id).toSorted(), ["q2.0", "q2.1"]);
    const row = await store.request(taskId, "q2.0");
    assert.deepEqual(row?.request, question("q2.0"));
    assert.deepEqual([row?.decision, row?.forks, row?.answer, row?.answeredBy], [2, 0, null, null]);
    assert.equal(await store.request(taskId, "q9.0"), null);
    assert.deepEqual(await store.requests(`${taskId}-other`, 2, 0), []);
  }),
  check("the first answer wins and is kept with who gave it", async (store, taskId) => {
    await store.addRequests(taskId, 1, 0, [question("q1.0")]);
    assert.equal(await store.hasAnswers(taskId), false);
    assert.equal(await store.answer(taskId, "q1.0", vote("P1", question("q1.0").digest)), "free");
    await refuses("STALE_RESUME", () => store.answer(taskId, "q1.0", vote("P2")));
    const row = await store.request(taskId, "q1.0");
    assert.deepEqual([row?.answer, row?.answeredBy], [{ type: "text", text: "P1" }, "ann"]);
    assert.equal(await store.hasAnswers(taskId), true);
  }),
  check("of many answers at once, one is taken", async (store, taskId) => {
    await store.addRequests(taskId, 1, 0, [question("q1.0")]);
    const given = await Promise.allSettled(
      ["a", "b", "c", "d"].map((text) => store.answer(taskId, "q1.0", vote(text))),
    );
    assert.equal(given.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal((await store.events(taskId)).filter(({ kind }) => kind === "answered").length, 1);
  }),
  check("an answer to something unknown, or to what was not shown, is refused", async (store, taskId) => {
    await store.addRequests(taskId, 1, 0, [question("q1.0")]);
    await refuses("UNKNOWN_REQUEST", () => store.answer(taskId, "q7.0", vote("P1")));
    await refuses("STALE_RESUME", () => store.answer(taskId, "q1.0", vote("P1", "another digest")));
    assert.equal((await store.request(taskId, "q1.0"))?.answer, null);
  }),
  check("an answer tells what the owner was doing", async (store, taskId) => {
    await store.addRequests(
      taskId,
      1,
      0,
      ["q1.0", "q1.1", "q1.2", "q1.3"].map((id) => question(id)),
    );
    const seen: OwnerState[] = [await store.answer(taskId, "q1.0", vote("nobody holds it"))];
    const lease = await store.acquire(taskId);
    seen.push(await store.answer(taskId, "q1.1", vote("just taken: it looks at no answers yet")));
    await store.running(lease);
    seen.push(await store.answer(taskId, "q1.2", vote("it runs")));
    assert.equal(await store.closing(lease, ["q1.3"]), true);
    seen.push(await store.answer(taskId, "q1.3", vote("it is about to pause")));
    assert.deepEqual(seen, ["free", "closing", "running", "closing"]);
  }),
  check("an owner cannot close over an answer that has come", async (store, taskId) => {
    await store.addRequests(taskId, 1, 0, [question("q1.0"), question("q1.1")]);
    const lease = await store.acquire(taskId);
    await store.running(lease);
    await store.answer(taskId, "q1.1", vote("P1"));
    assert.equal(await store.closing(lease, ["q1.0", "q1.1"]), false);
    assert.equal(await store.closing(lease, ["q1.0"]), true);
  }),
  check("no wake-up is lost between an owner that closes and somebody who answers", async (store, taskId) => {
    for (let round = 0; round < 12; round++) {
      const id = `${taskId}-${round}`;
      await store.addRequests(id, 1, 0, [question("q1.0")]);
      const lease = await store.acquire(id);
      await store.running(lease);
      const close = () => store.closing(lease, ["q1.0"]);
      const reply = () => store.answer(id, "q1.0", vote("P1"));
      const [closed, owner] =
        round % 2 === 0
          ? await Promise.all([close(), reply()])
          : await Promise.all([reply(), close()]).then(([state, paused]) => [paused, state] as const);
      assert.ok(
        !(closed && owner === "running"),
        "the owner pauses, and the answerer was told that it sees the answer",
      );
      await store.release(lease);
    }
  }),
];

const logs: readonly StoreCheck[] = [
  check("a task's log keeps its order without gaps, whoever appends at once", async (store, taskId) => {
    const data = { text: "Grüße \u0000 \ud83d\udc4b", list: [1, null, { deep: true }] };
    await store.append(taskId, 0, "started", data);
    await Promise.all(Array.from({ length: 10 }, (_, index) => store.append(taskId, index, "refused", { index })));
    await store.append(taskId, 11, "error", {});
    const log = await store.events(taskId);
    assert.deepEqual(
      log.map((event) => event.sequence),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    );
    assert.deepEqual([log[0]?.kind, log[0]?.revision, log[0]?.data], ["started", 0, data]);
    assert.equal(typeof log[0]?.at, "number");
    assert.deepEqual(
      (await store.events(taskId, 1)).map((event) => event.kind),
      ["error"],
    );
    assert.deepEqual(
      (await store.events(taskId, 2)).map((event) => event.sequence),
      [11, 12],
    );
    assert.deepEqual((await store.firstEvent(taskId, "started"))?.data, data);
    assert.equal(await store.firstEvent(taskId, "forked"), null);
    assert.deepEqual(await store.events(`${taskId}-other`), []);
  }),
  check("forks are counted and leave a trace", async (store, taskId) => {
    const task = await StoredTask.start(store, taskId);
    assert.equal(await store.lastFork(taskId), null);
    const from = task.head;
    await store.fork(task.lease, from);
    await store.fork(task.lease, from);
    assert.equal((await store.head(taskId))?.forks, 2);
    assert.equal(await store.lastFork(taskId), from);
    assert.equal((await store.events(taskId)).filter(({ kind }) => kind === "forked").length, 2);
  }),
  check("pauses raised in a parent are kept by their number", async (store, taskId) => {
    await store.setParentPause(taskId, { ordinal: 1, requests: [question("q2.0")], used: false });
    await store.setParentPause(taskId, { ordinal: 0, requests: [question("q1.0")], used: false });
    await store.setParentPause(taskId, { ordinal: 0, requests: [question("q1.0")], used: true });
    assert.deepEqual(await store.parentPauses(taskId), [
      { ordinal: 0, requests: [question("q1.0")], used: true },
      { ordinal: 1, requests: [question("q2.0")], used: false },
    ]);
    assert.deepEqual(await store.parentPauses(`${taskId}-other`), []);
  }),
];

const tasks: readonly StoreCheck[] = [
  check("the head is what was written last", async (store, taskId) => {
    assert.equal(await store.head(taskId), null);
    const task = await StoredTask.start(store, taskId);
    await task.ask("How urgent is it?");
    const head = await store.head(taskId);
    assert.deepEqual([head?.checkpointId, head?.forks], [task.head, 0]);
    assert.deepEqual(head?.execution, task.execution);
    const kinds = (await store.events(taskId)).map((event) => event.kind);
    assert.deepEqual(kinds, ["decision"], "what was committed is in the log, once");
  }),
  check("tasks are listed with what they wait for, the latest changed first", async (store, taskId) => {
    const waiting = await StoredTask.start(store, taskId);
    await waiting.ask("How urgent is it?");
    await store.addRequests(taskId, 1, 0, [question("q1.0"), question("q1.1")]);
    await store.answer(taskId, "q1.1", vote("P1"));
    await until(Date.now() + 2);
    await StoredTask.start(store, `${taskId}-later`);
    await store.append(`${taskId}-later`, 0, "started", {});
    const own = (await store.tasks()).filter((row) => row.taskId.startsWith(taskId));
    assert.deepEqual(
      own.map((row) => row.taskId),
      [`${taskId}-later`, taskId],
    );
    assert.deepEqual(own[1]?.execution, waiting.execution);
    assert.deepEqual(
      own[1]?.waiting.map((request) => request.id),
      ["q1.0"],
    );
    assert.equal(typeof own[1]?.updatedAt, "number");
  }),
  check("a deleted task leaves nothing, its neighbours stay, and its id is free again", async (store, taskId) => {
    const neighbour = await StoredTask.start(store, `${taskId}-other`);
    const task = await StoredTask.start(store, taskId);
    await task.ask("How urgent is it?");
    await store.addRequests(taskId, 1, 0, [question("q1.0")]);
    await store.setParentPause(taskId, { ordinal: 0, requests: [], used: false });
    await store.deleteTask(taskId);
    const left = [await store.head(taskId), await store.request(taskId, "q1.0"), await store.lastFork(taskId)];
    assert.deepEqual(left, [null, null, null]);
    assert.deepEqual([await store.events(taskId), await store.parentPauses(taskId)], [[], []]);
    assert.equal(await task.stored(), undefined);
    assert.equal((await store.head(neighbour.taskId))?.checkpointId, neighbour.head);
    await StoredTask.start(store, taskId);
  }),
];

const guards: readonly StoreCheck[] = [
  guarded("without the lease nothing is written", async (store, taskId) => {
    const task = await StoredTask.start(store, taskId);
    const before = task.head;
    const { lease } = task;
    for (const token of [undefined, lease.token - 1, lease.token + 1, String(lease.token)]) {
      await refuses("STALE_WRITE", () => task.withToken(token).ask("?"));
      await refuses("STALE_WRITE", () => task.withToken(token).write("__interrupt__", "?"));
      await refuses("STALE_WRITE", () => task.withToken(token).inner("step:1"));
    }
    await store.release(lease);
    await refuses("STALE_WRITE", () => task.ask("?"));
    assert.equal((await store.head(taskId))?.checkpointId, before);
  }),
  guarded("who lost the lease can write nothing any more", async (store, taskId) => {
    const slow = await StoredTask.start(store, taskId);
    await store.addRequests(taskId, 1, 0, [question("q1.0")]);
    await store.release(slow.lease);
    await store.acquire(taskId);
    await refuses("STALE_WRITE", () => slow.ask("?"));
    await refuses("STALE_WRITE", () => slow.write("__interrupt__", "?"));
    await refuses("STALE_WRITE", () => slow.inner("step:1"));
    await refuses("STALE_WRITE", () => store.closing(slow.lease, ["q1.0"]));
    await refuses("STALE_WRITE", () => store.fork(slow.lease, slow.head));
  }),
  guarded("a write that is based on something else than the head is refused", async (store, taskId) => {
    const task = await StoredTask.start(store, taskId);
    const earlier = task.copy();
    await task.ask("How urgent is it?");
    await refuses("STALE_WRITE", () => earlier.ask("Something else?"));
    assert.equal((await store.head(taskId))?.checkpointId, task.head);
  }),
];

async function until(time: number): Promise<void> {
  while (Date.now() < time) await new Promise((resolve) => setTimeout(resolve, 1));
}
