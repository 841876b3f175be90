/** A value that both dialects store. */
export type SqlValue = string | number | Uint8Array | null;

/**
 * The one port to a database. Statements are written with `?` placeholders and stay within what
 * SQLite and PostgreSQL share. Inside `transaction`, use only the `Sql` that it passes.
 */
export interface Sql {
  all<Row>(statement: string, ...parameters: SqlValue[]): Promise<readonly Row[]>;
  /** @returns the number of changed rows. */
  run(statement: string, ...parameters: SqlValue[]): Promise<number>;
  /** Runs the work in one transaction that holds the write lock from its start; a throw rolls back. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

/** A database that can be let go of; the next call opens it again. */
export interface Database extends Sql {
  close(): void;
}

/** The first row, or null. */
export async function first<Row>(sql: Sql, statement: string, ...parameters: SqlValue[]): Promise<Row | null> {
  return (await sql.all<Row>(statement, ...parameters))[0] ?? null;
}
