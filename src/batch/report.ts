import { addUsage, NO_USAGE, type Usage } from "../state/execution.ts";
import type { BrokenLine } from "./lines.ts";
import { spread } from "./measures.ts";
import type { CountedPrompts, Row, RowStatus } from "./rows.ts";

/** What a batch, or one view policy of it, came to. */
export interface Summary {
  readonly policy: string | null;
  readonly tasks: number;
  readonly statuses: Readonly<Partial<Record<RowStatus, number>>>;
  /** The share of tasks that have come to their end, those in review included. */
  readonly completionRate: number;
  /** How often its tasks were begun or taken up, over all commands so far. */
  readonly attempts: number;
  /** Of the tasks that went on after a failure, a stop or a pause, the share that came to its end; null where none did. */
  readonly resumeSuccessRate: number | null;
  readonly usage: Usage;
  /** Of the tasks whose provider reports nothing, what was counted here (o200k). */
  readonly counted: CountedPrompts;
  /** Input tokens for each model call or counted prompt; null where there was none. */
  readonly inputPerCall: number | null;
  readonly latencyMs: Spread | null;
  readonly firstTokenMs: Spread | null;
}

type Spread = NonNullable<ReturnType<typeof spread>>;

/** Everything that a batch reports. */
export interface BatchReport {
  readonly file: string;
  readonly workflow: string;
  readonly summaries: readonly Summary[];
  readonly tasks: readonly Row[];
  readonly broken: readonly BrokenLine[];
}

const THROUGH: ReadonlySet<RowStatus> = new Set(["completed", "reviewing", "rejected"]);
const isThrough = ({ status }: Row) => THROUGH.has(status);

/** Sums rows up, each view policy by itself. Pure. */
export function summarise(rows: readonly Row[]): readonly Summary[] {
  const policies = [...new Set(rows.map(({ policy }) => policy))];
  return policies.map((policy) =>
    summaryOf(
      policy,
      rows.filter((row) => row.policy === policy),
    ),
  );
}

function summaryOf(policy: string | null, rows: readonly Row[]): Summary {
  const statuses: Partial<Record<RowStatus, number>> = {};
  for (const { status } of rows) statuses[status] = (statuses[status] ?? 0) + 1;
  const resumed = rows.filter((row) => row.resumed);
  const decisions = rows.flatMap((row) => row.decisions);
  const usage = rows.reduce((total, row) => addUsage(total, row.usage), NO_USAGE);
  const counted = rows.reduce((total, row) => addCounted(total, row.counted), { prompts: 0, tokens: 0 });
  const calls = counted.prompts + rows.reduce((total, row) => total + (row.counted ? 0 : row.usage.calls), 0);
  return {
    policy,
    tasks: rows.length,
    statuses,
    completionRate: rows.length === 0 ? 0 : rows.filter(isThrough).length / rows.length,
    attempts: rows.reduce((total, row) => total + row.attempts, 0),
    resumeSuccessRate: resumed.length === 0 ? null : resumed.filter(isThrough).length / resumed.length,
    usage,
    counted,
    inputPerCall: calls === 0 ? null : (usage.inputTokens + counted.tokens) / calls,
    latencyMs: spread(decisions.map(({ latencyMs }) => latencyMs)),
    firstTokenMs: spread(decisions.map(({ firstTokenMs }) => firstTokenMs)),
  };
}

function addCounted(total: CountedPrompts, more: CountedPrompts | null): CountedPrompts {
  return more ? { prompts: total.prompts + more.prompts, tokens: total.tokens + more.tokens } : total;
}

/** The report as JSON. Pure. */
export function jsonReport(report: BatchReport): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

/** A line for each task and the broken lines behind them, for spreadsheets (RFC 4180). Pure. */
export function csvReport({ tasks, broken }: BatchReport): string {
  const head =
    "line,id,task,policy,status,attempts,max_attempts,resumed,calls,input_tokens,counted_tokens,cached_tokens,output_tokens,latency_ms_median,first_token_ms_median,reviewed_by,error,waits_for,result";
  const lines = tasks.map((row) => {
    const { usage } = row;
    const latency = spread(row.decisions.map(({ latencyMs }) => latencyMs))?.median;
    const firstToken = spread(row.decisions.map(({ firstTokenMs }) => firstTokenMs))?.median;
    const error = row.error && `${row.error.code}: ${row.error.message}`;
    return [
      row.line,
      row.id,
      row.taskId,
      row.policy,
      row.status,
      row.attempts,
      row.maxAttempts,
      row.resumed,
      usage.calls,
      usage.inputTokens,
      row.counted?.tokens,
      usage.cachedTokens,
      usage.outputTokens,
      latency,
      firstToken,
      row.review?.who,
      error,
      row.question,
      row.result && JSON.stringify(row.result),
    ];
  });
  const notRead = broken.map(({ line, reason }) => [line, "", "", "", "broken", ...empty(11), reason, "", ""]);
  return [head, ...[...lines, ...notRead].map((cells) => cells.map(csvCell).join(","))].join("\r\n").concat("\r\n");
}

function empty(count: number): readonly string[] {
  return Array.from({ length: count }, () => "");
}

/** A spreadsheet runs what begins like a formula, and ids and errors are text from outside. */
function csvCell(value: string | number | boolean | null | undefined): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
