import MiniSearch from "minisearch";

/** The usual BM25: without `d`, long texts do not gain by every common word that they have somewhere. */
const BM25 = { k: 1.2, b: 0.7, d: 0 };

/** How texts are found by their words. */
export interface WordIndexOptions<T> {
  /** The parts of an item that are searched, and how much each counts. */
  readonly weights: Readonly<Record<string, number>>;
  readonly partOf: (item: T, part: string) => string;
  /** Cuts texts and queries into words. */
  readonly wordsOf: (text: string) => readonly string[];
}

/**
 * An index over a few hundred items that is made on the spot and ranks them by the words of a query (BM25).
 *
 * @returns finds the positions of the items that share a word with a query, the best first; pure.
 */
export function wordIndex<T>(
  items: readonly T[],
  { weights, partOf, wordsOf }: WordIndexOptions<T>,
): (query: string) => readonly number[] {
  const index = new MiniSearch<{ readonly item: T; readonly position: number }>({
    fields: Object.keys(weights),
    idField: "position",
    tokenize: (text) => [...wordsOf(text)],
    processTerm: (term) => term,
    extractField: ({ item, position }, field) => (field === "position" ? position : partOf(item, field)) as never,
  });
  index.addAll(items.map((item, position) => ({ item, position })));
  return (query) => index.search(query, { boost: weights, bm25: BM25 }).map(({ id }) => Number(id));
}
