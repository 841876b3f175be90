import type { SqlStore } from "../src/storage/sql-store.ts";
import { statecard } from "./compiled.ts";
import type { Ledger } from "./crash/ledger.ts";

/** A process that was killed, and the tasks that it was running then. */
export interface Killed {
  readonly at: number;
  readonly running: readonly string[];
}

/** What became of a run's tasks. */
export interface Outcome {
  /** Tasks that were not done or had no effect. */
  readonly lost: number;
  /** Effects that happened again. */
  readonly doubled: number;
  /** For each task that a killed process was running: milliseconds until another one wrote something into its log. */
  readonly takeovers: readonly number[];
}

/** Looks at the tasks t0, t1, … in the store and in the world. */
export async function examine(
  store: SqlStore,
  ledger: Ledger,
  tasks: number,
  killed: readonly Killed[],
): Promise<Outcome> {
  let lost = 0;
  let doubled = 0;
  for (let index = 0; index < tasks; index++) {
    const task = await statecard.describeTask(store, `t${index}`).catch(() => null);
    const effects = await ledger.of(`t${index}`);
    if (task?.status !== "completed" || effects.length === 0) lost++;
    doubled += Math.max(0, effects.length - 1);
  }
  const takeovers: number[] = [];
  for (const { at, running } of killed) {
    for (const taskId of running) {
      // What had ended when the process was killed, and was not told yet, needs nobody to take it over.
      const next = (await store.events(taskId)).find((event) => event.at > at);
      if (next) takeovers.push(next.at - at);
    }
  }
  return { lost, doubled, takeovers };
}
