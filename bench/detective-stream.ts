import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { scanLog } from "../graphs/log-detective/skills/read-log-file/scan.ts";

/** What a search through a log came to, in a process whose heap is small. */
export interface Streamed {
  readonly lines: number;
  /** The sign of the first line that was found. */
  readonly found: string | null;
  readonly seconds: number;
  /** The most memory that the process had whenever it was looked at, program and all. */
  readonly megabytes: number;
}

/** Far too little to hold a large log. */
export const HEAP_MB = 64;

/** Searches a log for a word in a process of its own, whose heap may not grow beyond a few megabytes. */
export function searchApart(file: string, word: string): Streamed {
  const script = fileURLToPath(import.meta.url);
  const heap = `--max-old-space-size=${HEAP_MB}`;
  const ran = spawnSync(process.execPath, [heap, "--import", "tsx", script, file, word], { encoding: "utf8" });
  if (ran.status !== 0) throw new Error(`the search ended with ${ran.status ?? ran.signal}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as Streamed;
}

async function search(file: string, word: string): Promise<Streamed> {
  const filter = { keywords: [word], level: null, from: null, to: null, fromLine: 1, limit: 3, countBy: null };
  // Not what the system has as the maximum: on Linux that begins with the memory of the parent.
  let most = 0;
  const look = () => (most = Math.max(most, process.memoryUsage.rss()));
  const timer = setInterval(look, 10);
  const start = process.hrtime.bigint();
  const { lines, shown } = await scanLog(file, filter, new AbortController().signal);
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  clearInterval(timer);
  look();
  return { lines, found: shown[0]?.line ?? null, seconds, megabytes: most / 1e6 };
}

const [, script, file, word] = process.argv;
if (script === fileURLToPath(import.meta.url) && file !== undefined && word !== undefined) {
  process.stdout.write(JSON.stringify(await search(file, word)));
}
