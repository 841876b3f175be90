import { matchOf, MAX_GRAMS, type QueryWord } from "../internal/words.ts";
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

/** What more items hold than this is common: it tells as little as the words that every text has. */
const COMMON = 1000;
/** Where a query has nothing but common words: how many entries of the index are read for all of them. */
const BUDGET = 2000;
/** How many of the likeliest items are read whole. */
const CANDIDATES = 100;
const PAGE = 500;

type Posting = Pick<MemoryRow, "namespace" | "key" | "priority" | "updated_at">;

/** What a condition on the namespace is, and its values. */
export function within({ path, isExact }: Place): readonly [condition: string, ...values: string[]] {
  return isExact ? ["namespace = ?", path] : ["namespace >= ? and namespace < ?", path, pathEnd(path)];
}

/**
 * The items that hold words of a query, in the order of a recall. Common words are left out unless the query has no
 * others; then only the items of the highest priority, and the newest, that hold them are found. So it costs about the
 * same among a thousand items and a hundred thousand.
 */
export async function searchWords(
  sql: Sql,
  place: Place,
  query: readonly QueryWord[],
  now: number,
): Promise<readonly ScoredRow[]> {
  const grams = [...new Set(query.flatMap((word) => word.grams))];
  const common = await commonOnes(sql, place, grams);
  const telling = query.filter((word) => word.grams.some((gram) => !common.has(gram)));
  const sought = telling.length > 0 ? telling : query;
  const read = telling.length > 0 ? grams.filter((gram) => !common.has(gram)) : grams;
  const limit = telling.length > 0 ? COMMON : Math.ceil(BUDGET / Math.max(1, read.length));
  const rows = await readRows(sql, await likeliest(sql, place, sought, { grams: read, limit }), now);
  return rows.map((row) => ({ row, score: matchOf(sought, new Set(row.words.split(" "))) })).toSorted(inOrder);
}

/** Which entries of the index so many items hold that they tell little. */
async function commonOnes(sql: Sql, place: Place, grams: readonly string[]): Promise<ReadonlySet<string>> {
  const [condition, ...values] = within(place);
  const counts = await sql.all<{ gram: number; number: number }>(
    forEachGram(
      (gram) =>
        `select ${gram} as gram, count(*) as number from
           (select 1 from statecard_memory_words where ${condition} and word = ? limit ${COMMON + 1}) as held`,
    ),
    ...padded(grams).flatMap((gram) => [...values, gram]),
  );
  return new Set(counts.flatMap(({ gram, number }) => (number > COMMON ? (grams[gram] ?? []) : [])));
}

/** One statement that looks up as many entries as a query has at most, since round trips are what takes long. */
function forEachGram(select: (index: number) => string): string {
  return Array.from({ length: MAX_GRAMS }, (_, index) => select(index)).join(" union all ");
}

/** No item holds the empty word. */
function padded(grams: readonly string[]): readonly string[] {
  return Array.from({ length: MAX_GRAMS }, (_, index) => grams[index] ?? "");
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

/** The items that hold the most of a query, as far as the index tells. */
async function likeliest(
  sql: Sql,
  place: Place,
  query: readonly QueryWord[],
  { grams, limit }: { readonly grams: readonly string[]; readonly limit: number },
): Promise<readonly Posting[]> {
  const [condition, ...values] = within(place);
  const postings = await sql.all<Posting & { readonly gram: number }>(
    forEachGram(
      (gram) =>
        `select * from (select ${gram} as gram, namespace, key, priority, updated_at from statecard_memory_words
         where ${condition} and word = ? order by priority desc, updated_at desc, key desc limit ?) as list${gram}`,
    ),
    ...padded(grams).flatMap((gram) => [...values, gram, limit]),
  );
  const shares = grams.map((gram) =>
    query.reduce((sum, word) => sum + (word.grams.includes(gram) ? 1 / word.grams.length : 0), 0),
  );
  const found = new Map<string, { readonly posting: Posting; score: number }>();
  for (const posting of postings) {
    const id = posting.namespace + posting.key;
    const share = shares[posting.gram] ?? 0;
    const known = found.get(id);
    if (known) known.score += share;
    else found.set(id, { posting, score: share });
  }
  return [...found.values()]
    .toSorted((a, b) => b.score - a.score || firstOf(a.posting, b.posting))
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
