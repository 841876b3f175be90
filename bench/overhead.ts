import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decisionSchema, parseDecision, statecard } from "./compiled.ts";
import { lengthLimits, lengthTable, measureLength, type Length } from "./length.ts";
import { interleave, median, microseconds, ratios, type Measured, type Side } from "./measure.ts";
import {
  bare,
  bareAnswered,
  bareStarted,
  bareWithCalls,
  bareWithModel,
  firstView,
  floor,
  messagesOf,
  ours,
  oursAnswered,
  oursInMemory,
  oursStarted,
  oursWithCalls,
  oursWithModel,
  writtenBytes,
  type Setting,
} from "./overhead-sides.ts";
import { randomFrom, randomText } from "./random.ts";
import type { Limit, Report, Table } from "./report.ts";

const SEED = 20_260_301;
const DECISIONS = 300;
const INVOKES = 60;
const TARGET_SIZE = 1024;
// The limit is on the small state; the large one is there for information.
const SIZES = [
  { stateBytes: TARGET_SIZE, rounds: 9, warmUps: 2 },
  { stateBytes: 10_240, rounds: 5, warmUps: 1 },
];
/** A decision without a call, against a bare loop with the same guarantees against a crash. */
const TARGET = 1.0;
/** A decision with one call that is written down before and after it runs, against agent and tools without that. */
const CALL_TARGET = 1.15;

interface Result {
  readonly stateBytes: number;
  readonly writtenBytes: number;
  readonly decisions: readonly Measured[];
  readonly invokes: readonly Measured[];
  /** Microseconds of the pure work around a model call. */
  readonly parts: Readonly<Record<string, number>>;
}

