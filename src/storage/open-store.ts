import { WorkflowError } from "../errors.ts";
import { postgresStore } from "./postgres/postgres.ts";
import { databaseFile, sqliteStore } from "./sqlite/sqlite.ts";
import type { SqlStore } from "./sql-store.ts";

/** Whether a database is named by its connection and not by its file. */
export function isPostgres(location: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(location);
}

/**
 * The store that a location names: a PostgreSQL database for `postgres://…`, else a SQLite file. Nothing
 * is opened before the first use.
 *
 * @param location unless given: STATECARD_DB, else `.statecard/tasks.db`.
 * @example compile(ticket, { model, store: openStore() })
 */
export function openStore(location?: string): SqlStore {
  const where = databaseFile(location);
  const [, scheme] = /^([a-z][\w+.-]*):\/\//i.exec(where) ?? [];
  if (scheme !== undefined && !isPostgres(where)) {
    // The rest may hold a password.
    throw new WorkflowError("DATABASE_INVALID", `a database is a file or postgres://…, not ${scheme}://…`);
  }
  return isPostgres(where) ? postgresStore(where) : sqliteStore(where);
}
