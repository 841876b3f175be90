import { join } from "node:path";
import { compile, defineWorkflow, describeTask, field, sqliteStore } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { runBatch, type BatchEvent, type BatchOptions, type BatchTask, type Settled } from "../../src/batch/batch.ts";
import { measuresOf } from "../../src/batch/measures.ts";
import { readRow } from "../../src/batch/rows.ts";
import { requireReview } from "../../src/batch/review.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { temporaryFolder } from "../support/cli.ts";
import { describePostgres } from "../support/postgres.ts";

/** What a task is to do, by its name: the rest after a colon is a number. */
type Work = (name: string, signal: AbortSignal | undefined) => Promise<void> | void;

const work = defineWorkflow({
  name: "work",
  version: 1,
  goal: "Do what the client says.",
  state: { name: field(z.string()), done: field(z.string()).runtimeOnly(), steps: field(z.int()).runtimeOnly() },
  input: ["name"],
  initial: "working",
  steps: {
    working: {
      to: ["asking", "ended"],
      async run({ name }, { clients, signal }) {
        await (clients.work as Work)(name ?? "", signal);
        return { patch: { done: `${name} done` }, next: name === "ask" ? "asking" : "ended" };
      },
    },
    asking: {
      to: ["asking", "ended"],
      run: ({ done }, { observation }) =>
        observation?.kind === "answer" ? { next: "ended" } : { ask: `Is ${done} right?` },
    },
    ended: { final: true },
  },
});

function openWork(doIt: Work, store = sqliteStore(":memory:")) {
  return compile(work, { store, clients: { work: doIt } });
}

const tasksOf = (...names: readonly string[]): BatchTask[] => names.map((name) => ({ taskId: name, input: { name } }));

function batch(doIt: Work, names: readonly string[], options: Partial<BatchOptions> = {}): Promise<readonly Settled[]> {
  return runBatch(openWork(doIt), {
    tasks: tasksOf(...names),
    workers: 3,
    attempts: 3,
    backoffMs: 1,
    ...options,
  });
}

const outcomes = (settled: readonly Settled[]) =>
  Object.fromEntries(settled.map(({ taskId, outcome }) => [taskId, outcome]));
const onRetry = (then: (event: Extract<BatchEvent, { kind: "retry" }>) => void) => (event: BatchEvent) => {
  if (event.kind === "retry") then(event);
};
const forever = () => new Promise<void>(() => {});

