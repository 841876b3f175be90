/** Random numbers in [0, 1) that a seed repeats (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A copy in random order. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const keyed = items.map((item) => ({ item, key: random() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

/** A text of that many letters in words, so that it looks like prose to whoever stores it. */
export function randomText(length: number, random: () => number): string {
  let text = "";
  while (text.length < length) {
    const letters = Array.from({ length: 2 + Math.floor(random() * 9) }, () => 97 + Math.floor(random() * 26));
    text += `${String.fromCharCode(...letters)} `;
  }
  return text.slice(0, length);
}
