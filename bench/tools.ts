import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "./measure.ts";
import { randomFrom } from "./random.ts";
import type { Limit, Report, Table } from "./report.ts";
import {
  batchTime,
  dependants,
  earliestEnds,
  levelsOf,
  listTime,
  lowerBound,
  randomGraph,
  sequentialTime,
} from "./tools-graphs.ts";
import type { CallGraph } from "./tools-graphs.ts";
import {
  asRun,
  concurrency,
  HANGS_FOR_MS,
  keyViolations,
  PlanRunner,
  runBare,
  runBatches,
  runSequence,
} from "./tools-runs.ts";

const SEED = 20_261_130;
const LIMIT = 4;
/** More than any graph has calls. */
const UNLIMITED = 64;
/** Of the time that no schedule can go below, each call as long as it really took, over graphs without a limit. */
const TARGET = 1.05;
/** Of the time for what was asked for: with timers that fire late, since others keep the processors busy. */
const TOLERATED = 1.15;

interface Group {
  readonly name: string;
  readonly graphs: number;
  readonly rounds: number;
  readonly hasKeys: boolean;
  readonly limit: number;
}

const GROUPS: readonly Group[] = [
  { name: "no limit", graphs: 30, rounds: 5, hasKeys: false, limit: UNLIMITED },
  { name: "no limit, keys", graphs: 8, rounds: 4, hasKeys: true, limit: UNLIMITED },
  { name: `at most ${LIMIT} at once`, graphs: 8, rounds: 3, hasKeys: false, limit: LIMIT },
  { name: `at most ${LIMIT} at once, keys`, graphs: 4, rounds: 3, hasKeys: true, limit: LIMIT },
];
const HANGING_GRAPHS = 4;
/** What is computed is really run too, for some graphs: batches, and sequences, which take long. */
const BATCHES_RUN = 5;
const SEQUENCES_RUN = 1;

interface Measured {
  readonly calls: number;
  readonly depth: number;
  readonly boundMs: number;
  /** The best of the rounds, here and below: a busy machine only adds. */
  readonly callsMs: number;
  /** Over the shortest possible time with each call as long as it really took, late timers included. */
  readonly asTheyWere: number;
  readonly decisionMs: number;
  /** Only without a limit. */
  readonly bareRunMs: number | null;
  readonly knowingMs: number;
  readonly unknowingMs: number;
  readonly batchesMs: number;
  readonly batchesRunMs: number | null;
  readonly sequenceMs: number;
  readonly sequenceRunMs: number | null;
  readonly atOnce: number;
  readonly violations: number;
}

interface Hanging {
  readonly calls: number;
  readonly waiting: number;
  /** Of what does not depend on the hanging call: its time, and the time that it needs. */
  readonly othersMs: number;
  readonly boundMs: number;
  readonly statuses: Readonly<Record<string, number>>;
}

