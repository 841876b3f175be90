import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { sqliteStore, type TaskStore } from "statecard";
import { storeChecks } from "statecard/testing";
import { afterAll, describe, test } from "vitest";
import { InProcessStore } from "../../src/compile/in-process-store.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { describePostgres } from "../support/postgres.ts";

function conforms(store: TaskStore): void {
  const checks = storeChecks().filter(({ needs }) => needs === "any" || store.guarantees === "store");
  for (const check of checks) test(check.name, () => check.run(async () => store));
}

describe("the store in memory", () => conforms(sqliteStore(":memory:")));

describe("the store in a SQLite file", () => {
  const folder = mkdtempSync(join(tmpdir(), "statecard-test-"));
  const store = sqliteStore(join(folder, "tasks.db"));
  afterAll(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  conforms(store);
});

describePostgres("the store in PostgreSQL", (schema) => conforms(schema.open()));

describe("the port over a plain LangGraph checkpointer", () =>
  conforms(new InProcessStore(new MemorySaver(), systemClock)));
