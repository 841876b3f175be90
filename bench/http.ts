import { spawn, type ChildProcess } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Report } from "./report.ts";

const SECONDS = Number(process.env.STATECARD_HTTP_SECONDS ?? 600);
const CLIENTS = 200;
const TASKS = 40;
const PER_SECOND = 50;
const LATE_MS = 30_000;
const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** What memory may grow in an hour, by the straight line through the last four fifths. */
const GROWTH_LIMIT_MB = 60;

interface Counts {
  requests: number;
  events: number;
  ended: number;
  readonly errors: string[];
  readonly times: number[];
}

interface Sample {
  readonly second: number;
  readonly megabytes: number;
}

/**
 * 200 clients follow 40 tasks while 50 requests a second start, read, answer and list tasks, which end and are
 * followed by new ones: whether anything fails, how long requests take, and whether the server's memory grows.
 */
export async function run(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  const server = spawn(
    process.execPath,
    [join(ROOT, "dist/cli/main.js"), "serve", "--port", "0", "--json", "--graphs", "ticket", "--rate", "1000"],
    {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, STATECARD_DB: join(folder, "tasks.db") },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  try {
    const url = await urlOf(server);
    const counts: Counts = { requests: 0, events: 0, ended: 0, errors: [], times: [] };
    const load = new Load(url, counts);
    const samples: Sample[] = [];
    const began = Date.now();
    const sampling = setInterval(() => {
      samples.push({ second: (Date.now() - began) / 1000, megabytes: residentMegabytes(server) });
    }, 1000);
    await load.run(SECONDS * 1000);
    clearInterval(sampling);
    server.kill("SIGTERM");
    const [code] = (await once(server, "exit")) as [number | null];
    if (code !== 0) counts.errors.push(`the server ended with ${code}`);
    return reportOf(counts, samples);
  } finally {
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function urlOf(server: ChildProcess): Promise<string> {
  let said = "";
  for await (const chunk of server.stdout ?? []) {
    said += String(chunk);
    if (said.includes("\n")) break;
  }
  return (JSON.parse(said) as { url: string }).url;
}

/** Requests at a steady rate, and clients that follow what they make. */
class Load {
  private readonly url: string;
  private readonly counts: Counts;
  private readonly slots: Slot[] = Array.from({ length: TASKS }, () => ({ taskId: null, step: 0, isBusy: false }));
  private readonly givenUp = new AbortController();
  private isOver = false;

  constructor(url: string, counts: Counts) {
    this.url = url;
    this.counts = counts;
    setMaxListeners(0, this.givenUp.signal);
  }

  async run(ms: number): Promise<void> {
    const clients = Array.from({ length: CLIENTS }, (_, index) => this.follow(index % TASKS));
    const end = Date.now() + ms;
    const pending = new Set<Promise<void>>();
    for (let index = 0; Date.now() < end; index++) {
      const slot = this.slots[index % TASKS];
      if (slot && !slot.isBusy) {
        const request = this.next(slot).finally(() => pending.delete(request));
        pending.add(request);
      }
      await sleep(1000 / PER_SECOND - ((Date.now() - (end - ms)) % (1000 / PER_SECOND)));
    }
    await Promise.all(pending);
    this.isOver = true;
    // Every stream ends with its task.
    await Promise.all(this.slots.map(({ taskId }) => this.cancel(taskId)));
    const late = setTimeout(() => this.givenUp.abort(new Error("the stream did not end")), LATE_MS);
    await Promise.all(clients);
    clearTimeout(late);
  }

  private async cancel(taskId: string | null): Promise<void> {
    if (taskId !== null) await this.send("POST", `/tasks/${taskId}/cancel`, {}, [200, 409]);
  }

  /** The next request of a task's life: start, read, answer, list, answer. */
  private async next(slot: Slot): Promise<void> {
    slot.isBusy = true;
    const path = `/tasks/${slot.taskId}`;
    switch (slot.step++ % 5) {
      case 0: {
        const made = await this.send("POST", "/tasks?wait=60", { graph: "ticket", message: "network unstable" }, [200]);
        slot.taskId = (made as { taskId: string } | null)?.taskId ?? null;
        break;
      }
      case 1:
        await this.send("GET", path, undefined, [200]);
        break;
      case 2:
        await this.send("POST", `${path}/resume?wait=60`, { answer: "P1" }, [200]);
        break;
      case 3:
        await this.send("GET", "/tasks?limit=20", undefined, [200]);
        break;
      default: {
        const ended = await this.send("POST", `${path}/resume?wait=60`, { answer: "yes" }, [200]);
        // Whatever went wrong, its clients have to come to an end.
        if ((ended as { status?: string } | null)?.status !== "completed") await this.cancel(slot.taskId);
      }
    }
    slot.isBusy = false;
  }

  private async send(
    method: string,
    path: string,
    body: object | undefined,
    expected: readonly number[],
  ): Promise<unknown> {
    const began = performance.now();
    this.counts.requests++;
    try {
      const response = await fetch(this.url + path, {
        method,
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const json: unknown = await response.json();
      this.counts.times.push(performance.now() - began);
      if (!expected.includes(response.status)) this.counts.errors.push(`${method} ${path}: ${JSON.stringify(json)}`);
      return json;
    } catch (error) {
      this.counts.errors.push(`${method} ${path}: ${String(error)}`);
      return null;
    }
  }

  /** Follows a slot's tasks one after the other; each stream has to tell the whole log and its end. */
  private async follow(index: number): Promise<void> {
    let followed: string | null = null;
    while (!this.isOver) {
      const { taskId } = this.slots[index] ?? { taskId: null };
      if (taskId === null || taskId === followed) {
        await sleep(50);
        continue;
      }
      followed = taskId;
      try {
        await this.read(taskId);
      } catch (error) {
        this.counts.errors.push(`events of ${taskId}: ${String(error)}`);
      }
    }
  }

  private async read(taskId: string): Promise<void> {
    const response = await fetch(`${this.url}/tasks/${taskId}/events`, { signal: this.givenUp.signal });
    const decoder = new TextDecoder();
    let [rest, last, hasEnded] = ["", 0, false];
    for await (const chunk of response.body ?? []) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const id = Number(/^id: (\d+)$/m.exec(block)?.[1] ?? 0);
        if (id > 0 && id !== last + 1) this.counts.errors.push(`events of ${taskId}: ${id} came after ${last}`);
        if (id > 0) last = id;
        if (block.startsWith("event: end")) hasEnded = true;
        this.counts.events++;
      }
    }
    if (hasEnded) this.counts.ended++;
    else this.counts.errors.push(`events of ${taskId}: the stream broke off after ${last}`);
  }
}

interface Slot {
  taskId: string | null;
  step: number;
  isBusy: boolean;
}

function residentMegabytes({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/** Megabytes an hour, by the straight line that fits best. */
function slope(samples: readonly Sample[]): number {
  const mean = (pick: (sample: Sample) => number) =>
    samples.reduce((sum, each) => sum + pick(each), 0) / samples.length;
  const [time, size] = [mean(({ second }) => second), mean(({ megabytes }) => megabytes)];
  const covariance = mean(({ second, megabytes }) => (second - time) * (megabytes - size));
  return (3600 * covariance) / mean(({ second }) => (second - time) ** 2);
}

function reportOf(counts: Counts, samples: readonly Sample[]): Report {
  const settled = samples.slice(Math.floor(samples.length / 5));
  const growth = slope(settled);
  const times = counts.times.toSorted((a, b) => a - b);
  const at = (part: number) => Math.round(10 * (times[Math.floor(part * (times.length - 1))] ?? Number.NaN)) / 10;
  const sizes = samples.map(({ megabytes }) => megabytes);
  const first = settled[0]?.megabytes ?? Number.NaN;
  return {
    name: "http",
    title: "the HTTP API under load",
    summary: `${CLIENTS} clients follow ${TASKS} tasks as server-sent events while ${PER_SECOND} requests a second start, read, answer and list tasks on one \`statecard serve\` with SQLite. Each stream has to tell every entry of its task's log once, in order, and the end.`,
    seed: 0,
    settings: { seconds: SECONDS, clients: CLIENTS, "requests a second": PER_SECOND },
    tables: [
      {
        title: "requests and streams",
        columns: ["requests", "errors", "median ms", "p95 ms", "p99 ms", "max ms", "frames", "streams to their end"],
        rows: [
          [counts.requests, counts.errors.length, at(0.5), at(0.95), at(0.99), at(1), counts.events, counts.ended],
        ],
        note: "An answer's time includes the steps that the task runs until it pauses again (`wait=60`).",
      },
      {
        title: "the server's memory (resident, MB)",
        columns: ["after a fifth", "at the end", "largest", "growth an hour"],
        rows: [[Math.round(first), Math.round(sizes.at(-1) ?? 0), Math.round(Math.max(...sizes)), Math.round(growth)]],
        note: "Growth is the slope of the line through the last four fifths.",
      },
    ],
    limits: [
      { promise: "no request and no stream fails", value: counts.errors.length, limit: 0 },
      { promise: `memory grows by less than ${GROWTH_LIMIT_MB} MB an hour`, value: growth, limit: GROWTH_LIMIT_MB },
    ],
    notShown: ["The load comes from a process on the same machine, which shares its cores."],
    raw: { samples, errors: counts.errors.slice(0, 20) },
  };
}
