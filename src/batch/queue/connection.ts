import { setMaxListeners } from "node:events";
import type { BackendFactory, ConnectionOptions, IQueueBackend } from "bullmq";
import type { Pool } from "pg";
import { WorkflowError } from "../../errors.ts";
import { isPostgres } from "../../storage/open-store.ts";

/** What BullMQ's classes are made with: the same for PostgreSQL and Redis. */
export interface QueueConnection {
  readonly connection: ConnectionOptions;
  /** None for Redis, which is what BullMQ takes by itself. */
  readonly backend: BackendFactory<IQueueBackend, ConnectionOptions> | undefined;
  /** Where it is, for messages: never the password. */
  readonly where: string;
  close(): Promise<void>;
}

export interface ConnectOptions {
  /** The most connections that this process has to the queue's PostgreSQL. */
  readonly maxConnections: number;
}

/** The PostgreSQL schema with BullMQ's tables, beside the one with the tasks. */
const SCHEMA = "bullmq";
const CONNECT_TIMEOUT_MS = 10_000;

/** What PostgreSQL says where it answers and refuses, by SQLSTATE. */
const REFUSALS: Readonly<Record<string, string>> = {
  "3D000": "has no such database; create it first",
  "28000": "does not let this user in",
  "28P01": "does not take this user's password",
};

/**
 * Connects to the database that holds the jobs, and makes BullMQ's tables there where they are missing.
 *
 * @param location `postgres://…` or `redis://…` (`rediss://…`).
 * @throws USAGE for another kind of location, DATABASE_UNAVAILABLE where nothing answers.
 */
export async function connectQueue(location: string, options: ConnectOptions): Promise<QueueConnection> {
  const where = placeOf(location);
  try {
    if (isPostgres(location)) return await connectPostgres(location, where, options);
    return await connectRedis(location, where);
  } catch (error) {
    // An error from below can hold the whole location, and that the password.
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const why = REFUSALS[code] ?? `does not answer${code && ` (${code})`}; is it running?`;
    throw new WorkflowError("DATABASE_UNAVAILABLE", `the queue at ${where} ${why}`, {
      retryable: true,
      details: { queue: where },
    });
  }
}

async function connectPostgres(
  connectionString: string,
  where: string,
  { maxConnections }: ConnectOptions,
): Promise<QueueConnection> {
  const { createPostgresBackend, runMigrations } = await import("bullmq");
  const { default: pg } = await import("pg");
  const pool: Pool = new pg.Pool({
    connectionString,
    application_name: "statecard-queue",
    // Not as an option of the connection: the string's own would win.
    // oxlint-disable-next-line typescript/no-misused-promises
    onConnect: async (client) => void (await client.query(`set search_path to ${SCHEMA}`)),
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  // A connection that the server ends is replaced at the next use; unheard, it would end the process.
  pool.on("error", () => {});
  // Everything of BullMQ shares it and listens to it, several for each graph: that many are no leak.
  setMaxListeners(0, pool);
  try {
    const client = await pool.connect();
    try {
      await runMigrations(client, SCHEMA);
    } finally {
      client.release();
    }
  } catch (error) {
    await pool.end();
    throw error;
  }
  return {
    where,
    // BullMQ's types know the options of Redis only.
    connection: pool as unknown as ConnectionOptions,
    backend: createPostgresBackend as unknown as BackendFactory<IQueueBackend, ConnectionOptions>,
    close: () => pool.end(),
  };
}

async function connectRedis(url: string, where: string): Promise<QueueConnection> {
  const { Redis } = await import("ioredis");
  const probe = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  probe.on("error", () => {});
  try {
    await probe.connect();
    await probe.ping();
  } finally {
    probe.disconnect();
  }
  return { where, connection: { url, maxRetriesPerRequest: null }, backend: undefined, close: async () => {} };
}

/** @throws USAGE. */
function placeOf(location: string): string {
  const isKnown = isPostgres(location) || /^rediss?:\/\//.test(location);
  const url = isKnown && URL.canParse(location) ? new URL(location) : null;
  if (url) return `${url.protocol}//${url.host}${url.pathname}`;
  throw new WorkflowError("USAGE", "jobs are kept in postgres://user@host:5432/database or redis://host:6379/0");
}
