import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { TaskStore } from "../src/index.ts";
import { checkReport, sourcesOf } from "../graphs/log-detective/evidence.ts";
import { evidenceGuard } from "../graphs/log-detective/guard.ts";
import { execute as snapshotSkill } from "../graphs/log-detective/skills/write-analysis-snapshot/skill.ts";
import type { openDetective } from "../test/support/detective.ts";
import { readReport, wrongQuotes } from "./detective-grade.ts";
import { judge, type Judgement } from "./detective-judge.ts";
import { searchApart, type Streamed } from "./detective-stream.ts";

type Done = Awaited<ReturnType<ReturnType<typeof openDetective>["run"]>>;

/** What one run came to. */
export interface Ran {
  readonly completed: boolean;
  /** Why the answer is wrong; null where it is right. */
  readonly fault: string | null;
  readonly calls: number;
  readonly callsOk: number;
  readonly callsRepeated: number;
  /** Whether lines of every kind that the answer rests on were read; null where it rests on none. */
  readonly hasSeen: boolean | null;
  /** Whether the right issue is among those that were found, and whether it is the first; null where there is none. */
  readonly issueFound: boolean | null;
  readonly issueFirst: boolean | null;
  readonly snapshots: number;
  readonly snapshotsRight: number;
  readonly quotes: number;
  readonly quotesWrong: number;
  readonly marked: boolean;
  /** What a judging model says; undefined where none was asked, null where it gave no verdict. */
  readonly judgement: Judgement | null | undefined;
}

interface Expected {
  readonly fault: string | null;
  /** Of each kind of line at least one has to have been read. */
  readonly kinds: readonly (readonly number[])[];
  readonly issue: string | null;
  readonly log: string;
  /** Asked about the report, where one is set. */
  readonly judge: BaseChatModel | null;
}

/** Takes the measures of a finished run. */
export async function measure(done: Done, store: TaskStore, task: string, expected: Expected): Promise<Ran> {
  const events = await store.events(task);
  const calls = events.flatMap(({ kind, data }) => (kind === "decision" ? callsIn(data) : []));
  const results = events.flatMap(({ kind, data }) => (kind === "result" ? resultsIn(data) : []));
  const seen = new Set((done.lines ?? []).map((line) => Number(/^L(\d+)/.exec(line)?.[1])));
  const known = (done.knowledge ?? []).map((text) => text.split(" ", 1)[0]);
  const written = calls.filter(({ tool }) => tool === "write-analysis-snapshot").map(({ args }) => args);
  const report = done.report ?? "";
  return {
    completed: done.execution.status === "completed" && done.report !== null,
    fault: expected.fault,
    calls: results.length,
    callsOk: results.filter(({ status }) => status === "ok").length,
    callsRepeated: calls.length - new Set(calls.map((call) => JSON.stringify(call))).size,
    hasSeen: expected.kinds.length > 0 ? expected.kinds.every((kind) => kind.some((line) => seen.has(line))) : null,
    issueFound: expected.issue === null ? null : known.includes(expected.issue),
    issueFirst: expected.issue === null ? null : known[0] === expected.issue,
    snapshots: written.length,
    snapshotsRight: written.filter((args) => isReadBack(args, done)).length,
    quotes: readReport(report).quotes.length,
    quotesWrong: wrongQuotes(report, expected.log).length,
    marked: readReport(report).isMarked,
    judgement: expected.judge
      ? await judge(expected.judge, { question: done.question ?? "", report, evidence: evidenceOf(done) })
      : undefined,
  };
}

function evidenceOf({ lines, readings, knowledge }: Done): readonly string[] {
  return [lines, readings, knowledge].flatMap((kept) => kept ?? []);
}

