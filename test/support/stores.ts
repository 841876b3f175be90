import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, describe } from "vitest";
import type { Clock } from "../../src/internal/clock.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { sqliteStore } from "../../src/storage/sqlite/sqlite.ts";
import { describePostgres, postgresUrl } from "./postgres.ts";

/** A database of its own, and the stores on it. */
export interface Dialect {
  /** Where it is, as the arguments of `store-process.ts`. */
  readonly place: readonly [file: string] | readonly [url: string, schema: string];
  /** Another store on the same database, as another process would have it. */
  open(clock?: Clock): SqlStore;
  /** Runs one statement outside of any store. */
  query(statement: string): Promise<readonly Record<string, unknown>[]>;
}

/** The same tests on a SQLite file and on PostgreSQL. */
export function onBothDialects(tests: (dialect: Dialect) => void): void {
  describe("SQLite", () => {
    const folder = mkdtempSync(join(tmpdir(), "statecard-test-"));
    const file = join(folder, "tasks.db");
    const stores: SqlStore[] = [];
    afterAll(async () => {
      for (const store of stores) await store.close();
      rmSync(folder, { recursive: true, force: true });
    });
    tests({
      place: [file],
      open(clock) {
        const store = sqliteStore(file, clock ? { clock } : {});
        stores.push(store);
        return store;
      },
      async query(statement) {
        const database = new Database(file);
        try {
          const prepared = database.prepare(statement);
          if (prepared.reader) return prepared.all() as Record<string, unknown>[];
          prepared.run();
          return [];
        } finally {
          database.close();
        }
      },
    });
  });
  describePostgres("PostgreSQL", (schema) => {
    tests({
      place: [postgresUrl(), schema.name],
      open: (clock) => schema.open(clock ? { clock } : {}),
      query: (statement) => schema.query(statement),
    });
  });
}
