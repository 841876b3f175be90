import { stemmer } from "stemmer";

/** Words that say nothing about what a text is about, and those that every skill's text has. */
const EMPTY: ReadonlySet<string> = new Set(
  `a about after all also an and any are as at be been before being between but by can could did do does don each
  every for from get give had has have here how if in into is it its just like ll make me more most must my need needs
  no not of on only or other our out over please re should skill skills so some such task tasks than that the their
  them then there these they this those to up us use used user users uses using ve want wants was we were what when
  where which who why will with would you your`.split(/\s+/),
);

/**
 * The words of a text that tell what it is about, as stems. What is written together counts as a whole and in
 * its parts: `ProcessOrder` is also `process` and `order`. Pure.
 */
export function wordsOf(text: string): readonly string[] {
  return parts(text).flatMap((word) => wordStem(word) ?? []);
}

/** The stems of a text's words, each with the word that it first stands for. Pure. */
export function stemsOf(text: string): ReadonlyMap<string, string> {
  const stems = new Map<string, string>();
  for (const word of parts(text)) {
    const stem = wordStem(word);
    if (stem !== null && !stems.has(stem)) stems.set(stem, word.toLowerCase());
  }
  return stems;
}

function parts(text: string): readonly string[] {
  return (text.match(/[\p{L}\p{N}]+/gu) ?? []).flatMap((word) => {
    const inside = word.split(/(?<=\p{Ll})(?=\p{Lu})/u);
    return inside.length > 1 ? [word, ...inside] : [word];
  });
}

function wordStem(word: string): string | null {
  const small = word.toLowerCase();
  if (small.length < 2 || EMPTY.has(small)) return null;
  return /^[a-z]+$/.test(small) ? stemmer(small) : small;
}
