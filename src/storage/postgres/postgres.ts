import type { ClientBase, Pool, PoolClient, PoolConfig } from "pg";
import { WorkflowError } from "../../errors.ts";
import { systemClock, type Clock } from "../../internal/clock.ts";
import { READ_VERSION, setUpStatements } from "../schema.ts";
import type { Database, Sql, SqlValue } from "../sql.ts";
import { SqlStore } from "../sql-store.ts";
import { databaseError } from "./errors.ts";
import { lockNumber, numbered, tableForPostgres } from "./statements.ts";

export interface PostgresOptions {
  /** The PostgreSQL schema that holds the tables, made where it is missing; the connection's own, `public`, unless set. */
  readonly schema?: string;
  /** The most connections of this process; 10 unless set. */
  readonly maxConnections?: number;
  /** How long to wait for another process's lock, in milliseconds; 10,000 unless set. */
  readonly lockTimeoutMs?: number;
  readonly clock?: Clock;
}

const CONNECT_TIMEOUT_MS = 10_000;
const LOCK_TIMEOUT_MS = 10_000;
/** A process that stops or vanishes within a transaction must not hold its task for longer than a lease. */
const IDLE_IN_TRANSACTION_MS = 30_000;

/**
 * The store for many processes and machines: all tasks in one PostgreSQL database. It connects, and
 * makes its tables, at the first use. Keep the password out of code: `PGPASSWORD` is read too.
 *
 * @param connectionString as libpq knows it, `postgres://user@host:5432/database`.
 * @example compile(ticket, { model, store: postgresStore("postgres://app@db.example/tasks") })
 */
export function postgresStore(connectionString: string, options: PostgresOptions = {}): SqlStore {
  return new SqlStore(new PostgresDatabase(connectionString, options), options.clock ?? systemClock);
}

interface Connected {
  readonly pool: Pool;
  /** User, host and database, for messages: never the password. */
  readonly where: string;
}

/** The SQL port on `pg`: a pool, and prepared statements on each of its connections. */
class PostgresDatabase implements Database {
  private readonly connectionString: string;
  private readonly options: PostgresOptions;
  private connected: Promise<Connected> | null = null;
  private readonly underway = new Set<Promise<unknown>>();

  constructor(connectionString: string, options: PostgresOptions) {
    this.connectionString = connectionString;
    this.options = options;
  }

  all<Row>(statement: string, ...parameters: SqlValue[]): Promise<readonly Row[]> {
    return this.use(({ pool }) => new Connection(pool).all<Row>(statement, ...parameters));
  }

  run(statement: string, ...parameters: SqlValue[]): Promise<number> {
    return this.use(({ pool }) => new Connection(pool).run(statement, ...parameters));
  }

  transaction<T>(work: (sql: Sql) => Promise<T>, task?: string): Promise<T> {
    return this.use(({ pool }) => inTransaction(pool, this.begin(task), (client) => work(new Connection(client))));
  }

  /**
   * One round trip. The locks come first and the isolation level is named: under a stricter one, the
   * transaction would go on seeing what was there before it got its lock.
   */
  private begin(task: string | undefined): string {
    const { schema = "", lockTimeoutMs = LOCK_TIMEOUT_MS } = this.options;
    const everything = lockNumber(schema);
    const locks =
      task === undefined
        ? `pg_advisory_xact_lock(${everything})`
        : `pg_advisory_xact_lock_shared(${everything}), pg_advisory_xact_lock(${lockNumber(`${schema} ${task}`)})`;
    return `begin isolation level read committed; set local lock_timeout = ${Math.round(lockTimeoutMs)};
      set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}; select ${locks}`;
  }

  /** Ends all connections when every call has ended; the next one opens new ones. */
  async close(): Promise<void> {
    const { connected } = this;
    this.connected = null;
    // The pool would drop what has no connection yet, such as the release of a task that was just cut off.
    await Promise.allSettled(this.underway);
    await (await connected?.catch(() => null))?.pool.end();
  }

