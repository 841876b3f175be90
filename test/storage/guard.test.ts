import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { compile, defineWorkflow, field } from "statecard";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { LEASE_TOKEN, LOADED } from "../../src/compile/store.ts";
import { newExecution, type Execution } from "../../src/state/execution.ts";
import { KEPT_CHECKPOINTS } from "../../src/storage/checkpoints.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { StoredTask, storedWorkflow } from "../../src/testing/stored-task.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { schemaDigest } from "../../src/workflow/schema-digest.ts";
import { onBothDialects } from "../support/stores.ts";

const error = (code: string) => expect.objectContaining({ code }) as Error;
const fresh = newExecution(storedWorkflow);

/** One checkpoint written without a runtime around it. */
function put(store: SqlStore, thread: string, values: object, options: { token?: unknown; parent?: string } = {}) {
  const id = uuid6(0);
  const checkpoint = {
    v: 4,
    id,
    ts: new Date().toISOString(),
    channel_values: { ...values },
    channel_versions: {},
    versions_seen: {},
  };
  const configurable = {
    thread_id: thread,
    checkpoint_ns: "",
    ...(options.parent === undefined ? {} : { checkpoint_id: options.parent }),
    ...(options.token === undefined ? {} : { [LEASE_TOKEN]: options.token, [LOADED]: "head" }),
  };
  return store.checkpointer.put({ configurable }, checkpoint, { source: "loop", step: 0, parents: {} }).then(() => id);
}

