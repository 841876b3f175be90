import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Ledger, startLedger } from "./ledger.ts";
import type { Order, Outcome, Setting } from "./worker.ts";

/** Where the tasks of a benchmark live. */
export interface Placement {
  readonly store: "sqlite" | "postgres";
  readonly location: string;
  readonly remove: () => Promise<void>;
}

const worker = fileURLToPath(new URL("worker.ts", import.meta.url));
const READY_AHEAD = 3;
const BEHIND_MS = 20_000;

/** A worker process that takes one order at a time. */
export class Worker {
  readonly process: ChildProcess;
  private readonly ready: Promise<unknown>;

  constructor(setting: Setting) {
    this.process = fork(worker, [JSON.stringify(setting)], { execArgv: ["--import", "tsx"], stdio: "inherit" });
    this.ready = once(this.process, "message");
    // One that is killed before it is ready is missed by nobody.
    this.ready.catch(() => {});
  }

  whenReady(): Promise<unknown> {
    return this.ready;
  }

  /** @returns the outcome, or null where the process was killed. */
  async give(order: Order, killAfterMs?: number): Promise<Outcome | null> {
    await this.ready;
    const timer = killAfterMs === undefined ? undefined : setTimeout(() => this.process.kill("SIGKILL"), killAfterMs);
    try {
      return await new Promise((resolve, reject) => {
        this.process.once("message", (outcome: Outcome) => resolve(outcome));
        this.process.once("exit", (code, signal) => {
          if (signal === "SIGKILL") resolve(null);
          else reject(new Error(`a worker ended with code ${code}`));
        });
        this.process.send(order, (error) => error && resolve(null));
      });
    } finally {
      clearTimeout(timer);
      this.process.removeAllListeners("message").removeAllListeners("exit");
    }
  }
}

/** The ledger, and workers that are started ahead of need: each kill uses one up. */
export class Cluster {
  readonly ledger: Ledger;
  private readonly place: Placement;
  private readonly stopLedger: () => void;
  private readonly port: number;
  private readonly idle: Worker[] = [];
  private started = 0;

  private constructor(place: Placement, port: number, stopLedger: () => void) {
    this.place = place;
    this.stopLedger = stopLedger;
    this.port = port;
    this.ledger = new Ledger(port);
    for (let number = 0; number < READY_AHEAD; number++) this.idle.push(this.newWorker());
  }

  static async start(place: Placement): Promise<Cluster> {
    const { port, stop } = await startLedger();
    return new Cluster(place, port, stop);
  }

  get storeKind(): string {
    return this.place.store;
  }

  /** Every second process has a clock that is behind. */
  newWorker(): Worker {
    const { store, location } = this.place;
    const behindMs = this.started++ % 2 === 1 ? BEHIND_MS : 0;
    return new Worker({ store, location, ledgerPort: this.port, behindMs });
  }

  take(): Worker {
    const worker = this.idle.shift() ?? this.newWorker();
    if (this.idle.length < READY_AHEAD) this.idle.push(this.newWorker());
    return worker;
  }

  /** Gives back a worker that still lives. */
  giveBack(worker: Worker): void {
    this.idle.unshift(worker);
  }

  async stop(): Promise<void> {
    for (const worker of this.idle) worker.process.kill("SIGKILL");
    this.stopLedger();
    await this.place.remove();
  }
}
