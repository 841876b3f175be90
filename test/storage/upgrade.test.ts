import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import type { OpenFilter } from "../../src/compile/store.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { sqliteStore } from "../../src/storage/sqlite/sqlite.ts";
import { StoredTask } from "../../src/testing/stored-task.ts";
import { TO_FORMAT_5 } from "../support/formats.ts";
import { describePostgres } from "../support/postgres.ts";
import { StoreProcess } from "../support/processes.ts";

const FORMAT_1 = readFileSync(new URL("../replay/format-1.sql", import.meta.url), "utf8");

const FORMAT_5 = readFileSync(new URL("../replay/format-5.sql", import.meta.url), "utf8");

/** A file as an older version left it; the first one's has two tasks that wait and one that is done. */
function oldFile(dump = FORMAT_1): string {
  const folder = mkdtempSync(join(tmpdir(), "statecard-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "tasks.db");
  const database = new Database(file);
  database.pragma("journal_mode = wal");
  database.exec(dump);
  database.close();
  return file;
}

function read(file: string, statement: string): unknown[] {
  const database = new Database(file, { readonly: true });
  try {
    return database.prepare(statement).all();
  } finally {
    database.close();
  }
}

/** When everything that is open there expires. */
const EXPIRES = Date.UTC(2026, 10, 30, 1);
const VERSION = "select value from statecard_meta where key = 'schema_version'";

test("a file of the first format is upgraded when it is opened, and loses nothing", async () => {
  const file = oldFile();
  const events = read(file, "select * from statecard_events order by task_id, sequence");
  const checkpoints = read(file, "select * from checkpoints order by checkpoint_id");
  const store = sqliteStore(file);
  onTestFinished(() => store.close());
  const tasks = await store.tasks();
  expect(
    tasks.map(({ taskId, execution, waiting }) => [taskId, execution.status, waiting.map(({ id }) => id)]),
  ).toEqual([
    ["asked-1", "waiting_user", ["q2.0"]],
    ["done-1", "completed", []],
    ["paused-1", "waiting_user", ["q2.0"]],
  ]);
  expect(read(file, VERSION)).toEqual([{ value: "6" }]);
  expect(read(file, "select schema from statecard_heads")).toEqual([
    { schema: null },
    { schema: null },
    { schema: null },
  ]);
  expect(read(file, "select * from statecard_events order by task_id, sequence")).toEqual(events);
  expect(read(file, "select * from checkpoints order by checkpoint_id")).toEqual(checkpoints);
  for (const table of ["statecard_votes", "statecard_journal", "statecard_tokens"]) {
    expect(read(file, `select * from ${table}`)).toEqual([]);
  }
  expect((await store.acquire("done-1")).token).toBe(4);
  await StoredTask.start(store, "new");
});

test("several processes may open a file of the first format at once", async () => {
  const file = oldFile();
  const processes = await Promise.all([1, 2].map(() => StoreProcess.start("list", "", [file])));
  const database = new Database(file);
  onTestFinished(() => void database.close());
  // While the file is locked, both find the old format; then each thinks that the upgrade is its own.
  database.exec("begin immediate");
  const lists = processes.map((one) => one.go());
  await sleep(300);
  database.exec("commit");
  expect(await Promise.all(lists)).toEqual(["3", "3"]);
  expect(read(file, VERSION)).toEqual([{ value: "6" }]);
});

test("an upgrade that fails leaves the file as it was", async () => {
  const file = oldFile();
  const database = new Database(file);
  // The new column cannot be added: it is there.
  database.exec("alter table statecard_heads add column schema text");
  database.close();
  const store = sqliteStore(file);
  await expect(store.tasks()).rejects.toThrow("schema");
  expect(read(file, VERSION)).toEqual([{ value: "1" }]);
  expect(read(file, "select name from sqlite_master where name = 'statecard_votes'")).toEqual([]);
});

/** What a database of the fifth format has open, with the index to tell it by. */
async function expectOpen(store: SqlStore): Promise<void> {
  const open = await store.openRequests({ limit: 100 });
  expect(
    open.map(({ taskId, workflow, request }) => [taskId, workflow, request.id, request.expiresAt ?? null]),
  ).toEqual([
    ["@acme/approval", "payment", "a1.0.0", EXPIRES],
    ["approval", "payment", "a1.0.0", EXPIRES],
    ["asks", "payment", "q1.0", EXPIRES],
    ["child", "order", "w1.0/a1.0.0", EXPIRES],
    ["child/settle/1.0", "payment", "a1.0.0", EXPIRES],
    ["forked", "payment", "q1.1", EXPIRES],
  ]);
  const ids = async (filter: Partial<OpenFilter>) =>
    (await store.openRequests({ limit: 100, ...filter })).map(({ taskId }) => taskId);
  expect(await ids({ tenant: "acme", approvals: true, dueBy: EXPIRES })).toEqual(["@acme/approval"]);
  expect(await ids({ dueBy: EXPIRES - 1 })).toEqual([]);
  const own = await store.tasks({ tenant: "" });
  expect(own.map(({ taskId }) => taskId)).not.toContain("@acme/approval");
  expect(own).toHaveLength(7);
  expect(await store.tasks({ tenant: "acme" })).toHaveLength(1);
  expect(await store.allConsents()).toEqual([]);
  expect(await store.owner("asks")).toBeNull();
  expect(await store.wakes()).toMatchObject([{ taskId: "ended", count: 1 }]);
}

test("a database of the fifth format tells what is open and whose it is from what is stored", async () => {
  const store = sqliteStore(oldFile(FORMAT_5));
  onTestFinished(() => store.close());
  await expectOpen(store);
});

describePostgres("PostgreSQL, from the fifth format", (schema) => {
  test("what is open and whose it is comes from what is stored", async () => {
    const rows = FORMAT_5.split("\n").filter((line) => /statecard_(meta|heads|leases|wakes|requests)\b/.test(line));
    await schema.query(`create schema ${schema.name}`);
    for (const row of rows) await schema.query(row);
    await expectOpen(schema.open());
  });
});

describePostgres("PostgreSQL", (schema) => {
  test("tables of the first format are upgraded once, by whichever process comes first", async () => {
    await StoredTask.start(schema.open(), "old");
    for (const statement of TO_FORMAT_5) await schema.query(statement);
    await schema.query("alter table statecard_heads drop column schema");
    await schema.query("drop table statecard_votes, statecard_journal, statecard_tokens");
    await schema.query("update statecard_meta set value = '1'");
    const stores = [schema.open(), schema.open(), schema.open()];
    const lists = await Promise.all(stores.map((store) => store.tasks()));
    expect(lists.map((list) => list.map(({ taskId }) => taskId))).toEqual([["old"], ["old"], ["old"]]);
    expect(await schema.query(VERSION)).toEqual([{ value: "6" }]);
    expect(await schema.query("select schema from statecard_heads")).toEqual([{ schema: null }]);
    expect(await schema.query("select * from statecard_votes")).toEqual([]);
  });
});
