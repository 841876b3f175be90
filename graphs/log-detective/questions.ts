import type { CountKey } from "./skills/read-log-file/traits.ts";
import { wordsOf } from "./skills/query-issue-kb/knowledge.ts";

/** What a question asks for, as far as a handful of rules can tell. */
export interface Question {
  /** `why`: a cause. `count`: how many, or which ones. `look`: a level of the log, without a cause in mind. */
  readonly kind: "why" | "count" | "look";
  /** Words that the question quotes, to be looked for as they are. */
  readonly quoted: readonly string[];
  readonly level: "error" | "warning" | null;
  readonly countBy: CountKey | null;
  readonly from: string | null;
  readonly to: string | null;
  /** What is left of it when everything above is taken away. */
  readonly words: readonly string[];
}

// A path from the root, or a name with a letter in it and an ending that logs have.
const FILE =
  /(?<![\w'"/.~-])(\/(?:[\w.-]+\/)*[\w.-]*\w|(?:[\w.-]+\/)*(?=[\w.-]*[a-z])[\w.-]*\w\.(?:log|txt|gz|out|err|\d{1,2}))(?![\w/])/i;
const MOMENT = String.raw`(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)`;
const BETWEEN = new RegExp(String.raw`\bbetween ${MOMENT} and ${MOMENT}`, "i");
const SINCE = new RegExp(String.raw`\b(?:since|from|after) ${MOMENT}`, "i");
const UNTIL = new RegExp(String.raw`\b(?:until|before|to) ${MOMENT}`, "i");
// An apostrophe within a word ends no quote.
const QUOTED = /(?<!\w)'((?:[^']|'(?=\w)){2,80})'(?!\w)|"([^"]{2,80})"/g;
const COUNT =
  /\bhow (?:many|often|frequent)|\bcount\b|\bnumber of\b|\bwhich (?:address|source|host|user|account|process|service)|\bfrom where\b|\bwhere (?:do|did|does)\b.*\bfrom\b|\bwho\b|\bby (?:source|address|host|user|hour|process)/i;
const KEYS: readonly (readonly [RegExp, CountKey])[] = [
  [/\b(?:source|address|host|ip|ips)(?:e?s)?\b|\bfrom where\b|\bwhere (?:do|did|does)\b.*\bfrom\b/i, "address"],
  [/\b(?:user|account)s?\b|\bwho\b/i, "user"],
  [/\bhours?\b|\bwhen\b/i, "hour"],
  [/\b(?:process|processes|services?)\b/i, "process"],
];
// Words about the log, the counting and the asking, not about what is asked for.
const GENERAL = new Set(
  wordsOf(
    `error errors warning warnings number count which source sources address addresses host hosts user users account hour hours
     process processes service services often many unusual strange odd bad anything everything something help inspect analyse
     analyze examine review file between since until occur occurs occurred there come comes came seen appear appears happened
     lines entries messages most frequent ip ips`,
  ),
);

/** The log file that a text names; null where it names none. */
export function fileIn(text: string): string | null {
  return FILE.exec(text)?.[1] ?? null;
}

/** A question without the log that it names. */
export function withoutFile(text: string): string {
  return text.replace(FILE, " ").replaceAll(/\s+/g, " ").trim();
}

/** Takes a question apart. */
export function readQuestion(question: string): Question {
  const quoted = [...question.matchAll(QUOTED)].map(([, single, double]) => single ?? double ?? "");
  const between = BETWEEN.exec(question);
  const bare = question.replace(FILE, " ").replaceAll(QUOTED, " ").replaceAll(new RegExp(MOMENT, "g"), " ");
  const words = wordsOf(bare).filter((word) => !GENERAL.has(word));
  const level = /\berrors?\b/i.test(bare) ? "error" : /\bwarnings?\b/i.test(bare) ? "warning" : null;
  const isCount = COUNT.test(bare) || quoted.length > 0;
  const isOpen = words.length === 0 && quoted.length === 0;
  return {
    kind: isCount ? "count" : isOpen ? "look" : "why",
    quoted,
    level,
    countBy: KEYS.find(([pattern]) => pattern.test(bare))?.[1] ?? null,
    from: between?.[1] ?? SINCE.exec(question)?.[1] ?? null,
    to: between?.[2] ?? UNTIL.exec(question)?.[1] ?? null,
    words,
  };
}
