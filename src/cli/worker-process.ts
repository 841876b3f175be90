import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { usage } from "./exit.ts";

export interface WorkerProcessOptions {
  /** Where the tasks are. */
  readonly location: string;
  /** Where the jobs are. */
  readonly queueLocation: string;
  readonly graphs: readonly string[];
  readonly stallSeconds: number;
  /** Gets what the worker prints, and what becomes of it. */
  readonly say: (line: string) => void;
}

const MAIN = fileURLToPath(new URL("main.js", import.meta.url));

/** A worker in a process of its own, whose lines are shown with its number. It ends where this process does. */
export class WorkerProcess {
  /** Resolves when it takes jobs; rejects where it ends before. */
  readonly ready: Promise<unknown>;
  private readonly number: number;
  private readonly say: (line: string) => void;
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;
  private isWanted = true;

  constructor(number: number, { location, queueLocation, graphs, stallSeconds, say }: WorkerProcessOptions) {
    this.number = number;
    this.say = say;
    const args = ["worker", "--graphs", graphs.join(","), "--stall-interval", String(stallSeconds)];
    // Locations can hold passwords, which would be seen in a list of processes.
    const env = { ...process.env, STATECARD_DB: location, STATECARD_QUEUE: queueLocation };
    // A group of its own, so that Ctrl-C comes from here alone.
    this.child = spawn(process.execPath, [MAIN, ...args], {
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.ended = once(this.child, "close").then(() => {
      if (this.isWanted) say(`[${number}] ended ${this.how()}`);
    });
    const announced = this.show(this.child.stdout);
    this.show(this.child.stderr);
    const early = this.ended.then(() => {
      throw usage(`worker ${number} ended ${this.how()} before it took a task; its lines above say why`);
    });
    this.ready = Promise.race([announced && once(announced, "line"), early]);
    // Nobody may wait for it any more.
    this.ready.catch(() => {});
  }

  /** Lets it end in order. */
  async stop(): Promise<void> {
    this.end("SIGTERM");
    await this.ended;
  }

  /** Ends it at once. */
  kill(): void {
    this.end("SIGKILL");
  }

  private end(signal: NodeJS.Signals): void {
    this.isWanted = false;
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
  }

  private how(): string {
    const { exitCode, signalCode } = this.child;
    return signalCode === null ? `with code ${exitCode}` : `by ${signalCode}`;
  }

  private show(output: Readable | null): Interface | null {
    if (!output) return null;
    const lines = createInterface({ input: output });
    // What a worker says about itself is said once, for all of them.
    lines.on("line", (line) => /^(?:Worker for|Ctrl-C|Stopping)/.test(line) || this.say(`[${this.number}] ${line}`));
    return lines;
  }
}