  private use<T>(work: (connected: Connected) => Promise<T>): Promise<T> {
    const call = this.explained(work);
    this.underway.add(call);
    void call.catch(() => {}).finally(() => this.underway.delete(call));
    return call;
  }

  private async explained<T>(work: (connected: Connected) => Promise<T>): Promise<T> {
    let where = "the PostgreSQL database";
    try {
      this.connected ??= this.connect();
      const connected = await this.connected;
      ({ where } = connected);
      return await work(connected);
    } catch (error) {
      throw databaseError(where, error);
    }
  }

  private async connect(): Promise<Connected> {
    let connected: Connected | null = null;
    try {
      // Loaded here so that programs on SQLite do not pay for it.
      connected = await openPool(this.connectionString, this.options);
      await this.setUp(connected);
      return connected;
    } catch (error) {
      this.connected = null;
      await connected?.pool.end();
      throw databaseError(connected?.where ?? "the PostgreSQL database", error);
    }
  }

  /** Makes or upgrades the tables where that is needed; needs no rights to do so where it is not. */
  private async setUp({ pool, where }: Connected): Promise<void> {
    if (setUpStatements(await storedVersion(pool), where).length === 0) return;
    const { schema } = this.options;
    // Several processes may come at once: `if not exists` alone fails where two create the same table.
    await inTransaction(pool, this.begin(undefined), async (client) => {
      if (schema !== undefined) await client.query(`create schema if not exists ${quoted(schema)}`);
      for (const statement of setUpStatements(await storedVersion(client), where)) {
        await client.query(tableForPostgres(statement));
      }
    });
  }
}

async function openPool(connectionString: string, options: PostgresOptions): Promise<Connected> {
  const { default: pg } = await import("pg");
  const { schema } = options;
  const choose = async (client: ClientBase) => {
    if (schema !== undefined) await client.query(`set search_path to ${quoted(schema)}`);
  };
  const config: PoolConfig = {
    connectionString,
    application_name: "statecard",
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    allowExitOnIdle: true,
    types: {
      getTypeParser: (type, format) =>
        type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format as "text"),
    },
    // The pool waits for it, which its types do not say.
    // oxlint-disable-next-line typescript/no-misused-promises
    onConnect: choose,
  };
  let where: string;
  try {
    // Not connected: it only reads the connection string.
    const { host, port, database, user } = new pg.Client(config);
    where = `PostgreSQL database "${database}" on ${host}:${port} (user ${user})`;
  } catch {
    // The cause would hold the string, and that the password.
    throw new WorkflowError(
      "DATABASE_UNAVAILABLE",
      "the PostgreSQL connection string cannot be read; write postgres://user@host:5432/database",
    );
  }
  const pool = new pg.Pool(config);
  // An idle connection that the server ends is replaced at the next use; unheard, it would end the process.
  pool.on("error", () => {});
  return { pool, where };
}

async function storedVersion(client: Pool | PoolClient): Promise<number | null> {
  const { rows: tables } = await client.query(`select 1 where to_regclass('statecard_meta') is not null`);
  if (tables.length === 0) return null;
  const { rows } = await client.query<{ value: string }>(READ_VERSION);
  return rows[0] ? Number(rows[0].value) : null;
}

async function inTransaction<T>(pool: Pool, begin: string, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query(begin);
    const result = await work(client);
    const { command } = await client.query("commit");
    // So PostgreSQL ends a transaction in which a statement failed, whoever caught that error.
    if (command !== "COMMIT") throw new Error("the transaction was rolled back: one of its statements failed");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => (broken = true));
    throw error;
  } finally {
    client.release(broken);
  }
}

class Connection implements Sql {
  private readonly client: Pool | PoolClient;

  constructor(client: Pool | PoolClient) {
    this.client = client;
  }

  async all<Row>(statement: string, ...parameters: SqlValue[]): Promise<readonly Row[]> {
    return (await this.client.query({ ...numbered(statement), values: parameters })).rows as Row[];
  }

  async run(statement: string, ...parameters: SqlValue[]): Promise<number> {
    return (await this.client.query({ ...numbered(statement), values: parameters })).rowCount ?? 0;
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
