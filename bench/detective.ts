import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { modelFromEnvironment } from "../src/decision/environment.ts";
import { openDetective } from "../test/support/detective.ts";
import { generateTask } from "../test/support/log-generator.ts";
import { dataFolder } from "../test/support/trajectories.ts";
import { faultOf, readReport } from "./detective-grade.ts";
import { judged } from "./detective-judge.ts";
import { realTasks, type RealTask } from "./detective-real.ts";
import { corrupt, CORRUPTIONS, measure, stream, type Caught, type Ran } from "./detective-runs.ts";
import { HEAP_MB, type Streamed } from "./detective-stream.ts";
import { randomFrom } from "./random.ts";
import type { Report, Table } from "./report.ts";

const SEED = 20_261_130;
const GENERATED = 200;
const SIZES_MB = [10, 100, 1000];
/** A judging model costs money, so it is asked about the first reports of each set only. */
const JUDGED = 30;
/** What a gigabyte may take beyond what the smallest takes, the program itself included in both. */
const MOST_MORE = 1.5;

type Counts = Record<NonNullable<Caught>, number>;
type Guard = Readonly<Record<string, Counts>>;

/** How well the log detective answers by its rules, how well its guard holds, and what a large log costs. */
export async function run(): Promise<Report | null> {
  const logs = `${dataFolder}/logs`;
  if (!existsSync(logs)) {
    process.stdout.write(`skipped: ${logs} not found; set STATECARD_DATA to the folder of recorded data\n`);
    return null;
  }
  const guard: Guard = Object.fromEntries(
    CORRUPTIONS.map((kind) => [kind, { "put right": 0, "sent back": 0, passed: 0 }]),
  );
  const random = randomFrom(SEED);
  const model = await modelFromEnvironment();
  const judgeOf = (index: number) => (index < JUDGED ? model : null);
  const real = await runReal(logs, guard, random, judgeOf);
  const generated = await runGenerated(guard, random, judgeOf);
  return reportOf({ real, generated }, guard, SIZES_MB.map(stream), model);
}

type JudgeOf = (index: number) => BaseChatModel | null;

async function runReal(logs: string, guard: Guard, random: () => number, judgeOf: JudgeOf): Promise<readonly Ran[]> {
  const { run, store } = openDetective([logs]);
  const all: Ran[] = [];
  for (const [index, task] of realTasks(logs).entries()) {
    const name = `real-${index}`;
    const done = await run(task.question, { file: task.file }, name);
    const log = readFileSync(`${logs}/${task.file}`, "utf8");
    const kinds = task.lines.length > 0 ? [task.lines] : [];
    const fault = realFault(done.report ?? "", task);
    all.push(await measure(done, store, name, { fault, kinds, issue: null, log, judge: judgeOf(index) }));
    tryGuard(done, log, guard, random);
  }
  return all;
}

/** Why a report on a real log is not the right answer; null where it is. */
function realFault(report: string, { question, lines, most, mostCount, of }: RealTask): string | null {
  const read = readReport(report);
  if (lines.length === 0) return read.isInsufficient && read.lines.length === 0 ? null : `${question}: it answers`;
  const [first, last] = [lines[0], lines.at(-1)];
  if (!read.conclusion.startsWith(`${lines.length} of ${of} lines`))
    return `${question}: ${read.conclusion}, not ${lines.length}`;
  if (read.lines.join() !== [...new Set([first, last])].join())
    return `${question}: lines ${read.lines.join()}, not ${first} and ${last}`;
  const top = /"'(.*?)' (\d+) times/.exec(report);
  // An hour is written in another way there.
  const isRight =
    most.length === 0 || (Number(top?.[2]) === mostCount && (/hour/.test(question) || most.includes(top?.[1] ?? "")));
  return isRight ? null : `${question}: ${top?.[0]}, not ${most.join("/")} ${mostCount}`;
}

