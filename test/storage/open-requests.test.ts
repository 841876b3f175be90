import fc from "fast-check";
import { expect, test } from "vitest";
import type { OpenPlace, OpenRequest } from "../../src/compile/store.ts";
import { isWorkflowError } from "../../src/errors.ts";
import { requestDigest, type Request } from "../../src/people/requests.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { StoredTask } from "../../src/testing/stored-task.ts";
import { onBothDialects } from "../support/stores.ts";

const KINDS = ["question", "approval", "unknown"] as const;

/** Beside the task's own decision or fork count, seldom another. */
const beside = fc.constantFrom(0, 0, 0, 0, -1, 1);
const id = fc.integer({ min: 0, max: 12 });
const move = fc.record({
  do: fc.constantFrom("ask", "ask", "ask", "settle", "cancel", "end", "fork", "back", "delete"),
});
const asking = fc.record({
  do: fc.constant("request" as const),
  decision: beside,
  forks: beside,
  id,
  kind: fc.constantFrom(...KINDS),
  expiresAt: fc.option(fc.integer({ min: 1, max: 50 })),
});
const answering = fc.record({ do: fc.constant("answer" as const), id });
const action = fc.oneof(
  { weight: 3, arbitrary: move },
  { weight: 5, arbitrary: asking },
  { weight: 1, arbitrary: answering },
);
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never;

/** What happens to a task, legal or not: what the store refuses has not happened. */
async function happen(store: SqlStore, tasks: Map<string, StoredTask>, taskId: string, what: Action): Promise<void> {
  const task = tasks.get(taskId) ?? (await StoredTask.start(store, taskId));
  tasks.set(taskId, task);
  const { execution } = task;
  const next = { ...execution, revision: execution.revision + 1, pending: null };
  switch (what.do) {
    case "ask":
      return task.ask("How urgent is it?");
    case "settle":
      return task.commit({ ...next, status: "running" });
    case "cancel":
      return task.commit({ ...next, status: "cancelled" });
    case "end":
      return task.decide({ step: "done", status: "completed", pending: null });
    case "fork":
      return store.fork(task.lease, task.head);
    case "back": {
      // To an earlier checkpoint, as a fork goes on from it.
      const base = (await task.stored())?.parentConfig?.configurable?.checkpoint_id as string | undefined;
      const earlier = base === undefined ? undefined : await task.stored(base);
      if (base === undefined || !earlier) return;
      const moved = Object.assign(task.copy(), {
        head: base,
        loaded: "addressed",
        execution: earlier.checkpoint.channel_values.execution,
      });
      await moved.decide();
      Object.assign(task, { head: moved.head, execution: moved.execution });
      return;
    }
    case "delete":
      await store.deleteTask(taskId);
      tasks.delete(taskId);
      return;
    case "request": {
      const content = { kind: what.kind, question: "May it?" };
      const { expiresAt } = what;
      const request: Request = {
        id: `r${what.id}`,
        ...content,
        digest: requestDigest(content),
        ...(expiresAt === null ? {} : { expiresAt }),
      };
      const present = (await store.head(taskId))?.forks ?? 0;
      return store.addRequests(taskId, execution.decisions + what.decision, present + what.forks, [request]);
    }
    case "answer":
      await store.answer(taskId, `r${what.id}`, { answer: { type: "approve" }, who: "ann", inTime: true });
  }
}

/** Everything that is open, read in pages. */
async function indexed(store: SqlStore, tenant: string): Promise<readonly OpenRequest[]> {
  const all: OpenRequest[] = [];
  for (let after: OpenPlace | undefined; ;) {
    const page = await store.openRequests({ tenant, limit: 3, ...(after ? { after } : {}) });
    all.push(...page);
    const last = page.at(-1);
    if (!last) return all;
    after = { ...last.request, taskId: last.taskId };
  }
}

/** The same from the tasks' records, one by one. */
async function scanned(store: SqlStore, tenant: string): Promise<readonly OpenRequest[]> {
  const open = (await store.tasks({ tenant })).flatMap(({ taskId, execution: { workflow }, waiting }) =>
    waiting.map((request) => ({ taskId, workflow, request })),
  );
  const key = ({ taskId, request }: OpenRequest) =>
    [String(request.expiresAt ?? 99).padStart(3, "0"), taskId, request.id].join(" ");
  return open.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

onBothDialects((dialect) => {
  test("what the index says is open is what the tasks' records say, whatever has happened", async () => {
    const store = dialect.open();
    let run = 0;
    let found = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("a", "b"), action), { minLength: 12, maxLength: 25 }),
        async (history) => {
          const tenant = `run-${++run}`;
          const tasks = new Map<string, StoredTask>();
          for (const [name, what] of history) {
            await happen(store, tasks, `@${tenant}/${name}`, what).catch((error: unknown) => {
              if (!isWorkflowError(error)) throw error;
            });
            const open = await indexed(store, tenant);
            found += open.length;
            expect(open).toEqual(await scanned(store, tenant));
          }
        },
      ),
      { numRuns: dialect.place.length === 1 ? 40 : 8 },
    );
    expect(found).toBeGreaterThan(0);
  });
});
