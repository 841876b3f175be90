import type { Question } from "./questions.ts";
import type { Issue } from "./reading.ts";
import { filterOf } from "./skills/read-log-file/filter.ts";
import type { CountKey } from "./skills/read-log-file/traits.ts";

/** A call of read-log-file without the file. */
export interface Read {
  readonly keywords?: readonly string[];
  readonly level?: "error" | "warning";
  readonly from?: string;
  readonly to?: string;
  readonly count_by?: CountKey;
}

/** How the log looks as a whole. */
export const overview: Read = {};

/** Of more issues, the likeliest. */
const MAX_ISSUES = 4;

/** The issues that a question is about: those of the likeliest one's component. */
export function issuesFor(issues: readonly Issue[]): readonly Issue[] {
  return issues.filter(({ component }) => component === issues[0]?.component).slice(0, MAX_ISSUES);
}

/** What has to be read to answer a question, once the issues that could be meant are known. */
export function wantedReads(question: Question, issues: readonly Issue[]): readonly Read[] {
  const meant = issuesFor(issues);
  if (question.kind === "count") return [countRead(question, meant)];
  if (meant.length > 0) {
    const all = meant.flatMap(({ shows, signs }) => [{ keywords: shows }, { keywords: signs }]);
    const filters = all.map(filterOf);
    return all.filter((read, index) => filters.indexOf(filterOf(read)) === index);
  }
  return question.kind === "why" ? [{ keywords: question.words.slice(0, 6) }] : [];
}

/** The one reading that a question about numbers needs. */
export function countRead(question: Question, issues: readonly Issue[]): Read {
  const { quoted, level, from, to, countBy, words } = question;
  const keywords = quoted.length > 0 ? quoted : level !== null ? [] : (issues[0]?.shows ?? words.slice(0, 6));
  return {
    ...(keywords.length > 0 ? { keywords } : {}),
    ...(level !== null && quoted.length === 0 ? { level } : {}),
    ...(from === null ? {} : { from }),
    ...(to === null ? {} : { to }),
    count_by: countBy ?? "message",
  };
}

/** The one reading that a vague question needs first. */
export function lookRead({ level }: Question): Read {
  return { level: level ?? "error", count_by: "message" };
}
