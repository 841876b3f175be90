import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const dist = new URL("../dist/", import.meta.url);
if (!existsSync(fileURLToPath(new URL("index.js", dist))))
  throw new Error("dist/ is missing: run `npm run build` first");

function load(path: string): Promise<unknown> {
  return import(new URL(path, dist).href);
}

// The benchmarks run what users run, the compiled package, and not the sources through a loader.
export const statecard = (await load("index.js")) as typeof import("statecard");
export const testing = (await load("testing/index.js")) as typeof import("statecard/testing");
export const { decisionSchema } = (await load("decision/schema.js")) as typeof import("../src/decision/schema.ts");
export const { parseDecision } = (await load("decision/parse.js")) as typeof import("../src/decision/parse.ts");
export const { submitTask } = (await load("batch/queue/submit.js")) as typeof import("../src/batch/queue/submit.ts");
export const { TaskQueue } = (await load(
  "batch/queue/task-queue.js",
)) as typeof import("../src/batch/queue/task-queue.ts");
export const { TaskWorker } = (await load("batch/queue/worker.js")) as typeof import("../src/batch/queue/worker.ts");
