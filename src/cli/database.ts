import { existsSync } from "node:fs";
import { openStore } from "../storage/open-store.ts";
import { databaseFile, sqliteStore } from "../storage/sqlite/sqlite.ts";
import type { SqlStore } from "../storage/sql-store.ts";

/** The store of a command that only looks: a file that is not there counts as empty and is not made. */
export function storeForReading(location: string | undefined): SqlStore {
  const where = databaseFile(location);
  return /^[a-z][\w+.-]*:\/\//i.test(where) || existsSync(where) ? openStore(where) : sqliteStore(":memory:");
}