/** Measures what the guarantees cost, against the same loop written by hand on LangGraph. */
export async function run(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  try {
    const results: Result[] = [];
    for (const size of SIZES) results.push(await measureSize(size, folder));
    const lengths = await measureLength(randomText(TARGET_SIZE, randomFrom(SEED)), join(folder, "long.db"));
    return reportOf(results, lengths);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureSize(size: (typeof SIZES)[number], folder: string): Promise<Result> {
  const { stateBytes, rounds, warmUps } = size;
  const random = randomFrom(SEED + stateBytes);
  let files = 0;
  const setting: Setting = {
    document: randomText(stateBytes, random),
    decisions: DECISIONS,
    newFile: () => join(folder, `${stateBytes}-${files++}.db`),
  };
  const written = await writtenBytes(setting);
  const { input, view, answer } = await firstView(setting);
  const plan = { rounds, warmUps, random };
  const decisions = await interleave(decisionSides(setting, written, messagesOf(view)), { ...plan, units: DECISIONS });
  const invokes = await interleave(invokeSides({ ...setting, decisions: INVOKES }), { ...plan, units: INVOKES });
  const { workflow, snapshot } = input;
  const parts = {
    "render the view": microseconds(() => statecard.renderView(input)),
    "derive the decision's schema": microseconds(() => decisionSchema(workflow, "work", snapshot.state)),
    "parse the answer": microseconds(() => parseDecision(answer)),
    "count the view's tokens (only where somebody looks)": microseconds(() => statecard.viewTokens(view), 9, 100),
  };
  return { stateBytes, writtenBytes: written, decisions, invokes, parts };
}

function decisionSides(setting: Setting, written: number, prompt: ReturnType<typeof messagesOf>): Side[] {
  const side = (name: string, against: string, prepare: Side["prepare"]): Side => ({ name, against, prepare });
  return [
    side("bare loop, no saver", "bare loop, SqliteSaver, normal", () => bare(setting, "none")),
    side("bare loop, MemorySaver", "bare loop, SqliteSaver, normal", () => bare(setting, "memory")),
    side("bare loop, SqliteSaver, normal", "bare loop, SqliteSaver, normal", () => bare(setting, "normal")),
    side("statecard, normal", "bare loop, SqliteSaver, normal", () => ours(setting, "normal")),
    side("statecard, MemorySaver", "bare loop, MemorySaver", () => oursInMemory(setting)),
    side("bare loop, SqliteSaver, full", "bare loop, SqliteSaver, full", () => bare(setting, "full")),
    side("statecard, full", "bare loop, SqliteSaver, full", () => ours(setting, "full")),
    side("bare loop and model, normal", "bare loop and model, normal", () => bareWithModel(setting, prompt)),
    side("statecard and model, normal", "bare loop and model, normal", () => oursWithModel(setting)),
    side("bare agent and tools, normal", "bare agent and tools, normal", () => bareWithCalls(setting)),
    side("statecard with a journalled call, normal", "bare agent and tools, normal", () => oursWithCalls(setting)),
    side("bare transaction, normal", "bare loop, SqliteSaver, normal", () => floor(setting, "normal", written)),
    side("bare transaction, full", "bare loop, SqliteSaver, full", () => floor(setting, "full", written)),
  ];
}

function invokeSides(setting: Setting): Side[] {
  const side = (name: string, against: string, prepare: Side["prepare"]): Side => ({ name, against, prepare });
  return [
    side("bare: start a task of one decision", "bare: start a task of one decision", () => bareStarted(setting)),
    side("statecard: start a task of one decision", "bare: start a task of one decision", () => oursStarted(setting)),
    side("bare: answer, decide, ask again", "bare: answer, decide, ask again", () => bareAnswered(setting)),
    side("statecard: answer, decide, ask again", "bare: answer, decide, ask again", () => oursAnswered(setting)),
  ];
}

function reportOf(results: readonly Result[], lengths: readonly Length[]): Report {
  return {
    name: "overhead",
    title: "what the guarantees cost",
    summary:
      "Time and storage of one decision, ours against a graph of one looping node written by hand on LangGraph with its SqliteSaver: same state, same pragmas (WAL, `wal_autocheckpoint` 4,000), durability `sync`. Measured is the compiled package.",
    seed: SEED,
    settings: {
      rounds: SIZES.map(({ stateBytes, rounds }) => `${rounds} (${stateBytes / 1024} KB)`).join(" and "),
      "decisions a run": DECISIONS,
      "invokes a run": INVOKES,
    },
    tables: [...results.flatMap(tablesOf), lengthTable(lengths)],
    limits: [
      ...results.filter((result) => result.stateBytes === TARGET_SIZE).flatMap(limitsOf),
      ...lengthLimits(lengths),
    ],
    notShown: [
      "Latency of a real model, which is a thousand times all of this; the scripted model answers at once, as plain JSON.",
      "Concurrency: one process, one task at a time, one connection. Several processes on one file wait for each other's locks.",
      "The state is one text and a counter, and only the counter changes. Deeper states cost more to copy and to check, on our side in each decision.",
      "`full` is only as dear as this disk makes it; a disk that acknowledges before it has written makes it look cheap.",
      "Stored bytes are the file's at the end of a run: ours grows by the event log only, since old checkpoints are pruned; SqliteSaver keeps them all.",
      "PostgreSQL, other frameworks, and child workflows.",
      "Opening the database, compiling the graph, and loading the modules: these are outside the clock on all sides.",
    ],
    raw: { results, lengths },
  };
}

function limitsOf({ decisions }: Result): Limit[] {
  const ratio = (name: string) => round(medianRatio(name, decisions, "wall"), 3);
  return [
    {
      promise: "a decision without a call, at 1 KB of state, against the bare loop with SqliteSaver (both `normal`)",
      value: ratio("statecard, normal"),
      limit: TARGET,
    },
    {
      promise: "a decision with a journalled call, at 1 KB of state, against bare agent and tools (both `normal`)",
      value: ratio("statecard with a journalled call, normal"),
      limit: CALL_TARGET,
    },
  ];
}

function tablesOf(result: Result): Table[] {
  const size = `${result.stateBytes / 1024} KB of state`;
  const columns = ["", "µs", "min", "max", "processor µs", "ratio", "ratio min", "ratio max", "processor ratio"];
  const partRows = Object.entries(result.parts).map(([name, time]) => [name, round(time, 1)]);
  return [
    {
      title: `One decision, ${size}`,
      columns: [...columns, "bytes stored"],
      rows: result.decisions.map((side) => [...timeCells(side, result.decisions), bytesPerDecision(side)]),
      note: `Medians over rounds; a ratio is taken within each round, to the bare loop of the same kind. The bare transaction writes ${result.writtenBytes} bytes, as one decision of ours does.`,
    },
    { title: `One invoke, ${size}`, columns, rows: result.invokes.map((side) => timeCells(side, result.invokes)) },
    { title: `The pure work around a model call, ${size}`, columns: ["", "µs"], rows: partRows },
    storageTable(result, size),
  ];
}

function timeCells(side: Measured, all: readonly Measured[]): (string | number)[] {
  const wall = side.rounds.map((round) => round.wall);
  const base = all.find((other) => other.name === side.against) ?? side;
  const against = ratios(side, base, "wall");
  return [
    side.name,
    round(median(wall)),
    round(Math.min(...wall)),
    round(Math.max(...wall)),
    round(median(side.rounds.map((round) => round.processor))),
    median(against).toFixed(2),
    Math.min(...against).toFixed(2),
    Math.max(...against).toFixed(2),
    median(ratios(side, base, "processor")).toFixed(2),
  ];
}

function storageTable(result: Result, size: string): Table {
  const stored = result.decisions.filter((side) => side.stored && side.name.endsWith("normal"));
  const bytesOf = (side: Measured, table: string) => (side.stored?.byTable[table] ?? 0) / DECISIONS;
  const tables = [...new Set(stored.flatMap((side) => Object.keys(side.stored?.byTable ?? {})))].sort();
  const large = tables.filter((table) => stored.some((side) => bytesOf(side, table) >= 20));
  const small = tables.filter((table) => !large.includes(table));
  const row = (name: string, names: readonly string[]) => [
    name,
    ...stored.map((side) => Math.round(names.reduce((sum, table) => sum + bytesOf(side, table), 0))),
  ];
  return {
    title: `Bytes a decision by table, ${size}`,
    columns: ["", ...stored.map((side) => side.name.replace(", normal", ""))],
    rows: [...large.map((table) => row(table, [table])), row("everything else", small)],
  };
}

function bytesPerDecision(side: Measured): number | null {
  return side.stored && Math.round(side.stored.file / DECISIONS);
}

function medianRatio(name: string, all: readonly Measured[], clock: "wall" | "processor"): number {
  const side = all.find((candidate) => candidate.name === name);
  const base = all.find((candidate) => candidate.name === side?.against);
  return side && base ? median(ratios(side, base, clock)) : Number.NaN;
}

function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
