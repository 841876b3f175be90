import { randomUUID } from "node:crypto";
import pg from "pg";
import { postgresStore, type PostgresOptions } from "../../src/storage/postgres/postgres.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { afterAll, describe } from "vitest";

/** The server that the tests use: `STATECARD_TEST_POSTGRES`, else one on this machine that trusts local users. */
export function postgresUrl(): string {
  return process.env.STATECARD_TEST_POSTGRES ?? "postgres://root@127.0.0.1:5432/test";
}

/** Why no server answers; null where one does. */
async function probe(): Promise<string | null> {
  const client = new pg.Client({ connectionString: postgresUrl(), connectionTimeoutMillis: 3000 });
  try {
    await client.connect();
    await client.query("select 1");
    return null;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return code || (error instanceof Error ? error.message : String(error));
  } finally {
    await client.end().catch(() => {});
  }
}

const unanswered = await probe();

/**
 * A group of tests on PostgreSQL, in a schema of its own that is dropped afterwards. Without a server
 * they are skipped, and their name says why.
 */
export function describePostgres(name: string, tests: (postgres: TestSchema) => void): void {
  const reason = `skipped: no PostgreSQL answers at STATECARD_TEST_POSTGRES or 127.0.0.1:5432: ${unanswered}`;
  describe.skipIf(unanswered !== null)(unanswered === null ? name : `${name} (${reason})`, () => {
    const schema = new TestSchema();
    tests(schema);
    afterAll(() => schema.drop());
  });
}

/** A fresh PostgreSQL schema, and the stores on it. */
export class TestSchema {
  readonly name = `statecard_test_${randomUUID().slice(0, 13).replace("-", "")}`;
  private readonly stores: SqlStore[] = [];

  open(options: PostgresOptions = {}): SqlStore {
    const store = postgresStore(postgresUrl(), { schema: this.name, maxConnections: 4, ...options });
    this.stores.push(store);
    return store;
  }

  /** Runs one statement outside of any store, with the tables in sight. */
  async query(statement: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: postgresUrl() });
    await client.connect();
    try {
      await client.query(`set search_path to ${this.name}`);
      return (await client.query<Record<string, unknown>>(statement)).rows;
    } finally {
      await client.end();
    }
  }

  async drop(): Promise<void> {
    for (const store of this.stores) await store.close();
    await this.query(`drop schema if exists ${this.name} cascade`);
  }
}