interface Call {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

function callsIn(data: object): readonly Call[] {
  const { calls, decision } = data as { calls?: readonly Call[]; decision?: { calls?: readonly Call[] } };
  return (calls ?? decision?.calls ?? []).map(({ tool, args }) => ({ tool, args }));
}

function resultsIn(data: object): readonly { readonly status: string }[] {
  const { observation } = data as { observation?: { results?: readonly { readonly status: string }[] } | null };
  return observation?.results ?? [];
}

function isReadBack(args: Readonly<Record<string, unknown>>, { snapshots }: Done): boolean {
  const context = { signal: new AbortController().signal, clients: {}, state: { snapshots } };
  const { status, output } = snapshotSkill({ action: "read", step: args.step }, context);
  return status !== "failure" && JSON.stringify(output.snapshot.facts) === JSON.stringify(args.facts);
}

/** The ways in which a right report is made wrong. */
export const CORRUPTIONS = [
  "another line",
  "a changed quote",
  "a changed figure",
  "no citation",
  "an invented line",
] as const;
export type Corruption = (typeof CORRUPTIONS)[number];

/** What the guard made of a report that was made wrong; null where the change left it right. */
export type Caught = "put right" | "sent back" | "passed" | null;

/** Makes a report wrong in one place and asks the guard. */
export function corrupt(done: Done, log: string, kind: Corruption, random: () => number): Caught {
  const report = done.report ?? "";
  const sources = sourcesOf(done);
  const lines = report.split("\n");
  const cited = lines.flatMap((line, index) => (/^\d+\. L\d+: "/.test(line) ? [index] : []));
  const index = cited[Math.floor(random() * cited.length)];
  const line = index === undefined ? undefined : lines[index];
  if (checkReport(report, sources).length > 0 || line === undefined || index === undefined) return null;
  const count = log.split("\n").length;
  const at = (changed: string) => lines.with(index, changed).join("\n");
  const wrong = {
    "another line": () => at(line.replace(/L\d+/, `L${1 + Math.floor(random() * count)}`)),
    "a changed quote": () => at(line.replace(/"(.+)"/, (_, quote: string) => `"${changed(quote, random)}"`)),
    "a changed figure": () =>
      report.replace(/^Conclusion: (\d+)/, (_, figure: string) => `Conclusion: ${Number(figure) + 1}`),
    "no citation": () => at(line.replace(/L\d+: /, "")),
    "an invented line": () =>
      `${lines.slice(0, index + 1).join("\n")}\n9. L${count + 7}: "all was well"\n${lines.slice(index + 1).join("\n")}`,
  }[kind]();
  const isWrong =
    kind === "another line" || kind === "a changed quote" ? wrongQuotes(wrong, log).length > 0 : wrong !== report;
  if (!isWrong) return null;
  const verdict = evidenceGuard({ reply: null, patch: { report: wrong } }, done, false);
  if (verdict === null) return "passed";
  if ("sendBack" in verdict) return "sent back";
  return wrongQuotes(verdict.mend.patch?.report ?? "", log).length === 0 ? "put right" : "passed";
}

function changed(quote: string, random: () => number): string {
  const at = Math.floor(random() * quote.length);
  return `${quote.slice(0, at)}${quote[at] === "x" ? "y" : "x"}${quote.slice(at + 1)}`;
}

/** Searches a generated log of a size for the one line that is different, at its end. */
export function stream(megabytes: number): Streamed {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  const file = join(folder, "big.log");
  const lines = Array.from(
    { length: 10_000 },
    (_, index) => `2026-03-01T10:00:00.000Z INFO app: request ${index} was served in ${index % 97} ms\n`,
  );
  const block = lines.join("");
  try {
    for (let written = 0; written < megabytes * 1e6; written += block.length) appendFileSync(file, block);
    appendFileSync(file, "2026-03-01T11:00:00.000Z ERROR app: the needle\n");
    const streamed = searchApart(file, "needle");
    if (streamed.found !== `L${streamed.lines}`) throw new Error(`the needle was not found: ${streamed.found}`);
    return streamed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
