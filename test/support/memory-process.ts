// A process of its own that remembers: `memory-process.ts FILE` or `memory-process.ts URL SCHEMA`. It says `ready`,
// waits for a line, writes memories, and says how many of them were new.
import { once } from "node:events";
import { Memory, postgresStore, sqliteStore } from "statecard";

const [place = "", schema] = process.argv.slice(2);
const store = schema === undefined ? sqliteStore(place) : postgresStore(place, { schema });
const memory = new Memory(store.memory(), { user: "shared" });

process.stdout.write("ready\n");
await once(process.stdin, "data");
let isNew = 0;
for (let index = 0; index < 20; index++) {
  if ((await memory.remember({ type: "fact", text: `Line ${index} is red.`, priority: 2 })).isNew) isNew++;
}
process.stdout.write(`${isNew}\n`);
await store.close();
process.stdin.destroy();
