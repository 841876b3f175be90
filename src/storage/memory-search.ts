import { matchOf, type QueryWord } from "../memory/words.ts";
import { ALIVE, chunks, COLUMNS, type MemoryRow } from "./memory-rows.ts";
import { pathEnd } from "./memory-path.ts";
import type { Sql } from "./sql.ts";

/** Where to search: exactly one namespace, or with all that are below it. */
export interface Place {
  readonly path: string;
  readonly isExact: boolean;
}

/** A stored item that was looked for. */
export interface ScoredRow {
  readonly row: MemoryRow;
  readonly score: number;
}

/** Of a word that more items hold than this, only the first count: the highest priorities, then the newest. */
const POSTINGS = 1000;
/** How many of the likeliest items are read whole. */
const CANDIDATES = 200;
const PAGE = 500;

type Posting = Pick<MemoryRow, "namespace" | "key" | "priority" | "updated_at">;

/** What a condition on the namespace is, and its values. */
export function within({ path, isExact }: Place): readonly [condition: string, ...values: string[]] {
  return isExact ? ["namespace = ?", path] : ["namespace >= ? and namespace < ?", path, pathEnd(path)];
}

/**
 * The items that hold words of a query, in the order of a recall. Words are looked up one by one, and only the
 * likeliest items are read, so that it costs the same among a hundred memories and a hundred thousand.
 */
export async function searchWords(
  sql: Sql,
  place: Place,
  query: readonly QueryWord[],
  now: number,
): Promise<readonly ScoredRow[]> {
  const likely = await candidates(sql, place, [...new Set(query.flatMap(({ grams }) => grams))]);
  const rows = await readRows(sql, likely, now);
  const scored = rows.map((row) => ({ row, score: matchOf(query, new Set(row.words.split(" "))) }));
  return scored.toSorted(inOrder);
}

/** The best match first, then the highest priority, then the newest. Pure. */
export function inOrder(a: ScoredRow, b: ScoredRow): number {
  return b.score - a.score || firstOf(a.row, b.row);
}

function firstOf(a: Posting, b: Posting): number {
  return b.priority - a.priority || b.updated_at - a.updated_at || (a.key < b.key ? -1 : 1);
}

/** Items by their keys, without those that have expired; in no order. */
export async function readRows(
  sql: Sql,
  wanted: readonly Pick<Posting, "namespace" | "key">[],
  now: number,
): Promise<readonly MemoryRow[]> {
  const places = new Map<string, string[]>();
  for (const { namespace, key } of wanted) {
    const keys = places.get(namespace);
    if (keys) keys.push(key);
    else places.set(namespace, [key]);
  }
  const found: MemoryRow[] = [];
  for (const [namespace, all] of places) {
    for (const keys of chunks([...new Set(all)])) {
      const marks = keys.map(() => "?").join(", ");
      found.push(
        ...(await sql.all<MemoryRow>(
          `select ${COLUMNS} from statecard_memory where namespace = ? and ${ALIVE} and key in (${marks})`,
          namespace,
          now,
          ...keys,
        )),
      );
    }
  }
  return found;
}

/** The items that hold the most, and the rarest, of the words. */
async function candidates(sql: Sql, place: Place, grams: readonly string[]): Promise<readonly Posting[]> {
  const [condition, ...values] = within(place);
  const lists = await Promise.all(
    grams.map((gram) =>
      sql.all<Posting>(
        `select namespace, key, priority, updated_at from statecard_memory_words where ${condition} and word = ?
         order by priority desc, updated_at desc, key desc limit ${POSTINGS}`,
        ...values,
        gram,
      ),
    ),
  );
  const found = new Map<string, { readonly posting: Posting; weight: number }>();
  for (const list of lists) {
    const weight = Math.log(1 + POSTINGS / Math.max(1, list.length));
    for (const posting of list) {
      const id = posting.namespace + posting.key;
      const known = found.get(id);
      if (known) known.weight += weight;
      else found.set(id, { posting, weight });
    }
  }
  return [...found.values()]
    .toSorted((a, b) => b.weight - a.weight || firstOf(a.posting, b.posting))
    .slice(0, CANDIDATES)
    .map(({ posting }) => posting);
}

/** All items of a place, the newest first, a page at a time. */
export async function* allRows(sql: Sql, place: Place, now: number): AsyncGenerator<MemoryRow> {
  const [condition, ...values] = within(place);
  for (let offset = 0; ; offset += PAGE) {
    const rows = await sql.all<MemoryRow>(
      `select ${COLUMNS} from statecard_memory where ${condition} and ${ALIVE}
       order by updated_at desc, namespace, key limit ${PAGE} offset ?`,
      ...values,
      now,
      offset,
    );
    yield* rows;
    if (rows.length < PAGE) return;
  }
}
