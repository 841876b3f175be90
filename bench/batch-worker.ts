// A process that works on a batch, and tells what it does. Another one may work on the same batch, and it may be killed.
import { statecard } from "./compiled.ts";
import { Ledger } from "./crash/ledger.ts";
import { errandGraph } from "./errand.ts";

const { runBatch, sqliteStore } = statecard;

export interface WorkerSetting {
  readonly database: string;
  readonly ledgerPort: number;
  readonly tasks: number;
  /** How many tasks this process runs at once. */
  readonly slots: number;
  /** How long a task waits for others, at each of its three places. */
  readonly waitMs: number;
}

/** What a worker tells: what it does with a task, or that it is through with all. */
export type Told =
  | { readonly kind: "started" | "busy" | "retry" | "settled"; readonly taskId: string }
  | "ready"
  | "done";

const setting = JSON.parse(process.argv[2] ?? "{}") as WorkerSetting;
const ledger = new Ledger(setting.ledgerPort);

const graph = errandGraph(sqliteStore(setting.database), ledger, setting.waitMs);
const tell = (told: Told) => process.send?.(told);

process.once("message", () => {
  void runBatch(graph, {
    tasks: Array.from({ length: setting.tasks }, (_, index) => ({ taskId: `t${index}`, input: { name: `n${index}` } })),
    workers: setting.slots,
    attempts: 3,
    backoffMs: 100,
    onEvent: ({ kind, taskId }) => tell({ kind, taskId }),
  }).then(() => {
    tell("done");
    process.disconnect();
  });
});
await graph.runtime.store.tasks();
tell("ready");
