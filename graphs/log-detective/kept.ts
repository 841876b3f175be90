import type { CallResult } from "statecard";
import { z } from "zod";
import type { Reading } from "./skills/read-log-file/skill.ts";
import type { Issues } from "./skills/query-issue-kb/skill.ts";
import type { SnapshotOutput } from "./skills/write-analysis-snapshot/skill.ts";
import type { Snapshot } from "./skills/write-analysis-snapshot/skill.ts";
import type { Entry } from "./skills/query-issue-kb/knowledge.ts";
import type { ReportOutput } from "./skills/generate-report/skill.ts";

// What code keeps of results, so that what is known depends on no model's notes. All of it is bounded: the
// newest stays.
const MAX_LINES = 30;
const MAX_READINGS = 14;
const MAX_ENTRIES = 8;
const MAX_QUERIES = 8;
const MAX_SNAPSHOTS = 6;
const LISTED = 6;

export const logSchema = z.object({
  file: z.string(),
  lines: z.number(),
  bytes: z.number(),
  format: z.string(),
  begins: z.string().nullable(),
  ends: z.string().nullable(),
  notes: z.array(z.string()),
});

type Texts = readonly string[] | null;

/** The output of a skill that went well. */
function outputOf({ status, value }: CallResult): unknown {
  return status === "ok" ? (value as { readonly output: unknown }).output : null;
}

/** The log, the lines that were shown, and what the reading came to. */
export function keepReading(
  result: CallResult,
  { lines, readings }: { readonly lines: Texts; readonly readings: Texts },
) {
  const reading = outputOf(result) as Reading | null;
  if (reading === null) return {};
  const shown = [...reading.shown, ...(reading.last ? [reading.last] : [])].map(({ line, text }) => `${line} ${text}`);
  const { file, bytes, format, begins, ends, notes } = reading;
  return {
    log: { file, bytes, format, begins, ends, notes: [...notes], lines: reading.lines },
    lines: [...(lines ?? []).filter((line) => !shown.includes(line)), ...shown].slice(-MAX_LINES),
    readings: withReading(readings ?? [], reading),
  };
}

/** A reading has the number of its turn; the same filter once more keeps its number. */
function withReading(readings: readonly string[], reading: Reading): string[] {
  const told = tellReading(reading);
  const known = readings.findIndex((text) => text.replace(/^R\d+ /, "").startsWith(`${reading.filter}: `));
  if (known !== -1) return readings.map((text, index) => (index === known ? `${signOf(text)} ${told}` : text));
  const number = Number(signOf(readings.at(-1) ?? "R0").slice(1)) + 1;
  return [...readings, `R${number} ${told}`].slice(-MAX_READINGS);
}

function signOf(text: string): string {
  return text.split(" ", 1)[0] ?? "";
}

function tellReading({ filter, matched, lines, levels, shown, last, counted, notListed }: Reading): string {
  const ends = [shown[0]?.line, last?.line ?? shown.at(-1)?.line];
  const values = counted
    .slice(0, LISTED)
    .map(({ value, count, first, last: end }) => `'${value}' ${count} times (${first} to ${end})`);
  const others = counted.length - values.length + notListed;
  return [
    `${filter}: ${matched} of ${lines} lines match`,
    Object.entries(levels)
      .map(([level, count]) => `${count} ${level}`)
      .join(", "),
    ends[0] === undefined ? "" : ends.join(" to "),
    ...values,
    others > 0 ? `${others} other values` : "",
  ]
    .filter(Boolean)
    .join("; ");
}

/** The entries that were found, and what was asked. */
export function keepIssues(
  result: CallResult,
  { knowledge, queries }: { readonly knowledge: Texts; readonly queries: Texts },
) {
  const issues = outputOf(result) as Issues | null;
  if (issues === null) return {};
  const found = issues.entries.map((entry) => tellEntry(entry, issues.notes));
  return {
    knowledge: [...new Set([...(knowledge ?? []), ...found])].slice(-MAX_ENTRIES),
    queries: [...(queries ?? []), `${issues.query.slice(0, 200)}: ${found.length} found`].slice(-MAX_QUERIES),
  };
}

function tellEntry({ id, component, symptom, shows, cause, signs, advice, status }: Entry, notes: readonly string[]) {
  const odd = notes.filter((note) => new RegExp(`\\b${id}\\b`).test(note));
  return [
    `${id} ${component}: ${symptom}`,
    `shows ${shows.join(" / ")}`,
    `cause ${cause}`,
    `signs ${signs.join(" / ")}`,
    `advice ${advice.slice(0, 2).join(" / ")}`,
    ...odd.map((note) => `note ${note}`),
    status,
  ].join("; ");
}

/** The latest snapshots; one of the same step takes the place of the older. */
export function keepSnapshot(result: CallResult, { snapshots }: { readonly snapshots: readonly unknown[] | null }) {
  const output = outputOf(result) as SnapshotOutput | null;
  if (output === null || output.action === "read") return {};
  const others = ((snapshots ?? []) as readonly Snapshot[]).filter(({ step }) => step !== output.snapshot.step);
  return { snapshots: [...others, output.snapshot].slice(-MAX_SNAPSHOTS) };
}

/** The report as it was written, before anybody has agreed to it. */
export function keepDraft(result: CallResult) {
  const output = outputOf(result) as ReportOutput | null;
  return output === null ? {} : { draft: output.report };
}
