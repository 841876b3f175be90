import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { compile, defineWorkflow, field, openStore, sqliteStore } from "statecard";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { describePostgres, postgresUrl } from "../support/postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "statecard-open-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const asking = defineWorkflow({
  name: "asking",
  version: 1,
  state: { name: field(z.string()) },
  initial: "asking",
  steps: {
    asking: {
      to: ["done"],
      run: (_state, { observation }) =>
        observation?.kind === "answer" ? { patch: { name: observation.text }, next: "done" } : { ask: "Who?" },
    },
    done: { final: true },
  },
});

async function toTheEnd(location: string): Promise<unknown> {
  const task = { configurable: { thread_id: `t-${process.pid}-${Math.random()}` } };
  const first = openStore(location);
  await compile(asking, { store: first }).invoke({ message: "hello" }, task);
  await first.close();
  const second = openStore(location);
  const done = await compile(asking, { store: second }).invoke({ message: "Ada" }, task);
  await second.close();
  return done.name;
}

test("a path opens a SQLite file", async () => {
  expect(await toTheEnd(join(folder, "tasks.db"))).toBe("Ada");
});

describePostgres("PostgreSQL", (schema) => {
  test("a connection opens a PostgreSQL database", async () => {
    await schema.query(`create schema if not exists ${schema.name}`);
    const options = encodeURIComponent(`-c search_path=${schema.name}`);
    expect(await toTheEnd(`${postgresUrl()}?options=${options}`)).toBe("Ada");
  });
});

test("a connection to nowhere says so without its password", async () => {
  const store = openStore("postgresql://ada:open-sesame@127.0.0.1:1/none");
  const error = await store.tasks().catch((caught: unknown) => caught as Error);
  expect(error).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  expect(JSON.stringify([String(error), error])).not.toContain("open-sesame");
});

test("a new file that another process is just making is waited for, up to the limit", async () => {
  const file = join(folder, "new.db");
  const other = new Database(file);
  // SQLite tells whoever wants to set the journal then that it is busy, without waiting.
  other.exec("create table t (c); begin immediate");
  await expect(sqliteStore(file, { busyTimeoutMs: 50 }).tasks()).rejects.toMatchObject({ code: "DATABASE_LOCKED" });
  const store = sqliteStore(file);
  const listed = store.tasks();
  setTimeout(() => other.exec("commit"), 60);
  expect(await listed).toEqual([]);
  other.close();
  await store.close();
});
