import { accessSync, constants, existsSync, statSync } from "node:fs";
import { makeFolder } from "../make-folder.ts";
import { dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { WorkflowError } from "../../errors.ts";
import { databaseClosed, databaseOpened } from "../../internal/open-databases.ts";
import { systemClock, type Clock } from "../../internal/clock.ts";
import { READ_VERSION, setUpStatements } from "../schema.ts";
import type { Database as DatabasePort, Sql, SqlValue } from "../sql.ts";
import { SqlStore } from "../sql-store.ts";

export interface SqliteOptions {
  /** How long to wait for another process's lock, in milliseconds; 5,000 unless set. */
  readonly busyTimeoutMs?: number;
  /** `full` survives a power loss, `normal` a crash of the process or system; `normal` unless set. */
  readonly synchronous?: "normal" | "full";
  readonly clock?: Clock;
}

/** How many pages of 4 KB the write-ahead log holds before it is moved into the file. */
const LOG_PAGES = 4000;
const BUSY_TIMEOUT_MS = 5000;
const AGAIN_MS = 20;

const DEFAULT_DATABASE = ".statecard/tasks.db";

/** The file that a store uses: the one given, else STATECARD_DB, else `.statecard/tasks.db`. */
export function databaseFile(file?: string): string {
  return file || process.env.STATECARD_DB || DEFAULT_DATABASE;
}

/**
 * The embedded store: all tasks in one SQLite file. The file and its folder are made at the first
 * use, not before.
 *
 * @param file a path, or `:memory:`. Unless given: STATECARD_DB, else `.statecard/tasks.db`.
 * @example compile(ticket, { model, store: sqliteStore("tasks.db") })
 */
export function sqliteStore(file?: string, options: SqliteOptions = {}): SqlStore {
  return new SqlStore(new SqliteDatabase(databaseFile(file), options), options.clock ?? systemClock);
}

/** The SQL port on better-sqlite3. One connection; transactions of one process take turns on it. */
class SqliteDatabase implements DatabasePort {
  private readonly file: string;
  private readonly options: SqliteOptions;
  private connection: Connection | null = null;
  private readonly queue: Queue;

  constructor(file: string, options: SqliteOptions = {}) {
    this.file = file;
    this.options = options;
    this.queue = queueOf(file);
  }

  all<Row>(statement: string, ...parameters: SqlValue[]): Promise<readonly Row[]> {
    return this.exclusively(async (connection) => connection.all<Row>(statement, ...parameters));
  }

  run(statement: string, ...parameters: SqlValue[]): Promise<number> {
    return this.exclusively(async (connection) => connection.run(statement, ...parameters));
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.exclusively((connection) => connection.transaction(work));
  }

  /** Closes the file, at once; the next call opens it again. */
  async close(): Promise<void> {
    this.connection?.close();
    this.connection = null;
  }

  private async exclusively<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await this.queue.next(async () => {
        this.connection ??= await openPatiently(this.file, this.options);
        return work(this.connection);
      });
    } catch (error) {
      throw databaseError(this.file, error);
    }
  }
}

/**
 * Lets one piece of work run at a time. Statements of other callers must not slip into an open
 * transaction of the same connection; and a second connection of this process to the same file would
 * block the one thread that could end the first one's transaction.
 */
class Queue {
  private tail: Promise<unknown> = Promise.resolve();

  next<T>(work: () => Promise<T>): Promise<T> {
    const result = this.tail.then(work);
    this.tail = result.catch(() => {});
    return result;
  }
}

const queues = new Map<string, Queue>();

function queueOf(file: string): Queue {
  if (file === ":memory:") return new Queue();
  const path = resolve(file);
  const queue = queues.get(path) ?? new Queue();
  queues.set(path, queue);
  return queue;
}

class Connection implements Sql {
  private readonly database: Database.Database;
  private readonly file: string;
  private readonly statements = new Map<string, Database.Statement>();

  constructor(database: Database.Database, file: string) {
    this.database = database;
    this.file = file;
    databaseOpened(file);
  }

  private prepare(statement: string): Database.Statement {
    let prepared = this.statements.get(statement);
    if (!prepared) {
      prepared = this.database.prepare(statement);
      this.statements.set(statement, prepared);
    }
    return prepared;
  }

  async all<Row>(statement: string, ...parameters: SqlValue[]): Promise<readonly Row[]> {
    return this.prepare(statement).all(...parameters) as Row[];
  }

  async run(statement: string, ...parameters: SqlValue[]): Promise<number> {
    return this.prepare(statement).run(...parameters).changes;
  }