async function runGenerated(guard: Guard, random: () => number, judgeOf: JudgeOf): Promise<readonly Ran[]> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  try {
    const { run, store } = openDetective([folder]);
    const all: Ran[] = [];
    for (let seed = 1; seed <= GENERATED; seed++) {
      const { log, question, truth } = generateTask(seed);
      writeFileSync(join(folder, `${seed}.log`), log);
      const done = await run(question, { file: `${seed}.log` }, `generated-${seed}`);
      const kinds =
        truth.kind === "nothing"
          ? []
          : truth.kind === "cause"
            ? [truth.symptoms, truth.signs]
            : [truth.kind === "symptom" ? truth.symptoms : truth.lines];
      const issue = truth.kind === "cause" ? truth.issue : null;
      const fault = faultOf(done.report ?? "", truth);
      all.push(
        await measure(done, store, `generated-${seed}`, {
          fault: fault && `seed ${seed}: ${fault}`,
          kinds,
          issue,
          log,
          judge: judgeOf(seed - 1),
        }),
      );
      tryGuard(done, log, guard, random);
    }
    return all;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function tryGuard(done: Parameters<typeof corrupt>[0], log: string, guard: Guard, random: () => number): void {
  for (const kind of CORRUPTIONS) {
    const caught = corrupt(done, log, kind, random);
    const counts = guard[kind];
    if (caught !== null && counts) counts[caught]++;
  }
}

type Sets = Readonly<Record<"real" | "generated", readonly Ran[]>>;

function reportOf(sets: Sets, guard: Guard, streamed: readonly Streamed[], model: BaseChatModel | null): Report {
  const all = [...sets.real, ...sets.generated];
  const passed = Object.values(guard).reduce((sum, counts) => sum + counts.passed, 0);
  const tried = Object.values(guard).reduce(
    (sum, counts) => sum + counts.passed + counts["put right"] + counts["sent back"],
    0,
  );
  const wrong = all.filter(({ fault }) => fault !== null).length;
  const growth = (streamed.at(-1)?.megabytes ?? Number.NaN) / (streamed[0]?.megabytes ?? Number.NaN);
  return {
    name: "detective",
    title: "what the log detective finds, and what its guard holds back",
    summary: `The log detective answers ${sets.real.length} questions on three real logs and ${sets.generated.length} on generated ones by its rules, from its prompts alone; then each of its reports is made wrong in up to five ways and given to its output guard; then it looks for one line in logs of up to a gigabyte.`,
    seed: SEED,
    settings: {
      "real tasks": sets.real.length,
      "generated tasks": sets.generated.length,
      "judging model": model ? `of the environment, on the first ${JUDGED} reports of each` : "none",
    },
    tables: [answers(sets), corrupted(guard), streams(streamed)],
    limits: [
      { promise: "tasks with a wrong answer", value: wrong, limit: 0 },
      { promise: "quotes that do not stand in the log's line", value: sum(all, "quotesWrong"), limit: 0 },
      { promise: `wrong claims, of ${tried}, that the guard lets pass`, value: passed, limit: 0 },
      {
        promise: "memory for a gigabyte, in that for ten megabytes",
        value: Number(growth.toFixed(2)),
        limit: MOST_MORE,
      },
    ],
    notShown: [
      "how well a language model answers: the rules were written for such questions, and the knowledge base holds the signs that the generator plants, in wordings of its own",
      `what a claim makes of its quotes in words of its own: no code judges that, ${model ? "and a judging model may be wrong" : "and no judging model was set (OPENAI_API_KEY)"}`,
      "the memory retrieval of long-term memory, which has a benchmark of its own; here it is known issues and snapshots",
      "a quiet machine: others ran beside this, so the seconds are upper bounds",
    ],
    raw: { faults: all.flatMap(({ fault }) => fault ?? []), guard, streamed },
  };
}

function answers(sets: Sets): Table {
  const columns = Object.values(sets);
  const row = (name: string, value: (set: readonly Ran[]) => string) => [name, ...columns.map(value)];
  return {
    title: "Answers",
    columns: ["measure", ...Object.keys(sets)],
    rows: [
      row("completion: ends with a report", (set) =>
        share(set.filter(({ completed }) => completed).length, set.length),
      ),
      row("answer is right, lines and figures included", (set) =>
        share(set.filter(({ fault }) => fault === null).length, set.length),
      ),
      row("tool calls that went well", (set) => share(sum(set, "callsOk"), sum(set, "calls"))),
      row("tool calls that repeat another", (set) => share(sum(set, "callsRepeated"), sum(set, "calls"))),
      row("lines that the answer rests on were read", (set) => yes(set, "hasSeen")),
      row("retrieval: the right issue is found", (set) => yes(set, "issueFound")),
      row("retrieval: it is the first", (set) => yes(set, "issueFirst")),
      row("retrieval: snapshots are read back as written", (set) =>
        share(sum(set, "snapshotsRight"), sum(set, "snapshots")),
      ),
      row("consistency: quotes that stand in their line", (set) =>
        share(sum(set, "quotes") - sum(set, "quotesWrong"), sum(set, "quotes")),
      ),
      row("consistency: by a judging model", (set) => judged(set.map(({ judgement }) => judgement))),
      row("reports with a marked line", (set) => share(set.filter(({ marked }) => marked).length, set.length)),
    ],
    note: "Two causes have the same symptom in most issues, so which of them comes first is chance; the signs in the log decide.",
  };
}

function corrupted(guard: Guard): Table {
  return {
    title: "Reports made wrong",
    columns: ["change", "tried", "put right", "sent back", "passed"],
    rows: Object.entries(guard).map(([kind, { "put right": right, "sent back": back, passed }]) => [
      kind,
      right + back + passed,
      right,
      back,
      passed,
    ]),
    note: "Changes that left a report right, such as the number of a line that says the same, are not counted.",
  };
}

function streams(streamed: readonly Streamed[]): Table {
  return {
    title: "One line in a large log",
    columns: ["megabytes", "lines", "seconds", "megabytes a second", "memory in megabytes"],
    rows: streamed.map(({ lines, seconds, megabytes }, index) => {
      const size = SIZES_MB[index] ?? Number.NaN;
      return [size, lines, round(seconds), round(size / seconds), round(megabytes)];
    }),
    note: `Each in a process of its own whose heap may not grow beyond ${HEAP_MB} megabytes. Memory: the most that the process took, program and all.`,
  };
}

function sum(
  set: readonly Ran[],
  key: "calls" | "callsOk" | "callsRepeated" | "snapshots" | "snapshotsRight" | "quotes" | "quotesWrong",
): number {
  return set.reduce((total, ran) => total + ran[key], 0);
}

function yes(set: readonly Ran[], key: "hasSeen" | "issueFound" | "issueFirst"): string {
  const counted = set.filter((ran) => ran[key] !== null);
  return counted.length === 0 ? "-" : share(counted.filter((ran) => ran[key]).length, counted.length);
}

function share(part: number, whole: number): string {
  return whole === 0 ? "-" : `${part} of ${whole} (${((100 * part) / whole).toFixed(1)} %)`;
}

function round(value: number): number {
  return Number(value.toFixed(1));
}
