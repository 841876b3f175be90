import { readFileSync } from "node:fs";
import { z } from "zod";

const entrySchema = z.object({
  id: z.string().regex(/^KB-\d+$/),
  component: z.string().min(1),
  /** What somebody would complain about. */
  symptom: z.string().min(1),
  /** What a log then shows. */
  shows: z.array(z.string().min(3)).min(1),
  cause: z.string().min(1),
  /** What a log shows where it is this cause. */
  signs: z.array(z.string().min(3)).min(1),
  advice: z.array(z.string()).min(1),
  status: z.enum(["confirmed", "ruled out"]),
});
/** One thing that is known about an issue. */
export type Entry = z.infer<typeof entrySchema>;

/** A knowledge base with what is odd about it. */
export interface Knowledge {
  readonly entries: readonly Entry[];
  readonly problems: readonly string[];
}

/**
 * Reads a knowledge base. Entries that are none are left out and reported.
 *
 * @throws where there is no such file, or it is no list in JSON.
 */
export function readKnowledge(file: string | URL): Knowledge {
  const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!Array.isArray(parsed)) throw new TypeError("it is no list of entries");
  return cleaned(parsed);
}

/**
 * Entries without those that say the same as an earlier one. What cannot be put right by leaving something
 * out is only pointed out: two entries with one id, and two that contradict each other. Pure.
 */
export function cleaned(given: readonly unknown[]): Knowledge {
  const entries: Entry[] = [];
  const problems: string[] = [];
  for (const [index, one] of given.entries()) {
    const { data: entry, error } = entrySchema.safeParse(one);
    if (!entry) {
      const issue = error?.issues[0];
      problems.push(`entry ${index + 1} was left out: ${issue?.path.join(".")} ${issue?.message}`);
      continue;
    }
    const alike = entries.find((other) => claimOf(other) === claimOf(entry));
    if (alike && alike.status === entry.status) {
      problems.push(`${entry.id} says the same as ${alike.id} and was left out`);
      continue;
    }
    if (alike) problems.push(contradiction(alike, entry));
    if (entries.some(({ id }) => id === entry.id)) problems.push(`${entry.id} stands for more than one entry`);
    entries.push(entry);
  }
  return { entries, problems };
}

/** What an entry is about: two with the same claim say the same, or the opposite. */
function claimOf({ component, cause, shows }: Entry): string {
  return [component, cause, ...shows.toSorted()].map((text) => wordsOf(text).join(" ")).join("|");
}

function contradiction(a: Entry, b: Entry): string {
  return `${a.id} (${a.status}) and ${b.id} (${b.status}) contradict each other: ${b.cause}`;
}

const FORM = /(?:ing|ed|es|s|e)$/;
const EMPTY = new Set(
  `a about after again all am an and any are as at be been before but by can check could did do does during each find for from
   get gets got had has have here how i if in into is it its itself keep keeps last let like line lines log logs look many me
   more most much my no not now of often on or our out over please say show so some sometimes tell than that the their
   them then there these they thing things this to today too up us was we were what when where which while who why will with would you your
   happen happens happening problem problems wrong reason cause causes caused sign signs issue issues goes go going`.split(
    /\s+/,
  ),
);

/** The words of a text that carry meaning, in lower case and without endings. Pure. */
export function wordsOf(text: string): readonly string[] {
  const words = text.toLowerCase().match(/[a-z][a-z\d]*(?:[-/][a-z\d]+)*|\d[\w.:-]*/g) ?? [];
  return words.filter((word) => !EMPTY.has(word)).map((word) => (word.length > 4 ? word.replace(FORM, "") : word));
}

const WEIGHTS = { component: 4, symptom: 2, shows: 2, signs: 2, cause: 1 };
/** Less than the component, or two words of the symptom, is chance. */
const LEAST_SCORE = 4;

/** The entries that a question is about, the likeliest first. Pure. */
export function find(entries: readonly Entry[], query: string, limit: number): readonly Entry[] {
  const asked = new Set(wordsOf(query));
  const scored = entries.map((entry) => ({ entry, score: scoreOf(entry, asked) }));
  return scored
    .filter(({ score }) => score >= LEAST_SCORE)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ entry }) => entry);
}

function scoreOf(entry: Entry, asked: ReadonlySet<string>): number {
  const parts = Object.entries(WEIGHTS) as [keyof typeof WEIGHTS, number][];
  let score = 0;
  const counted = new Set<string>();
  for (const [part, weight] of parts) {
    for (const word of wordsOf([entry[part]].flat().join(" "))) {
      if (!asked.has(word) || counted.has(word)) continue;
      counted.add(word);
      score += weight;
    }
  }
  return score;
}
