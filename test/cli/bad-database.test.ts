import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { expectRefusal, ownDatabase, statecard, taskOf, temporaryFolder, unprivilegedUser } from "../support/cli.ts";

const user = unprivilegedUser();
const permissionsBind = user !== null && process.platform !== "win32";

async function withTask() {
  const own = await ownDatabase();
  expect((await statecard(["run", "ticket", "--task", "t-1"], own)).code).toBe(10);
  return own;
}

test("a database that another process holds is waited for, then refused, and the task is unharmed", async () => {
  const own = await withTask();
  const holder = new Database(own.database);
  onTestFinished(() => void holder.close());
  holder.exec("begin exclusive");
  const refusal = { code: "DATABASE_LOCKED", exit: 3, says: /holds .*tasks\.db locked; try again/ };
  await expectRefusal(["resume", "t-1", "--answer", "network"], refusal, own);
  holder.exec("rollback");
  const resumed = await statecard(["resume", "t-1", "--answer", "network", "--json"], own);
  expect(taskOf(resumed)).toMatchObject({ state: { ticketType: "network" } });
});

test("a database that is freed in time is waited for", async () => {
  const own = await withTask();
  const holder = new Database(own.database);
  onTestFinished(() => void holder.close());
  holder.exec("begin exclusive");
  const resuming = statecard(["resume", "t-1", "--answer", "network", "--json"], own);
  setTimeout(() => holder.exec("rollback"), 1500);
  expect((await resuming).code).toBe(10);
});

test("a database of a newer version is refused and left as it is", async () => {
  const own = await withTask();
  const database = new Database(own.database);
  database.exec("update statecard_meta set value = '999' where key = 'schema_version'");
  database.pragma("journal_mode = delete");
  database.close();
  const before = await readFile(own.database);
  const refusal = { code: "DATABASE_TOO_NEW", exit: 2, says: /format 999.*update statecard/ };
  await expectRefusal(["show", "t-1"], refusal, own);
  await expectRefusal(["run", "ticket"], refusal, own);
  expect(await readFile(own.database)).toEqual(before);
});

test("a file that is no database is refused and left as it is", async () => {
  const own = await ownDatabase();
  const junk = randomBytes(8192);
  await writeFile(own.database, junk);
  const refusal = { code: "DATABASE_INVALID", exit: 2, says: /not a database.*--db or STATECARD_DB/ };
  await expectRefusal(["tasks"], refusal, own);
  await expectRefusal(["run", "ticket"], refusal, own);
  expect(await readFile(own.database)).toEqual(junk);
});

test("a damaged database is refused without a stack trace", async () => {
  const own = await withTask();
  const bytes = await readFile(own.database);
  bytes.fill(0xff, 4096);
  await writeFile(own.database, bytes);
  await expectRefusal(["tasks"], { code: "DATABASE_INVALID", exit: 2, says: /damaged.*--db or STATECARD_DB/ }, own);
});

test("a folder in place of the file is refused", async () => {
  const folder = await temporaryFolder();
  const refusal = { code: "DATABASE_INVALID", exit: 2, says: /is a folder.*--db or STATECARD_DB/ };
  await expectRefusal(["tasks", "--db", folder], refusal);
});

test("a file in place of the folder is refused", async () => {
  const own = await withTask();
  const refusal = { code: "DATABASE_UNAVAILABLE", exit: 2, says: /check that its folder exists/ };
  await expectRefusal(["run", "ticket", "--db", join(own.database, "tasks.db")], refusal);
});

test("an empty file becomes a database", async () => {
  const own = await ownDatabase();
  await writeFile(own.database, "");
  expect((await statecard(["run", "ticket", "--task", "t-1"], own)).code).toBe(10);
  expect((await statecard(["show", "t-1"], own)).code).toBe(0);
});

test("an empty name is refused: the task would be lost with the process", async () => {
  await expectRefusal(["tasks", "--db", ""], { code: "USAGE", exit: 2, says: /--db/ });
});

test("to look for a task makes no database", async () => {
  const own = await ownDatabase();
  expect((await statecard(["show", "nobody"], own)).code).toBe(3);
  expect((await statecard(["tasks"], own)).code).toBe(0);
  expect(existsSync(own.database)).toBe(false);
});

test("folders on the way to the file are made", async () => {
  const folder = await temporaryFolder();
  const database = join(folder, "a/b/c/tasks.db");
  expect((await statecard(["run", "ticket", "--db", database])).code).toBe(10);
  expect(existsSync(database)).toBe(true);
});

test.skipIf(!permissionsBind)("a database that may not be written is refused and left as it is", async () => {
  const own = await withTask();
  await chmod(own.database, 0o444);
  const refusal = { code: "DATABASE_READ_ONLY", exit: 2, says: /cannot be written; change its permissions/ };
  const options = { ...own, ...user };
  await expectRefusal(["run", "ticket"], refusal, options);
  await expectRefusal(["resume", "t-1", "--answer", "network"], refusal, options);
});

test.skipIf(!permissionsBind)("a file that may be written in a folder that may not is refused", async () => {
  const own = await withTask();
  await chmod(own.database, 0o666);
  await chmod(dirname(own.database), 0o555);
  onTestFinished(() => chmod(dirname(own.database), 0o755));
  const options = { ...own, ...user };
  const says = /change its permissions|check that its folder .*may be written/;
  const { stdout, code } = await statecard(["run", "ticket", "--json"], options);
  expect(code).toBe(2);
  const { error } = JSON.parse(stdout) as { error: { code: string; message: string } };
  expect(["DATABASE_READ_ONLY", "DATABASE_UNAVAILABLE"]).toContain(error.code);
  expect(error.message).toMatch(says);
});

test.skipIf(!permissionsBind)("a new database in a folder without write permission is refused", async () => {
  const folder = join(await temporaryFolder(), "closed");
  await mkdir(folder);
  if (user?.uid !== undefined) await chown(folder, 0, 0);
  await chmod(folder, 0o555);
  const refusal = { code: "DATABASE_UNAVAILABLE", exit: 2, says: /check that its folder exists and may be written/ };
  await expectRefusal(["run", "ticket", "--db", join(folder, "tasks.db")], refusal, { ...user });
  await expectRefusal(["run", "ticket", "--db", join(folder, "new/tasks.db")], refusal, { ...user });
});
