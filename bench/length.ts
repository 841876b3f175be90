import { statSync } from "node:fs";
import { z } from "zod";
import { statecard } from "./compiled.ts";
import { median } from "./measure.ts";
import type { Limit, Table } from "./report.ts";

const { compile, defineWorkflow, field, sqliteStore } = statecard;
const STOPS = [100, 1000, 10_000];
const RESUMES = 7;
const TASK = { configurable: { thread_id: "task" } };

/** Counts on, and asks at each stop and for some decisions after it. */
const longWorkflow = defineWorkflow({
  name: "long",
  version: 1,
  input: ["document"],
  state: { document: field(z.string()), count: field(z.number()) },
  initial: "work",
  maxDecisions: 1_000_000,
  steps: {
    work: {
      to: ["work", "done"],
      maxDecisions: 1_000_000,
      run: ({ count }) => {
        const next = (count ?? 0) + 1;
        const asks = STOPS.some((stop) => next >= stop && next < stop + RESUMES);
        return asks ? { patch: { count: next }, ask: "go on?" } : { patch: { count: next }, next: "work" };
      },
    },
    done: { final: true },
  },
});

/** What a decision stores and a resume takes, early and late in the life of one task. */
export interface Length {
  readonly decisions: number;
  /** Bytes that each decision since the stop before has added. */
  readonly bytes: number;
  /** Milliseconds from a new connection to the next pause. */
  readonly resumeMs: number;
}

export async function measureLength(document: string, file: string): Promise<readonly Length[]> {
  const measured: Length[] = [];
  let before = { decisions: 0, size: 0 };
  let input: object = { document };
  for (const decisions of STOPS) {
    await runOnce(file, input);
    const size = statSync(file).size;
    const bytes = (size - before.size) / (decisions - before.decisions);
    const times: number[] = [];
    for (let resume = 1; resume < RESUMES; resume++) {
      const started = performance.now();
      await runOnce(file, { message: "yes" });
      times.push(performance.now() - started);
    }
    measured.push({ decisions, bytes, resumeMs: median(times) });
    before = { decisions, size };
    input = { message: "yes" };
  }
  return measured;
}

/** On a connection of its own, whose end moves the write-ahead log into the file. */
async function runOnce(file: string, input: object): Promise<void> {
  const store = sqliteStore(file);
  await compile(longWorkflow, { store }).invoke(input as never, TASK);
  await store.close();
}

export function lengthTable(lengths: readonly Length[]): Table {
  return {
    title: "One task, early and late",
    columns: ["decisions", "bytes a decision since the line above", "ms to resume"],
    rows: lengths.map(({ decisions, bytes, resumeMs }) => [decisions, Math.round(bytes), resumeMs.toFixed(1)]),
    note: "Resumed with a new connection and a new graph in the same process, to the next question; the first lines hold the tables and the checkpoints that are kept.",
  };
}

export function lengthLimits(lengths: readonly Length[]): readonly Limit[] {
  const [early, middle, late] = lengths;
  if (!early || !middle || !late) return [];
  const ratio = (a: number, b: number) => Number((a / b).toFixed(2));
  return [
    {
      promise: "bytes a decision up to 10,000 against up to 1,000",
      value: ratio(late.bytes, middle.bytes),
      limit: 1.1,
    },
    { promise: "resume at decision 10,000 against 100", value: ratio(late.resumeMs, early.resumeMs), limit: 1.2 },
  ];
}
