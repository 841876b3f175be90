import { Command } from "@langchain/langgraph";
import Database from "better-sqlite3";
import {
  existsSync,
  mkdtempSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  signedIn,
  sqliteStore,
  type AnyWorkflow,
} from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { compileAny } from "../../src/compile/compile.ts";
import { digest } from "../../src/internal/digest.ts";
import { readExport, writeExport } from "../../src/storage/export/folder.ts";
import { logLines } from "../../src/storage/export/format.ts";
import { verifyExport } from "../../src/storage/export/verify.ts";
import type { TaskEvent } from "../../src/compile/store.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { onBothDialects } from "../support/stores.ts";

const folder = mkdtempSync(join(tmpdir(), "statecard-export-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;
const freshFolder = () => join(folder, `export-${++folders}`);

const KEY = "a key for tests";
const config = { configurable: { thread_id: "t" } };
const yes = new Command({ resume: "yes, go" });

/** Exports a task, and takes it in again in a fresh store. */
async function move(from: SqlStore, workflow: AnyWorkflow, change: (at: string) => void = () => {}): Promise<SqlStore> {
  const at = freshFolder();
  writeExport(at, await from.exportTask("t"), undefined);
  change(at);
  const to = sqliteStore(":memory:");
  await to.importTask(workflow, "t", verifyExport(readExport(at), undefined));
  return to;
}

/** What two stores have to agree on: everything but the log's entry of the import. */
async function told(store: SqlStore, taskId = "t"): Promise<object> {
  const { task, events } = await store.exportTask(taskId);
  const { execution, ...rest } = task;
  const { usage: _usage, last: _last, observation, ...record } = execution;
  const { at: _seenAt, ...seen } = { at: null, ...observation };
  const kinds = events.filter(({ kind }) => kind !== "imported").map(({ kind }) => kind);
  const requests = rest.requests.map(({ answeredAt: _at, votes, ...request }) => ({
    ...request,
    votes: votes.map(({ at: _votedAt, ...vote }) => vote),
  }));
  return { ...rest, requests, record, seen, kinds };
}

const asAny = (workflow: unknown) => workflow as AnyWorkflow;

async function ticketTask(until: "question" | "done"): Promise<SqlStore> {
  const store = sqliteStore(":memory:");
  const graph = compile(ticket, { model: ticketRules(), store });
  await graph.invoke({ message: "network unstable" }, config);
  if (until === "question") return store;
  await graph.invoke(new Command({ resume: "P1" }), config);
  await graph.invoke(yes, config);
  return store;
}

/** A workflow that pays after an approval, and what it has really paid. */
function payments(answers: readonly ScriptedAnswer[]) {
  const paid: string[] = [];
  const pay = defineTool({
    description: "Pays.",
    parameters: z.object({ order: z.string() }),
    effect: "write",
    approve: ({ order }) => order.startsWith("dear") && { count: order.includes("two") ? 2 : 1 },
    run: ({ order }) => {
      paid.push(order);
      return { receipt: `r-${order}` };
    },
  });
  const workflow = defineWorkflow({
    name: "payments",
    version: 1,
    state: { note: field(z.string()), log: field(z.array(z.string())).appendOnly() },
    tools: { pay },
    initial: "acting",
    steps: {
      acting: { tools: ["pay"], writes: ["note", "log"], to: ["acting", "done"] },
      done: { final: true },
    },
  });
  const model = scriptedModel(answers);
  return {
    workflow: asAny(workflow),
    paid,
    model,
    on: (store: SqlStore) => compileAny(asAny(workflow), { model, store }),
  };
}
const call = (order: string) => ({ tool: "pay", args: { order } });
const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
const approve = (id: string) => new Command({ resume: { [id]: { type: "approve" } } });

describe("a task goes on where it was exported, as if it had stayed", () => {
  test("waiting for an answer", async () => {
    const stayed = await ticketTask("question");
    const moved = await move(stayed, asAny(ticket));
    expect(await describeTask(moved, "t")).toEqual(await describeTask(stayed, "t"));
    for (const store of [stayed, moved]) {
      const graph = compile(ticket, { model: ticketRules(), store });
      await graph.invoke(new Command({ resume: "P1" }), config);
      const done = await graph.invoke(yes, config);
      expect(done.execution.status).toBe("completed");
    }
    expect(await told(moved)).toEqual(await told(stayed));
  });

  test("with the files alone that hold the log", async () => {
    const stayed = await ticketTask("question");
    for (const spoil of [
      (at: string) => rmSync(join(at, "state.json")),
      (at: string) => writeFileSync(join(at, "state.json"), "{"),
      (at: string) => writeFileSync(join(at, "state.json"), Buffer.from([0xff, 0xfe])),
      (at: string) => edit(at, (file) => ({ ...file, state: { ...file.state, priority: "P3" } })),
      (at: string) =>
        edit(at, (file) => ({ ...file, execution: { ...file.execution, step: "done", status: "completed" } })),
    ]) {
      const moved = await move(stayed, asAny(ticket), spoil);
      expect(await told(moved)).toEqual(await told(stayed));
      const graph = compile(ticket, { model: ticketRules(), store: moved });
      await graph.invoke(new Command({ resume: "P1" }), config);
      expect((await graph.invoke(yes, config)).execution.status).toBe("completed");
    }
  });

  test("finished: it stays finished", async () => {
    const stayed = await ticketTask("done");
    const moved = await move(stayed, asAny(ticket));
    const graph = compile(ticket, { model: ticketRules(), store: moved });
    expect((await graph.getState(config)).next).toEqual([]);
    await expect(graph.invoke({ message: "again" }, config)).rejects.toMatchObject({ code: "TASK_FINISHED" });
    expect((await graph.invoke(null, config)).execution.status).toBe("completed");
    expect(await told(moved)).toEqual(await told(stayed));
  });

  test("failed: it can be tried again", async () => {
    const bad = { next: "nowhere" };
    const both = [sqliteStore(":memory:"), sqliteStore(":memory:")];
    const tasks = both.map(() => payments([bad, bad, bad, { patch: { note: "mended" }, next: "done" }]));
    for (const [index, task] of tasks.entries()) {
      const failed = await task.on(both[index] as SqlStore).invoke({ message: "go" } as never, config);
      expect(failed.execution.status).toBe("failed");
    }
    const [stayed, other] = both as [SqlStore, SqlStore];
    const [first, second] = tasks as [(typeof tasks)[0], (typeof tasks)[0]];
    const moved = await move(other, second.workflow);
    await first.on(stayed).invoke(null, config);
    await second.on(moved).invoke(null, config);
    expect(await told(moved)).toEqual(await told(stayed));
    expect((await describeTask(moved, "t")).status).toBe("completed");
  });

  test("stopped before its first decision: the opening message is still there", async () => {
    const task = payments([new Error("the provider is down"), { patch: { note: "read" }, next: "done" }]);
    const stayed = sqliteStore(":memory:");
    await expect(task.on(stayed).invoke({ message: "the very words" } as never, config)).rejects.toThrow();
    const moved = await move(stayed, task.workflow, (at) => rmSync(join(at, "state.json"))).catch(
      (error: unknown) => error,
    );
    // Before its first decision a record has no task id, and without state.json nothing else tells it.
    expect(moved).toBeInstanceOf(sqliteStore(":memory:").constructor);
    await task.on(moved as SqlStore).invoke(null, config);
    expect(task.model.prompts.at(-1)).toContain("the very words");
  });

  test("stopped between a decision and its action, and between two steps", async () => {
    const task = payments([
      { patch: { log: ["a"] }, next: "acting" },
      { calls: [call("1")], next: "done" },
    ]);
    const stayed = sqliteStore(":memory:");
    let store = stayed;
    for (let round = 0; round < 6; round++) {
      const input = round === 0 ? { message: "go" } : null;
      await task
        .on(store)
        .invoke(input as never, { ...config, recursionLimit: 1 })
        .catch(() => null);
      store = await move(store, task.workflow);
    }
    expect((await describeTask(store, "t")).status).toBe("completed");
    expect(task.paid).toEqual(["1"]);
    task.model.assertConsumed();
  });

  test("with a finished call and an open approval in one decision: the call does not run again", async () => {
    const task = payments([{ calls: [call("1"), call("dear 2")], patch: { note: "paid" }, next: "done" }]);
    const stayed = sqliteStore(":memory:");
    await task.on(stayed).invoke({ message: "go" } as never, config);
    expect(task.paid).toEqual(["1"]);
    for (const spoil of [() => {}, (at: string) => rmSync(join(at, "state.json"))]) {
      const moved = await move(stayed, task.workflow, spoil);
      expect((await describeTask(moved, "t")).waiting).toMatchObject([{ id: "a1.1.0", kind: "approval" }]);
      const done = await task.on(moved).invoke(approve("a1.1.0"), config);
      expect(done.execution.status).toBe("completed");
      expect(done).toMatchObject({ note: "paid" });
    }
    expect(task.paid).toEqual(["1", "dear 2", "dear 2"]);
  });

  test("with one of two approvals given: one more is enough, and it must be another person", async () => {
    const task = payments([{ calls: [call("dear two")], next: "done" }]);
    const stayed = sqliteStore(":memory:");
    await task.on(stayed).invoke({ message: "go" } as never, config);
    await task.on(stayed).invoke(approve("a1.0.0"), as("ada"));
    for (const spoil of [() => {}, (at: string) => rmSync(join(at, "state.json"))]) {
      const moved = await move(stayed, task.workflow, spoil);
      await expect(task.on(moved).invoke(approve("a1.0.0"), as("ada"))).rejects.toMatchObject({
        code: "ALREADY_APPROVED",
      });
      const done = await task.on(moved).invoke(approve("a1.0.0"), as("bob"));
      expect(done.execution.status).toBe("completed");
    }
    expect(task.paid).toEqual(["dear two", "dear two"]);
  });

  test("with a call that was begun and left no result: a person is asked whether it happened", async () => {
    const task = payments([{ calls: [call("1")], next: "done" }]);
    const stayed = sqliteStore(":memory:");
    await task
      .on(stayed)
      .invoke({ message: "go" } as never, { ...config, recursionLimit: 1 })
      .catch(() => null);
    const { task: before } = await stayed.exportTask("t");
    expect(before.execution.pending?.kind).toBe("calls");
    const lease = await stayed.acquire("t");
    const intent = {
      key: "1.0",
      digest: digest(["pay", { order: "1" }]),
      decision: 1,
      tool: "pay",
      timeoutMs: 60_000,
      repeat: false,
    };
    await stayed.intend(lease, (await stayed.head("t"))?.checkpointId ?? "", intent);
    const moved = await move(stayed, task.workflow);
    const paused = await task.on(moved).invoke(null, config);
    expect(paused).toMatchObject({ __interrupt__: [{ value: { requests: [{ id: "u1.0.0", kind: "unknown" }] } }] });
    const done = await task.on(moved).invoke(approve("u1.0.0"), config);
    expect(done.execution.status).toBe("completed");
    expect(task.paid).toEqual([]);
  });

  test("after forks and corrections, and it can be exported again", async () => {
    const task = payments([
      { patch: { log: ["a"] }, next: "acting" },
      { ask: "Go on?" },
      { ask: "Really?" },
      { patch: { log: ["b"] }, next: "done" },
    ]);
    const stayed = sqliteStore(":memory:");
    const graph = task.on(stayed);
    await graph.invoke({ message: "go" } as never, config);
    let old: string | undefined;
    for await (const { checkpoint } of stayed.checkpointer.list(config)) {
      if ((checkpoint.channel_values.execution as { revision: number }).revision === 1) old = checkpoint.id;
    }
    await graph.invoke(null, { configurable: { ...config.configurable, checkpoint_id: old } });
    await graph.updateState(config, { note: "by hand" });
    const once = await move(stayed, task.workflow);
    const twice = await move(once, task.workflow, (at) => rmSync(join(at, "state.json")));
    expect((await describeTask(twice, "t")).waiting).toMatchObject([{ id: "q2.1", question: "Really?" }]);
    const done = await task.on(twice).invoke(new Command({ resume: "yes" }), config);
    expect(done).toMatchObject({ note: "by hand", log: ["a", "b"], execution: { status: "completed" } });
    expect((await twice.exportTask("t")).events.filter(({ kind }) => kind === "imported")).toHaveLength(2);
  });

  test("under another id", async () => {
    const stayed = await ticketTask("question");
    const at = freshFolder();
    writeExport(at, await stayed.exportTask("t"), undefined);
    const exported = verifyExport(readExport(at), undefined);
    await stayed.importTask(asAny(ticket), "copy", exported);
    const graph = compile(ticket, { model: ticketRules(), store: stayed });
    const copy = { configurable: { thread_id: "copy" } };
    await graph.invoke(new Command({ resume: "P1" }), copy);
    const done = await graph.invoke(yes, copy);
    expect(done.execution).toMatchObject({ taskId: "copy", status: "completed" });
    expect((await describeTask(stayed, "t")).status).toBe("waiting_user");
    const again = freshFolder();
    writeExport(again, await stayed.exportTask("copy"), undefined);
    expect(verifyExport(readExport(again), undefined)).toMatchObject({ taskId: "copy", from: "state.json" });
  });
});

/** Rewrites an export's state.json. */
function edit(at: string, change: (file: any) => object): void {
  const path = join(at, "state.json");
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, "utf8")))));
}

