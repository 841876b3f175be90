import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const file = fileURLToPath(new URL("ledger.mjs", import.meta.url));

/** An effect as the world remembers it. */
export interface Effect {
  readonly key: string;
  readonly [name: string]: unknown;
}

/** The ledger's process, as tools and the benchmark see it. */
export class Ledger {
  private readonly url: string;

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}/`;
  }

  async add(task: string, effect: Effect): Promise<void> {
    await fetch(this.url + encodeURIComponent(task), { method: "POST", body: JSON.stringify(effect) });
  }

  async of(task: string): Promise<readonly Effect[]> {
    const response = await fetch(this.url + encodeURIComponent(task));
    return (await response.json()) as Effect[];
  }
}

/** Starts the ledger's process, which counts effects beside all that is killed. */
export async function startLedger(): Promise<{ readonly port: number; readonly stop: () => void }> {
  const ledger = fork(file);
  const [port] = (await once(ledger, "message")) as [number];
  return { port, stop: () => void ledger.kill() };
}
