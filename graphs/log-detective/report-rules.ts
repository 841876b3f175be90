import type { Prompt } from "../offline-rules.ts";
import { readQuestion, type Question } from "./questions.ts";
import { issuesIn, linesIn, readingsIn, subtasksIn, type Issue, type Reading, type Source } from "./reading.ts";
import { countRead, issuesFor, lookRead } from "./reads.ts";
import { filterOf } from "./skills/read-log-file/filter.ts";
import { messageOf } from "./skills/read-log-file/traits.ts";

/** What generate-report takes, as these rules fill it in. */
interface Draft {
  readonly conclusion: string;
  readonly cites: readonly string[];
  readonly sufficient: boolean;
  readonly evidence: readonly string[];
  readonly recommendations: readonly string[];
  readonly open: readonly string[];
}

interface Seen {
  readonly lines: readonly Source[];
  readonly readings: readonly Reading[];
  readonly issues: readonly Issue[];
}

const QUOTED = 110;

/** Whether what was read answers a question. */
export function isAnswered(prompt: Prompt, question: string): boolean {
  return answerTo(readQuestion(question), seenIn(prompt)).sufficient;
}

function seenIn(prompt: Prompt): Seen {
  return { lines: linesIn(prompt), readings: readingsIn(prompt), issues: issuesIn(prompt) };
}

/** The report on what was read: a cause where its signs are there, and otherwise what is missing. */
export function composeReport(prompt: Prompt): Draft {
  const seen = seenIn(prompt);
  if (seen.readings.length === 0) return nothingRead(prompt);
  const [first, ...others] = subtasksIn(prompt).toSorted((a, b) => a.priority - b.priority);
  const draft = answerTo(readQuestion(first?.about ?? ""), seen);
  const further = others.map(({ about }) => countOf(readQuestion(about), seen));
  return {
    ...draft,
    evidence: [...draft.evidence, ...further.flatMap(({ evidence }) => evidence.slice(0, 1))].slice(0, 8),
  };
}

function nothingRead({ state }: Prompt): Draft {
  const conclusion = state.file === undefined ? "no log was named" : "the log could not be read";
  const open = [`everything: ${String(state.question ?? "no question was asked").slice(0, 300)}`];
  return {
    conclusion,
    cites: [],
    sufficient: false,
    evidence: [],
    recommendations: ["name a log that can be read"],
    open,
  };
}

function answerTo(question: Question, seen: Seen): Draft {
  if (question.kind === "count") return countOf(question, seen);
  const issues = issuesFor(seen.issues);
  const isShown = shownBy(issues, seen).length > 0 && question.level !== "warning";
  if (issues.length > 0 && (question.kind === "why" || isShown)) return causeOf(issues, seen);
  return question.kind === "why" ? withoutIssue(question, seen) : countOf(question, seen);
}

function readingOf(keywords: readonly string[], { readings }: Seen): Reading | undefined {
  return readings.find(({ filter }) => filter === filterOf({ keywords }));
}

function linesWith(phrases: readonly string[], { lines }: Seen): readonly Source[] {
  return lines.filter(({ text }) => phrases.some((phrase) => text.toLowerCase().includes(phrase.toLowerCase())));
}

function shownBy(issues: readonly Issue[], seen: Seen): readonly Source[] {
  return linesWith(
    issues.flatMap(({ shows }) => shows),
    seen,
  );
}

function quote({ sign, text }: Source, meaning = ""): string {
  const said = messageOf(text)
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, QUOTED)
    .replace(/ =>.*$/, "")
    .trim();
  return `${sign}: ${said}${meaning === "" ? "" : ` => ${meaning}`}`;
}

/** "3 of 200 lines match", as a reading says. */
function quoteCount({ sign, matched, of, filter }: Reading): string {
  return `${sign}: ${matched} of ${of} lines match => ${filter.replaceAll(/\d/g, "").length === filter.length ? filter : "by this filter"}`;
}

function causeOf(issues: readonly Issue[], seen: Seen): Draft {
  const symptom = shownBy(issues, seen);
  const supported = issues
    .map((issue) => ({
      issue,
      lines: linesWith(issue.signs, seen),
      matched: readingOf(issue.signs, seen)?.matched ?? 0,
    }))
    .filter(({ issue, lines }) => lines.length > 0 && linesWith(issue.shows, seen).length > 0)
    .toSorted((a, b) => b.matched - a.matched);
  const proven = supported.filter(({ issue }) => !isDoubtful(issue));
  const doubts = [...new Set(issues.flatMap(({ notes }) => notes))].map((note) => `the knowledge base: ${note}`);
  const [first] = symptom;
  if (first === undefined) return noSymptom(issues, seen, doubts);
  if (proven.length === 0) return noCause(issues, first, symptom, seen, doubts);
  const shown = proven.slice(0, 2).flatMap(({ issue, lines: [line] }) => (line ? [{ issue, line }] : []));
  const causes = shown.map(({ issue }) => issue.cause).join("; and ");
  const last = symptom.at(-1);
  return {
    conclusion: causes,
    cites: [first.sign, ...shown.flatMap(({ issue, line }) => [line.sign, issue.sign])],
    sufficient: true,
    evidence: [
      quote(first, "the symptom"),
      ...shown
        .map(({ issue, line }) => quote(line, `a sign of ${issue.sign}`))
        .filter((one) => !one.startsWith(`${first.sign}:`)),
      ...(last && last !== first ? [quote(last, "the symptom again")] : []),
      ...countsOf(shown[0]?.issue.shows ?? [], seen),
    ].slice(0, 4),
    recommendations: recommendationsFor(shown.map(({ issue }) => issue)),
    open: doubts,
  };
}