/** An export's lines, to be rewritten. */
function rewrite(at: string, change: (lines: string[]) => readonly string[]): void {
  const path = join(at, "events.log");
  writeFileSync(
    path,
    change(readFileSync(path, "utf8").trimEnd().split("\n"))
      .map((line) => `${line}\n`)
      .join(""),
  );
}

async function exported(key: string | undefined): Promise<string> {
  const at = freshFolder();
  writeExport(at, await (await ticketTask("done")).exportTask("t"), key);
  return at;
}

const verify = (at: string, key?: string) => verifyExport(readExport(at), key);
const invalid = (text: RegExp) =>
  expect.objectContaining({ code: "INVALID_EXPORT", message: expect.stringMatching(text) });

describe("whoever changes an export is found out", () => {
  test("an export as it was written holds together, and says whether it is signed", async () => {
    const [plain, signed] = [await exported(undefined), await exported(KEY)];
    expect(verify(plain)).toMatchObject({ taskId: "t", from: "state.json", difference: null, signature: "not signed" });
    expect(verify(signed)).toMatchObject({ difference: null, signature: "signed, but no key given" });
    expect(verify(signed, KEY)).toMatchObject({ difference: null, signature: "signed and verified" });
    expect(() => verify(plain, KEY)).toThrow(invalid(/state.json is not signed|export is not signed/));
    expect(() => verify(signed, "another key")).toThrow(invalid(/entry 1 .* not the key/));
    expect(readdirSync(plain).toSorted()).toEqual(["artifacts", "events.log", "state.json"]);
  });

  test("by one changed byte, anywhere in the log", async () => {
    const at = await exported(undefined);
    const path = join(at, "events.log");
    const whole = readFileSync(path);
    for (let place = 3; place < whole.length; place += 97) {
      const changed = Buffer.from(whole);
      changed[place] = (changed[place] as number) ^ 1;
      writeFileSync(path, changed);
      const entry = whole.subarray(0, place).toString().split("\n").length;
      const error = thrownBy(() => verify(at));
      expect(error, `byte ${place}`).toMatchObject({ code: "INVALID_EXPORT" });
      expect(error.message, `byte ${place} of entry ${entry}`).toMatch(/events\.log/);
      if (!/cut off|no JSON|no entry/.test(error.message)) expect(error.message).toContain(`entry ${entry} `);
    }
  });

  const tampering: readonly (readonly [string, (lines: string[]) => readonly string[], RegExp])[] = [
    ["a dropped line", (lines) => lines.filter((_line, index) => index !== 3), /entry 4 of events.log is missing/],
    ["a dropped first line", (lines) => lines.slice(1), /entry 1 of events.log is missing/],
    ["swapped lines", ([a, b, c, ...rest]) => [a, c, b, ...rest] as string[], /entry 2 of events.log is missing/],
    ["a repeated line", ([a, b, ...rest]) => [a, b, b, ...rest] as string[], /stands where entry 3 should/],
    ["a cut-off end", (lines) => lines.slice(0, -2), /events.log was cut off: it has \d+ entries, state.json says \d+/],
    [
      "an added line",
      (lines) => [...lines, forgedAfter(lines)],
      /has \d+ entries, state.json says|entry 14 of events.log was changed/,
    ],
    [
      "a changed word",
      (lines) => lines.map((line, index) => (index === 2 ? line.replace("network", "netwerk") : line)),
      /entry 3 of events.log was changed/,
    ],
    [
      "a changed last line",
      (lines) => lines.map((line, index) => (index === lines.length - 1 ? line.replace('"at":1', '"at":2') : line)),
      /entry 13 of events.log was changed(?:, or state.json was|: its mac)/,
    ],
    ["no line", () => [], /events.log is empty/],
  ];
  test.each(tampering)("by %s", async (_what, change, says) => {
    for (const key of [undefined, KEY]) {
      const at = await exported(key);
      rewrite(at, change);
      expect(() => verify(at, key)).toThrow(invalid(says));
    }
  });

  test("by a line that was cut in the middle", async () => {
    const at = await exported(undefined);
    const path = join(at, "events.log");
    writeFileSync(path, readFileSync(path).subarray(0, -40));
    expect(() => verify(at)).toThrow(invalid(/cut off within entry/));
  });

  test("by an edited state.json: the log says what it was", async () => {
    const at = await exported(undefined);
    const whole = readFileSync(join(at, "state.json"), "utf8");
    const edits: readonly (readonly [(file: any) => object, RegExp])[] = [
      [
        (file) => ({ ...file, state: { ...file.state, priority: "P3" } }),
        /state.json says state.priority is "P3", the log says "P1"/,
      ],
      [(file) => ({ ...file, state: { ...file.state, added: 1 } }), /state.added is 1, the log says nothing/],
      [(file) => ({ ...file, execution: { ...file.execution, revision: 99 } }), /execution.revision is 99/],
      [(file) => ({ ...file, forks: 3 }), /forks is 3, the log says 0/],
      [(file) => ({ ...file, requests: [] }), /requests/],
      [
        (file) => ({
          ...file,
          requests: file.requests.map((row: any) => ({ ...row, answer: { type: "text", text: "P3" } })),
        }),
        /requests\.0\.answer\.text is "P3"/,
      ],
      [(file) => ({ ...file, taskId: "other" }), /taskId is "other", its execution record says "t"/],
      [(file) => ({ ...file, version: 9 }), /version is 9/],
      [(file) => ({ ...file, format: 2 }), /state.json is broken: format/],
      [(file) => ({ ...file, journal: [{}] }), /state.json is broken: journal\.0/],
    ];
    for (const [change, says] of edits) {
      writeFileSync(join(at, "state.json"), whole);
      edit(at, change);
      expect(verify(at)).toMatchObject({ from: "events.log", difference: expect.stringMatching(says) });
    }
    writeFileSync(join(at, "state.json"), whole);
    edit(at, (file) => ({ ...file, log: { ...file.log, hash: "0".repeat(64) } }));
    expect(() => verify(at)).toThrow(invalid(/was changed, or state.json was/));
  });

  test("with a key, by a chain that was forged from end to end", async () => {
    const at = await exported(KEY);
    const forge = (key: string | undefined) =>
      rewrite(at, (lines) =>
        logLines(
          lines.map((line) => ({ ...(JSON.parse(line) as TaskEvent), at: 1 })),
          key,
        ),
      );
    forge(undefined);
    expect(() => verify(at, KEY)).toThrow(invalid(/not signed|state.json/));
    rmSync(join(at, "state.json"));
    expect(() => verify(at, KEY)).toThrow(invalid(/the export is not signed, although STATECARD_EXPORT_KEY is set/));
    forge("the forger's key");
    expect(() => verify(at, KEY)).toThrow(invalid(/entry 1 .*mac does not fit/));
    // Without a key nobody can tell.
    expect(verify(at)).toMatchObject({ from: "events.log", difference: "state.json is missing" });
  });

  test("with a key, by an edited state.json", async () => {
    const at = await exported(KEY);
    edit(at, (file) => ({ ...file, state: { ...file.state, priority: "P3" } }));
    expect(() => verify(at, KEY)).toThrow(invalid(/state.json was changed: its mac does not fit/));
    edit(at, ({ mac: _mac, ...file }) => file);
    expect(() => verify(at, KEY)).toThrow(invalid(/state.json is not signed/));
    rmSync(join(at, "state.json"));
    expect(verify(at, KEY)).toMatchObject({ from: "events.log", signature: "signed and verified" });
  });
});

