/** A plain BM25 (k1 1.2, b 0.75) over whole texts: small letters, no stems, no weights, no words left out. */
export class PlainBm25 {
  private readonly counts: readonly ReadonlyMap<string, number>[];
  private readonly lengths: readonly number[];
  private readonly mean: number;

  constructor(texts: readonly string[]) {
    const all = texts.map(words);
    this.counts = all.map(countEach);
    this.lengths = all.map(({ length }) => length);
    this.mean = this.lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, all.length);
  }

  /** The positions of the texts, best first; of equals the earlier one. */
  rank(request: string): readonly number[] {
    const terms = [...new Set(words(request))];
    const scores = this.counts.map((_, text) => terms.reduce((sum, term) => sum + this.score(term, text), 0));
    return scores.map((_, text) => text).toSorted((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));
  }

  private score(term: string, text: number): number {
    const count = this.counts[text]?.get(term) ?? 0;
    const having = this.counts.filter((counts) => counts.has(term)).length;
    const rarity = Math.log(1 + (this.counts.length - having + 0.5) / (having + 0.5));
    const length = (this.lengths[text] ?? 0) / this.mean;
    return (rarity * count * 2.2) / (count + 1.2 * (0.25 + 0.75 * length));
  }
}

function words(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

function countEach(terms: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}