onBothDialects((dialect) => {
  const bound = () => {
    const store = dialect.open();
    store.bind(storedWorkflow);
    return store;
  };
  const count = async (thread: string, condition: string) => {
    const tables = [
      ["checkpoints", "thread_id", "checkpoint_ns"],
      ["writes", "thread_id", "checkpoint_ns"],
      ["statecard_heads", "task_id", "namespace"],
    ] as const;
    const counts: number[] = [];
    for (const [table, id, namespace] of tables) {
      const where = `${id} = '${thread}' and ${condition.replaceAll("NS", namespace)}`;
      counts.push((await dialect.query(`select 1 as one from ${table} where ${where}`)).length);
    }
    return counts;
  };

  describe("a new thread of a store that knows a workflow", () => {
    test("takes no first checkpoint with a lease but without a valid record", async () => {
      const store = bound();
      const { token } = await store.acquire("new-1");
      const { decisions: _decisions, ...broken } = fresh;
      await expect(put(store, "new-1", {}, { token })).rejects.toEqual(error("ILLEGAL_STATE"));
      await expect(put(store, "new-1", { execution: "x" }, { token })).rejects.toEqual(error("ILLEGAL_STATE"));
      await expect(put(store, "new-1", { execution: broken }, { token })).rejects.toEqual(error("ILLEGAL_STATE"));
      const other = { ...fresh, workflow: "never compiled" };
      await expect(put(store, "new-1", { execution: other }, { token })).rejects.toEqual(error("WRONG_WORKFLOW"));
      expect(await count("new-1", "1 = 1")).toEqual([0, 0, 0]);
    });

    test("takes no first checkpoint with a record but without a lease", async () => {
      const store = bound();
      await expect(put(store, "new-2", { execution: fresh })).rejects.toEqual(error("STALE_WRITE"));
      const other = { ...fresh, workflow: "never compiled" };
      await expect(put(store, "new-2", { execution: other })).rejects.toEqual(error("WRONG_WORKFLOW"));
      await expect(put(store, "new-2", { execution: { step: "ask" } })).rejects.toEqual(error("ILLEGAL_STATE"));
      expect(await count("new-2", "1 = 1")).toEqual([0, 0, 0]);
    });

    test("may belong to another program; then no task starts in it, and the program goes on", async () => {
      const store = bound();
      const parent = await put(store, "foreign-1", { messages: ["hi"] });
      await expect(StoredTask.start(store, "foreign-1")).rejects.toEqual(error("WRONG_WORKFLOW"));
      await put(store, "foreign-1", { messages: ["hi", "there"] }, { parent });
      expect(await store.head("foreign-1")).toBeNull();
    });
  });

  test("a thread that was there before any workflow was compiled stays what it is, whatever its channels", async () => {
    const store = dialect.open();
    const parent = await put(store, "foreign-2", { execution: { mine: true } });
    store.bind(storedWorkflow);
    await put(store, "foreign-2", { execution: { mine: 2 } }, { parent });
    await expect(StoredTask.start(store, "foreign-2")).rejects.toEqual(error("WRONG_WORKFLOW"));
  });

  test("a process that has not compiled a task's workflow writes nothing to it", async () => {
    const task = await StoredTask.start(bound(), "unknown-1");
    const other = dialect.open();
    const write = put(other, "unknown-1", { execution: fresh }, { token: task.lease.token, parent: task.head });
    await expect(write).rejects.toEqual(error("WRONG_WORKFLOW"));
  });

  describe("a task takes no checkpoint", () => {
    const cases: readonly [string, unknown][] = [
      ["without a record", undefined],
      ["whose record is null", null],
      ["whose record is a text", "ask"],
      ["whose record misses a field", { ...fresh, revision: 1, usage: undefined }],
      ["whose record has a field of a wrong type", { ...fresh, revision: 1, decisions: "1" }],
      ["whose record has no revision", { ...fresh, revision: undefined }],
      ["whose record is of another workflow", { ...fresh, revision: 1, workflow: "another" }],
    ];
    test.each(cases)("%s", async (name, execution) => {
      const store = bound();
      const task = await StoredTask.start(store, `record ${name}`);
      await expect(task.commit(execution as Execution, { values: { "branch:to:ask": null } })).rejects.toEqual(
        error("ILLEGAL_STATE"),
      );
      expect((await store.head(task.taskId))?.checkpointId).toBe(task.head);
    });
  });

  describe("what graphs inside a task's steps store", () => {
    test("needs the task's lease", async () => {
      const task = await StoredTask.start(bound(), "inner-1");
      await task.inner("ask:1");
      await expect(task.withToken(undefined).inner("ask:1")).rejects.toEqual(error("STALE_WRITE"));
      await expect(task.withToken(task.lease.token + 1).inner("ask:1")).rejects.toEqual(error("STALE_WRITE"));
      const configurable = { thread_id: "inner-1", checkpoint_ns: "ask:1", checkpoint_id: uuid6(0) };
      const writes = task.store.checkpointer.putWrites({ configurable }, [["a", 1]], "x");
      await expect(writes).rejects.toEqual(error("STALE_WRITE"));
      expect(await count("inner-1", "NS <> ''")).toEqual([1, 1, 1]);
    });

    test("goes when the task's own line is pruned, but not the memory of one that spans the task", async () => {
      const task = await StoredTask.start(bound(), "inner-2");
      await task.inner("ask:1");
      await task.inner("ask:1|deeper:2");
      await task.inner("ask");
      for (let step = 1; step < KEPT_CHECKPOINTS; step++) await task.decide();
      expect(await count("inner-2", "NS <> ''")).toEqual([3, 3, 3]);
      await task.decide();
      expect(await count("inner-2", "NS <> ''")).toEqual([1, 1, 1]);
      expect(await count("inner-2", "NS = 'ask'")).toEqual([1, 1, 1]);
    });

    test("goes when the task ends", async () => {
      const task = await StoredTask.start(bound(), "inner-3");
      await task.inner("ask:1");
      await task.inner("ask");
      await task.decide({ status: "completed", step: "done" });
      expect(await count("inner-3", "NS <> ''")).toEqual([0, 0, 0]);
      expect((await count("inner-3", "NS = ''"))[0]).toBeGreaterThan(1);
    });

    test("comes from a real graph that a step runs, under the lease, and goes with the task", async () => {
      const Inner = Annotation.Root({ seen: Annotation<number> });
      const inner = new StateGraph(Inner)
        .addNode("look", () => ({ seen: 1 }))
        .addEdge(START, "look")
        .addEdge("look", END)
        .compile();
      const stored: number[] = [];
      const workflow = defineWorkflow({
        name: "with-inner",
        version: 1,
        state: { seen: field(z.number()) },
        initial: "work",
        steps: {
          work: {
            to: ["rest"],
            run: async (_state, { config, taskId }) => {
              const { seen } = await inner.invoke({ seen: 0 }, config);
              stored.push(...(await count(taskId, "NS <> ''")));
              return { patch: { seen }, next: "rest" };
            },
          },
          rest: { to: ["done"], run: () => ({ next: "done" }) },
          done: { final: true },
        },
      });
      const graph = compile(workflow, { store: dialect.open() });
      const result = await graph.invoke({ message: "go" }, { configurable: { thread_id: "inner-4" } });
      expect(result).toMatchObject({ seen: 1, execution: { status: "completed" } });
      expect(stored[0]).toBeGreaterThan(0);
      expect(await count("inner-4", "NS <> ''")).toEqual([0, 0, 0]);
    });
  });

  test("bytes come back as they were, in channels and in pending writes", async () => {
    const bytes = Uint8Array.from([0, 1, 127, 128, 200, 255, 0]);
    const task = await StoredTask.start(bound(), "bytes-1");
    task.extra = { raw: bytes, nested: { raw: bytes } };
    await task.decide();
    await task.write("__interrupt__", bytes);
    await task.write("__error__", { raw: bytes });
    const tuple = await task.stored();
    expect(tuple?.checkpoint.channel_values).toMatchObject({ raw: bytes, nested: { raw: bytes } });
    expect(tuple?.pendingWrites?.map(([, , value]) => value)).toEqual([bytes, { raw: bytes }]);
    expect(tuple?.pendingWrites?.[0]?.[2]?.constructor).toBe(Uint8Array);
  });

  test("the head is what was written last, though its writer's clock is behind", async () => {
    const store = bound();
    const task = await StoredTask.start(store, "clock-1");
    await task.ask("How urgent is it?");
    const earlier = uuid6(0);
    await task.decide({ pending: null });
    await task.ask("Sure?");
    const late = task.head;
    // As a machine 20 seconds behind would name it: smaller than all the ids before.
    const behind = `1${"0".repeat(7)}${earlier.slice(8)}`;
    await task.commit(
      { ...task.execution, revision: task.execution.revision + 1, decisions: 9, pending: null, status: "running" },
      { id: behind },
    );
    expect(behind < late).toBe(true);
    expect((await store.head("clock-1"))?.checkpointId).toBe(behind);
    const tuple = await task.stored();
    expect(tuple?.checkpoint.id).toBe(behind);
    expect(tuple?.parentConfig?.configurable?.checkpoint_id).toBe(late);
    expect(tuple?.checkpoint.channel_values.execution).toMatchObject({ decisions: 9 });
    // And whoever reads next goes on from there, past the end of the line that is kept.
    for (let step = 0; step < KEPT_CHECKPOINTS; step++) await task.decide();
    expect((await store.head("clock-1"))?.execution.decisions).toBe(9 + KEPT_CHECKPOINTS);
  });

  test("a fork moves the head, and pruning keeps its line and drops the one that was left", async () => {
    const store = bound();
    const task = await StoredTask.start(store, "fork-1");
    const line: string[] = [task.head];
    for (let step = 0; step < 6; step++) {
      await task.decide();
      line.push(task.head);
    }
    const from = await task.stored(line[2]);
    const fork = task.copy();
    fork.head = line[2] ?? "";
    fork.execution = from?.checkpoint.channel_values.execution as Execution;
    await expect(fork.commit(fork.execution, { source: "fork" })).rejects.toEqual(error("STALE_WRITE"));
    fork.loaded = "addressed";
    await fork.commit(fork.execution, { source: "fork" });
    fork.loaded = "head";
    expect((await store.head("fork-1"))?.execution.revision).toBe(2);
    const forked = fork.head;
    const onFork: string[] = [];
    while (onFork.length < KEPT_CHECKPOINTS - 7) {
      await fork.decide();
      onFork.push(fork.head);
    }
    const kept = (await dialect.query("select checkpoint_id from checkpoints where thread_id = 'fork-1'")).map(
      (row) => row.checkpoint_id,
    );
    expect(kept).toEqual(expect.arrayContaining([...line.slice(0, 3), forked, ...onFork]));
    for (const left of line.slice(3)) expect(kept).not.toContain(left);
    expect((await store.head("fork-1"))?.checkpointId).toBe(fork.head);
  });

  test("a task's checkpoints say by which version and schema they were written, and its head by which it was checked", async () => {
    const task = await StoredTask.start(bound(), "stamp-1");
    const schema = schemaDigest(storedWorkflow);
    const stamp = { source: "loop", step: 0, parents: {}, workflow: "statecard-conformance", version: 1, schema };
    expect((await task.stored())?.metadata).toEqual(stamp);
    const [head] = await dialect.query("select schema from statecard_heads where task_id = 'stamp-1'");
    expect(head?.schema).toBe(schema);
    const unbound = dialect.open();
    await put(unbound, "stamp-2", { any: 1 });
    const tuple = await unbound.checkpointer.getTuple({ configurable: { thread_id: "stamp-2" } });
    expect(tuple?.metadata).toEqual({ source: "loop", step: 0, parents: {} });
  });

  describe("a workflow that runs", () => {
    const talk = defineWorkflow({
      name: "talk",
      version: 3,
      state: { amount: field(z.number()), log: field(z.array(z.string())).appendOnly() },
      initial: "collect",
      steps: {
        collect: {
          to: ["pay"],
          run: (state, { observation }) =>
            observation?.kind === "answer"
              ? { patch: { log: ["paid"], amount: (state.amount ?? 0) + 1 }, next: "pay" }
              : { patch: { log: ["asked"], amount: 5 }, ask: "Pay?" },
        },
        pay: { to: ["done"], run: () => ({ patch: { log: ["done"] }, next: "done" }) },
        done: { final: true },
      },
    });
    const config = (thread: string) => ({ configurable: { thread_id: thread } });

    test("goes on from an edit of its latest state, with every channel as it was left", async () => {
      const graph = compile(talk, { store: dialect.open() });
      await graph.invoke({ message: "go" }, config("edit-1"));
      await graph.updateState(config("edit-1"), { amount: 40 });
      await graph.updateState(config("edit-1"), { amount: 41 });
      const done = await graph.invoke({ message: "yes" }, config("edit-1"));
      expect(done).toMatchObject({ amount: 42, log: ["asked", "paid", "done"] });
    });

    test("loses nothing to a machine whose clock is 20 seconds behind", async () => {
      const graph = compile(talk, { store: dialect.open() });
      await graph.invoke({ message: "go" }, config("clock-2"));
      const asked = await graph.getState(config("clock-2"));
      const now = Date.now.bind(Date);
      const behind = vi.spyOn(Date, "now").mockImplementation(() => now() - 20_000);
      onTestFinished(() => behind.mockRestore());
      const done = await graph.invoke({ message: "yes" }, config("clock-2"));
      expect(done).toMatchObject({ amount: 6, log: ["asked", "paid", "done"] });
      behind.mockRestore();
      const state = await compile(talk, { store: dialect.open() }).getState(config("clock-2"));
      expect(state.values.execution.status).toBe("completed");
      const idOf = (snapshot: typeof state) => String(snapshot.config.configurable?.checkpoint_id);
      expect(idOf(state) < idOf(asked)).toBe(true);
    });

    test("can be forked from an old checkpoint, which reads back as it was", async () => {
      const graph = compile(talk, { store: dialect.open() });
      await graph.invoke({ message: "go" }, config("edit-2"));
      await graph.updateState(config("edit-2"), { amount: 8 });
      await graph.invoke({ message: "yes" }, config("edit-2"));
      const history = [];
      for await (const state of graph.getStateHistory(config("edit-2"))) history.push(state);
      const asked = history.find((state) => state.values.amount === 5 && state.values.execution.pending !== null);
      expect(asked?.values).toMatchObject({ amount: 5, log: ["asked"] });
      const again = await graph.invoke(null, asked?.config as never);
      expect(again).toMatchObject({ amount: 5, log: ["asked"], execution: { status: "waiting_user" } });
      const done = await graph.invoke({ message: "yes" }, config("edit-2"));
      expect(done).toMatchObject({ amount: 6, log: ["asked", "paid", "done"] });
    });

    test("cannot be written to by another program on the same saver", async () => {
      const store = dialect.open();
      const graph = compile(talk, { store });
      await graph.invoke({ message: "go" }, config("plain-1"));
      const head = await store.head("plain-1");
      const { builder } = graph as unknown as { builder: StateGraph<never> };
      const plain = builder.compile({ checkpointer: dialect.open().checkpointer });
      const same = builder.compile({ checkpointer: store.checkpointer });
      for (const outsider of [plain, same]) {
        const run = outsider.invoke({ message: "x" } as never, { ...config("plain-1"), durability: "sync" });
        await expect(run).rejects.toThrow(/lease|compiled/);
        await expect(outsider.updateState(config("plain-1"), { amount: 1 } as never, "collect")).rejects.toThrow(
          /lease|compiled/,
        );
      }
      expect(await store.head("plain-1")).toEqual(head);
      const done = await graph.invoke({ message: "yes" }, config("plain-1"));
      expect(done).toMatchObject({ amount: 6, execution: { status: "completed" } });
    });
  });
});

describe("the digest of a workflow's schema", () => {
  const base = {
    name: "digest",
    version: 1,
    state: { note: field(z.string()) },
    initial: "ask",
    steps: { ask: { writes: ["note"], to: ["done"] }, done: { final: true } },
  } as const;
  const digestOf = (changes: object) =>
    schemaDigest(anyWorkflow(defineWorkflow({ ...base, ...changes } as typeof base)));

  test("is the same for the same definition, whatever its texts say", () => {
    expect(digestOf({ goal: "another", instructions: "other" })).toBe(digestOf({}));
  });

  test.each<[string, object]>([
    ["a version", { version: 2 }],
    ["a field's type", { state: { note: field(z.number()) } }],
    ["a field's rule", { state: { note: field(z.string()).writeOnce() } }],
    ["an entry condition", { steps: { ...base.steps, done: { final: true, requires: ["note"] } } }],
    ["a transition", { steps: { ...base.steps, ask: { writes: ["note"], to: ["ask", "done"] } } }],
  ])("changes with %s", (_what, changes) => {
    expect(digestOf(changes)).not.toBe(digestOf({}));
  });
});