function forgedAfter(lines: readonly string[]): string {
  const events = lines.map((line) => JSON.parse(line) as never);
  return (
    logLines([...events, { sequence: lines.length + 1, revision: 0, kind: "x", at: 0, data: {} }], undefined).at(-1) ??
    ""
  );
}

function thrownBy(work: () => unknown): Error & { code: string } {
  try {
    work();
  } catch (error) {
    return error as Error & { code: string };
  }
  throw new Error("nothing was thrown");
}

describe("writing", () => {
  test("an earlier export of the task is replaced; anything else in the way is refused", async () => {
    const store = await ticketTask("question");
    const at = freshFolder();
    writeExport(at, await store.exportTask("t"), undefined);
    const graph = compile(ticket, { model: ticketRules(), store });
    await graph.invoke(new Command({ resume: "P1" }), config);
    const task = await store.exportTask("t");
    writeExport(at, task, KEY);
    expect(verify(at, KEY).events).toHaveLength(task.events.length);
    const refusal = (text: RegExp) => expect.objectContaining({ code: "USAGE", message: expect.stringMatching(text) });
    await store.importTask(asAny(ticket), "other", verify(at));
    const other = await store.exportTask("other");
    expect(() => writeExport(at, other, undefined)).toThrow(refusal(/another task, t/));
    writeFileSync(join(at, "notes.txt"), "mine");
    expect(() => writeExport(at, task, undefined)).toThrow(refusal(/it has notes.txt/));
    expect(readFileSync(join(at, "notes.txt"), "utf8")).toBe("mine");
    const file = join(folder, "a-file");
    writeFileSync(file, "");
    expect(() => writeExport(file, task, undefined)).toThrow(refusal(/is a file/));
    expect(() => writeExport(join(file, "there"), task, undefined)).toThrow(refusal(/could not be written/));
    expect(readdirSync(folder).filter((name) => /\.(?:new|old)-/.test(name))).toEqual([]);
  });

  test("an empty folder is filled, and a link leads to the folder that is meant", async () => {
    const exportedTask = await (await ticketTask("question")).exportTask("t");
    const [at, link] = [freshFolder(), freshFolder()];
    mkdirSync(at);
    symlinkSync(at, link);
    writeExport(link, exportedTask, undefined);
    writeExport(link, exportedTask, undefined);
    expect(existsSync(join(at, "state.json"))).toBe(true);
    expect(verify(link).difference).toBeNull();
  });

  test("a task that runs is exported as it was between two writes", async () => {
    const store = sqliteStore(":memory:");
    const at = freshFolder();
    const task = payments([
      { patch: { note: "one" }, next: "acting" },
      () => {
        during = store.exportTask("t").then((snapshot) => writeExport(at, snapshot, undefined));
        return { patch: { note: "two" }, next: "done" };
      },
    ]);
    let during: Promise<unknown> = Promise.resolve();
    await task.on(store).invoke({ message: "go" } as never, config);
    await during;
    expect(verify(at)).toMatchObject({ difference: null, task: { state: { note: "one" } } });
  });

  test("an unknown task is refused", async () => {
    await expect(sqliteStore(":memory:").exportTask("t")).rejects.toMatchObject({ code: "UNKNOWN_TASK" });
  });
});

