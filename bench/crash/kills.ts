import { isDeepStrictEqual } from "node:util";
import type { Cluster } from "./cluster.ts";
import { SCENARIOS } from "./scenarios.ts";
import type { Order, Outcome } from "./worker.ts";

/** What came of one kill at a fault point. */
export interface Cell {
  readonly scenario: string;
  readonly point: string;
  readonly nth: number;
  /** False where the process ended before it came by this point so often. */
  readonly killed: boolean;
  readonly lost: number;
  readonly doubled: number;
  readonly unknown: number;
  /** A person was asked although the call had not begun, or its end was on record. */
  readonly needlesslyAsked: number;
}

export interface RandomKills {
  readonly killed: number;
  readonly tasks: number;
  readonly lost: number;
  readonly doubled: number;
  readonly unknown: number;
}

// Between these a call has begun and its end is not on record.
const UNKNOWN_POINTS: ReadonlySet<string> = new Set(["after-intent", "after-call"]);

interface Ended {
  readonly kills: number;
  readonly lost: number;
  readonly doubled: number;
  readonly unknown: number;
}

/** Kills one process at each point, for each scenario, and lets another go on. */
export async function killAtPoints(
  cluster: Cluster,
  points: readonly string[],
  nths: readonly number[],
): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const scenario of Object.keys(SCENARIOS)) {
    const undisturbed = await toTheEnd(cluster, { kind: "run", scenario, task: `${scenario}-alone` }, []);
    for (const point of points) {
      for (const nth of nths) {
        const order: Order = { kind: "run", scenario, task: `${scenario}-${point}-${nth}`, fault: { point, nth } };
        const ended = await toTheEnd(cluster, order, []);
        const { kills, unknown } = ended;
        const judged = await judge(cluster, order, ended, undisturbed.outcome);
        const needlesslyAsked = UNKNOWN_POINTS.has(point) ? 0 : unknown;
        cells.push({ scenario, point, nth, killed: kills > 0, ...judged, unknown, needlesslyAsked });
        process.stderr.write(`\r${cluster.storeKind} ${cells.length} cells `);
      }
    }
  }
  return cells;
}

/** Kills processes at random moments of their work until so many are dead. */
export async function killAtRandom(cluster: Cluster, kills: number, random: () => number): Promise<RandomKills> {
  const names = Object.keys(SCENARIOS);
  const alone = new Map<string, Outcome>();
  const lengths = new Map<string, number>();
  for (const scenario of names) {
    const started = performance.now();
    alone.set(scenario, (await toTheEnd(cluster, { kind: "run", scenario, task: `${scenario}-quiet` }, [])).outcome);
    lengths.set(scenario, performance.now() - started);
  }
  const total = { killed: 0, tasks: 0, lost: 0, doubled: 0, unknown: 0 };
  while (total.killed < kills) {
    const scenario = names[total.tasks % names.length] ?? "";
    const order: Order = { kind: "run", scenario, task: `${scenario}-random-${total.tasks}` };
    const length = lengths.get(scenario) ?? 100;
    // The later ones find less and less left to do.
    const moments = [0.9, 0.7, 0.5, 0.4, 0.3].map((part) => random() * length * part);
    const ended = await toTheEnd(cluster, order, moments);
    const expected = alone.get(scenario);
    if (!expected) throw new Error(`${scenario} was not run alone`);
    const judged = await judge(cluster, order, ended, expected);
    total.tasks++;
    total.killed += ended.kills;
    total.lost += judged.lost;
    total.doubled += judged.doubled;
    total.unknown += ended.unknown;
    process.stderr.write(`\r${cluster.storeKind} ${total.killed} kills `);
  }
  return total;
}

/** Runs a task to its end, in a new process after each kill. */
async function toTheEnd(
  cluster: Cluster,
  order: Extract<Order, { kind: "run" }>,
  killAfter: readonly number[],
): Promise<{ outcome: Outcome; kills: number; unknown: number }> {
  let kills = 0;
  for (;;) {
    const worker = cluster.take();
    const outcome = await worker.give(kills === 0 ? order : { ...order, fault: undefined as never }, killAfter[kills]);
    if (outcome) {
      cluster.giveBack(worker);
      return { outcome, kills, unknown: outcome.unknown };
    }
    kills++;
    if (kills > 50) throw new Error(`${order.task}: killed ${kills} times`);
  }
}

async function judge(
  cluster: Cluster,
  { scenario, task }: Order,
  { outcome }: { outcome: Outcome },
  expected: Outcome,
): Promise<Pick<Ended, "lost" | "doubled">> {
  const same = isDeepStrictEqual(withoutReceipts(outcome.result), withoutReceipts(expected.result));
  const effects = (await cluster.ledger.of(task)).length;
  const wanted = SCENARIOS[scenario]?.effects ?? 0;
  if (!same)
    process.stderr.write(
      `\n${task}: ${JSON.stringify(outcome.result)} instead of ${JSON.stringify(expected.result)}\n`,
    );
  return { lost: (same ? 0 : 1) + Math.max(0, wanted - effects), doubled: Math.max(0, effects - wanted) };
}

/** Receipts are made from the task's id, so two tasks end with different ones; all else is the same. */
function withoutReceipts(result: unknown): unknown {
  return JSON.parse(JSON.stringify(result).replaceAll(/R-[0-9a-f]{8}/g, "R"));
}
