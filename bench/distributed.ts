import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { submitTask } from "./compiled.ts";
import { Ledger, startLedger } from "./crash/ledger.ts";
import { openShared, type Told, type WorkerSetting } from "./distributed-worker.ts";
import { errandGraph } from "./errand.ts";
import { examine, type Killed, type Outcome } from "./killed.ts";
import { median } from "./measure.ts";
import { randomFrom } from "./random.ts";
import type { Report, Table } from "./report.ts";

const SEED = 20_261_130;
const TASKS = Number(process.env.STATECARD_DISTRIBUTED_TASKS ?? 1000);
const POSTGRES = process.env.STATECARD_TEST_POSTGRES ?? "postgres://root@127.0.0.1:5432/test";
const REDIS = process.env.STATECARD_TEST_REDIS ?? "redis://127.0.0.1:6379";
const CONCURRENCY = 8;
const WAIT_MS = 200;
const STALL_MS = 2000;
const KILL_EVERY_MS = 3000;
const GIVE_UP_MS = 600_000;

const workerFile = fileURLToPath(new URL("distributed-worker.ts", import.meta.url));

interface Run extends Outcome {
  readonly queue: "PostgreSQL" | "Redis";
  readonly workers: number;
  readonly killing: boolean;
  readonly seconds: number;
  readonly killed: number;
}

/** Many tasks that wait for others, shared by workers over a queue, undisturbed and killed at random. */
export async function run(): Promise<Report | null> {
  const { Client } = (await import("pg")).default;
  const client = new Client({ connectionString: POSTGRES, connectionTimeoutMillis: 2000 });
  try {
    await client.connect();
  } catch {
    process.stderr.write("distributed: skipped, no PostgreSQL answers\n");
    return null;
  }
  const runs: Run[] = [];
  try {
    for (const queue of ["PostgreSQL", "Redis"] as const) {
      const location = queue === "Redis" ? REDIS : POSTGRES;
      for (const [workers, killing] of [
        [1, false],
        [2, false],
        [4, false],
        [2, true],
        [4, true],
      ] as const) {
        const schema = `distributed_${process.pid}_${runs.length}`;
        try {
          runs.push({ queue, ...(await runWith({ location, schema, workers, killing })) });
        } finally {
          await client.query(`drop schema if exists ${schema} cascade`);
        }
        const { seconds, killed } = runs.at(-1) as Run;
        process.stderr.write(`${queue}, ${workers} workers: ${seconds.toFixed(1)} s, ${killed} killed\n`);
      }
    }
  } finally {
    await client.end();
  }
  return reportOf(runs);
}

interface Setting {
  readonly location: string;
  readonly schema: string;
  readonly workers: number;
  readonly killing: boolean;
}

async function runWith({ location, schema, workers, killing }: Setting): Promise<Omit<Run, "queue">> {
  const counting = await startLedger();
  const { store, queue } = await openShared({ database: POSTGRES, schema, queue: location });
  const crew = new Crew({
    database: POSTGRES,
    schema,
    queue: location,
    ledgerPort: counting.port,
    waitMs: WAIT_MS,
    concurrency: CONCURRENCY,
    stallMs: STALL_MS,
  });
  try {
    const ledger = new Ledger(counting.port);
    const graph = errandGraph(store, ledger, WAIT_MS);
    const left = Array.from({ length: TASKS }, (_, index) => ({ taskId: `t${index}`, input: { name: `n${index}` } }));
    const submit = async () => {
      for (let task = left.pop(); task; task = left.pop()) await submitTask(queue, graph, task);
    };
    await Promise.all(Array.from({ length: 8 }, submit));
    await Promise.all(Array.from({ length: workers }, () => crew.add()));
    const begin = performance.now();
    crew.go();
    const over = new AbortController();
    const kills = killing ? crew.killAtRandom(randomFrom(SEED), over.signal) : Promise.resolve();
    while (crew.settled.size < TASKS && performance.now() - begin < GIVE_UP_MS) await sleep(20);
    const seconds = (performance.now() - begin) / 1000;
    over.abort();
    await kills;
    return {
      workers,
      killing,
      seconds,
      killed: crew.killed.length,
      ...(await examine(store, ledger, TASKS, crew.killed)),
    };
  } finally {
    crew.end();
    await queue.remove("errand");
    await queue.close();
    await store.close();
    counting.stop();
  }
}

/** The processes that work on one queue. */
class Crew {
  readonly killed: Killed[] = [];
  readonly settled = new Set<string>();
  private readonly setting: WorkerSetting;
  private readonly alive = new Map<ChildProcess, Set<string>>();

