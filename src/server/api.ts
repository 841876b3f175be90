import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { Hono } from "hono";
import type { TimeLimits } from "../batch/attempt.ts";
import { onStore } from "../compile/compile.ts";
import { wakeDue } from "../compile/wake-due.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { WorkflowError } from "../errors.ts";
import { systemClock, type Clock } from "../internal/clock.ts";
import { redact } from "../internal/redact.ts";
import { systemUser } from "../internal/system-user.ts";
import { openStore } from "../storage/open-store.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { Feeds } from "./feeds.ts";
import type { Doorway } from "./handle.ts";
import { mountRoutes } from "./mount.ts";
import { problemOf } from "./problem.ts";
import { RateLimit, type Rate } from "./rate-limit.ts";
import { ROUTES, type Route } from "./routes.ts";
import { Runner } from "./runner.ts";
import { Tasks } from "./tasks.ts";

/** How an API is set up. Times in milliseconds. */
export interface ApiOptions {
  /** The graphs that clients can start, by the id that they name. */
  readonly graphs: Readonly<Record<string, AnyGraph>>;
  /** Where tasks live; what `openStore()` opens unless set. */
  readonly store?: SqlStore;
  /** How many tasks run at once; 16 unless set. The others wait. */
  readonly concurrency?: number;
  /** How long a task may run; no limit unless set. What hangs is left behind, and keeps no other task waiting. */
  readonly timeLimits?: TimeLimits;
  /** How often one identity may ask; 100 a second, 200 at once, unless set. */
  readonly rate?: Rate;
  /** The largest request; 1 MiB unless set. */
  readonly maxBodyBytes?: number;
  /** Whether to take up what a server has left unfinished; true unless set. */
  readonly sweep?: boolean;
  /** How often it looks for that; 5,000 unless set. */
  readonly sweepEveryMs?: number;
  /** How often tasks are woken whose question or approval has run out of time; 60,000 unless set. */
  readonly wakeDueEveryMs?: number;
  /** How often a followed task is asked for what is new; 250 unless set. */
  readonly pollMs?: number;
  /** How often a silent stream of events shows that it is alive; 15,000 unless set. */
  readonly heartbeatMs?: number;
  /** Whoever reads nothing of a stream for so long is dropped; 60,000 unless set. */
  readonly stallMs?: number;
  /** How many streams one identity may have open; 500 unless set. */
  readonly streamsPerIdentity?: number;
  /** Gets a line about whatever clients are not told; standard error unless set. */
  readonly log?: (message: string) => void;
  readonly clock?: Clock;
}

/** A compiled workflow, whatever its fields are. */
export type AnyGraph = Pick<WorkflowGraph, "runtime">;

const DEFAULTS = {
  concurrency: 16,
  rate: { perSecond: 100, burst: 200 },
  maxBodyBytes: 1024 * 1024,
  sweepEveryMs: 5_000,
  wakeDueEveryMs: 60_000,
  pollMs: 250,
  heartbeatMs: 15_000,
  stallMs: 60_000,
  streamsPerIdentity: 500,
};

/**
 * The HTTP API over compiled workflows: a Hono app, for `listen`, for a server of your own, or for
 * `http.app` in langgraph.json. It runs tasks in the background of this process.
 *
 * @throws INVALID_OPTIONS where two graphs have workflows of one name.
 * @example
 * const api = new HttpApi({ graphs: { ticket }, store: sqliteStore("tasks.db") });
 * const response = await api.app.request("/healthz");
 */
export class HttpApi {
  /** The routes alone, without anything that would catch other ones; mount it where you like. */
  readonly app = new Hono();
  readonly store: SqlStore;
  readonly feeds: Feeds;
  private readonly runner: Runner;
  private readonly graphs: ReadonlyMap<string, WorkflowGraph>;
  private readonly log: (message: string) => void;
  private readonly timers: readonly NodeJS.Timeout[];
  private readonly stopping = new AbortController();

