import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Stretch } from "./horizon-task.ts";
import { median } from "./measure.ts";
import type { Limit, Report, Table } from "./report.ts";

const LENGTHS = [10, 100, 1000, 10_000];
/** A graph that keeps its messages stores all of them with every checkpoint: 15 GB at the longest length. */
const MOST_MESSAGES = 1000;
const RESUMES = 7;

interface Point {
  readonly decisions: number;
  readonly stretch: Stretch;
  /** Bytes that each decision since the point before has added to the file. */
  readonly bytes: number;
  /** Milliseconds of a new process from opening the database to its next pause: the median. */
  readonly resumeMs: number;
}

/** What one task costs early and late in its life, against a graph that keeps its messages. */
export async function run(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  try {
    const ours = await measure("ours", join(folder, "ours.db"), LENGTHS);
    const shorter = LENGTHS.filter((length) => length <= MOST_MESSAGES);
    const messages = await measure("messages", join(folder, "messages.db"), shorter);
    return reportOf(ours, messages);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(side: "ours" | "messages", file: string, lengths: readonly number[]): Promise<readonly Point[]> {
  const points: Point[] = [];
  let [at, size] = [0, 0];
  for (const decisions of lengths) {
    process.stderr.write(`horizon: ${side} ${decisions}\n`);
    const stretch = await stretchOf(side, file, at, decisions);
    const bytes = (stretch.fileBytes - size) / (decisions - at);
    size = stretch.fileBytes;
    const times: number[] = [];
    for (at = decisions; at < decisions + RESUMES; at++) times.push((await stretchOf(side, file, at, at + 1)).ms);
    points.push({ decisions, stretch, bytes, resumeMs: median(times) });
  }
  return points;
}

async function stretchOf(side: string, file: string, from: number, until: number): Promise<Stretch> {
  const script = fileURLToPath(new URL("horizon-task.ts", import.meta.url));
  const args = ["--import", "tsx", script, side, file, String(from), String(until)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 20 });
  return JSON.parse(stdout) as Stretch;
}

function reportOf(ours: readonly Point[], messages: readonly Point[]): Report {
  return {
    name: "horizon",
    title: "cost against length",
    summary:
      "One task reads a gauge again and again: a model's decision with a call and its result each time. Measured at four lengths, each stretch and each resume in a process of its own, beside the usual graph that keeps its messages, on LangGraph's SqliteSaver.",
    seed: 7,
    settings: { "resumes per length": RESUMES, "longest with messages": MOST_MESSAGES },
    tables: [tableOf("statecard", ours), tableOf("messages graph, SqliteSaver", messages)],
    limits: limitsOf(ours),
    notShown: [
      "A model's own time and price: it is scripted. The tokens are those of the prompts that it was sent.",
      `The messages graph beyond ${MOST_MESSAGES} turns: each checkpoint holds all messages, so the file grows with the square of the length.`,
      "Clean-up by hand: a messages graph can trim its messages and delete old checkpoints; then it forgets.",
    ],
    raw: { ours, messages },
  };
}

function tableOf(title: string, points: readonly Point[]): Table {
  return {
    title,
    columns: [
      "decisions",
      "prompt tokens",
      "largest prompt",
      "state bytes",
      "stored bytes a decision",
      "ms a decision",
      "ms to resume",
    ],
    rows: points.map(({ decisions, stretch, bytes, resumeMs }) => [
      decisions,
      Math.round(stretch.promptTokens),
      stretch.largestPrompt,
      stretch.stateBytes,
      Math.round(bytes),
      stretch.msPerDecision.toFixed(2),
      resumeMs.toFixed(1),
    ]),
    note: "Prompt tokens and milliseconds of the last 50 decisions before that length; bytes since the line above.",
  };
}

function limitsOf(points: readonly Point[]): readonly Limit[] {
  const at = (decisions: number) => points.find((point) => point.decisions === decisions);
  const [early, middle, late] = [at(100), at(1000), at(10_000)];
  if (!early || !middle || !late) return [];
  const ratio = (a: number, b: number) => Number((a / b).toFixed(2));
  const promise = (what: string, against: number) => `${what} at 10,000 decisions against ${against}`;
  return [
    {
      promise: promise("prompt tokens", 100),
      value: ratio(late.stretch.promptTokens, early.stretch.promptTokens),
      limit: 1.1,
    },
    {
      promise: promise("state bytes", 100),
      value: ratio(late.stretch.stateBytes, early.stretch.stateBytes),
      limit: 1.1,
    },
    { promise: promise("stored bytes a decision", 1000), value: ratio(late.bytes, middle.bytes), limit: 1.1 },
    {
      promise: promise("time a decision", 100),
      value: ratio(late.stretch.msPerDecision, early.stretch.msPerDecision),
      limit: 1.1,
    },
    { promise: promise("time to resume", 100), value: ratio(late.resumeMs, early.resumeMs), limit: 1.2 },
  ];
}