describe("many tasks", () => {
  test("run several at once, never more than there are workers, each in a state of its own", async () => {
    let now = 0;
    let most = 0;
    const graph = openWork(async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 5));
      now--;
    });
    const names = Array.from({ length: 20 }, (_, index) => `t${index}`);
    const settled = await runBatch(graph, { tasks: tasksOf(...names), workers: 4, attempts: 1, backoffMs: 1 });
    expect(most).toBe(4);
    expect(settled.map(({ taskId }) => taskId)).toEqual(names);
    for (const name of names) {
      expect(await describeTask(graph.runtime.store, name)).toMatchObject({
        status: "completed",
        state: { name, done: `${name} done` },
      });
    }
  });

  test("a failure stops no other, and is tried again in place, so many times", async () => {
    const tries: Record<string, number> = {};
    const told: string[] = [];
    const settled = await batch(
      (name) => {
        tries[name] = (tries[name] ?? 0) + 1;
        if (name === "bad" || (name === "flaky" && tries[name] < 3)) throw new Error(`no ${name}`);
      },
      ["a", "bad", "flaky", "b"],
      { onEvent: onRetry(({ taskId, error }) => told.push(`${taskId} ${error.code}`)) },
    );
    expect(outcomes(settled)).toEqual({ a: "completed", bad: "failed", flaky: "completed", b: "completed" });
    expect(tries).toEqual({ a: 1, bad: 3, flaky: 3, b: 1 });
    expect(told.toSorted()).toEqual(["bad STEP_FAILED", "bad STEP_FAILED", "flaky STEP_FAILED", "flaky STEP_FAILED"]);
    expect(settled[1]?.error).toMatchObject({
      code: "STEP_FAILED",
      message: expect.stringContaining("no bad") as string,
    });
  });

  test("what cannot come right is not tried again", async () => {
    let runs = 0;
    const retried: string[] = [];
    const tasks = [{ taskId: "x", input: { nonsense: 1 } }, ...tasksOf("a")];
    const settled = await batch(() => void runs++, [], {
      tasks,
      onEvent: onRetry(({ taskId }) => retried.push(taskId)),
    });
    expect(outcomes(settled)).toEqual({ x: "failed", a: "completed" });
    expect(settled[0]?.error?.code).toBe("INVALID_INPUT");
    expect(runs).toBe(1);
    expect(retried).toEqual([]);
  });

  test.each(["stepMs", "taskMs"] as const)(
    "one that hangs is left behind at its limit (%s), and can end later",
    async (limit) => {
      let hangs = true;
      const graph = openWork((name) => (name === "slow" && hangs ? forever() : undefined));
      const options = { tasks: tasksOf("slow", "a", "b"), workers: 1, attempts: 2, backoffMs: 1 };
      const settled = await runBatch(graph, { ...options, limits: { [limit]: 40 } });
      expect(outcomes(settled)).toEqual({ slow: "failed", a: "completed", b: "completed" });
      expect(settled[0]?.error?.code).toBe("TASK_TIMEOUT");
      const standing = await describeTask(graph.runtime.store, "slow");
      expect(standing).toMatchObject({ status: "failed", lastError: { code: "TASK_TIMEOUT", step: "working" } });
      hangs = false;
      expect(outcomes(await runBatch(graph, options))).toMatchObject({ slow: "completed" });
      expect(measuresOf(await graph.runtime.store.events("slow"))).toMatchObject({ attempts: 3, resumed: true });
    },
  );

  test("what a hanging step does after its limit changes nothing any more", async () => {
    let wake = () => {};
    let runs = 0;
    const graph = openWork(() => (runs++ === 0 ? new Promise<void>((resolve) => (wake = resolve)) : undefined));
    const settled = await runBatch(graph, {
      tasks: tasksOf("a"),
      workers: 1,
      attempts: 2,
      backoffMs: 1,
      limits: { stepMs: 30 },
    });
    expect(outcomes(settled)).toEqual({ a: "completed" });
    const before = await graph.runtime.store.events("a");
    wake();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await graph.runtime.store.events("a")).toEqual(before);
  });
});

describe("the same batch again", () => {
  test("runs what is left: not what is done, not what waits, but what failed, where it stands", async () => {
    const ran: string[] = [];
    let isBroken = true;
    const graph = openWork((name) => {
      ran.push(name);
      if (name === "bad" && isBroken) throw new Error("broken");
    });
    const options = { tasks: tasksOf("a", "ask", "bad"), workers: 2, attempts: 1, backoffMs: 1 };
    expect(outcomes(await runBatch(graph, options))).toEqual({ a: "completed", ask: "waiting", bad: "failed" });
    isBroken = false;
    ran.length = 0;
    const again = await runBatch(graph, { ...options, tasks: tasksOf("a", "ask", "bad", "new") });
    expect(outcomes(again)).toEqual({ a: "completed", ask: "waiting", bad: "completed", new: "completed" });
    expect(again.map((each) => each.ran)).toEqual([false, false, true, true]);
    expect(ran.toSorted()).toEqual(["bad", "new"]);
    await graph.invoke({ message: "yes" }, { configurable: { thread_id: "ask" } });
    expect(outcomes(await runBatch(graph, options))).toMatchObject({ ask: "completed" });
  });
});

test("a task that waits and does not fit the release any more holds back no other", async () => {
  const release = (version: number, schema: z.ZodType) =>
    defineWorkflow({
      name: "release",
      version,
      state: { amount: field(schema) },
      input: ["amount"],
      initial: "asking",
      steps: {
        asking: { to: ["ended"], run: ({ amount }) => (amount === 5 ? { ask: "Is it right?" } : { next: "ended" }) },
        ended: { final: true },
      },
    });
  const store = sqliteStore(":memory:");
  await compile(release(1, z.number()), { store }).invoke({ amount: 5 }, { configurable: { thread_id: "old" } });
  const tasks = [
    { taskId: "old", input: {} },
    { taskId: "new", input: { amount: "six" } },
  ];
  const graph = compile(release(2, z.string()), { store });
  const settled = await runBatch(graph, { tasks, workers: 1, attempts: 1, backoffMs: 1 });
  expect(outcomes(settled)).toEqual({ old: "waiting", new: "completed" });
});