/** Measures how close the calls of a decision come to the shortest time in which they can be run. */
export async function run(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  try {
    const random = randomFrom(SEED);
    const runnerWith = (limit: number, name: string) => new PlanRunner(join(folder, `${name}.db`), limit);
    const warm = runnerWith(UNLIMITED, "warm");
    for (let index = 0; index < 5; index++) await warm.run(randomGraph({ hasKeys: true, random }));
    const groups: { group: Group; measured: Measured[] }[] = [];
    for (const [index, group] of GROUPS.entries()) {
      groups.push({ group, measured: await measure(group, runnerWith(group.limit, `group-${index}`), random) });
    }
    const hanging = await measureHanging(runnerWith(UNLIMITED, "hanging"), random);
    return reportOf(groups, hanging);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure({ graphs, rounds, hasKeys, limit }: Group, runner: PlanRunner, random: () => number) {
  const measured: Measured[] = [];
  for (let index = 0; index < graphs; index++) {
    const graph = randomGraph({ hasKeys, random });
    const runs = [];
    for (let round = 0; round < rounds; round++) runs.push(await runner.run(graph));
    measured.push({
      calls: graph.length,
      depth: levelsOf(graph).length,
      boundMs: lowerBound(graph, limit),
      callsMs: Math.min(...runs.map(({ callsMs }) => callsMs)),
      asTheyWere: Math.min(...runs.map(({ callsMs, spans }) => callsMs / lowerBound(asRun(graph, spans), limit))),
      decisionMs: Math.min(...runs.map(({ decisionMs }) => decisionMs)),
      bareRunMs: limit === UNLIMITED ? await runBare(graph) : null,
      knowingMs: listTime(graph, limit, true),
      unknowingMs: listTime(graph, limit, false),
      batchesMs: batchTime(graph, limit),
      batchesRunMs: index < BATCHES_RUN ? await runBatches(graph, limit) : null,
      sequenceMs: sequentialTime(graph),
      sequenceRunMs: index < SEQUENCES_RUN ? await runSequence(graph) : null,
      atOnce: Math.max(...runs.map(({ spans }) => concurrency(spans))),
      violations: runs.reduce((sum, { spans }) => sum + keyViolations(graph, spans), 0),
    });
  }
  return measured;
}

/** Graphs in which one call never ends: the one that most others depend on. */
async function measureHanging(runner: PlanRunner, random: () => number): Promise<Hanging[]> {
  const measured: Hanging[] = [];
  for (let index = 0; index < HANGING_GRAPHS; index++) {
    const graph = randomGraph({ hasKeys: false, random });
    const [hanging = 0] = graph
      .map((_, position) => position)
      .toSorted((a, b) => waitingFor(graph, b) - waitingFor(graph, a));
    const waiting = dependants(graph, hanging);
    const others = earliestEnds(graph).filter((_, position) => position !== hanging && !waiting.has(position));
    const { callsMs: othersMs, statuses } = await runner.run(graph, hanging);
    measured.push({ calls: graph.length, waiting: waiting.size, othersMs, boundMs: Math.max(...others), statuses });
  }
  return measured;
}

function waitingFor(graph: CallGraph, position: number): number {
  return dependants(graph, position).size;
}

function reportOf(
  groups: readonly { group: Group; measured: readonly Measured[] }[],
  hanging: readonly Hanging[],
): Report {
  return {
    name: "tools",
    title: "how close to the shortest time calls are run",
    summary: `Random plans of 10 to 50 calls, two to eight levels deep, each call taking 5 to 60 ms of a timer, as one decision of a compiled graph on SQLite with every call written down before and after it. A ratio is the time over what no schedule can go below: the longest chain of references (and of calls that share a key, in order), or with a limit all work divided by it, whichever is longer.`,
    seed: SEED,
    settings: Object.fromEntries(
      groups.map(({ group }) => [group.name, `${group.graphs} graphs, ${group.rounds} rounds`]),
    ),
    tables: [scheduleTable(groups), wholeTable(groups), respectTable(groups), hangingTable(hanging)],
    limits: limitsOf(groups, hanging),
    notShown: [
      "Real tools: their latencies vary, and some take processor time, which one process has only once.",
      "How much shorter a schedule under a limit could be: the bound there is lower than what can be reached, since chains do not fill all places.",
      "The model's own time, which is hundreds of times a decision's overhead.",
      "How much of a late timer is our doing: while something is written down no timer fires. `bare promises` shows what is late without us; on a machine with nothing else to do, asked for and real times come to nearly the same.",
      "Batches and sequences write nothing down: this is what they would take at their best.",
    ],
    raw: { groups, hanging },
  };
}

const ratios = (measured: readonly Measured[], time: (one: Measured) => number | null) =>
  measured.flatMap((one) => {
    const ms = time(one);
    return ms === null ? [] : [ms / one.boundMs];
  });

function scheduleTable(groups: readonly { group: Group; measured: readonly Measured[] }[]): Table {
  return {
    title: "Time of the calls over the shortest possible",
    columns: [
      "",
      "calls",
      "bound ms",
      "ours",
      "90 %",
      "worst",
      "as they were",
      "bare promises",
      "our order",
      "knowing",
      "levels",
      "run / computed",
      "sequence",
      "run / computed",
    ],
    rows: groups.map(({ group, measured }) => {
      const ours = ratios(measured, ({ callsMs }) => callsMs);
      const bare = ratios(measured, ({ bareRunMs }) => bareRunMs);
      const middle = (time: (one: Measured) => number | null) => median(ratios(measured, time)).toFixed(2);
      return [
        group.name,
        median(measured.map(({ calls }) => calls)),
        Math.round(median(measured.map(({ boundMs }) => boundMs))),
        median(ours).toFixed(3),
        quantile(ours, 0.9).toFixed(3),
        Math.max(...ours).toFixed(3),
        median(measured.map(({ asTheyWere }) => asTheyWere)).toFixed(3),
        bare.length > 0 ? median(bare).toFixed(3) : null,
        middle(({ unknowingMs }) => unknowingMs),
        middle(({ knowingMs }) => knowingMs),
        middle(({ batchesMs }) => batchesMs),
        accuracy(measured, ({ batchesMs, batchesRunMs }) => [batchesMs, batchesRunMs]),
        middle(({ sequenceMs }) => sequenceMs),
        accuracy(measured, ({ sequenceMs, sequenceRunMs }) => [sequenceMs, sequenceRunMs]),
      ];
    }),
    note: `Medians over graphs, of each the best of its rounds, from the first body's start to the last one's end. \`as they were\`: ours over the shortest possible with each call as long as it really took, late timers included; all other columns count the times that were asked for. \`bare promises\`: the same order with nothing written down, run once. \`our order\`: computed, for our order without any overhead; \`knowing\`: for somebody who knows all times beforehand. \`levels\`: all calls of a level at once, then the next level, computed, and for ${BATCHES_RUN} graphs really run as a cross-check; \`sequence\`: one after the other, for ${SEQUENCES_RUN} really run.`,
  };
}

/** What was really run over what was computed for the same graphs. */
function accuracy(
  measured: readonly Measured[],
  times: (one: Measured) => readonly [computed: number, run: number | null],
): string {
  const found = measured.flatMap((one) => {
    const [computed, run] = times(one);
    return run === null ? [] : [run / computed];
  });
  return median(found).toFixed(3);
}

function wholeTable(groups: readonly { group: Group; measured: readonly Measured[] }[]): Table {
  return {
    title: "The whole decision, from the model's answer to its next prompt",
    columns: ["", "ours", "90 %", "ms around the calls", "ms around, 90 %"],
    rows: groups.map(({ group, measured }) => {
      const ours = ratios(measured, ({ decisionMs }) => decisionMs);
      const around = measured.map(({ decisionMs, callsMs }) => decisionMs - callsMs);
      return [
        group.name,
        median(ours).toFixed(3),
        quantile(ours, 0.9).toFixed(3),
        median(around).toFixed(1),
        quantile(around, 0.9).toFixed(1),
      ];
    }),
    note: "With checking the answer, committing the decision before and the results after the calls, and rendering the next prompt.",
  };
}

function respectTable(groups: readonly { group: Group; measured: readonly Measured[] }[]): Table {
  return {
    title: "Limits and keys",
    columns: ["", "limit", "most at once", "out of order with a key"],
    rows: groups.map(({ group, measured }) => [
      group.name,
      group.limit === UNLIMITED ? null : group.limit,
      Math.max(...measured.map(({ atOnce }) => atOnce)),
      measured.reduce((sum, { violations }) => sum + violations, 0),
    ]),
  };
}

function hangingTable(hanging: readonly Hanging[]): Table {
  return {
    title: "One call that never ends",
    columns: ["graph", "calls", "wait for it", "cancelled", "others ms", "bound ms", "ratio"],
    rows: hanging.map(({ calls, waiting, statuses, othersMs, boundMs }, index) => [
      index + 1,
      calls,
      waiting,
      statuses.cancelled ?? 0,
      Math.round(othersMs),
      Math.round(boundMs),
      (othersMs / boundMs).toFixed(3),
    ]),
    note: `The call that most others wait for hangs until its time limit of ${HANGS_FOR_MS} ms. \`others\`: all that does not depend on it.`,
  };
}

function limitsOf(
  groups: readonly { group: Group; measured: readonly Measured[] }[],
  hanging: readonly Hanging[],
): Limit[] {
  const [free, keyed] = groups;
  const all = groups.flatMap(({ measured }) => measured);
  const limited = groups.filter(({ group }) => group.limit === LIMIT).flatMap(({ measured }) => measured);
  const asked = (measured: readonly Measured[] = []) => round(ratios(measured, ({ callsMs }) => callsMs));
  const asTheyWere = (measured: readonly Measured[] = []) => round(measured.map((one) => one.asTheyWere));
  const promise = "over the shortest possible for the times that calls";
  return [
    { promise: `without a limit, ${promise} really took (median)`, value: asTheyWere(free?.measured), limit: TARGET },
    { promise: `the same with keys, ${promise} really took`, value: asTheyWere(keyed?.measured), limit: TARGET },
    { promise: `without a limit, ${promise} were to take (median)`, value: asked(free?.measured), limit: TOLERATED },
    {
      promise: "calls at once where a limit is set",
      value: Math.max(...limited.map(({ atOnce }) => atOnce)),
      limit: LIMIT,
    },
    {
      promise: "calls that overtook an earlier one with their key",
      value: all.reduce((sum, { violations }) => sum + violations, 0),
      limit: 0,
    },
    {
      promise: "beside a call that hangs, all that does not depend on it, over the shortest possible (median)",
      value: round(hanging.map(({ othersMs, boundMs }) => othersMs / boundMs)),
      limit: TOLERATED,
    },
    {
      promise: "calls cancelled beyond those that depend on one that hangs",
      value: hanging.reduce((sum, { statuses, waiting }) => sum + Math.abs((statuses.cancelled ?? 0) - waiting), 0),
      limit: 0,
    },
  ];
}

function round(values: readonly number[]): number {
  return Number(median(values).toFixed(3));
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}
