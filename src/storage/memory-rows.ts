import { wordsOf } from "../internal/words.ts";
import { first, type Sql, type SqlValue } from "./sql.ts";
import { storedKey, keyIn, namespaceIn } from "./memory-path.ts";
import type { Item } from "@langchain/langgraph-checkpoint";

/** What is written of an item. */
export interface NewRow {
  readonly path: string;
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** What it can be found by. */
  readonly text: string;
  /** Only of memories. */
  readonly type: string | null;
  readonly priority: number;
  readonly expiresAt: number | null;
  readonly vectors: readonly { readonly field: string; readonly vector: Float32Array }[];
}

/** A stored item. */
export interface MemoryRow {
  readonly namespace: string;
  readonly key: string;
  readonly value: string;
  readonly words: string;
  readonly priority: number;
  readonly created_at: number;
  readonly updated_at: number;
}

export const COLUMNS = "namespace, key, value, words, priority, created_at, updated_at";
/** Rows that have not expired; takes the time. */
export const ALIVE = "(expires_at is null or expires_at > ?)";
/** How many values one statement takes: always as many, so that there are few statements to prepare. */
const CHUNK = 50;

export function toItem({ namespace, key, value, created_at: createdAt, updated_at: updatedAt }: MemoryRow): Item {
  return {
    namespace: namespaceIn(namespace),
    key: keyIn(key),
    value: JSON.parse(value) as Record<string, unknown>,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
  };
}

/** Writes an item, within a transaction; says whether there was none that has not expired. */
export async function writeRow(sql: Sql, row: NewRow, now: number): Promise<boolean> {
  const { path, type, priority, expiresAt, value } = row;
  const key = storedKey(row.key);
  const before = await first<MemoryRow & { readonly expires_at: number | null }>(
    sql,
    `select ${COLUMNS}, expires_at from statecard_memory where namespace = ? and key = ?`,
    path,
    key,
  );
  if (before) await deleteRow(sql, before);
  const isNew = before === null || (before.expires_at !== null && before.expires_at <= now);
  const words = wordsOf(row.text);
  await sql.run(
    `insert into statecard_memory (namespace, key, type, priority, created_at, updated_at, expires_at, words, value)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    path,
    key,
    type,
    priority,
    isNew ? now : before.created_at,
    now,
    expiresAt,
    words.join(" "),
    JSON.stringify(value),
  );
  await insertWords(sql, words, (word) => [path, word, priority, now, key]);
  for (const { field, vector } of row.vectors) {
    const bytes = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
    await sql.run(
      `insert into statecard_memory_vectors (namespace, key, field, vector) values (?, ?, ?, ?)
      on conflict (namespace, key, field) do update set vector = excluded.vector`,
      path,
      key,
      field,
      bytes,
    );
  }
  return isNew;
}

async function insertWords(sql: Sql, words: readonly string[], row: (word: string) => SqlValue[]): Promise<void> {
  const rows = Array.from({ length: CHUNK }, () => "(?, ?, ?, ?, ?)").join(", ");
  for (const chunk of chunks(words)) {
    await sql.run(
      `insert into statecard_memory_words (namespace, word, priority, updated_at, key) values ${rows} on conflict do nothing`,
      ...chunk.flatMap(row),
    );
  }
}

/** Deletes an item with everything that finds it, within a transaction. */
export async function deleteRow(sql: Sql, row: Omit<MemoryRow, "value" | "created_at">): Promise<void> {
  const { namespace, key, priority, updated_at: updatedAt } = row;
  await sql.run(`delete from statecard_memory where namespace = ? and key = ?`, namespace, key);
  await sql.run(`delete from statecard_memory_vectors where namespace = ? and key = ?`, namespace, key);
  const places = Array.from({ length: CHUNK }, () => "?").join(", ");
  for (const chunk of chunks(row.words === "" ? [] : row.words.split(" "))) {
    await sql.run(
      `delete from statecard_memory_words where namespace = ? and priority = ? and updated_at = ? and key = ? and word in (${places})`,
      namespace,
      priority,
      updatedAt,
      key,
      ...chunk,
    );
  }
}

/** Pieces of the same length, for statements that are prepared once; the last one filled up with repetitions. */
export function chunks(words: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(words.length / CHUNK) }, (_, index) => {
    const chunk = words.slice(index * CHUNK, (index + 1) * CHUNK);
    return [...chunk, ...Array.from({ length: CHUNK - chunk.length }, () => chunk[0] ?? "")];
  });
}

/** Reads an item by its key. */
export async function readRow(sql: Sql, path: string, key: string, now: number): Promise<MemoryRow | null> {
  const statement = `select ${COLUMNS} from statecard_memory where namespace = ? and key = ? and ${ALIVE}`;
  return first<MemoryRow>(sql, statement, path, storedKey(key), now);
}
