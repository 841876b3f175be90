import assert from "node:assert/strict";
import type { OpenFilter, OpenPlace, TaskStore, UntouchedTask } from "../compile/store.ts";
import type { ConsentRow } from "../people/consent.ts";
import { requestDigest, type Request } from "../people/requests.ts";
import type { StoreCheck } from "./store-conformance.ts";
import { StoredTask, storedWorkflow } from "./stored-task.ts";

type Check = (name: string, body: (store: TaskStore, taskId: string) => Promise<void>) => StoreCheck;

function request(id: string, kind: Request["kind"], expiresAt?: number): Request {
  const question = "May it?";
  return {
    id,
    kind,
    question,
    digest: requestDigest({ kind, question }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

const ids = (open: Awaited<ReturnType<TaskStore["openRequests"]>>) => open.map(({ request: { id } }) => id);

/** Finding what waits, whose time is over and what nobody has touched, and what people have decided about data. */
export function waitingChecks(check: Check): readonly StoreCheck[] {
  return [
    check(
      "what is open is listed by tenant, kind and time, what expires first first, in pages",
      async (store, name) => {
        const [own, other] = [`@${name}/t`, `@${name}-other/t`];
        for (const taskId of [own, other]) await (await StoredTask.start(store, taskId)).ask("How urgent is it?");
        await store.addRequests(own, 1, 0, [
          request("never", "approval"),
          request("late", "approval", 2000),
          request("asked", "question", 1500),
          request("b-early", "unknown", 1000),
          request("a-early", "approval", 1000),
          request("answered", "approval", 500),
        ]);
        await store.addRequests(own, 2, 0, [request("of another decision", "approval")]);
        await store.addRequests(own, 1, 1, [request("of another branch", "approval")]);
        await store.addRequests(other, 1, 0, [request("of another tenant", "approval")]);
        await store.answer(own, "answered", { answer: { type: "approve" }, who: "ann", inTime: true });
        const filter: OpenFilter = { tenant: name, limit: 10 };
        const all = await store.openRequests(filter);
        assert.deepEqual(ids(all), ["a-early", "b-early", "asked", "late", "never"]);
        assert.deepEqual(all[2], {
          taskId: own,
          workflow: storedWorkflow.name,
          request: request("asked", "question", 1500),
        });
        const approvals = { ...filter, approvals: true };
        assert.deepEqual(ids(await store.openRequests(approvals)), ["a-early", "b-early", "late", "never"]);
        assert.deepEqual(ids(await store.openRequests({ ...filter, dueBy: 1500 })), ["a-early", "b-early", "asked"]);
        assert.deepEqual(ids(await store.openRequests({ ...filter, dueBy: 1499 })), ["a-early", "b-early"]);
        assert.deepEqual(await store.openRequests({ ...filter, workflow: "another" }), []);
        assert.deepEqual(ids(await store.openRequests({ tenant: `${name}-other`, limit: 10 })), ["of another tenant"]);
        const seen: string[] = [];
        for (let after: OpenPlace | undefined; ;) {
          const page = await store.openRequests({ ...filter, limit: 2, ...(after ? { after } : {}) });
          seen.push(...ids(page));
          const last = page.at(-1);
          if (!last) break;
          after = { ...last.request, taskId: last.taskId };
        }
        assert.deepEqual(seen, ids(all));
      },
    ),
    check("what is open changes with the task's head and fork count", async (store, name) => {
      const open = async () => ids(await store.openRequests({ tenant: name, limit: 10 }));
      const taskId = `@${name}/t`;
      await store.addRequests(taskId, 1, 0, [request("q1.0", "question")]);
      assert.deepEqual(await open(), [], "no task, nothing open");
      const task = await StoredTask.start(store, taskId);
      const before = task.head;
      await task.ask("How urgent is it?");
      assert.deepEqual(await open(), ["q1.0"], "also where the request was first");
      await store.fork(task.lease, before);
      assert.deepEqual(await open(), [], "that of the branch that was left is not");
      await store.addRequests(taskId, 1, 1, [request("q1.1", "question")]);
      assert.deepEqual(await open(), ["q1.1"]);
      await task.commit({ ...task.execution, pending: null, revision: task.execution.revision + 1 });
      assert.deepEqual(await open(), [], "nor that of a decision that is done");
      await task.ask("And now?");
      await store.addRequests(taskId, 2, 1, [request("q2.1", "question")]);
      assert.deepEqual(await open(), ["q2.1"]);
      await store.deleteTask(taskId);
      assert.deepEqual(await open(), [], "nor that of a task that is gone");
    }),
    check("a page of tasks is of one tenant and workflow, and begins behind another", async (store, name) => {
      const taskIds = ["a", "b", "c"].map((id) => `@${name}/${id}`);
      for (const taskId of [...taskIds, `@${name}-other/a`]) {
        const task = await StoredTask.start(store, taskId);
        await store.append(taskId, task.execution.revision, "started", {});
      }
      const filter = { tenant: name, workflow: storedWorkflow.name };
      const all = await store.tasks(filter);
      assert.deepEqual(all.map(({ taskId }) => taskId).toSorted(), taskIds);
      assert.deepEqual(await store.tasks({ ...filter, workflow: "another" }), []);
      const first = await store.tasks({ ...filter, limit: 2 });
      assert.deepEqual(first, all.slice(0, 2));
      const last = first.at(-1);
      assert.deepEqual(await store.tasks({ ...filter, ...(last ? { after: last } : {}) }), all.slice(2));
    }),
    check("untouched tasks are found by workflow and time, the longest untouched first", async (store, name) => {
      const taskIds = ["a", "b"].map((id) => `@${name}/${id}`);
      for (const taskId of taskIds) await StoredTask.start(store, taskId);
      const { name: workflow } = storedWorkflow;
      const ours = (tasks: readonly UntouchedTask[]) => tasks.filter(({ taskId }) => taskIds.includes(taskId));
      const everything: UntouchedTask[] = [];
      for (let after: UntouchedTask | undefined; ;) {
        const filter = { workflow, since: Date.now() + 3_600_000, limit: 1000, ...(after ? { after } : {}) };
        const page = await store.untouchedTasks(filter);
        everything.push(...page);
        after = page.at(-1);
        if (!after) break;
      }
      const own = ours(everything);
      assert.deepEqual(own.map(({ taskId }) => taskId).toSorted(), taskIds);
      assert.deepEqual(
        own.map(({ updatedAt }) => updatedAt),
        own.map(({ updatedAt }) => updatedAt).toSorted((a, b) => a - b),
      );
      const since = Math.min(...own.map(({ updatedAt }) => updatedAt));
      assert.deepEqual(ours(await store.untouchedTasks({ workflow, since, limit: 1000 })), []);
      assert.deepEqual(await store.untouchedTasks({ workflow: "another", since: since + 3_600_000, limit: 1000 }), []);
    }),
    check("decisions about data hold for one tenant and workflow, and outlive the task", async (store, name) => {
      const taskId = `@${name}/t`;
      const row = (destination: string, kind: string, isAllowed: boolean): ConsentRow => ({
        workflow: "w",
        destination,
        kind,
        isAllowed,
        by: isAllowed ? "ann" : null,
        at: 1_800_000_000_000,
      });
      const other: ConsentRow = { ...row("b", "x", true), workflow: "v" };
      await StoredTask.start(store, taskId);
      await store.keepConsents(taskId, [row("b", "y", true), row("a", "x", true), row("b", "x", false)]);
      await store.keepConsents(taskId, [{ ...row("a", "x", false), at: 1 }, other]);
      await store.keepConsents(`@${name}-other/t`, [row("c", "x", true)]);
      const own = [{ ...row("a", "x", false), at: 1 }, row("b", "x", false), row("b", "y", true)];
      assert.deepEqual(await store.consents(`@${name}/another`, "w"), own, "what was kept last holds");
      assert.deepEqual(await store.consents(`${name}/t`, "w"), [], "no other tenant's");
      await store.deleteTask(taskId);
      const all = [other, ...own].map((each) => ({ ...each, tenant: name }));
      assert.deepEqual(await store.allConsents(name), all, "sorted, and not gone with the task");
      const tenants = (await store.allConsents()).map(({ tenant }) => tenant).filter((each) => each.startsWith(name));
      assert.deepEqual(tenants, [name, name, name, name, `${name}-other`]);
      assert.equal(await store.withdrawConsents({ tenant: name, workflow: "w", destination: "b", kind: "y" }), 1);
      assert.equal(await store.withdrawConsents({ tenant: name, workflow: "w" }), 2);
      assert.deepEqual(await store.allConsents(name), [{ ...other, tenant: name }]);
      assert.equal((await store.consents(`@${name}-other/t`, "w")).length, 1);
    }),
  ];
}
