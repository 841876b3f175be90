import { shuffled } from "./random.ts";

/** One of the things that are compared. A fresh run is prepared for each round, outside the clock. */
export interface Side {
  readonly name: string;
  /** The side that this one is set against in each round; itself where it is the base. */
  readonly against: string;
  prepare(): Promise<Run>;
}

export interface Run {
  /** Does the work that is timed. */
  work(): Promise<void>;
  /** The bytes that the work left on disk, by what holds them; absent where nothing is stored. */
  stored?(): StoredBytes;
}

export interface StoredBytes {
  readonly file: number;
  readonly byTable: Readonly<Record<string, number>>;
}

export interface Round {
  /** Wall-clock microseconds for one unit of work. */
  readonly wall: number;
  /** Processor microseconds of the whole process for one unit, which other processes disturb less. */
  readonly processor: number;
}

export interface Measured {
  readonly name: string;
  readonly against: string;
  readonly rounds: readonly Round[];
  readonly stored: StoredBytes | null;
}

export interface Plan {
  readonly rounds: number;
  readonly warmUps: number;
  /** How many units of work one run does. */
  readonly units: number;
  readonly random: () => number;
}

/** Runs all sides in turn, in a new order each round; the first rounds only warm up. */
export async function interleave(sides: readonly Side[], plan: Plan): Promise<Measured[]> {
  const rounds = new Map<string, Round[]>(sides.map((side) => [side.name, []]));
  const stored = new Map<string, StoredBytes>();
  for (let round = -plan.warmUps; round < plan.rounds; round++) {
    for (const side of shuffled(sides, plan.random)) {
      const run = await side.prepare();
      const measured = await timed(() => run.work(), plan.units);
      if (round < 0) continue;
      rounds.get(side.name)?.push(measured);
      if (run.stored) stored.set(side.name, run.stored());
    }
  }
  return sides.map(({ name, against }) => ({
    name,
    against,
    rounds: rounds.get(name) ?? [],
    stored: stored.get(name) ?? null,
  }));
}

async function timed(work: () => Promise<void>, units: number): Promise<Round> {
  const processor = process.cpuUsage();
  const start = process.hrtime.bigint();
  await work();
  const wall = Number(process.hrtime.bigint() - start) / 1000 / units;
  const used = process.cpuUsage(processor);
  return { wall, processor: (used.user + used.system) / units };
}

/** The middle value; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
}

/** The ratio of two sides in each round, by one of the clocks. */
export function ratios(side: Measured, base: Measured, clock: keyof Round): number[] {
  return side.rounds.map((round, index) => round[clock] / (base.rounds[index]?.[clock] ?? Number.NaN));
}

/** Microseconds of one call of a pure function: the median over rounds that are long enough to time. */
export function microseconds(call: () => unknown, rounds = 9, calls = 2000): number {
  const times: number[] = [];
  for (let round = -2; round < rounds; round++) {
    const start = process.hrtime.bigint();
    for (let index = 0; index < calls; index++) call();
    if (round >= 0) times.push(Number(process.hrtime.bigint() - start) / 1000 / calls);
  }
  return median(times);
}
