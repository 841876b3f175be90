import { spread } from "../batch/measures.ts";
import type { BatchReport, Summary } from "../batch/report.ts";
import type { Row } from "../batch/rows.ts";
import { toldBroken } from "./batch-file.ts";
import { count, cut, printable, type Terminal } from "./terminal.ts";

/** Of more tasks, only those are listed that have not come to a good end. */
const LISTED = 50;

/** The report for people. */
export function tableReport(terminal: Terminal, { tasks, broken, summaries }: BatchReport): string {
  const isLong = tasks.length > LISTED;
  const listed = isLong ? tasks.filter(({ status }) => status !== "completed") : tasks;
  const hasPolicies = summaries.some(({ policy }) => policy !== null);
  const head = ["task", ...(hasPolicies ? ["policy"] : []), "status", "attempts", ...COST_COLUMNS, ""];
  const rows = listed.map((row) => [
    cut(terminal, printable(row.id), 32),
    ...(hasPolicies ? [row.policy ?? ""] : []),
    row.status,
    String(row.attempts),
    ...costCells(row),
    cut(terminal, printable(noteOf(row)), 80),
  ]);
  const left = tasks.length - listed.length;
  return [
    ...(rows.length > 0 ? [table([head, ...rows])] : []),
    ...(left > 0 ? [`${count(left)} completed tasks are not listed; --report csv or json has all.`] : []),
    ...(broken.length > 0 ? ["left out:", ...toldBroken(broken)] : []),
    ...(hasPolicies ? ["", policyTable(summaries)] : summaries.map((summary) => summaryLines(summary))),
    ...attemptsNote(tasks),
    ...countedNote(summaries),
    "",
  ].join("\n");
}

const COST_COLUMNS = ["calls", "tokens in", "cached", "out", "latency", "first token"];

function costCells({ usage, counted, decisions }: Row): readonly string[] {
  const latency = spread(decisions.map(({ latencyMs }) => latencyMs));
  const first = spread(decisions.map(({ firstTokenMs }) => firstTokenMs));
  return [
    count(usage.calls),
    tokensIn(usage.inputTokens, counted?.tokens ?? 0),
    count(usage.cachedTokens),
    count(usage.outputTokens),
    milliseconds(latency?.median),
    milliseconds(first?.median),
  ];
}

function noteOf({ error, question, review, status }: Row): string {
  if (status === "reviewing") return "its result waits for a person";
  if (review?.status === "rejected") return `rejected by ${review.who}: ${review.reason}`;
  if (review?.status === "approved") return `approved by ${review.who}`;
  return error ? `${error.code}: ${error.message}` : (question ?? "");
}

/** What differs between view policies over the same tasks, side by side. */
function policyTable(summaries: readonly Summary[]): string {
  const head = [
    "policy",
    "tasks",
    "through",
    "calls",
    "tokens in",
    "per call",
    "cached",
    "out",
    "latency",
    "first token",
  ];
  const rows = summaries.map((summary) => [
    summary.policy ?? "",
    count(summary.tasks),
    percent(summary.completionRate),
    count(summary.usage.calls),
    tokensIn(summary.usage.inputTokens, summary.counted.tokens),
    summary.inputPerCall === null ? "-" : count(Math.round(summary.inputPerCall)),
    count(summary.usage.cachedTokens),
    count(summary.usage.outputTokens),
    milliseconds(summary.latencyMs?.median),
    milliseconds(summary.firstTokenMs?.median),
  ]);
  return table([head, ...rows]);
}

function summaryLines(summary: Summary): string {
  const { usage, latencyMs, firstTokenMs, counted, resumeSuccessRate } = summary;
  const statuses = Object.entries(summary.statuses).map(([status, number]) => `${count(number)} ${status}`);
  const perCall = summary.inputPerCall === null ? "" : `, ${count(Math.round(summary.inputPerCall))} in per call`;
  const lines = [
    `${count(summary.tasks)} tasks: ${statuses.join(", ")}; completion rate ${percent(summary.completionRate)}, ${count(summary.attempts)} attempts${resumeSuccessRate === null ? "" : `, of those that were resumed ${percent(resumeSuccessRate)} came through`}`,
    `${count(usage.calls)} model calls, ${tokensIn(usage.inputTokens, counted.tokens)} tokens in (${count(usage.cachedTokens)} cached), ${count(usage.outputTokens)} out${perCall}`,
  ];
  if (latencyMs && firstTokenMs) {
    lines.push(
      `latency of a decision ${milliseconds(latencyMs.median)} (95 %: ${milliseconds(latencyMs.p95)}), first token ${milliseconds(firstTokenMs.median)} (95 %: ${milliseconds(firstTokenMs.p95)})`,
    );
  }
  return lines.join("\n");
}

/** Nine attempts under a limit of three are no fault: three commands have run. */
function attemptsNote(tasks: readonly Row[]): readonly string[] {
  const [most] = tasks.flatMap(({ maxAttempts }) => maxAttempts ?? []);
  return most === undefined
    ? []
    : [`attempts are those of all commands so far; one command makes at most ${most} a task`];
}

function countedNote(summaries: readonly Summary[]): readonly string[] {
  const prompts = summaries.reduce((total, { counted }) => total + counted.prompts, 0);
  return prompts === 0
    ? []
    : [`~ counted here (o200k) for ${count(prompts)} prompts, since the model reports no tokens`];
}

function tokensIn(reported: number, counted: number): string {
  return `${counted > 0 ? "~" : ""}${count(reported + counted)}`;
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(1))} %`;
}

function milliseconds(value: number | undefined): string {
  return value === undefined ? "-" : `${count(Math.round(value))} ms`;
}

/** Columns as wide as their widest cell; numbers, and what looks like one, to the right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const isNumber = widths.map((_, column) => rows.slice(1).every((row) => /^(?:~?\d|-$)/.test(row[column] ?? "")));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return isNumber[column] && column > 0 ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}