  constructor(options: ApiOptions) {
    const settings = { ...DEFAULTS, ...options };
    const { log: write = (line: string) => void process.stderr.write(`${line}\n`) } = options;
    const log = (line: string) => write(redact(line));
    this.log = log;
    // Every request that waits listens to it.
    setMaxListeners(0, this.stopping.signal);
    this.store = options.store ?? openStore();
    this.graphs = ownGraphs(options.graphs, this.store);
    const { store } = this;
    this.feeds = new Feeds({ ...settings, store, log, perIdentity: settings.streamsPerIdentity });
    this.runner = new Runner({
      store,
      log,
      concurrency: settings.concurrency,
      timeLimits: options.timeLimits ?? {},
      graphs: new Map([...this.graphs.values()].map((graph) => [graph.runtime.workflow.name, graph])),
      onSettled: (taskId) => this.feeds.nudge(taskId),
    });
    const door: Doorway = {
      store,
      log,
      localUser: systemUser(),
      maxBodyBytes: settings.maxBodyBytes,
      limit: new RateLimit(settings.rate, options.clock ?? systemClock),
      isStopping: () => this.stopping.signal.aborted,
    };
    const tasks = new Tasks(store, this.runner, this.graphs);
    mountRoutes(this.app, { door, tasks, feeds: this.feeds, stopping: this.stopping.signal, version: version() });
    this.timers = [
      ...(options.sweep === false ? [] : [every(settings.sweepEveryMs, () => this.sweep())]),
      every(settings.wakeDueEveryMs, () => this.wakeDue()),
    ];
    if (options.sweep !== false) void this.sweep();
  }

  /** The ids of its graphs. */
  get graphIds(): readonly string[] {
    return [...this.graphs.keys()];
  }

  /** Answers any request, also those that fit no route. */
  fetch = async (request: Request, bindings?: object): Promise<Response> => {
    const answered = await this.app.fetch(request, bindings);
    if (answered.status !== 404 || answered.headers.get("content-type")?.startsWith("application/problem+json")) {
      return answered;
    }
    const { pathname } = new URL(request.url);
    const paths = [...new Set((Object.values(ROUTES) as readonly Route[]).map(({ path }) => path))].join(", ");
    return problemOf(
      new WorkflowError("NOT_FOUND", `there is nothing at ${pathname.slice(0, 200)}; there are: ${paths}`),
    );
  };

  /**
   * Stops: requests are refused, streams end and tell their clients to come back, and each task that runs commits
   * the superstep that it is in. Nothing is lost: the next start goes on with it.
   *
   * @param graceMs after so long a superstep is cut off; 30,000 unless set.
   */
  async stop(graceMs = 30_000): Promise<void> {
    this.stopping.abort();
    for (const timer of this.timers) clearInterval(timer);
    this.feeds.close();
    await this.runner.drain(graceMs);
  }

  private async sweep(): Promise<void> {
    await this.guarded("sweep", () => this.runner.sweep());
  }

  private async wakeDue(): Promise<void> {
    for (const graph of this.graphs.values()) {
      await this.guarded("wakeDue", () => wakeDue(graph, (taskId) => this.runner.wake(taskId)));
    }
  }

  /** What repeats anyway may fail once. */
  private async guarded(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.log(`${what}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

function ownGraphs(given: ApiOptions["graphs"], store: SqlStore): ReadonlyMap<string, WorkflowGraph> {
  const graphs = new Map<string, WorkflowGraph>();
  const names = new Map<string, string>();
  for (const [id, graph] of Object.entries(given)) {
    const { name } = graph.runtime.workflow;
    const other = names.get(name);
    if (other !== undefined) {
      const message = `graphs "${other}" and "${id}" both have a workflow "${name}": a task would not know which is its own`;
      throw new WorkflowError("INVALID_OPTIONS", message);
    }
    names.set(name, id);
    graphs.set(id, onStore(graph as WorkflowGraph, store));
  }
  return graphs;
}

function every(ms: number, work: () => Promise<void>): NodeJS.Timeout {
  let isBusy = false;
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    void work().finally(() => (isBusy = false));
  }, ms);
  timer.unref();
  return timer;
}

/** The version of this package. */
function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
