import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunnableConfig } from "@langchain/core/runnables";
import { RunnableLambda } from "@langchain/core/runnables";
import { Command, MemorySaver, type CompiledStateGraph } from "@langchain/langgraph";
import { uuid6, type Checkpoint, type CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import { compile, defineWorkflow, field, sqliteStore, type Execution, type TaskStore } from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { LEASE_TOKEN } from "../../src/compile/store.ts";

const folder = mkdtempSync(join(tmpdir(), "layers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newFile = () => join(folder, `${files++}.db`);

const config = { configurable: { thread_id: "t" } };
const error = (code: string) => expect.objectContaining({ code }) as unknown;

/** An order that is paid by code; `bodies` has the steps that ran. */
function order(bodies: string[] = [], pay: () => object = () => ({ patch: { receipt: "r" }, next: "done" })) {
  return defineWorkflow({
    name: "order",
    version: 1,
    state: {
      amount: field(z.number().max(100)),
      receipt: field(z.string()).writeOnce(),
      notes: field(z.array(z.string())).appendOnly(),
      bag: field(z.record(z.string(), z.unknown())).clearable(),
    },
    input: ["amount", "notes"],
    checks: { free: (state) => state.amount === 0 && state.receipt !== null && "nothing was paid" },
    initial: "collect",
    steps: {
      collect: { writes: ["amount", "notes", "bag"], to: ["collect", "pay"] },
      pay: {
        requires: ["amount"],
        to: ["done"],
        run: () => {
          bodies.push("pay");
          return pay();
        },
      },
      done: { final: true },
    },
  });
}

const ASK = { patch: { amount: 5, notes: ["first"] }, ask: "Shall I pay?" };
const PAY = { next: "pay" };

interface Scene {
  readonly graph: ReturnType<typeof compileOrder>;
  readonly store: TaskStore;
  readonly bodies: string[];
  readonly file: string;
}

function compileOrder(bodies: string[], script: readonly ScriptedAnswer[], store: TaskStore | MemorySaver) {
  const where = store instanceof MemorySaver ? { checkpointer: store } : { store };
  return compile(order(bodies), { model: scriptedModel(script), ...where });
}

function onSqlite(script: readonly ScriptedAnswer[]): Scene {
  const file = newFile();
  const bodies: string[] = [];
  const store = sqliteStore(file);
  return { graph: compileOrder(bodies, script, store), store, bodies, file };
}

function inMemory(script: readonly ScriptedAnswer[]): Scene {
  const bodies: string[] = [];
  const graph = compileOrder(bodies, script, new MemorySaver());
  return { graph, store: graph.runtime.store, bodies, file: "" };
}

const stores = [
  ["SQLite", onSqlite],
  ["MemorySaver", inMemory],
] as const;

async function stateOf({ graph }: Scene): Promise<Readonly<Record<string, unknown>> & { execution: Execution }> {
  return (await graph.getState(config)).values as never;
}

/** Every row of every table. A lease's token grows with each attempt, so only who holds it is compared. */
function rowsOf(file: string): readonly (readonly [table: string, rows: unknown])[] {
  const database = new Database(file, { readonly: true });
  const names = database
    .prepare("select name from sqlite_master where type = 'table' order by name")
    .pluck()
    .all() as string[];
  const tables = names.map((name) => {
    const columns = name === "statecard_leases" ? "task_id, pid, closing" : "*";
    return [name, database.prepare(`select ${columns} from "${name}"`).raw().all()] as const;
  });
  database.close();
  return tables;
}

/** LangGraph's own graph of the same nodes and edges, as a program could compile it from our builder. */
function plainGraph({ graph, store }: Scene): CompiledStateGraph<unknown, unknown> {
  const { builder } = graph as unknown as {
    builder: { compile(options: object): CompiledStateGraph<unknown, unknown> };
  };
  return builder.compile({ checkpointer: store.checkpointer });
}

describe("a decision is checked where it is made", () => {
  test.each(stores)("a model's move outside the table goes back to it with the reason (%s)", async (_name, scene) => {
    const { graph, store, bodies } = scene([
      { patch: { amount: 5 }, next: "done" },
      { patch: { amount: 6 }, next: "pay" },
    ]);
    const result = await graph.invoke({ message: "go" }, config);
    expect(result).toMatchObject({ amount: 6, execution: { status: "completed", refused: 1, decisions: 2 } });
    expect(bodies).toEqual(["pay"]);
    const refused = (await store.events("t")).filter((event) => event.kind === "refused");
    expect(refused.map((event) => event.data.code)).toEqual(["ILLEGAL_TRANSITION"]);
  });

  test.each([
    ["a step that has no way there", { next: "collect" }, "ILLEGAL_TRANSITION"],
    ["the action node", { next: "act" }, "ILLEGAL_TRANSITION"],
    ["the end of the graph", { next: "__end__" }, "ILLEGAL_TRANSITION"],
    ["a prototype's key", { next: "constructor" }, "ILLEGAL_TRANSITION"],
    ["a field that is not there", { patch: { execution: { step: "done" } }, next: "done" }, "UNKNOWN_FIELD"],
    ["a value outside the schema", { patch: { amount: 1000 }, next: "done" }, "INVALID_FIELD"],
    ["a state that breaks a rule", { patch: { amount: 0, receipt: "r" }, next: "done" }, "CHECK_FAILED"],
  ])("code that decides for %s fails its task, which stays where it was", async (_name, decision, code) => {
    const graph = compile(
      order([], () => decision),
      { model: scriptedModel([{ patch: { amount: 5 }, next: "pay" }]) },
    );
    const result = await graph.invoke({ message: "go" }, config);
    expect(result).toMatchObject({
      amount: 5,
      receipt: null,
      execution: { status: "failed", step: "pay", lastError: { code } },
    });
  });

  test.each([
    ["a Command", new Command({ goto: "done", update: { amount: 1 } })],
    ["a list", [{ next: "done" }]],
    ["a text", "done"],
  ])("code that returns %s in place of plain data moves nothing", async (_name, result) => {
    const graph = compile(
      order([], () => result as object),
      { model: scriptedModel([{ patch: { amount: 5 }, next: "pay" }]) },
    );
    await expect(graph.invoke({ message: "go" }, config)).rejects.toEqual(error("STEP_FAILED"));
    expect((await graph.getState(config)).values).toMatchObject({
      amount: 5,
      execution: { step: "pay", status: "running" },
    });
  });

  test.each([
    ["an object as next", { next: { to: "done" } }],
    ["a number as next", { next: 5 }],
    ["a list as patch", { patch: ["amount"], next: "done" }],
    ["a text as clear", { clear: "bag", next: "done" }],
    ["an object as clear", { clear: { bag: true }, next: "done" }],
    ["a number as question", { ask: 5 }],
    ["an object as reply", { reply: { text: "x" }, next: "done" }],
    ["a big number as reason", { because: 10n, next: "done" }],
  ])("code that returns %s gets an error that says so, and moves nothing", async (_name, result) => {
    const graph = compile(
      order([], () => result),
      { model: scriptedModel([{ patch: { amount: 5 }, next: "pay" }]) },
    );
    const ended = await graph.invoke({ message: "go" }, config).then(
      ({ execution }) => execution.lastError?.code,
      (thrown: Error) => thrown.name,
    );
    expect(["STEP_FAILED", "INVALID_DECISION", "ILLEGAL_TRANSITION", "UNKNOWN_FIELD"]).toContain(ended);
    expect((await graph.getState(config)).values).toMatchObject({ amount: 5, execution: { step: "pay" } });
  });

  test("what a finished child workflow leads to is checked against the parent's table", async () => {
    const child = defineWorkflow({
      name: "child",
      version: 1,
      state: {},
      initial: "work",
      steps: { work: { to: ["end"], run: () => ({ next: "end" }) }, end: { final: true } },
    });
    const parent = defineWorkflow({
      name: "parent",
      version: 1,
      state: {},
      initial: "delegate",
      steps: {
        delegate: { workflow: child, output: () => ({ next: "done" }), to: ["review"] },
        review: { to: ["done"], run: () => ({ next: "done" }) },
        done: { final: true },
      },
    });
    const result = await compile(parent).invoke({}, config);
    expect(result.execution).toMatchObject({
      step: "delegate",
      status: "failed",
      lastError: { code: "ILLEGAL_TRANSITION" },
    });
  });
});

describe("a value is stored as it was decided, or refused", () => {
  // LangGraph's serializer takes an object with the key lc for an instance of a class.
  test.each([
    ["undefined", { lc: 2, type: "undefined" }],
    ["a map", { lc: 2, type: "constructor", id: ["Map"], method: null, args: [[["a", 1]]] }],
    [
      "a message",
      { lc: 1, type: "constructor", id: ["langchain_core", "messages", "HumanMessage"], kwargs: { content: "x" } },
    ],
    ["a Send", { lg_name: "Send", node: "pay", args: { amount: 1 } }],
    ["a prototype", JSON.parse('{"__proto__": {"polluted": true}}') as object],
    ["a class that is not there", { lc: 1, type: "constructor", id: ["nowhere", "Nothing"], kwargs: {} }],
  ])("an object that looks like %s", async (_name, value) => {
    const decided = { k: value };
    const scene = onSqlite([
      { patch: { amount: 5, bag: decided }, ask: "?" },
      { ask: "?" },
      { ask: "?" },
      { ask: "?" },
    ]);
    await scene.graph.invoke({ message: "go" }, config);
    const stored = await stateOf(scene);
    expect([null, decided]).toContainEqual(stored.bag);
  });
});

describe("a node runs only under a lease, and only when it is due", () => {
  test.each(stores)("the same graph compiled by LangGraph alone runs no body (%s)", async (_name, make) => {
    const scene = make([{ patch: { amount: 5 }, next: "pay" }]);
    await scene.graph.invoke({ message: "go" }, { ...config, interruptBefore: ["pay"] });
    const run = plainGraph(scene).invoke(null, { ...config, durability: "sync" });
    await expect(run).rejects.toEqual(error("NO_LEASE"));
    expect(scene.bodies).toEqual([]);
  });

  test.each(stores)("goto starts no body out of turn, even for whoever holds the lease (%s)", async (_name, make) => {
    const scene = make([ASK]);
    await scene.graph.invoke({ message: "go" }, config);
    const lease = await scene.store.acquire("t");
    const held = { configurable: { thread_id: "t", [LEASE_TOKEN]: lease.token }, durability: "sync" } as const;
    // LangGraph runs the body before it hears that the checkpoint was refused.
    await expect(plainGraph(scene).invoke(new Command({ goto: "pay" }) as never, held)).rejects.toEqual(
      error("ILLEGAL_ENTRY"),
    );
    expect(scene.bodies).toEqual([]);
  });

  test("a node called by hand runs neither without a lease nor out of turn", async () => {
    const scene = onSqlite([ASK]);
    await scene.graph.invoke({ message: "go" }, config);
    const values = await stateOf(scene);
    const { pay } = scene.graph.nodes as unknown as { pay: { bound: RunnableLambda<unknown, unknown> } };
    const due = { ...values, execution: { ...values.execution, step: "pay", pending: null } };
    await expect(pay.bound.invoke(due, config)).rejects.toEqual(error("NO_LEASE"));
    const held = { configurable: { thread_id: "t", [LEASE_TOKEN]: 1 } };
    await expect(pay.bound.invoke(values, held)).rejects.toEqual(error("ILLEGAL_ENTRY"));
    expect(scene.bodies).toEqual([]);
  });

  test("the lease's token never leaves with a config, and a forged one counts for nothing", async () => {
    const { graph, store } = onSqlite([ASK]);
    await graph.invoke({ message: "go" }, { configurable: { thread_id: "t", [LEASE_TOKEN]: 77 } });
    const written = await graph.updateState(config, { amount: 7 });
    const read = await graph.getState(config);
    expect(JSON.stringify([written, read.config])).not.toContain(LEASE_TOKEN);
    expect((await store.acquire("t")).token).not.toBe(77);
  });
});

describe("edges lead only where the table leads", () => {
  test("a body that writes a record for another step ends in an error of LangGraph's path map", async () => {
    const { graph } = inMemory([]);
    const { builder } = graph as unknown as {
      builder: { nodes: Record<string, { runnable: unknown }>; compile(): CompiledStateGraph<unknown, unknown> };
    };
    const rogue = (values: { execution: Execution }) => ({ execution: { ...values.execution, step: "elsewhere" } });
    const { collect } = builder.nodes;
    if (!collect) throw new Error("there is no node collect");
    collect.runnable = RunnableLambda.from(rogue as never);
    await expect(builder.compile().invoke({ message: "go" })).rejects.toThrow(/destination/);
  });

  test("every node's path map names the table's targets, itself, the action node and the end", () => {
    const { graph } = inMemory([]);
    const { branches } = (
      graph as unknown as { builder: { branches: Record<string, Record<string, { ends?: object }>> } }
    ).builder;
    const ends = Object.entries(branches).map(([node, own]) => [
      node,
      Object.values(own).map((branch) => Object.keys(branch.ends ?? {}).toSorted()),
    ]);
    expect(Object.fromEntries(ends)).toEqual({
      collect: [["__end__", "act", "collect", "pay"]],
      pay: [["__end__", "act", "done", "pay"]],
      act: [["__end__", "act", "collect", "done", "pay"]],
    });
  });
});

describe("an input that does not fit the task is refused before anything is written", () => {
  const waiting = async () => {
    const scene = onSqlite([ASK, PAY]);
    await scene.graph.invoke({ message: "go" }, config);
    return scene;
  };
  const finished = async () => {
    const scene = await waiting();
    await scene.graph.invoke({ message: "yes" }, config);
    return scene;
  };
  const midway = async () => {
    const scene = onSqlite([{ patch: { amount: 5 }, next: "collect" }, new Error("down"), PAY]);
    await expect(scene.graph.invoke({ message: "go" }, config)).rejects.toEqual(error("MODEL_FAILED"));
    return scene;
  };
  const withTwoCheckpoints = async (scene: Scene) => {
    const ids: string[] = [];
    for await (const { checkpoint } of scene.store.checkpointer.list(config)) ids.push(checkpoint.id);
    return { configurable: { thread_id: "t", checkpoint_id: ids.at(1) } };
  };

  test.each<[string, () => Promise<Scene>, (scene: Scene) => Promise<unknown>, string]>([
    [
      "a message for a finished task",
      finished,
      ({ graph }) => graph.invoke({ message: "more" }, config),
      "TASK_FINISHED",
    ],
    [
      "an answer for a finished task",
      finished,
      ({ graph }) => graph.invoke(new Command({ resume: "yes" }), config),
      "TASK_FINISHED",
    ],
    ["the opening input again", waiting, ({ graph }) => graph.invoke({ message: "go" }, config), "TASK_STARTED"],
    [
      "fields for a waiting task",
      waiting,
      ({ graph }) => graph.invoke({ message: "x", amount: 9 }, config),
      "TASK_WAITING",
    ],
    [
      "a message for a task that stopped midway",
      midway,
      ({ graph }) => graph.invoke({ message: "x" }, config),
      "TASK_UNFINISHED",
    ],
    [
      "an answer for a task that asks nothing",
      midway,
      ({ graph }) => graph.invoke(new Command({ resume: "x" }), config),
      "TASK_NOT_WAITING",
    ],
    ["goto", waiting, ({ graph }) => graph.invoke(new Command({ goto: "pay" }), config), "ILLEGAL_COMMAND"],
    [
      "goto with an answer",
      waiting,
      ({ graph }) => graph.invoke(new Command({ goto: ["pay"], resume: "yes" }), config),
      "ILLEGAL_COMMAND",
    ],
    [
      "update with an answer",
      waiting,
      ({ graph }) => graph.invoke(new Command({ update: { amount: 1 }, resume: "yes" }), config),
      "ILLEGAL_COMMAND",
    ],
    ["an empty Command", waiting, ({ graph }) => graph.invoke(new Command({}), config), "ILLEGAL_COMMAND"],
    [
      "an answer to a request that was never made",
      waiting,
      ({ graph }) =>
        graph.invoke(new Command({ resume: { __statecard_replies: [{ id: "q9.0", reply: "x" }] } }), config),
      "UNKNOWN_REQUEST",
    ],
    [
      "an old checkpoint with an input",
      waiting,
      async (scene) => scene.graph.invoke({ message: "x" }, await withTwoCheckpoints(scene)),
      "FORK_TAKES_NO_INPUT",
    ],
    ["an invalid field", waiting, ({ graph }) => graph.invoke({ receipt: "x" } as never, config), "INVALID_INPUT"],
    [
      "a message for another workflow's task",
      waiting,
      ({ store }) =>
        compile(
          defineWorkflow({
            name: "other",
            version: 1,
            state: {},
            initial: "a",
            steps: { a: { to: ["b"] }, b: { final: true } },
          }),
          { store },
        ).invoke({ message: "x" }, config),
      "WRONG_WORKFLOW",
    ],
    [
      "a fork from a checkpoint that is not there",
      waiting,
      ({ graph }) => graph.invoke(null, { configurable: { thread_id: "t", checkpoint_id: uuid6(0) } }),
      expect.any(String) as never,
    ],
    [
      "an edit of a checkpoint that is not there",
      waiting,
      ({ graph }) => graph.updateState({ configurable: { thread_id: "t", checkpoint_id: uuid6(0) } }, { amount: 1 }),
      expect.any(String) as never,
    ],
    [
      "a wake-up of a task that is not there",
      waiting,
      ({ graph }) => graph.invoke(null, { configurable: { thread_id: "nobody" } }),
      "UNKNOWN_TASK",
    ],
    [
      "an invalid start of a new task",
      waiting,
      ({ graph }) => graph.invoke({ message: " " }, { configurable: { thread_id: "nobody" } }),
      "INVALID_MESSAGE",
    ],
    [
      "an edit of a task that is not there",
      waiting,
      ({ graph }) => graph.updateState({ configurable: { thread_id: "nobody" } }, { amount: 1 }),
      "UNKNOWN_TASK",
    ],
  ])("%s", async (_name, prepare, attempt, code) => {
    const scene = await prepare();
    const before = rowsOf(scene.file);
    await expect(attempt(scene)).rejects.toEqual(error(code));
    expect(rowsOf(scene.file)).toEqual(before);
  });

  test("the refused inputs leave the task as it was: it takes its answer", async () => {
    const scene = await waiting();
    for (const input of [{ message: "go" }, new Command({ goto: "pay" }), { amount: 3 }]) {
      await expect(scene.graph.invoke(input as never, config)).rejects.toThrow();
    }
    expect(await scene.graph.invoke({ message: "yes" }, config)).toMatchObject({
      execution: { status: "completed" },
      amount: 5,
    });
    expect(scene.bodies).toEqual(["pay"]);
  });
});

describe("updateState changes declared fields within their rules and moves nothing", () => {
  const forged = { step: "done", status: "completed", revision: 1, pending: null };

  test.each(
    stores.flatMap(([name, make]) =>
      (
        [
          ["the record", { execution: forged }, undefined, "ILLEGAL_STATE"],
          ["the record as the action node", { execution: forged }, "act", "ILLEGAL_STATE"],
          ["the message", { message: "x" }, undefined, "ILLEGAL_STATE"],
          ["nothing, as a step", null, "collect", "ILLEGAL_STATE"],
          ["a field as the start", { amount: 1 }, "__start__", "ILLEGAL_STATE"],
          ["a field as the end", { amount: 1 }, "__end__", "ILLEGAL_STATE"],
          ["a field as a copy", { amount: 1 }, "__copy__", "ILLEGAL_STATE"],
          ["a field as an unknown node", { amount: 1 }, "constructor", "ILLEGAL_STATE"],
          ["a value of a wrong type", { amount: "5" }, undefined, "INVALID_UPDATE"],
          ["a value outside the schema", { amount: 101 }, undefined, "INVALID_UPDATE"],
          ["an unknown field", { amout: 1 }, undefined, "INVALID_UPDATE"],
          ["a prototype's key", JSON.parse('{"__proto__": {"amount": 1}}'), undefined, "INVALID_UPDATE"],
          ["a state that breaks a rule", { amount: 0, receipt: "r" }, undefined, "INVALID_UPDATE"],
          ["an item taken from an append-only list", { notes: [] }, undefined, "INVALID_UPDATE"],
          ["an item changed in an append-only list", { notes: ["other"] }, undefined, "INVALID_UPDATE"],
          ["a field cleared that is not clearable", { amount: null }, undefined, "INVALID_UPDATE"],
        ] as const
      ).map(([what, values, asNode, code]) => [what, name, make, values, asNode, code] as const),
    ),
  )("refused is %s (%s)", async (_what, _name, make, values, asNode, code) => {
    const scene = make([ASK, PAY]);
    await scene.graph.invoke({ message: "go" }, config);
    const before = await scene.graph.getState(config);
    await expect(scene.graph.updateState(config, values as never, asNode)).rejects.toEqual(error(code));
    expect(await scene.graph.getState(config)).toEqual(before);
  });

  test.each(stores)(
    "a write-once field keeps its value through several edits in one call (%s)",
    async (_name, make) => {
      const scene = make([ASK]);
      await scene.graph.invoke({ message: "go" }, config);
      const twice = scene.graph.bulkUpdateState(config, [
        { updates: [{ values: { receipt: "a" } }] },
        { updates: [{ values: { receipt: "b" } }] },
      ]);
      await expect(twice).rejects.toEqual(error("INVALID_UPDATE"));
      expect([null, "a"]).toContain((await stateOf(scene)).receipt);
    },
  );

  test.each(stores)(
    "an edit of a checkpoint that is not there does not start the task anew (%s)",
    async (_name, make) => {
      const scene = make([ASK]);
      await scene.graph.invoke({ message: "go" }, config);
      const before = await stateOf(scene);
      const nowhere = { configurable: { thread_id: "t", checkpoint_id: uuid6(0) } };
      await expect(scene.graph.updateState(nowhere, { amount: 1 })).rejects.toThrow();
      expect(await stateOf(scene)).toEqual(before);
    },
  );

  test.each(stores)(
    "an edit as a step leaves the task where it is, and it goes on from there (%s)",
    async (_name, make) => {
      const scene = make([ASK, PAY]);
      await scene.graph.invoke({ message: "go" }, config);
      await scene.graph.updateState(config, { amount: 7 }, "pay");
      expect((await scene.graph.getState(config)).next).toEqual(["act"]);
      expect(scene.bodies).toEqual([]);
      const done = await scene.graph.invoke({ message: "yes" }, config);
      expect(done).toMatchObject({ amount: 7, execution: { status: "completed" } });
    },
  );
});

/** A checkpoint made from the head by a program that knows the store but not the graph. */
async function forge(
  store: TaskStore,
  change: (values: Record<string, unknown>, record: Execution) => Record<string, unknown>,
): Promise<[config: RunnableConfig, checkpoint: Checkpoint]> {
  const tuple = await store.checkpointer.getTuple(config);
  if (!tuple) throw new Error("there is no task");
  const values = tuple.checkpoint.channel_values;
  const channel_values = change(values, values.execution as Execution);
  return [tuple.config, { ...tuple.checkpoint, id: uuid6(9), ts: new Date().toISOString(), channel_values }];
}

const LOOP: CheckpointMetadata = { source: "loop", step: 9, parents: {} };
const withToken = (base: RunnableConfig, token: number) => ({
  configurable: { ...base.configurable, [LEASE_TOKEN]: token },
});
const revised = (record: Execution, changes: object): Execution => ({
  ...record,
  revision: record.revision + 1,
  pending: null,
  status: "running",
  ...changes,
});

describe("the saver refuses what the table does not allow, whoever writes it", () => {
  const scene = async () => {
    const made = onSqlite([ASK, PAY]);
    await made.graph.invoke({ message: "go" }, config);
    return made;
  };

  test.each<
    [
      string,
      CheckpointMetadata,
      string,
      (values: Record<string, unknown>, record: Execution) => Record<string, unknown>,
    ]
  >([
    [
      "a move outside the table",
      LOOP,
      "ILLEGAL_TRANSITION",
      ({ "branch:to:act": _act, ...values }, record) => ({
        ...values,
        execution: revised(record, { step: "done", status: "completed" }),
      }),
    ],
    [
      "a branch to another step",
      LOOP,
      "ILLEGAL_STATE",
      ({ "branch:to:act": _act, ...values }) => ({ ...values, "branch:to:pay": null }),
    ],
    [
      "a changed record in the same revision",
      LOOP,
      "ILLEGAL_STATE",
      (values, record) => ({ ...values, execution: { ...record, decisions: 0 } }),
    ],
    [
      "a leap of the revision",
      LOOP,
      "ILLEGAL_STATE",
      (values, record) => ({ ...values, execution: { ...record, revision: 50 } }),
    ],
    ["no record", LOOP, "ILLEGAL_STATE", ({ execution: _gone, ...values }) => values],
    ["a second input", { ...LOOP, source: "input" }, "ILLEGAL_STATE", (values) => values],
    [
      "an update of the record",
      { ...LOOP, source: "update" },
      "ILLEGAL_STATE",
      (values, record) => ({ ...values, execution: revised(record, { step: "pay" }) }),
    ],
  ])("%s", async (_name, metadata, code, change) => {
    const { store, file } = await scene();
    const [base, checkpoint] = await forge(store, change);
    const lease = await store.acquire("t");
    const before = rowsOf(file);
    await expect(store.checkpointer.put(withToken(base, lease.token), checkpoint, metadata, {})).rejects.toEqual(
      error(code),
    );
    expect(rowsOf(file)).toEqual(before);
  });

  test.each<[string, (values: Record<string, unknown>, record: Execution) => Record<string, unknown>]>([
    ["a value outside its schema", (values) => ({ ...values, amount: "a lot" })],
    ["a state that breaks a rule over several fields", (values) => ({ ...values, amount: 0, receipt: "r" })],
    [
      "an entry without a required field",
      ({ "branch:to:act": _act, ...values }, record) => ({
        ...values,
        amount: null,
        execution: revised(record, { step: "pay" }),
        "branch:to:pay": null,
      }),
    ],
  ])("%s", async (_name, change) => {
    const { store, file } = await scene();
    const [base, checkpoint] = await forge(store, change);
    const lease = await store.acquire("t");
    const before = rowsOf(file);
    await expect(store.checkpointer.put(withToken(base, lease.token), checkpoint, LOOP, {})).rejects.toMatchObject({
      code: expect.any(String) as string,
    });
    expect(rowsOf(file)).toEqual(before);
  });

  test("and accepts the same write where it is legal", async () => {
    const { store } = await scene();
    const [base, checkpoint] = await forge(store, ({ "branch:to:act": _act, ...values }, record) => ({
      ...values,
      execution: revised(record, { step: "pay" }),
      "branch:to:pay": null,
    }));
    const lease = await store.acquire("t");
    await store.checkpointer.put(withToken(base, lease.token), checkpoint, LOOP, {});
    expect((await store.head("t"))?.execution.step).toBe("pay");
  });
});

describe("whoever does not hold the lease writes nothing", () => {
  /** An order whose payment is slow: `meanwhile` happens before its body returns. */
  function slowOrder(file: string, meanwhile: () => Promise<unknown>, result: () => object) {
    const bodies: string[] = [];
    const workflow = order(bodies, async () => {
      await meanwhile();
      return result();
    });
    return compile(workflow, {
      store: sqliteStore(file),
      model: scriptedModel([{ patch: { amount: 5 }, next: "pay" }]),
    });
  }
  const inAnHour = { now: () => Date.now() + 3_600_000 };

  test.each([
    ["its result", () => ({ patch: { receipt: "late" }, next: "done" })],
    [
      "its error",
      () => {
        throw new Error("late");
      },
    ],
  ])("an owner that was only slow and lost its lease does not store %s", async (_name, result) => {
    const file = newFile();
    let before: ReturnType<typeof rowsOf> = [];
    const graph = slowOrder(
      file,
      async () => {
        await sqliteStore(file, { clock: inAnHour }).acquire("t");
        before = rowsOf(file);
      },
      result,
    );
    await expect(graph.invoke({ message: "go" }, config)).rejects.toMatchObject({
      code: expect.stringMatching(/STALE_WRITE|STEP_FAILED/) as string,
    });
    // The log may say that it failed; the task itself is untouched.
    const ofTask = (rows: ReturnType<typeof rowsOf>) => rows.filter(([table]) => table !== "statecard_events");
    expect(ofTask(rowsOf(file))).toEqual(ofTask(before));
  });

  test("neither a checkpoint nor pending writes are stored under an old token, or under none", async () => {
    const { graph, store, file } = onSqlite([ASK]);
    await graph.invoke({ message: "go" }, config);
    const [base, checkpoint] = await forge(store, (values) => values);
    const old = await store.acquire("t");
    await store.release(old);
    const now = await store.acquire("t");
    const before = rowsOf(file);
    for (const stale of [withToken(base, old.token), base, withToken(base, now.token + 1)]) {
      await expect(store.checkpointer.put(stale, checkpoint, LOOP, {})).rejects.toEqual(error("STALE_WRITE"));
      await expect(store.checkpointer.putWrites(stale, [["__interrupt__", "x"]], "late")).rejects.toEqual(
        error("STALE_WRITE"),
      );
      await store.checkpointer.putWrites(stale, [["amount", 1]], "late").catch(() => {});
    }
    expect(rowsOf(file)).toEqual(before);
    await store.checkpointer.putWrites(withToken(base, now.token), [["__interrupt__", "x"]], "own");
    expect(rowsOf(file)).not.toEqual(before);
  });

  test("a write based on a checkpoint that is not the head any more has lost, lease or not", async () => {
    const { graph, store, file } = onSqlite([ASK]);
    await graph.invoke({ message: "go" }, config);
    const [base, checkpoint] = await forge(store, (values) => values);
    await graph.updateState(config, { amount: 6 });
    const lease = await store.acquire("t");
    const before = rowsOf(file);
    await expect(store.checkpointer.put(withToken(base, lease.token), checkpoint, LOOP, {})).rejects.toEqual(
      error("STALE_WRITE"),
    );
    await expect(
      store.checkpointer.putWrites(withToken(base, lease.token), [["__interrupt__", "x"]], "late"),
    ).rejects.toEqual(error("STALE_WRITE"));
    expect(rowsOf(file)).toEqual(before);
  });
});

describe("a refused commit stops the run at once", () => {
  class Refusing extends MemorySaver {
    override async put(...[base, checkpoint, metadata]: Parameters<MemorySaver["put"]>): Promise<RunnableConfig> {
      const { revision } = (checkpoint.channel_values.execution as Execution | undefined) ?? { revision: 0 };
      if (revision === 0) return super.put(base, checkpoint, metadata);
      await sleep(20);
      throw new Error("refused");
    }
  }

  const chain = (bodies: string[]) => {
    const step = (name: string, next: string) => ({ to: [next], run: () => (bodies.push(name), { next }) });
    const steps = { a: step("a", "b"), b: step("b", "c"), c: step("c", "d"), d: { final: true } };
    return defineWorkflow({ name: "chain", version: 1, state: {}, initial: "a", steps: steps as never });
  };

  test.each([
    ["nothing", {}],
    ["durability async", { durability: "async" }],
    ["durability exit", { durability: "exit" }],
    ["no checkpoints on the way", { checkpointDuring: false }],
  ])("where the caller asks for %s", async (_name, options) => {
    for (const how of ["call", "withConfig"]) {
      const bodies: string[] = [];
      const graph = compile(chain(bodies), { checkpointer: new Refusing() });
      const run =
        how === "call"
          ? graph.invoke({ message: "go" }, { ...config, ...options } as never)
          : graph.withConfig(options as never).invoke({ message: "go" }, config);
      await expect(run).rejects.toThrow("refused");
      expect(bodies).toEqual(["a"]);
    }
  });
});

describe("user code changes the state only by what it returns", () => {
  const schema = { list: field(z.array(z.string())), box: field(z.object({ deep: z.array(z.number()) })) };
  const attacks: readonly ((state: any) => unknown)[] = [
    (state) => (state.list = ["replaced"]),
    (state) => state.list.push("added"),
    (state) => (state.box.deep[0] = 9),
    (state) => delete state.box,
    (state) => Object.assign(state, { execution: { step: "done" } }),
  ];
  const attempt = (state: unknown) =>
    attacks.map((attack) => {
      try {
        attack(state);
        return "changed";
      } catch (thrown) {
        return thrown instanceof TypeError ? "frozen" : "broken";
      }
    });
  const input = { list: ["one"], box: { deep: [1] } };

  test("a code step gets a frozen copy", async () => {
    let seen: string[] = [];
    const workflow = defineWorkflow({
      name: "mutant",
      version: 1,
      state: schema,
      input: ["list", "box"],
      initial: "mutate",
      steps: {
        mutate: { to: ["done"], run: (state) => ((seen = attempt(state)), { next: "done" as const }) },
        done: { final: true },
      },
    });
    const graph = compile(workflow);
    await graph.invoke(input, config);
    expect(seen).toEqual(attacks.map(() => "frozen"));
    expect((await graph.getState(config)).values).toMatchObject(input);
  });

  test("a guard cannot change what it looks at", async () => {
    const workflow = defineWorkflow({
      name: "mutant",
      version: 1,
      state: schema,
      input: ["list", "box"],
      initial: "look",
      steps: {
        look: {
          to: [{ to: "done", when: (state) => attempt(state).length > 0, because: "never" }],
          run: () => ({ next: "done" as const }),
        },
        done: { final: true },
      },
    });
    const graph = compile(workflow);
    await graph.invoke(input, config);
    expect((await graph.getState(config)).values).toMatchObject(input);
  });

  test("a rule over several fields cannot change what it looks at", async () => {
    const workflow = defineWorkflow({
      name: "mutant",
      version: 1,
      state: { ...schema, other: field(z.string()) },
      input: ["list", "box"],
      checks: { rule: (state) => attempt(state).length === 0 && "never" },
      initial: "look",
      steps: {
        look: { to: ["done"], run: () => ({ patch: { other: "x" }, next: "done" as const }) },
        done: { final: true },
      },
    });
    const graph = compile(workflow);
    await graph.invoke(input, config);
    expect((await graph.getState(config)).values).toMatchObject({ ...input, other: "x" });
  });

  test("a code step cannot change the record through the observation", async () => {
    const workflow = defineWorkflow({
      name: "mutant",
      version: 1,
      state: {},
      initial: "first",
      steps: {
        first: { to: ["second"], run: () => ({ next: "second" as const }) },
        second: {
          to: ["done"],
          run: (_state, { observation }) => {
            try {
              Object.assign(observation ?? {}, { text: "forged" });
            } catch {
              // Frozen, as it should be.
            }
            return { next: "done" as const };
          },
        },
        done: { final: true },
      },
    });
    const graph = compile(workflow);
    const result = await graph.invoke({ message: "said" }, config);
    expect(result.execution.observation).toMatchObject({ kind: "message", text: "said" });
  });
});

describe("of several runs of a task at once, one runs", () => {
  test.each(stores)("three starts: one body, two TASK_BUSY (%s)", async (_name, make) => {
    const { graph, bodies } = make([{ patch: { amount: 5 }, next: "pay" }]);
    const runs = await Promise.allSettled(
      [1, 2, 3].map((number) => graph.invoke({ message: `start ${number}` }, config)),
    );
    expect(runs.filter((run) => run.status === "fulfilled")).toHaveLength(1);
    const reasons = runs.flatMap((run) => (run.status === "rejected" ? [run.reason as unknown] : []));
    expect(reasons).toEqual([error("TASK_BUSY"), error("TASK_BUSY")]);
    expect(bodies).toEqual(["pay"]);
  });

  test("starts of two stores on one file: one body, the other TASK_BUSY", async () => {
    const file = newFile();
    const bodies: string[] = [];
    const graphs = [1, 2].map(() => compileOrder(bodies, [{ patch: { amount: 5 }, next: "pay" }], sqliteStore(file)));
    const runs = await Promise.allSettled(
      graphs.map((graph, index) => graph.invoke({ message: `start ${index}` }, config)),
    );
    const reasons = runs.flatMap((run) => (run.status === "rejected" ? [run.reason as unknown] : []));
    expect(reasons).toEqual([error("TASK_BUSY")]);
    expect(bodies).toEqual(["pay"]);
  });

  test.each(stores)("an edit while another holds the task is refused (%s)", async (_name, make) => {
    const scene = make([ASK]);
    await scene.graph.invoke({ message: "go" }, config);
    const lease = await scene.store.acquire("t");
    await expect(scene.graph.updateState(config, { amount: 1 })).rejects.toEqual(error("TASK_BUSY"));
    await scene.store.release(lease);
  });

  test.each(stores)(
    "an answer that comes while somebody edits the task is not left lying (%s)",
    async (_name, make) => {
      for (let turns = 0; turns < 20; turns += 4) {
        const scene = make([ASK, PAY]);
        await scene.graph.invoke({ message: "go" }, config);
        const edit = scene.graph.updateState(config, { amount: 6 });
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        // Whoever is told that the task is busy, and the answer recorded, need not wake it.
        await scene.graph.invoke(new Command({ resume: "yes" }), config).catch((thrown: Error) => {
          expect(thrown).toMatchObject({ code: "TASK_BUSY", details: { recorded: true } });
        });
        await edit;
        expect((await stateOf(scene)).execution.status).toBe("completed");
      }
    },
  );

  test.each(stores)(
    "an answer that comes while another input is being refused is not left lying (%s)",
    async (_name, make) => {
      const scene = make([ASK, PAY]);
      await scene.graph.invoke({ message: "go" }, config);
      const hasAnswers = scene.store.hasAnswers.bind(scene.store);
      let answered: Promise<unknown> = Promise.resolve();
      // Asked while the lease is held, to tell whether the input is the opening one again.
      scene.store.hasAnswers = async (taskId) => {
        scene.store.hasAnswers = hasAnswers;
        answered = scene.graph.invoke(new Command({ resume: "yes" }), config).catch((thrown: Error) => {
          expect(thrown).toMatchObject({ code: "TASK_BUSY", details: { recorded: true } });
        });
        const known = await hasAnswers(taskId);
        await sleep(50);
        return known;
      };
      await expect(scene.graph.invoke({ message: "go" }, config)).rejects.toThrow();
      await answered;
      expect((await stateOf(scene)).execution.status).toBe("completed");
    },
  );

  test.each(stores)("an aborted run gives its lease back (%s)", async (_name, make) => {
    const controller = new AbortController();
    const scene = make([
      { patch: { amount: 5 }, next: "collect" },
      () => {
        controller.abort();
        return ASK;
      },
      ASK,
    ]);
    await expect(scene.graph.invoke({ message: "go" }, { ...config, signal: controller.signal })).rejects.toThrow(
      /abort/i,
    );
    // The aborted run may take a moment to wind up; it must not take for ever.
    let busy = 0;
    for (; busy < 100; busy++) {
      const held = await scene.store.acquire("t").then(
        (lease) => scene.store.release(lease),
        () => true,
      );
      if (!held) break;
      await sleep(10);
    }
    expect(busy).toBeLessThan(100);
    expect((await scene.graph.invoke(null, config)).execution.status).toBe("waiting_user");
  });
});
