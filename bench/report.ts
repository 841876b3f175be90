import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg, platform, release } from "node:os";
import { fileURLToPath } from "node:url";

type Cell = string | number | null;

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** What to know to read the table. */
  readonly note?: string;
}

/** A value that may not be exceeded; `--check` applies it. */
export interface Limit {
  readonly promise: string;
  readonly value: number;
  readonly limit: number;
}

/** What a benchmark found. */
export interface Report {
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly seed: number;
  readonly settings: Readonly<Record<string, string | number>>;
  readonly tables: readonly Table[];
  readonly limits: readonly Limit[];
  /** What the numbers do not show. */
  readonly notShown: readonly string[];
  /** Everything that was measured, for whoever wants to compute something else. */
  readonly raw: unknown;
}

interface Stored extends Report {
  readonly date: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
}

const PACKAGES = [
  "@langchain/core",
  "@langchain/langgraph",
  "@langchain/langgraph-checkpoint",
  "@langchain/langgraph-checkpoint-sqlite",
  "better-sqlite3",
  "zod",
];
const root = fileURLToPath(new URL("../", import.meta.url));
const results = `${root}bench/results`;
const page = `${root}docs/benchmarks.md`;

export function isMissed({ value, limit }: Limit): boolean {
  return !(value <= limit);
}

/** The report as text for a terminal. */
export function printed(report: Report): string {
  const settings = Object.entries({ seed: report.seed, ...report.settings }).map(([key, value]) => `${key} ${value}`);
  return [
    `${report.title}\n${settings.join(", ")}`,
    ...report.tables.map(printTable),
    ...(report.limits.length > 0 ? [report.limits.map((limit) => limitLine(limit)).join("\n")] : []),
    `What these numbers do not show:\n${report.notShown.map((line) => `- ${line}`).join("\n")}`,
    "",
  ].join("\n\n");
}

/** Writes the results, and the page that is made from all of them. */
export function save(report: Report): void {
  const stored: Stored = {
    ...report,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    versions: versions(),
  };
  mkdirSync(results, { recursive: true });
  const file = `${results}/${report.name}.json`;
  writeFileSync(file, `${JSON.stringify(stored, null, 2)}\n`);
  writeFileSync(page, renderPage());
  execFileSync("npx", ["oxfmt", file, page], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
}

function machine(): Record<string, string | number> {
  const all = cpus();
  return {
    processor: all[0]?.model ?? "unknown",
    cores: all.length,
    system: `${platform()} ${release()}`,
    node: process.version,
    // More than the cores means that others ran beside the benchmark, and that its times are worth little.
    "load average at the end": Number(loadavg()[1]?.toFixed(1)),
  };
}

function versions(): Record<string, string> {
  const read = (file: string) => (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
  const require = createRequire(import.meta.url);
  const { sqlite } = new (require("better-sqlite3") as typeof import("better-sqlite3"))(":memory:")
    .prepare("select sqlite_version() as sqlite")
    .get() as { sqlite: string };
  const installed = PACKAGES.map((name): [string, string] => [name, read(`${root}node_modules/${name}/package.json`)]);
  return { statecard: read(`${root}package.json`), ...Object.fromEntries(installed), sqlite };
}

function printTable({ title, columns, rows, note }: Table): string {
  const lines = [columns, ...rows.map((row) => row.map(cellText))];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const pad = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  return [`${title}${note ? `\n  (${note})` : ""}`, ...lines.map((line) => `  ${line.map(pad).join("  ")}`)].join("\n");
}

function cellText(cell: Cell): string {
  return cell === null ? "-" : String(cell);
}

function limitLine(limit: Limit): string {
  return `${isMissed(limit) ? "missed" : "met"}: ${limit.promise}: ${limit.value}, at most ${limit.limit}`;
}

function renderPage(): string {
  const reports = readdirSync(results)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => JSON.parse(readFileSync(`${results}/${file}`, "utf8")) as Stored);
  const head = `# Benchmarks

\`npm run bench\` runs all of them, \`npm run bench -- NAME\` one; with \`--check\` it fails where a limit is missed. This page is made from [bench/results](../bench/results) by each run; do not edit it.`;
  return `${[head, ...reports.map(renderReport)].join("\n\n")}\n`;
}

function renderReport(report: Stored): string {
  const facts = Object.entries({ ...report.machine, date: report.date, seed: report.seed, ...report.settings });
  const packages = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `## ${report.name}: ${report.title}`,
    report.summary,
    `Measured with ${facts.map(([key, value]) => `${key} ${value}`).join(", ")}; ${packages.join(", ")}.`,
    ...report.tables.map(renderTable),
    ...(report.limits.length > 0
      ? [`### Limits\n\n${report.limits.map((limit) => `- ${limitLine(limit)}`).join("\n")}`]
      : []),
    `### What these numbers do not show\n\n${report.notShown.map((line) => `- ${line}`).join("\n")}`,
  ].join("\n\n");
}

function renderTable({ title, columns, rows, note }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = columns.map((_, column) => (column === 0 ? "---" : "---:"));
  const body = [line(columns), line(rule), ...rows.map((row) => line(row.map(cellText)))];
  return [`### ${title}`, body.join("\n"), ...(note ? [note] : [])].join("\n\n");
}
