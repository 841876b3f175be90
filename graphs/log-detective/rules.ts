import { OfflineRules, type Prompt } from "../offline-rules.ts";
import { fileIn, readQuestion, withoutFile, type Question } from "./questions.ts";
import { isClosing, issuesIn, linesIn, queriesIn, readingsIn, snapshotsIn, subtasksIn } from "./reading.ts";
import { composeReport, isAnswered } from "./report-rules.ts";
import { lookRead, overview, wantedReads, type Read } from "./reads.ts";
import { messageOf } from "./skills/read-log-file/traits.ts";
import { filterOf } from "./skills/read-log-file/filter.ts";
import { dueSubtasks } from "../subtasks.ts";
import type { Subtask } from "./subtasks.ts";

const WHICH = "Which log file is it about?";
const cannotRead = (file: string) => `${file} cannot be read. Which log file is it about?`;
const MAX_ASKED = 2;

/** One decision of a log detective that knows a handful of rules, from the prompt alone. */
export function decideDetective(prompt: Prompt): object {
  switch (prompt.step) {
    case "scoping":
      return scope(prompt);
    case "looking":
      return look(prompt);
    case "reporting":
      return report(prompt);
    default:
      return {};
  }
}

function scope(prompt: Prompt): object {
  const { state, said, question: asked } = prompt;
  const question = String(state.question ?? (asked === WHICH ? "" : said)).slice(0, 1000);
  const file = String(state.file ?? fileIn(said) ?? "");
  const patch = { ...(question === "" ? {} : { question }), ...(file === "" ? {} : { file }) };
  if (file === "" && timesAsked(prompt, WHICH) < MAX_ASKED) return { because: "no log is named", patch, ask: WHICH };
  if (file === "") return { because: `asked ${MAX_ASKED} times`, patch, next: "reporting" };
  return {
    because: "question and log are known",
    patch: { ...patch, subtasks: subtasksOf(question) },
    next: "looking",
  };
}

/** A clear question is one thing to find out; a vague one is the errors first, then the warnings. */
function subtasksOf(question: string): readonly Subtask[] {
  const { kind, level } = readQuestion(question);
  const subtask = (about: string, priority: number): Subtask => ({ about, priority, status: "open" });
  if (kind !== "look" || level !== null) return [subtask(question.slice(0, 300), 1)];
  return [subtask("which errors are there?", 1), subtask("which warnings are there?", 2)];
}

function look(prompt: Prompt): object {
  const { state } = prompt;
  const file = String(state.file);
  const isOpen = readingsIn(prompt).length > 0;
  if (!isOpen) return begin(prompt, file);
  const due = dueSubtasks(subtasksIn(prompt));
  const calls = isClosing(prompt) ? [] : due.flatMap((subtask) => callsFor(prompt, file, subtask));
  if (calls.length > 0) return { because: because(calls), calls: calls.slice(0, 8) };
  const done = subtasksIn(prompt).map((subtask) => {
    if (!due.some(({ about }) => about === subtask.about)) return subtask;
    return { ...subtask, status: isAnswered(prompt, subtask.about) ? "known" : "unknown" };
  });
  const snapshot = isClosing(prompt) ? null : snapshotOf(prompt, due);
  if (snapshot) return { because: "this is what is known so far", calls: [snapshot] };
  return { because: "what there is was read", patch: { subtasks: done }, next: "checking" };
}

/** First how the log looks, and its errors. */
function begin(prompt: Prompt, file: string): object {
  const failed = /^\d+\.\d+ read-log-file (?:error|refused|timeout)\b/m.test(prompt.text);
  const question = cannotRead(file);
  if (prompt.question === question) {
    const other = fileIn(prompt.said);
    if (other === null || other === file) return { because: "no other log is named", next: "checking" };
    const calls = openingCalls(other);
    return { because: "another log is named", patch: { file: other }, calls };
  }
  if (!failed && !isClosing(prompt)) return { because: "first what the log holds", calls: openingCalls(file) };
  if (timesAsked(prompt, question) > 0) return { because: "it cannot be read", next: "checking" };
  return { because: "the log cannot be read", ask: question };
}

function openingCalls(file: string): readonly object[] {
  return [callOf(file, overview), callOf(file, { level: "error" })];
}

function callOf(file: string, read: Read): object {
  return { tool: "read-log-file", args: { file, ...read } };
}

function callsFor(prompt: Prompt, file: string, { about }: Subtask): readonly object[] {
  const question = readQuestion(about);
  const known = new Set(readingsIn(prompt).map(({ filter }) => filter));
  const unread = (reads: readonly Read[]) =>
    reads.filter((read) => !known.has(filterOf(read))).map((read) => callOf(file, read));
  const look = question.kind === "look" ? unread([lookRead(question)]) : [];
  if (look.length > 0) return look;
  const query = queryFor(prompt, question, about);
  if (query !== null && !queriesIn(prompt).includes(query)) return [{ tool: "query-issue-kb", args: { query } }];
  return query === null && question.kind === "look" ? [] : unread(wantedReads(question, issuesIn(prompt)));
}

/** What to ask the knowledge base; null where the log alone answers. */
function queryFor(prompt: Prompt, { kind, level, quoted }: Question, about: string): string | null {
  if (kind === "count" && (quoted.length > 0 || level !== null)) return null;
  if (kind !== "look") return withoutFile(about).slice(0, 200);
  // Of a vague question only the errors have causes that are worth looking for; the first ones tell.
  const [asked] = queriesIn(prompt);
  return level === "warning" ? null : (asked ?? (errorsIn(prompt) || null));
}

/** The text of the errors that were seen, for the knowledge base. */
function errorsIn(prompt: Prompt): string {
  const errors = linesIn(prompt).filter(({ text }) => /\b(?:ERROR|FATAL|error)\b/.test(text));
  return errors
    .slice(0, 4)
    .map(({ text }) => messageOf(text).slice(0, 45))
    .join(" ")
    .trim();
}

function because(calls: readonly object[]): string {
  const [first] = calls;
  const isQuery = first !== undefined && "tool" in first && first.tool === "query-issue-kb";
  return isQuery ? "the symptom is known, now the causes" : "what the known issues show, and the signs of each cause";
}

function snapshotOf(prompt: Prompt, due: readonly Subtask[]): object | null {
  const step = 4 - Math.min(3, ...due.map(({ priority }) => priority));
  if (due.length === 0 || snapshotsIn(prompt) >= Math.min(...due.map(({ priority }) => priority))) return null;
  const facts = readingsIn(prompt)
    .slice(-8)
    .map(({ sign, text }) => `${sign} ${text}`.slice(0, 200));
  const title = due.map(({ about }) => about).join("; ");
  return { tool: "write-analysis-snapshot", args: { action: "write", step, title: title.slice(0, 120), facts } };
}

function report(prompt: Prompt): object {
  const { draft } = prompt.state;
  if (typeof draft === "string") {
    return { because: "the report is written", patch: { report: draft }, reply: draft, next: "done" };
  }
  return {
    because: "all that can be known is there",
    calls: [{ tool: "generate-report", args: composeReport(prompt) }],
  };
}

function timesAsked({ recent }: Prompt, question: string): number {
  return recent.filter((line) => line.includes(`asked: ${question}`)).length;
}

/** The example's own model, for when no key is set. */
export function detectiveRules(): OfflineRules {
  return new OfflineRules(decideDetective);
}
