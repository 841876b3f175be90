import { existsSync } from "node:fs";
import { databaseFile, sqliteStore } from "../storage/sqlite/sqlite.ts";
import type { SqlStore } from "../storage/sql-store.ts";

/** The store of a command that only looks: a database that is not there counts as empty and is not made. */
export function storeForReading(file: string | undefined): SqlStore {
  return existsSync(databaseFile(file)) ? sqliteStore(file) : sqliteStore(":memory:");
}
