// A worker process of the benchmark: it tells when it is ready and when it begins or is through with a task. It may be killed.
import { statecard, TaskQueue, TaskWorker } from "./compiled.ts";
import { Ledger } from "./crash/ledger.ts";
import { errandGraph } from "./errand.ts";

export interface WorkerSetting {
  readonly database: string;
  /** The schema of the tasks, and what the queue's name begins with. */
  readonly schema: string;
  readonly queue: string;
  readonly ledgerPort: number;
  readonly waitMs: number;
  readonly concurrency: number;
  readonly stallMs: number;
}

export type Told = "ready" | { readonly began: string } | { readonly settled: string };

/** The store and the queue that all processes of a run share. */
export async function openShared({ database, schema, queue }: Pick<WorkerSetting, "database" | "schema" | "queue">) {
  const store = statecard.postgresStore(database, { schema });
  return { store, queue: await TaskQueue.open(queue, store, { prefix: schema }) };
}

if (process.send) {
  const setting = JSON.parse(process.argv[2] ?? "{}") as WorkerSetting;
  const { store, queue } = await openShared(setting);
  const graph = errandGraph(store, new Ledger(setting.ledgerPort), setting.waitMs);
  const tell = (told: Told) => process.send?.(told);
  process.once("message", () => {
    // oxlint-disable-next-line no-new
    new TaskWorker({
      store,
      queue,
      graphs: new Map([["errand", graph]]),
      concurrency: setting.concurrency,
      stallMs: setting.stallMs,
      upkeep: false,
      onEvent: ({ kind, taskId }) => {
        if (kind === "started") tell({ began: taskId });
        if (kind === "settled") tell({ settled: taskId });
      },
      log: () => {},
    });
  });
  await store.tasks({ limit: 1 });
  tell("ready");
  // Whoever has started it may just go away.
  process.once("disconnect", () => process.exit());
}
