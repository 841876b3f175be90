import { execFileSync } from "node:child_process";
import { linkSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allowPaths, compile, defineWorkflow, field, fileTools, isOpenDatabase, sqliteStore } from "statecard";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openLog } from "../../graphs/log-detective/skills/read-log-file/open-log.ts";
import { run } from "../support/calls.ts";

const counting = defineWorkflow({
  name: "counting",
  version: 1,
  state: { count: field(z.number()) },
  initial: "work",
  steps: {
    work: { to: ["work", "done"], run: ({ count }) => ({ patch: { count: (count ?? 0) + 1 }, ask: "on?" }) },
    done: { final: true },
  },
});

/** A process of its own that writes into the database and closes it. */
const WRITER = `
  const database = new (require("better-sqlite3"))(process.argv[1]);
  database.exec("create table if not exists other (n)");
  for (let n = 0; n < 200; n++) database.prepare("insert into other values (?)").run(n);
  database.close();
`;

/** A process of its own that reads what is there: whether it is whole, and how many entries the log has. */
const READER = `
  const database = new (require("better-sqlite3"))(process.argv[1]);
  const { events } = database.prepare("select count(*) as events from statecard_events").get();
  process.stdout.write(JSON.stringify([database.pragma("integrity_check", { simple: true }), events]));
`;

async function openedFolder() {
  const root = mkdtempSync(join(tmpdir(), "statecard-open-"));
  const file = join(root, "tasks.db");
  const store = sqliteStore(file);
  onTestFinished(async () => {
    await store.close();
    rmSync(root, { recursive: true });
  });
  const graph = compile(counting, { store });
  let said = 0;
  const count = () => graph.invoke({ message: `go ${said++}` }, { configurable: { thread_id: "t" } });
  await count();
  return { root, file, store, count };
}

test("tools that look through the folder of an open database leave it alone, and other processes do not damage it", async () => {
  const { root, file, store, count } = await openedFolder();
  writeFileSync(join(root, "notes.txt"), "needle");
  const { searchFiles, readFile } = fileTools({ root });
  for (const path of ["tasks.db", "tasks.db-wal", "tasks.db-shm"]) {
    const read = await run(readFile, { path });
    expect(read).toMatchObject({ status: "error", errorType: "IN_USE" });
    expect(allowPaths([root])({ path }, { tool: "t", taskId: "t", step: "s", state: {} })).toMatchObject({
      refuse: expect.stringContaining("this process has open") as string,
    });
    await expect(openLog(join(root, path), new AbortController().signal)).rejects.toThrow("a database in use");
  }
  const found = await run(searchFiles, { text: "needle" });
  expect(found.value).toMatchObject({ found: [expect.objectContaining({ path: "notes.txt" })] });
  for (let round = 0; round < 3; round++) {
    execFileSync(process.execPath, ["-e", WRITER, file]);
    await count();
  }
  expect((await count()).count).toBe(5);
  // Locks that were lost let another process take away the log that this one goes on writing to.
  const seen = execFileSync(process.execPath, ["-e", READER, file], { encoding: "utf8" });
  expect(JSON.parse(seen)).toEqual(["ok", (await store.events("t")).length]);
});

test("an open database is known by every name, and no longer once it is closed", async () => {
  const { root, file, store } = await openedFolder();
  linkSync(file, join(root, "hard"));
  symlinkSync(file, join(root, "soft"));
  writeFileSync(join(root, "other"), "");
  const names = () => ["tasks.db", "hard", "soft"].map((name) => isOpenDatabase(join(root, name)));
  expect(names()).toEqual([true, true, true]);
  expect([isOpenDatabase(join(root, "other")), isOpenDatabase(join(root, "missing"))]).toEqual([false, false]);
  await store.close();
  expect(names()).toEqual([false, false, false]);
});
