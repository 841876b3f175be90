import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testing } from "./compiled.ts";
import { Cluster, type Placement } from "./crash/cluster.ts";
import { killAtPoints, killAtRandom, type Cell, type RandomKills } from "./crash/kills.ts";
import { raceAll, type Races } from "./crash/races.ts";
import { randomFrom } from "./random.ts";
import type { Report, Table } from "./report.ts";

const SEED = 20_260_302;
const KILLS = Number(process.env.STATECARD_CRASH_KILLS ?? 500);
const RACES = Number(process.env.STATECARD_CRASH_RACES ?? 1000);
const RACERS = 8;
const NTH = [1, 2, 3];

interface Result {
  readonly place: string;
  readonly cells: readonly Cell[];
  readonly kills: RandomKills;
  readonly races: Races;
}

/** Kills processes at every fault point and at random, and lets many start and answer the same task. */
export async function run(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-crash-"));
  try {
    const results: Result[] = [];
    for (const place of await places(folder)) {
      const random = randomFrom(SEED);
      const cluster = await Cluster.start(place);
      try {
        const cells = await killAtPoints(cluster, testing.FAULT_POINTS, NTH);
        const kills = await killAtRandom(cluster, KILLS, random);
        const races = await raceAll(cluster, RACERS, RACES);
        results.push({ place: place.store, cells, kills, races });
      } finally {
        await cluster.stop();
      }
    }
    return reportOf(results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function places(folder: string): Promise<readonly Placement[]> {
  const sqlite: Placement = { store: "sqlite", location: join(folder, "tasks.db"), remove: async () => {} };
  const postgres = await postgresPlace();
  return postgres ? [sqlite, postgres] : [sqlite];
}

/** A schema of its own in the PostgreSQL server of this machine; null where none answers. */
async function postgresPlace(): Promise<Placement | null> {
  const url = process.env.STATECARD_TEST_POSTGRES ?? "postgres://root@127.0.0.1:5432/test";
  const { Client } = (await import("pg")).default;
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  try {
    await client.connect();
  } catch {
    return null;
  }
  const schema = `crash_${process.pid}`;
  await client.query(`create schema ${schema}`);
  const remove = async () => {
    await client.query(`drop schema ${schema} cascade`);
    await client.end();
  };
  return { store: "postgres", location: `${url} ${schema}`, remove };
}

function reportOf(results: readonly Result[]): Report {
  const sum = (pick: (result: Result) => number) => results.reduce((total, result) => total + pick(result), 0);
  const cellsWith = (wrong: (cell: Cell) => number) =>
    sum(({ cells }) => cells.reduce((all, cell) => all + wrong(cell), 0));
  return {
    name: "crash",
    title: "nothing lost, nothing doubled",
    summary:
      "Processes are killed (SIGKILL) at every named place of the source and at random moments, half of them with a clock that is 20 seconds behind; a new process resumes. The end state is compared with that of a run that nobody disturbed, and the effects are counted by a process of its own that does not tell an effect from its repetition. `mail` sends two mails by a call that is neither idempotent nor able to find out what it did; `refund` pays by one that can find out. Measured is the compiled package.",
    seed: SEED,
    settings: { "random kills a store": KILLS, "races a store": RACES, "processes a race": RACERS },
    tables: [...results.map(matrixTable), killsTable(results), racesTable(results)],
    limits: [
      {
        promise: "lost tasks and effects",
        value: sum(({ kills }) => kills.lost) + cellsWith((cell) => cell.lost),
        limit: 0,
      },
      {
        promise: "doubled effects",
        value: sum(({ kills }) => kills.doubled) + cellsWith((cell) => cell.doubled),
        limit: 0,
      },
      {
        promise: "asked whether a call had happened where that was known",
        value: cellsWith((cell) => cell.needlesslyAsked),
        limit: 0,
      },
      { promise: "races without exactly one winner", value: sum(({ races }) => races.wrong), limit: 0 },
      { promise: "stores that were not tried (PostgreSQL did not answer)", value: 2 - results.length, limit: 0 },
    ],
    notShown: [
      'Power loss: the processes die, the machine lives. SQLite needs `synchronous: "full"` for that.',
      "A network that parts the processes from PostgreSQL; all of them run on this machine.",
      "The random kills fall where the processes spend their time, so rarely into a transaction; the matrix is for those.",
    ],
    raw: results,
  };
}

function matrixTable({ place, cells }: Result): Table {
  const scenarios = [...new Set(cells.map((cell) => cell.scenario))];
  const points = [...new Set(cells.map((cell) => cell.point))];
  const text = (point: string, scenario: string) => {
    const own = cells.filter((cell) => cell.point === point && cell.scenario === scenario);
    const killed = own.filter((cell) => cell.killed).length;
    const bad = own.reduce((all, cell) => all + cell.lost + cell.doubled + cell.needlesslyAsked, 0);
    const asked = own.reduce((all, cell) => all + cell.unknown, 0);
    if (killed === 0) return "not reached";
    return `${bad === 0 ? "ok" : `${bad} WRONG`} (${killed} kills${asked > 0 ? `, ${asked} asked` : ""})`;
  };
  return {
    title: `Killed at a fault point, ${place}`,
    columns: ["", ...scenarios],
    rows: points.map((point) => [point, ...scenarios.map((scenario) => text(point, scenario))]),
    note: `Killed at the first, second and third time that the point was reached. "asked": a person had to say whether the call had happened, since the kill fell between its start and the record of its end.`,
  };
}

function killsTable(results: readonly Result[]): Table {
  return {
    title: "Killed at random",
    columns: ["", "processes killed", "tasks", "lost", "doubled", "asked a person"],
    rows: results.map(({ place, kills }) => [
      place,
      kills.killed,
      kills.tasks,
      kills.lost,
      kills.doubled,
      kills.unknown,
    ]),
  };
}

function racesTable(results: readonly Result[]): Table {
  return {
    title: `${RACERS} processes do the same thing at the same moment`,
    columns: ["", "races", "one winner", "wrong", "what the others got"],
    rows: results.map(({ place, races }) => [place, races.races, races.races - races.wrong, races.wrong, races.others]),
  };
}
