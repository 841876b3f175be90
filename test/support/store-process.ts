// A process of its own that uses a store: `store-process.ts hold|list TASK FILE` or `… TASK URL SCHEMA`.
// It says `ready`, waits for a line, does what it is told, says `done`, and stays until it is ended.
import { once } from "node:events";
import { postgresStore } from "../../src/storage/postgres/postgres.ts";
import { sqliteStore } from "../../src/storage/sqlite/sqlite.ts";
import { StoredTask } from "../../src/testing/stored-task.ts";

const [command, task = "", place = "", schema] = process.argv.slice(2);
const store = schema === undefined ? sqliteStore(place) : postgresStore(place, { schema });
const say = (line: string) => void process.stdout.write(`${line}\n`);

say("ready");
await once(process.stdin, "data");
if (command === "hold") {
  const { lease } = await StoredTask.start(store, task);
  await store.running(lease);
}
say(`done ${command === "list" ? (await store.tasks()).length : ""}`);
setInterval(() => {}, 1000);
