/** The most words of a text that it can be found by. */
const MAX_WORDS = 250;
const MAX_QUERY_WORDS = 12;
/** The most entries of the index that a query looks up. */
export const MAX_GRAMS = 24;
const MAX_WORD_LENGTH = 40;

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Writing without blanks between its words, or, as in Korean, with endings that stick to them. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30FC]+/gu;
const segmenter = new Intl.Segmenter("en", { granularity: "word" });

/** Words that say nothing about what is looked for. */
const STOP_WORDS = new Set(
  "a about an and any are as at be been by can did do does for from had has have how i in is it its me my of on or our should that the their them there this to was we were what when where which who why will with you your".split(
    " ",
  ),
);

/** One word of a query, and the entries of the index that stand for it. */
export interface QueryWord {
  readonly grams: readonly string[];
}

/** What a text can be found by: its words, and of writing without blanks every character and every pair. Pure. */
export function wordsOf(text: string): readonly string[] {
  const words = new Set<string>();
  for (const { run, isUnspaced } of runsOf(text)) {
    for (const word of isUnspaced ? [...Array.from(run), ...pairs(run)] : [stem(run)]) words.add(word);
    if (words.size >= MAX_WORDS) break;
  }
  return [...words].slice(0, MAX_WORDS);
}

/** What a query looks for, without the words that say nothing, if it has others. Pure. */
export function queryWords(text: string): readonly QueryWord[] {
  const words = new Map<string, { readonly grams: readonly string[]; readonly isWeak: boolean }>();
  for (const { run, isUnspaced } of runsOf(text)) {
    if (!isUnspaced) words.set(run, { grams: [stem(run)], isWeak: STOP_WORDS.has(run) });
    else for (const { segment } of segmenter.segment(run)) words.set(segment, unspacedWord(segment));
  }
  const all = [...words.values()];
  const strong = all.filter(({ isWeak }) => !isWeak);
  let grams = 0;
  return (strong.length > 0 ? strong : all)
    .slice(0, MAX_QUERY_WORDS)
    .filter((word) => (grams += word.grams.length) <= MAX_GRAMS);
}

function unspacedWord(segment: string) {
  const grams = pairs(segment).slice(0, MAX_GRAMS);
  // Single characters are mostly particles.
  return grams.length > 0 ? { grams, isWeak: false } : { grams: [segment], isWeak: true };
}

/** How much of a query a text holds, from 0 to 1: the mean over its words. Pure. */
export function matchOf(query: readonly QueryWord[], words: ReadonlySet<string>): number {
  if (query.length === 0) return 0;
  const shares = query.map(({ grams }) => grams.filter((gram) => words.has(gram)).length / grams.length);
  return shares.reduce((sum, share) => sum + share, 0) / query.length;
}

function* runsOf(text: string): Generator<{ readonly run: string; readonly isUnspaced: boolean }> {
  for (const [token] of text.normalize("NFKC").toLowerCase().matchAll(WORD)) {
    let end = 0;
    for (const { 0: run, index } of token.matchAll(UNSPACED)) {
      if (index > end) yield { run: token.slice(end, index), isUnspaced: false };
      yield { run, isUnspaced: true };
      end = index + run.length;
    }
    if (end < token.length) yield { run: token.slice(end), isUnspaced: false };
  }
}

function pairs(run: string): readonly string[] {
  const characters = Array.from(run);
  return characters.slice(1).map((character, index) => `${characters[index] ?? ""}${character}`);
}

/**
 * Takes English endings off, so that "prefers" finds "preferred". It need not be right, only the same for
 * the text and the query. Words of other languages stay whole.
 */
function stem(word: string): string {
  const short = Array.from(word.slice(0, 2 * MAX_WORD_LENGTH))
    .slice(0, MAX_WORD_LENGTH)
    .join("");
  if (!/^[a-z]{4,}$/.test(short)) return short;
  const singular = short.replace(/(?<![ae])ies$/, "y").replace(/(?<=[^us])s$/, "");
  const bare = singular.replace(/(?<=[aeiouy].*.)(?:ing|ed)$/, "").replace(/([^aeiouls])\1$/, "$1");
  return bare.length >= 3 ? bare.replace(/(?<=.{3})e$/, "") : singular;
}
