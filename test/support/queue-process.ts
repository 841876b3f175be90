// A worker in a process of its own: `queue-process.ts SCHEMA QUEUE FOLDER`. It writes down in the folder what its
// tasks do, one line each, with its number, and says `ready`.
import { appendFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { TaskQueue } from "../../src/batch/queue/task-queue.ts";
import { TaskWorker } from "../../src/batch/queue/worker.ts";
import { postgresStore } from "../../src/storage/postgres/postgres.ts";
import { errandGraph } from "./errand.ts";
import { postgresUrl } from "./postgres.ts";

const [schema = "", location = "", folder = ""] = process.argv.slice(2);
const store = postgresStore(postgresUrl(), { schema, maxConnections: 4 });
const note = (what: string, taskId: string) => appendFile(`${folder}/${what}`, `${taskId} ${process.pid}\n`);
const graph = errandGraph(store, {
  wait: async (taskId) => {
    await note("waits", taskId);
    await sleep(500);
  },
  send: (taskId) => note("sent", taskId),
});
const queue = await TaskQueue.open(location, store, { prefix: schema });
const worker = new TaskWorker({
  store,
  queue,
  graphs: new Map([["errand", graph]]),
  concurrency: 3,
  stallMs: 1000,
  upkeep: false,
  log: (message) => process.stderr.write(`${message}\n`),
});
await worker.ready();
process.stdout.write("ready\n");
process.once("SIGTERM", () => {
  void worker.stop().then(async () => {
    await queue.close();
    await store.close();
  });
});
