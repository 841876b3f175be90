import { Redis } from "ioredis";
import { Queue } from "bullmq";
import pg from "pg";
import { afterEach, describe } from "vitest";
import { TaskQueue, UPKEEP_QUEUE } from "../../src/batch/queue/task-queue.ts";
import { TaskWorker, type WorkerOptions } from "../../src/batch/queue/worker.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { describePostgres, postgresUrl, type TestSchema } from "./postgres.ts";
import { errandGraph, type ErrandClients } from "./errand.ts";

const REDIS = process.env.STATECARD_TEST_REDIS ?? "redis://127.0.0.1:6379";

async function redisAnswers(): Promise<boolean> {
  const probe = new Redis(REDIS, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  probe.on("error", () => {});
  try {
    await probe.connect();
    return (await probe.ping()) === "PONG";
  } catch {
    return false;
  } finally {
    probe.disconnect();
  }
}

const hasRedis = await redisAnswers();

/** The same tests with the jobs in PostgreSQL and in Redis; the tasks are in PostgreSQL. */
export function onBothQueues(tests: (place: QueuePlace) => void): void {
  describePostgres("jobs in PostgreSQL", (schema) => tests(new QueuePlace(schema, postgresUrl())));
  const reason = hasRedis ? "" : " (skipped: no Redis answers at STATECARD_TEST_REDIS or 127.0.0.1:6379)";
  describe.skipIf(!hasRedis)(`jobs in Redis${reason}`, () => {
    describePostgres("tasks in PostgreSQL", (schema) => tests(new QueuePlace(schema, REDIS)));
  });
}

/** Queues of their own for a test, and workers in this process; all of it is put away after each test. */
export class QueuePlace {
  readonly schema: TestSchema;
  readonly location: string;
  private readonly queues: TaskQueue[] = [];
  private readonly workers: TaskWorker[] = [];

  constructor(schema: TestSchema, location: string) {
    this.schema = schema;
    this.location = location;
    afterEach(async () => {
      await Promise.all(this.workers.splice(0).map((worker) => worker.stop(0)));
      const [first] = this.queues;
      for (const workflow of ["errand", UPKEEP_QUEUE]) await first?.remove(workflow);
      await Promise.all(this.queues.splice(0).map((queue) => queue.close()));
    });
  }

  async queue(store: SqlStore): Promise<TaskQueue> {
    const queue = await TaskQueue.open(this.location, store, { prefix: this.schema.name });
    this.queues.push(queue);
    return queue;
  }

  /** A worker that takes jobs. */
  async worker(
    store: SqlStore,
    queue: TaskQueue,
    clients: ErrandClients,
    options: Partial<WorkerOptions> = {},
  ): Promise<TaskWorker> {
    const graphs = options.graphs ?? new Map([["errand", errandGraph(store, clients)]]);
    const given = { store, queue, graphs, concurrency: 4, stallMs: 1000, backoffMs: 10, upkeep: false, log: () => {} };
    const worker = new TaskWorker({ ...given, ...options });
    this.workers.push(worker);
    await worker.ready();
    return worker;
  }

  /** BullMQ's own queue of the errands unless another is named, to lose and double jobs in. */
  async raw<T>(queue: TaskQueue, use: (jobs: Queue) => Promise<T>, workflow = "errand"): Promise<T> {
    const { connection, backend } = queue.connection;
    const jobs = new Queue(queue.nameOf(workflow), { connection }, ...((backend ? [backend] : []) as []));
    try {
      return await use(jobs);
    } finally {
      await jobs.close();
    }
  }
}

/** Makes the one job of a queue look as if so many workers had died of it. */
export async function setStalled(location: string, queue: string, times: number): Promise<void> {
  if (location === REDIS) {
    const redis = new Redis(location);
    const [job] = await redis.lrange(`bull:${queue}:wait`, 0, 0);
    await redis.hset(`bull:${queue}:${job}`, "stc", times);
    redis.disconnect();
    return;
  }
  const client = new pg.Client({ connectionString: location });
  await client.connect();
  await client.query("update bullmq.job set stalled_count = $1 where queue = $2", [times, queue]);
  await client.end();
}

/** Makes the one job that a worker has of a queue look as if another had it by now. */
export async function giveAway(location: string, queue: string): Promise<void> {
  if (location === REDIS) {
    const redis = new Redis(location);
    const [job] = await redis.lrange(`bull:${queue}:active`, 0, 0);
    await redis.set(`bull:${queue}:${job}:lock`, "another", "PX", 60_000);
    redis.disconnect();
    return;
  }
  const client = new pg.Client({ connectionString: location });
  await client.connect();
  await client.query(
    "update bullmq.job set lock_token = 'another', locked_until_ms = locked_until_ms + 60000 where queue = $1 and state = 'active'",
    [queue],
  );
  await client.end();
}