describe("a stop", () => {
  test("begins nothing more, lets a step end, and leaves the rest for the next time", async () => {
    const stop = new AbortController();
    const ran: string[] = [];
    const graph = openWork(async (name) => {
      ran.push(name);
      stop.abort();
    });
    const options = { tasks: tasksOf("ask", "b", "c"), workers: 1, attempts: 3, backoffMs: 1 };
    expect(outcomes(await runBatch(graph, { ...options, stop: stop.signal }))).toEqual({
      ask: "stopped",
      b: "stopped",
      c: "stopped",
    });
    expect(ran).toEqual(["ask"]);
    expect((await describeTask(graph.runtime.store, "ask")).step).toBe("asking");
    expect(await graph.runtime.store.look("b")).toBeNull();
    expect(outcomes(await runBatch(graph, options))).toEqual({ ask: "waiting", b: "completed", c: "completed" });
    expect(ran).toEqual(["ask", "b", "c"]);
  });

  test("ends a long wait between attempts, and a cut ends what hangs", async () => {
    const stop = new AbortController();
    const cut = new AbortController();
    const settled = batch(
      (name) => {
        if (name === "bad") throw new Error("no");
        return forever();
      },
      ["bad", "hangs"],
      {
        stop: stop.signal,
        cut: cut.signal,
        backoffMs: 3_600_000,
        onEvent: onRetry(() => {
          stop.abort();
          setTimeout(() => cut.abort(), 10);
        }),
      },
    );
    expect(outcomes(await settled)).toEqual({ bad: "stopped", hangs: "stopped" });
  });
});

test("a database that is gone ends the batch with its error", async () => {
  const graph = openWork(() => {}, sqliteStore("/dev/null/tasks.db"));
  const run = runBatch(graph, { tasks: tasksOf("a", "b"), workers: 2, attempts: 3, backoffMs: 1 });
  await expect(run).rejects.toMatchObject({ code: expect.stringMatching(/^DATABASE_/) as string });
});

test("a row says what a task took, and of one that never was that it was not started", async () => {
  const graph = openWork((name) => {
    if (name === "bad") throw new Error("no");
  });
  await runBatch(graph, { tasks: tasksOf("a", "bad"), workers: 1, attempts: 2, backoffMs: 1 });
  const row = (id: string) =>
    readRow(graph, { line: { line: 1, id, input: {} }, taskId: id, policy: null, refused: null, maxAttempts: 2 });
  expect(await row("a")).toMatchObject({
    status: "completed",
    attempts: 1,
    resumed: false,
    result: { done: "a done" },
  });
  expect(await row("bad")).toMatchObject({
    status: "failed",
    attempts: 2,
    error: { code: "STEP_FAILED" },
    result: null,
  });
  expect(await row("never")).toMatchObject({ status: "not started", attempts: 0 });
});

/** Two stores on one database, as two processes have them. */
function sharing(open: () => Promise<SqlStore> | SqlStore) {
  test("two at once share the work: every task is done, none twice", async () => {
    const effects: string[] = [];
    const doIt: Work = async (name) => {
      await new Promise((resolve) => setTimeout(resolve, 3));
      effects.push(name);
    };
    const names = Array.from({ length: 20 }, (_, index) => `t${index}`);
    const options = { tasks: tasksOf(...names), workers: 3, attempts: 3, backoffMs: 1 };
    const graphs = [openWork(doIt, await open()), openWork(doIt, await open())];
    const both = await Promise.all(graphs.map((graph) => runBatch(graph, options)));
    for (const settled of both) expect(new Set(settled.map(({ outcome }) => outcome))).toEqual(new Set(["completed"]));
    expect(effects.toSorted()).toEqual(names.toSorted());
    const ran = both.map((settled) => settled.filter((each) => each.ran).length);
    expect(ran.reduce((sum, each) => sum + each, 0)).toBe(names.length);
    expect(Math.min(...ran)).toBeGreaterThan(0);
  });
}

describe("on SQLite", () => {
  let file: Promise<string> | null = null;
  sharing(async () => {
    file ??= temporaryFolder();
    return sqliteStore(join(await file, "tasks.db"));
  });
});
describePostgres("on PostgreSQL", (postgres) => sharing(() => postgres.open()));

test("that a review is required hides no failure", async () => {
  const graph = openWork(() => {
    throw new Error("no");
  });
  const { store } = graph.runtime;
  await runBatch(graph, { tasks: tasksOf("a"), workers: 1, attempts: 1, backoffMs: 1 });
  await requireReview(store, "a", 0);
  expect(await describeTask(store, "a")).toMatchObject({ status: "failed", lastError: { code: "STEP_FAILED" } });
});