describe("taking in is refused", () => {
  test("where there is such a task, or a thread of another program", async () => {
    const store = await ticketTask("question");
    const at = freshFolder();
    writeExport(at, await store.exportTask("t"), undefined);
    const exportedTask = verify(at);
    const before = await store.exportTask("t");
    await expect(store.importTask(asAny(ticket), "t", exportedTask)).rejects.toMatchObject({ code: "TASK_EXISTS" });
    expect(await store.exportTask("t")).toEqual(before);
  });

  test("where the task does not fit the workflow, and nothing of it is left", async () => {
    const at = freshFolder();
    writeExport(at, await (await ticketTask("question")).exportTask("t"), undefined);
    const exportedTask = verify(at);
    const store = sqliteStore(":memory:");
    const other = { ...asAny(ticket), name: "other" };
    await expect(store.importTask(other, "t", exportedTask)).rejects.toMatchObject({ code: "WRONG_WORKFLOW" });
    const { gathering_info: _gone, ...steps } = asAny(ticket).steps;
    const changed = { ...asAny(ticket), steps };
    await expect(store.importTask(changed, "t", exportedTask)).rejects.toMatchObject({ code: "ILLEGAL_STATE" });
    const { ticketType: _type, ...state } = asAny(ticket).state;
    const fewer = { ...asAny(ticket), state };
    await expect(store.importTask(fewer, "t", exportedTask)).rejects.toThrow(/no field "ticketType"/);
    const forged = { ...exportedTask, task: { ...exportedTask.task, state: { ticketType: 5, execution: {} } } };
    await expect(store.importTask(asAny(ticket), "t", forged)).rejects.toMatchObject({ code: "ILLEGAL_STATE" });
    expect(await store.events("t")).toEqual([]);
    expect(await store.head("t")).toBeNull();
  });

  test("where it waits for a child task that is not there", async () => {
    const child = defineWorkflow({
      name: "child",
      version: 1,
      state: { note: field(z.string()) },
      initial: "asking",
      steps: { asking: { writes: ["note"], to: ["end"] }, end: { final: true } },
    });
    const workflow = defineWorkflow({
      name: "parent",
      version: 1,
      state: { note: field(z.string()) },
      initial: "asking_child",
      steps: {
        asking_child: {
          workflow: child as never,
          output: ({ state }: any) => ({ patch: { note: state.note } }),
          to: ["end"],
        },
        end: { final: true },
      },
    } as never);
    const graphOn = (store: SqlStore) =>
      compileAny(asAny(workflow), {
        model: scriptedModel([{ patch: { note: "from the child" }, next: "end" }]),
        store,
      });
    const ask = scriptedModel([{ ask: "What?" }]);
    const store = sqliteStore(":memory:");
    await compileAny(asAny(workflow), { model: ask, store }).invoke({ message: "go" } as never, config);
    const childId = "t/asking_child/1.0";
    const [at, childAt] = [freshFolder(), freshFolder()];
    writeExport(at, await store.exportTask("t"), undefined);
    writeExport(childAt, await store.exportTask(childId), undefined);
    const to = sqliteStore(":memory:");
    await expect(to.importTask(asAny(workflow), "t", verify(at))).rejects.toThrow(
      /import it first, as t\/asking_child\/1\.0/,
    );
    await to.importTask(asAny(child), childId, verify(childAt));
    await to.importTask(asAny(workflow), "t", verify(at));
    const done = await graphOn(to).invoke(new Command({ resume: "this" }), config);
    expect(done).toMatchObject({ note: "from the child", execution: { status: "completed" } });
  });
});

