import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Told, WorkerSetting } from "./batch-worker.ts";
import { statecard } from "./compiled.ts";
import { Ledger, startLedger } from "./crash/ledger.ts";
import { examine, type Killed, type Outcome } from "./killed.ts";
import { randomFrom } from "./random.ts";
import type { Report } from "./report.ts";

const SEED = 20_261_130;
const TASKS = Number(process.env.STATECARD_BATCH_TASKS ?? 1000);
const SLOTS = 4;
const WAIT_MS = 80;
const KILL_EVERY_MS = 1500;

const workerFile = fileURLToPath(new URL("batch-worker.ts", import.meta.url));

interface Run extends Outcome {
  readonly name: string;
  readonly processes: number;
  readonly seconds: number;
  readonly killed: number;
}

/** Many tasks that wait for others: by one process, by two, and by two that are killed at random. */
export async function run(): Promise<Report> {
  const one = await runWith("1 process", 1, null);
  const two = await runWith("2 processes", 2, null);
  const killed = await runWith("2 processes, killed at random", 2, randomFrom(SEED));
  return reportOf([one, two, killed], one.seconds / two.seconds);
}

async function runWith(name: string, processes: number, random: (() => number) | null): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-batch-"));
  const ledger = await startLedger();
  const database = join(folder, "tasks.db");
  const crew = new Crew({ database, ledgerPort: ledger.port, tasks: TASKS, slots: SLOTS, waitMs: WAIT_MS });
  try {
    const workers = await Promise.all(Array.from({ length: processes }, () => crew.newWorker()));
    const begin = performance.now();
    const done = Promise.race(workers.map((worker) => crew.work(worker)));
    const killing = random === null ? null : crew.killAtRandom(random);
    await done;
    if (killing) await crew.allDone;
    const seconds = (performance.now() - begin) / 1000;
    await killing;
    const store = statecard.sqliteStore(database);
    const outcome = await examine(store, new Ledger(ledger.port), TASKS, crew.killed);
    await store.close();
    return { name, processes, seconds, killed: crew.killed.length, ...outcome };
  } finally {
    crew.end();
    ledger.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The processes that work on one batch. */
class Crew {
  readonly killed: Killed[] = [];
  readonly allDone: Promise<void>;
  private readonly setting: WorkerSetting;
  private readonly alive = new Map<ChildProcess, Set<string>>();
  private setDone = () => {};
  private isDone = false;

  constructor(setting: WorkerSetting) {
    this.setting = setting;
    this.allDone = new Promise((resolve) => (this.setDone = resolve));
  }

  /** Starts a process and waits until it is loaded. */
  async newWorker(): Promise<ChildProcess> {
    const worker = fork(workerFile, [JSON.stringify(this.setting)], {
      execArgv: ["--import", "tsx"],
      stdio: "inherit",
    });
    await once(worker, "message");
    return worker;
  }

  /** Lets a process work; resolves when it is through with the whole batch, or dead. */
  work(worker: ChildProcess): Promise<void> {
    const running = new Set<string>();
    this.alive.set(worker, running);
    return new Promise((resolve) => {
      worker.on("message", (told: Told) => {
        if (told === "done") {
          this.isDone = true;
          this.setDone();
        } else if (typeof told === "object") {
          if (told.kind === "started") running.add(told.taskId);
          else running.delete(told.taskId);
        }
      });
      worker.on("exit", () => {
        this.alive.delete(worker);
        if (this.isDone) resolve();
      });
      this.allDone.then(resolve, resolve);
      worker.send("go");
    });
  }

  /** Kills one process after the other; each time, one that was started ahead takes its place. */
  async killAtRandom(random: () => number): Promise<void> {
    while (!this.isDone) {
      const [next] = await Promise.all([this.newWorker(), sleep(KILL_EVERY_MS * (0.5 + random()))]);
      const workers = [...this.alive];
      const [victim, running] = workers[Math.floor(random() * workers.length)] ?? [];
      if (this.isDone || !victim || !running) {
        next.kill("SIGKILL");
        return;
      }
      const gone = once(victim, "exit");
      victim.kill("SIGKILL");
      this.killed.push({ at: Date.now(), running: [...running] });
      await gone;
      void this.work(next);
    }
  }

  end(): void {
    for (const worker of this.alive.keys()) worker.kill("SIGKILL");
  }
}

function reportOf(runs: readonly Run[], speedUp: number): Report {
  const takeovers = runs.flatMap((run) => run.takeovers).toSorted((a, b) => a - b);
  const at = (share: number) => takeovers[Math.min(takeovers.length - 1, Math.floor(share * takeovers.length))] ?? null;
  const sum = (pick: (run: Run) => number) => runs.reduce((total, run) => total + pick(run), 0);
  return {
    name: "batch",
    title: "many tasks, several processes, one file",
    summary: `${TASKS} tasks, each of which waits three times ${WAIT_MS} ms for others: a lookup, a step of code, and an effect that must not happen twice. Processes work on the same SQLite file, ${SLOTS} tasks at once each, and find out by leases what is left. In the third run a process is killed (SIGKILL) every second or two, and another takes its place. The effects are counted by a process of its own. Measured is the compiled package.`,
    seed: SEED,
    settings: { tasks: TASKS, "tasks at once a process": SLOTS, "waits of a task": `3 × ${WAIT_MS} ms` },
    tables: [
      {
        title: "Runs",
        columns: ["", "seconds", "tasks a second", "killed", "lost", "doubled"],
        rows: runs.map((run) => [
          run.name,
          round(run.seconds),
          round(TASKS / run.seconds),
          run.killed,
          run.lost,
          run.doubled,
        ]),
        note: `Two processes are ${round(speedUp)} times as fast as one.`,
      },
      {
        title: "A dead process's task goes on after",
        columns: ["", "tasks", "median ms", "95 % ms", "longest ms"],
        rows: [["until another process commits something of it", takeovers.length, at(0.5), at(0.95), at(1)]],
        note: "With what the taken over step itself takes, which is a wait of a task and more.",
      },
    ],
    limits: [
      { promise: "lost tasks and effects", value: sum((run) => run.lost), limit: 0 },
      { promise: "doubled effects", value: sum((run) => run.doubled), limit: 0 },
      { promise: "time of two processes, in that of one (1.8 times as fast)", value: round(1 / speedUp), limit: 0.56 },
      { promise: "kills short of ten", value: Math.max(0, 10 - sum((run) => run.killed)), limit: 0 },
    ],
    notShown: [
      "Tasks that compute instead of waiting: there the machine's cores are the limit, and a model's rate limits are with real ones.",
      "Several machines: those work on PostgreSQL, by queue and workers.",
      "A process on another machine that dies: its lease has to run out first (30 s). One of this machine is seen to be dead at once.",
    ],
    raw: runs,
  };
}

function round(value: number): number {
  return Number(value.toFixed(2));
}