  constructor(setting: WorkerSetting) {
    this.setting = setting;
  }

  /** Starts a process and waits until it takes jobs. */
  async add(): Promise<void> {
    const worker = fork(workerFile, [JSON.stringify(this.setting)], {
      execArgv: ["--import", "tsx"],
      stdio: "inherit",
    });
    const died = once(worker, "exit").then(([code]) => {
      throw new Error(`a worker ended with code ${code} before it was ready`);
    });
    await Promise.race([once(worker, "message"), died]);
    // From now on it may be killed.
    died.catch(() => {});
    const running = new Set<string>();
    this.alive.set(worker, running);
    worker.on("message", (told: Told) => {
      if (typeof told !== "object") return;
      if ("began" in told) running.add(told.began);
      else {
        running.delete(told.settled);
        this.settled.add(told.settled);
      }
    });
  }

  go(): void {
    for (const worker of this.alive.keys()) worker.send("go");
  }

  /** Kills one process after the other; a new one takes its place. */
  async killAtRandom(random: () => number, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(KILL_EVERY_MS * (0.5 + random()), undefined, { signal: over }).catch(() => {});
      const workers = [...this.alive];
      const [victim, running] = workers[Math.floor(random() * workers.length)] ?? [];
      if (over.aborted || !victim || !running) return;
      this.alive.delete(victim);
      const gone = once(victim, "exit");
      victim.kill("SIGKILL");
      this.killed.push({ at: Date.now(), running: [...running] });
      await gone;
      await this.add();
      this.go();
    }
  }

  end(): void {
    for (const worker of this.alive.keys()) worker.kill("SIGKILL");
  }
}

function reportOf(runs: readonly Run[]): Report {
  const sum = (pick: (run: Run) => number) => runs.reduce((total, each) => total + pick(each), 0);
  const secondsOf = (queue: Run["queue"], workers: number) =>
    runs.find((each) => each.queue === queue && each.workers === workers && !each.killing)?.seconds ?? Number.NaN;
  const table: Table = {
    title: `${TASKS} tasks over a queue`,
    columns: [
      "jobs in",
      "workers",
      "killed",
      "tasks/s",
      "speed-up",
      "lost",
      "doubled",
      "taken over after, ms (median)",
      "(longest)",
    ],
    rows: runs.map(({ queue, workers, killing, seconds, killed, lost, doubled, takeovers }) => [
      queue,
      workers,
      killed,
      (TASKS / seconds).toFixed(1),
      killing ? null : (secondsOf(queue, 1) / seconds).toFixed(2),
      lost,
      doubled,
      takeovers.length > 0 ? Math.round(median(takeovers)) : null,
      takeovers.length > 0 ? Math.max(...takeovers) : null,
    ]),
    note: "Taken over: from the kill to the next thing that another process wrote into the task's log.",
  };
  const longest = Math.max(0, ...runs.flatMap(({ takeovers }) => takeovers));
  return {
    name: "distributed",
    title: "workers over a queue",
    summary:
      "Tasks are submitted, then 1, 2 and 4 worker processes share them, undisturbed and while one after the other is killed (SIGKILL) and replaced. A task waits for others at three places, and has one effect in the world, which a process of its own counts. Tasks are in PostgreSQL, jobs there too or in Redis. Measured is the compiled package.",
    seed: SEED,
    settings: {
      tasks: TASKS,
      "tasks at once a worker": CONCURRENCY,
      "wait at each place, ms": WAIT_MS,
      "stall interval, ms": STALL_MS,
      "a kill every, ms": KILL_EVERY_MS,
    },
    tables: [table],
    limits: [
      { promise: "lost tasks", value: sum(({ lost }) => lost), limit: 0 },
      { promise: "doubled effects", value: sum(({ doubled }) => doubled), limit: 0 },
      { promise: "longest takeover of a dead worker's task, in stall intervals", value: longest / STALL_MS, limit: 2 },
      ...[...new Set(runs.map(({ queue }) => queue))].map((queue) => ({
        promise: `time of two workers over ${queue}, in that of one (1.8 times as fast)`,
        value: Number((secondsOf(queue, 2) / secondsOf(queue, 1)).toFixed(3)),
        limit: 0.56,
      })),
    ],
    notShown: [
      "Several machines: all processes, PostgreSQL and Redis share this one, so with more workers than processors the speed-up says how the machine is shared, not what the queue can do.",
      "The 30 seconds until a lease of another machine ends: on one machine a dead process is known at once.",
    ],
    raw: runs,
  };
}
