import type { Cluster } from "./cluster.ts";

export interface Races {
  readonly races: number;
  /** Those without exactly one winner, or in which a loser got something unexpected. */
  readonly wrong: number;
  /** What the losers got, and how often. */
  readonly others: string;
}

/** The errors that tell a loser what happened; which of them depends on how late it came. */
const EXPECTED: ReadonlySet<unknown> = new Set(["TASK_BUSY", "STALE_RESUME", "TASK_STARTED", "TASK_UNFINISHED"]);
const LEAD_MS = 6;

/** Many processes start the same task at the same moment, then all answer its question. */
export async function raceAll(cluster: Cluster, racers: number, races: number): Promise<Races> {
  const workers = Array.from({ length: racers }, () => cluster.newWorker());
  await Promise.all(workers.map((worker) => worker.whenReady()));
  const others = new Map<string, number>();
  let wrong = 0;
  try {
    for (let race = 0; race < races; race++) {
      const kind = race % 2 === 0 ? "start" : "answer";
      const task = `race-${Math.floor(race / 2)}`;
      const order = { kind, scenario: "mail", task, at: Date.now() + LEAD_MS } as const;
      const outcomes = await Promise.all(workers.map((worker) => worker.give(order)));
      const results = outcomes.map((outcome) => outcome?.result);
      const losers = results.filter((result) => result !== "won");
      for (const result of losers) others.set(String(result), (others.get(String(result)) ?? 0) + 1);
      const isWrong = losers.length !== racers - 1 || !losers.every((result) => EXPECTED.has(result));
      if (isWrong) process.stderr.write(`\n${task} (${kind}): ${JSON.stringify(results)}\n`);
      wrong += isWrong ? 1 : 0;
      process.stderr.write(`\r${cluster.storeKind} ${race + 1} races `);
    }
  } finally {
    for (const worker of workers) worker.process.kill("SIGKILL");
  }
  const listed = [...others].toSorted(([, a], [, b]) => b - a).map(([code, count]) => `${code} ${count}`);
  return { races, wrong, others: listed.join(", ") };
}