test("a file that the graph would be loaded from is not taken over from elsewhere", async () => {
  const stayed = await ticketTask("question");
  await stayed.append("t", 0, "source", { graph: "./evil.ts" });
  const moved = await move(stayed, asAny(ticket));
  expect(await moved.firstEvent("t", "source")).toBeNull();
  const at = freshFolder();
  writeExport(at, await moved.exportTask("t"), undefined);
  expect(verify(at).difference).toBeNull();
});

onBothDialects((dialect) => {
  test("a task with an approval, a vote and a finished call goes through this database unchanged", async () => {
    const task = payments([{ calls: [call("1"), call("dear two")], patch: { note: "paid" }, next: "done" }]);
    const store = dialect.open();
    await task.on(store).invoke({ message: "go" } as never, config);
    await task.on(store).invoke(approve("a1.1.0"), as("ada"));
    const at = freshFolder();
    writeExport(at, await store.exportTask("t"), undefined);
    const exportedTask = verify(at);
    expect(exportedTask).toMatchObject({ difference: null, from: "state.json" });
    const open = await store.openRequests({ limit: 10 });
    expect(open.map(({ request }) => request.id)).toContain("a1.1.0");
    await store.deleteTask("t");
    await store.importTask(task.workflow, "t", exportedTask);
    expect(await store.openRequests({ limit: 10 })).toEqual(open);
    const again = await dialect.open().exportTask("t");
    expect(again.task).toEqual(exportedTask.task);
    const done = await task.on(store).invoke(approve("a1.1.0"), as("bob"));
    expect(done.execution.status).toBe("completed");
    expect(task.paid).toEqual(["1", "dear two"]);
  });
});

test("a store of the first format is exported; that its log cannot be replayed is said, not taken for a fault", async () => {
  const file = join(folder, "format-1.db");
  const database = new Database(file);
  database.exec(readFileSync(new URL("../replay/format-1.sql", import.meta.url), "utf8"));
  database.close();
  const store = sqliteStore(file);
  const tasks = await store.tasks();
  for (const { taskId } of tasks) {
    const at = freshFolder();
    writeExport(at, await store.exportTask(taskId), undefined);
    const exportedTask = verify(at);
    expect(exportedTask).toMatchObject({ difference: null, from: "state.json", older: expect.any(Number) });
    const moved = sqliteStore(":memory:");
    await moved.importTask(asAny(ticket), taskId, exportedTask);
    expect((await describeTask(moved, taskId)).waiting).toEqual((await describeTask(store, taskId)).waiting);
    // From its import on the log has everything.
    const again = freshFolder();
    writeExport(again, await moved.exportTask(taskId), undefined);
    rmSync(join(again, "state.json"));
    expect(verify(again)).toMatchObject({ from: "events.log", older: null });
    rmSync(join(at, "state.json"));
    expect(() => verify(at)).toThrow(invalid(/older format/));
  }
  expect(tasks.length).toBeGreaterThan(0);
});
