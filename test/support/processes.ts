import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const SCRIPT = fileURLToPath(new URL("store-process.ts", import.meta.url));

/** A process of its own with a store on the same database. */
export class StoreProcess {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  private constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, ["--import", "tsx", SCRIPT, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    const { stdout } = this.child;
    if (!stdout) throw new Error("the process has no output");
    this.lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
    onTestFinished(() => void this.child.kill("SIGKILL"));
  }

  /** Starts it and waits until it is loaded; it does nothing yet. */
  static async start(command: "hold" | "list", task: string, place: readonly string[]): Promise<StoreProcess> {
    const started = new StoreProcess([command, task, ...place]);
    await started.line();
    return started;
  }

  /** Lets it do its work. */
  async go(): Promise<string> {
    this.child.stdin?.write("go\n");
    return (await this.line()).replace("done ", "");
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }

  private async line(): Promise<string> {
    const next = await this.lines.next();
    if (next.done) throw new Error("the process ended before it was done");
    return next.value;
  }
}