  async transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    this.prepare("begin immediate").run();
    try {
      const result = await work(this);
      this.prepare("commit").run();
      return result;
    } catch (error) {
      if (this.database.inTransaction) this.prepare("rollback").run();
      throw error;
    }
  }

  close(): void {
    this.database.close();
    databaseClosed(this.file);
  }
}

/**
 * Of several processes that open a new file at once, SQLite lets one set its journal and tells another at once that it
 * is busy, however long that one would wait: it may hold what the first one needs. So it lets go and tries again.
 */
async function openPatiently(file: string, options: SqliteOptions): Promise<Connection> {
  const timeout = options.busyTimeoutMs ?? BUSY_TIMEOUT_MS;
  for (const end = Date.now() + timeout; ;) {
    try {
      return open(file, timeout, options);
    } catch (error) {
      if (!isBusy(error) || Date.now() >= end) throw error;
      await sleep(AGAIN_MS);
    }
  }
}

function open(file: string, timeout: number, options: SqliteOptions): Connection {
  if (file !== ":memory:") prepareFolder(file);
  const database = new Database(file, { timeout });
  try {
    // A file that is refused as too new stays as it is, without a journal beside it.
    const isCurrent = setUpStatements(storedVersion(database), file).length === 0;
    database.pragma("journal_mode = wal");
    database.pragma(`synchronous = ${options.synchronous ?? "normal"}`);
    // Each checkpoint of the log syncs the disk; at SQLite's own 1,000 pages that is half of a commit's time.
    database.pragma(`wal_autocheckpoint = ${LOG_PAGES}`);
    if (!isCurrent) setUp(database, file);
    return new Connection(database, file);
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepareFolder(file: string): void {
  if (existsSync(file)) {
    if (statSync(file).isDirectory()) {
      throw new WorkflowError(
        "DATABASE_INVALID",
        `${file} is a folder, not a database; name a file with --db or STATECARD_DB`,
        { details: { file } },
      );
    }
    try {
      accessSync(file, constants.R_OK | constants.W_OK);
    } catch {
      throw readOnly(file);
    }
  } else {
    makeFolder(dirname(resolve(file)));
  }
}

function storedVersion(database: Database.Database): number | null {
  const table = database.prepare("select 1 from sqlite_master where name = 'statecard_meta'").get();
  if (!table) return null;
  const row = database.prepare(READ_VERSION).get() as { value: string } | undefined;
  return row ? Number(row.value) : null;
}

/** Makes or upgrades the tables. Another process may do the same: the format is read under the write lock. */
function setUp(database: Database.Database, file: string): void {
  const run = database.transaction(() => {
    for (const statement of setUpStatements(storedVersion(database), file)) database.exec(statement);
  });
  run.immediate();
}

function readOnly(file: string, cause?: unknown): WorkflowError {
  return new WorkflowError(
    "DATABASE_READ_ONLY",
    `${file} cannot be written; change its permissions, or name another file with --db or STATECARD_DB`,
    { cause, details: { file } },
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

function isBusy(error: unknown): boolean {
  return /^SQLITE_(?:BUSY|LOCKED)/.test(codeOf(error));
}

/** Says in plain words what is wrong with the file; everything else is passed on. */
function databaseError(file: string, error: unknown): unknown {
  const code = codeOf(error);
  const details = { file };
  if (isBusy(error)) {
    return new WorkflowError("DATABASE_LOCKED", `another program holds ${file} locked; try again when it is done`, {
      cause: error,
      details,
      retryable: true,
    });
  }
  if (code.startsWith("SQLITE_READONLY")) return readOnly(file, error);
  if (code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT")) {
    return new WorkflowError(
      "DATABASE_INVALID",
      `${file} is not a database, or it is damaged; name another file with --db or STATECARD_DB`,
      { cause: error, details },
    );
  }
  if (
    code.startsWith("SQLITE_CANTOPEN") ||
    ["EACCES", "EPERM", "EROFS", "ENOTDIR", "ENOENT", "EEXIST", "ENAMETOOLONG"].includes(code) ||
    (error instanceof TypeError && error.message.includes("directory does not exist"))
  ) {
    return new WorkflowError(
      "DATABASE_UNAVAILABLE",
      `${file} cannot be opened or made (${code || "no such folder"}): check that its folder exists and may be written, or name another file with --db or STATECARD_DB`,
      { cause: error, details },
    );
  }
  if (code === "SQLITE_FULL") {
    return new WorkflowError(
      "DATABASE_UNAVAILABLE",
      `the disk that holds ${file} is full; the task is as it was before this write`,
      { cause: error, details },
    );
  }
  return error;
}
