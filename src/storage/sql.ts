/** A value that both dialects store. */
export type SqlValue = string | number | Uint8Array | null;

/**
 * The one port to a database. Statements are written with `?` placeholders and stay within what
 * SQLite and PostgreSQL share; columns of `bigint` come back as numbers, those of `blob` as bytes.
 */
export interface Sql {
  all<Row>(statement: string, ...parameters: SqlValue[]): Promise<readonly Row[]>;
  /** @returns the number of changed rows. */
  run(statement: string, ...parameters: SqlValue[]): Promise<number>;
}

/** A database that can be let go of; the next call opens it again. */
export interface Database extends Sql {
  /**
   * Runs the work in one transaction, which excludes every other transaction of the same task from its
   * first statement on; without a task it excludes all others. A throw rolls back. Inside, use only the
   * `Sql` that is passed: what goes around it would wait for this transaction's end.
   *
   * SQLite has one writer anyway (`begin immediate`). PostgreSQL takes an advisory lock on the task and
   * reads committed rows after that, so that two transactions of a task never work on each other's past:
   * the owner's `closing` and a person's `answer`, for one, which would else lose a wake-up.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, task?: string): Promise<T>;
  close(): Promise<void>;
}

/** The first row, or null. */
export async function first<Row>(sql: Sql, statement: string, ...parameters: SqlValue[]): Promise<Row | null> {
  return (await sql.all<Row>(statement, ...parameters))[0] ?? null;
}

/** Conditions of a query and the values of their parameters, in order. */
export class Conditions {
  readonly parameters: SqlValue[] = [];
  private readonly all: string[] = [];

  add(condition: string, ...values: readonly SqlValue[]): this {
    this.all.push(condition);
    this.parameters.push(...values);
    return this;
  }

  /** `where …`; empty where there are none. */
  get where(): string {
    return this.all.length === 0 ? "" : `where ${this.all.join(" and ")}`;
  }
}