function isDoubtful({ isRuledOut, notes }: Issue): boolean {
  return isRuledOut || notes.some((note) => note.includes("contradict"));
}

/** Two: of one cause both, of two causes one each. */
function recommendationsFor(issues: readonly Issue[]): readonly string[] {
  return (issues.length > 1 ? issues.map(({ advice }) => advice[0] ?? "") : (issues[0]?.advice ?? [])).slice(0, 2);
}

function countsOf(keywords: readonly string[], seen: Seen): readonly string[] {
  const reading = readingOf(keywords, seen);
  return reading ? [quoteCount(reading)] : [];
}

function noSymptom(issues: readonly Issue[], seen: Seen, doubts: readonly string[]): Draft {
  const evidence = issues.flatMap(({ shows }) => countsOf(shows, seen));
  return {
    conclusion: "no line of the log shows what was asked about",
    cites: evidence.slice(0, 1).map(signOf),
    sufficient: false,
    evidence: [...new Set(evidence)].slice(0, 3),
    recommendations: ["look at the log of the time when it happened", "log more of the part that is asked about"],
    open: ["the cause", ...doubts],
  };
}

function noCause(
  issues: readonly Issue[],
  first: Source,
  symptom: readonly Source[],
  seen: Seen,
  doubts: readonly string[],
): Draft {
  const unsigned = issues.flatMap(({ signs }) => countsOf(signs, seen));
  return {
    conclusion: "the log shows the symptom, and no sign of a known cause that can be relied on",
    cites: [first.sign],
    sufficient: false,
    evidence: [
      quote(first, "the symptom"),
      ...symptom
        .slice(1)
        .slice(-1)
        .map((line) => quote(line, "the symptom again")),
      ...unsigned,
    ].slice(0, 4),
    recommendations: [
      "log what would be signs of the known causes",
      "look at the log of another time when it happened",
    ],
    open: ["the cause", ...doubts],
  };
}

function withoutIssue({ words }: Question, seen: Seen): Draft {
  const asked = words.slice(0, 6);
  const reading = readingOf(asked, seen);
  // "sing" in a question is not the end of "using" in a line.
  const found = seen.lines
    .filter(({ text }) => asked.some((word) => new RegExp(`\\b${word}`, "i").test(text)))
    .slice(0, 2);
  const [first] = found;
  const told = reading && (first || reading.matched === 0) ? [reading] : [];
  return {
    conclusion: first
      ? "the log has lines on it, and no known issue says what their cause is"
      : "no line of the log is about it, and no known issue either",
    cites: first ? [first.sign] : told.map(({ sign }) => sign),
    sufficient: false,
    evidence: [...found.map((line) => quote(line)), ...told.map(quoteCount)],
    recommendations: ["name the component and what it does wrong", "look at the log of the time when it happened"],
    open: ["the cause"],
  };
}

function countOf(question: Question, seen: Seen): Draft {
  const issues = issuesFor(seen.issues);
  const read = question.kind === "count" ? countRead(question, issues) : lookRead(question);
  const reading = seen.readings.find(({ filter }) => filter === filterOf(read));
  const filter = filterOf(read).replace(/, counted by .*/, "");
  if (reading === undefined || reading.matched === 0) return nothingCounted(reading);
  const counted = [...reading.text.matchAll(/(?<=; )'(.*?)' \d+ times \([^)]*\)/g)];
  const top = counted[0]?.[1];
  const isByMessage = read.count_by === "message";
  const named = isByMessage || top === undefined ? "" : `, most often with ${top}`;
  const [first, last] = [...(/; (L\d+) to (L\d+)/.exec(reading.text)?.slice(1) ?? [])].map((sign) =>
    seen.lines.find((line) => line.sign === sign),
  );
  return {
    conclusion: `${reading.matched} of ${reading.of} lines ${filter}${named}`,
    cites: [reading.sign],
    sufficient: true,
    evidence: [
      `${reading.sign}: ${reading.matched} of ${reading.of} lines match`,
      ...counted.slice(0, isByMessage ? 1 : 4).map(([value]) => `${reading.sign}: ${value}`),
      ...(first ? [quote(first, "the first one")] : []),
      ...(last && last !== first ? [quote(last, "the last one")] : []),
    ],
    recommendations: recommendationsFor(
      question.quoted.length > 0 || question.level !== null ? [] : issues.slice(0, 1),
    ),
    open: [],
  };
}

function nothingCounted(reading: Reading | undefined): Draft {
  return {
    conclusion: "no line of the log is of that kind",
    cites: reading ? [reading.sign] : [],
    sufficient: false,
    evidence: reading ? [`${reading.sign}: 0 of ${reading.of} lines match`] : [],
    recommendations: ["check the words that were looked for, and the time"],
    open: ["whether the log covers it at all"],
  };
}

function signOf(evidence: string): string {
  return evidence.split(":", 1)[0] ?? "";
}
