import type { Queue } from "bullmq";
import { compile, defineWorkflow, describeTask, field } from "statecard";
import { afterAll, expect, test, vi } from "vitest";
import { z } from "zod";
import type { BatchEvent } from "../../src/batch/batch.ts";
import { measuresOf } from "../../src/batch/measures.ts";
import { submitAnswer, submitTask } from "../../src/batch/queue/submit.ts";
import { UPKEEP_QUEUE, type TaskQueue } from "../../src/batch/queue/task-queue.ts";
import { upkeep } from "../../src/batch/queue/upkeep.ts";
import type { WorkflowGraph } from "../../src/compile/workflow-graph.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { errandGraph, type ErrandClients } from "../support/errand.ts";
import { RemoteModel } from "../support/remote-model.ts";
import { giveAway, onBothQueues, setStalled } from "../support/queues.ts";

const SOON = { timeout: 60_000, interval: 20 };
const none = { wait: async () => {}, send: async () => {} };

/** What the errands of a test do, and how many of them at once; they wait while the gate is shut. */
class World implements ErrandClients {
  readonly sent: string[] = [];
  readonly waits: string[] = [];
  atOnce = 0;
  mostAtOnce = 0;
  private gate = Promise.resolve();
  private open = () => {};

  shut(): void {
    this.gate = new Promise((resolve) => (this.open = resolve));
  }

  unlock(): void {
    this.open();
  }

  readonly wait = async (taskId: string): Promise<void> => {
    this.waits.push(taskId);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce);
    await this.gate;
    await new Promise((resolve) => setTimeout(resolve, 10));
    this.atOnce--;
  };
  readonly send = async (taskId: string): Promise<void> => void this.sent.push(taskId);
}

async function submitAll(queue: TaskQueue, graph: WorkflowGraph, taskIds: readonly string[]): Promise<void> {
  for (const taskId of taskIds) await submitTask(queue, graph, { taskId, input: {} });
}

function otherGraph(store: SqlStore): WorkflowGraph {
  const other = defineWorkflow({
    name: "other",
    version: 1,
    state: {},
    initial: "begun",
    steps: { begun: { to: ["ended"], run: () => ({ next: "ended" }) }, ended: { final: true } },
  });
  return compile(other, { store }) as unknown as WorkflowGraph;
}

const letter = defineWorkflow({
  name: "letter",
  version: 1,
  state: { to: field(z.string()).sensitive("personal data") },
  input: ["to"],
  initial: "begun",
  steps: {
    begun: { to: ["writing"], run: ({ to }) => (to === "whom" ? { ask: "To whom?" } : { next: "writing" }) },
    writing: { to: ["done"] },
    done: { final: true },
  },
});

/** Two letters: the model of one needs a consent, a person is asked about the other. */
const consenting = defineWorkflow({
  name: "errand",
  version: 1,
  state: {},
  initial: "all",
  steps: {
    all: {
      map: {
        workflow: letter,
        over: () => ["ada", "whom"],
        input: (to) => ({ to: String(to) }),
        output: () => ({ next: "done" }),
      },
      to: ["done"],
    },
    done: { final: true },
  },
});

const named = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index}`);

onBothQueues((place) => {
  const stores: SqlStore[] = [];
  const open = () => {
    const store = place.schema.open({ maxConnections: 8 });
    stores.push(store);
    return store;
  };
  afterAll(() => Promise.all(stores.map((store) => store.close())));

  /** A store and a queue, a world, and a graph to submit with. */
  async function setUp() {
    const store = open();
    const queue = await place.queue(store);
    const world = new World();
    return { store, queue, world, graph: errandGraph(store, none) };
  }
  const takenUpBy = async (store: SqlStore, taskId: string) =>
    (await store.events(taskId)).flatMap(({ kind, data }) => (kind === "resumed" ? [data.by] : []));
  const statusOf = async (store: SqlStore, taskId: string) => (await describeTask(store, taskId)).status;

  test("what is submitted is run by some worker, and nothing is left to do", async () => {
    const { store, queue, world, graph } = await setUp();
    const tasks = named("plain", 8);
    await submitAll(queue, graph, tasks);
    expect(await store.wakes()).toHaveLength(8);
    await place.worker(store, queue, world);
    await place.worker(open(), queue, world);
    await vi.waitFor(() => expect(world.sent.toSorted()).toEqual(tasks), SOON);
    await vi.waitFor(async () => expect(await store.wakes()).toEqual([]), SOON);
    expect(await Promise.all(tasks.map((task) => statusOf(store, task)))).toEqual(tasks.map(() => "completed"));
    expect(await submitTask(queue, graph, { taskId: "plain-0", input: {} })).toBe("left");
    // A worker's first run of it is no second attempt.
    expect(measuresOf(await store.events("plain-0"))).toMatchObject({ attempts: 1, resumed: false });
    const submitted = submitTask(queue, otherGraph(store), { taskId: "plain-0", input: {} });
    await expect(submitted).rejects.toMatchObject({ code: "WRONG_WORKFLOW" });
  });

  test.each([
    ["removed", (queue: TaskQueue) => place.raw(queue, (jobs) => jobs.obliterate({ force: true }))],
    ["taken", (queue: TaskQueue) => giveAway(place.location, queue.nameOf("errand"))],
  ])(
    "a worker whose job was %s says what that means for the task, and nothing where it is done",
    async (taskId, lose) => {
      const { store, queue, world, graph } = await setUp();
      world.shut();
      await submitTask(queue, graph, { taskId, input: {} });
      const said: string[] = [];
      await place.worker(store, queue, world, { log: (message) => said.push(message) });
      await vi.waitFor(() => expect(world.waits).toEqual([taskId]), SOON);
      await lose(queue);
      await vi.waitFor(() => expect(said).not.toEqual([]), SOON);
      world.unlock();
      await vi.waitFor(() => expect(world.sent).toEqual([taskId]), SOON);
      await vi.waitFor(async () => expect(await store.wakes()).toEqual([]), SOON);
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(said).toEqual([expect.stringMatching(/^task \w+: .*another one may take it over; nothing is lost$/)]);
    },
  );

  test("a job that comes twice does nothing twice, nor does one for a task that has ended or is not there", async () => {
    const { store, queue, world, graph } = await setUp();
    world.shut();
    await submitTask(queue, graph, { taskId: "twice", input: {} });
    await place.worker(store, queue, world);
    await place.worker(open(), queue, world);
    const data = { taskId: "twice", attempts: 3, failures: 0 };
    await place.raw(queue, async (jobs) => {
      for (let number = 0; number < 3; number++) await jobs.add("wake", data);
      await jobs.add("wake", { ...data, taskId: "nowhere" });
      await vi.waitFor(() => expect(world.waits).toEqual(["twice"]), SOON);
      world.unlock();
      await vi.waitFor(() => expect(world.sent).toEqual(["twice"]), SOON);
      await jobs.add("wake", data);
      await vi.waitFor(async () => {
        const { active, waiting, delayed } = await jobs.getJobCounts("active", "waiting", "delayed");
        expect([active, waiting, delayed]).toEqual([0, 0, 0]);
      }, SOON);
    });
    expect(world.sent).toEqual(["twice"]);
    expect(world.waits).toEqual(["twice"]);
  });

  test("a job that was lost is made again by the sweep", async () => {
    const { store, queue, world, graph } = await setUp();
    const graphs = new Map([["errand", graph]]);
    await submitAll(queue, graph, ["lost-1"]);
    await submitTask(queue, graph, { taskId: "lost-2", input: {} }, { attempts: 7 });
    await submitAll(queue, graph, ["lost-2"]);
    const attempts = await place.raw(queue, async (jobs) => {
      await jobs.obliterate({ force: true });
      await upkeep.sweep({ store, queue, graphs });
      const made = await jobs.getJobs(["waiting"]);
      await jobs.obliterate({ force: true });
      return Object.fromEntries(made.map(({ data }) => [data.taskId, data.attempts]));
    });
    expect(attempts).toEqual({ "lost-1": 3, "lost-2": 7 });
    await place.worker(store, queue, world);
    expect(await queue.counts("errand")).toEqual({ waiting: 0, active: 0, delayed: 0 });
    await store.addWake("never-started");
    await upkeep.sweep({ store, queue, graphs });
    await vi.waitFor(() => expect(world.sent.toSorted()).toEqual(["lost-1", "lost-2"]), SOON);
    await vi.waitFor(async () => expect(await store.wakes()).toEqual([]), SOON);
  });

  test("a worker that is stopped commits its step and hands the task over at once", async () => {
    const { store, queue, world, graph } = await setUp();
    world.shut();
    await submitTask(queue, graph, { taskId: "handed", input: {} });
    const first = await place.worker(store, queue, world);
    await vi.waitFor(() => expect(world.waits).toEqual(["handed"]), SOON);
    const stopped = first.stop();
    await new Promise((resolve) => setTimeout(resolve, 50));
    world.unlock();
    await stopped;
    expect(world.sent).toEqual([]);
    expect(await store.wakes("handed")).toHaveLength(1);
    await place.worker(open(), queue, world);
    await vi.waitFor(() => expect(world.sent).toEqual(["handed"]), SOON);
    // What was committed is not done again.
    expect(world.waits).toEqual(["handed"]);
  });

  test("a graph's and a tenant's tasks run so many at once, over all workers", async () => {
    const { store, queue, world, graph } = await setUp();
    const graphLimits = new Map([["errand", { concurrency: 3, rate: null }]]);
    const tenantLimits = new Map([["acme", { concurrency: 1, rate: null }]]);
    const acme = new World();
    const both: ErrandClients = {
      wait: (taskId) =>
        Promise.all([world.wait(taskId), ...(taskId.startsWith("@acme/") ? [acme.wait(taskId)] : [])]).then(() => {}),
      send: world.send,
    };
    const tasks = [...named("@acme/limited", 4), ...named("limited", 6)];
    world.shut();
    await submitAll(queue, graph, tasks);
    await place.worker(store, queue, both, { graphLimits, tenantLimits });
    await place.worker(open(), queue, both, { graphLimits, tenantLimits });
    await vi.waitFor(() => expect(world.atOnce).toBe(3), SOON);
    world.unlock();
    await vi.waitFor(() => expect(world.sent.toSorted()).toEqual(tasks.toSorted()), SOON);
    expect(acme.mostAtOnce).toBe(1);
    expect(world.mostAtOnce).toBe(3);
  });

  test("a graph's and a tenant's tasks begin so many in a time, over all workers", async () => {
    const { store, queue, world, graph } = await setUp();
    const perMs = 3_600_000;
    const graphLimits = new Map([["errand", { concurrency: null, rate: { max: 3, perMs } }]]);
    const tenantLimits = new Map([["slow", { concurrency: null, rate: { max: 1, perMs } }]]);
    await place.worker(store, queue, world, { graphLimits, tenantLimits });
    await place.worker(open(), queue, world, { graphLimits, tenantLimits });
    await submitAll(queue, graph, named("@slow/rated", 3));
    await vi.waitFor(() => expect(world.sent).toHaveLength(1), SOON);
    await submitAll(queue, graph, named("rated", 4));
    await vi.waitFor(() => expect(world.sent).toHaveLength(3), SOON);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(world.sent.toSorted()).toEqual([
      expect.stringMatching(/^@slow/),
      expect.stringMatching(/^rated/),
      expect.stringMatching(/^rated/),
    ]);
    const left = async () => (await store.wakes()).filter(({ taskId }) => taskId.includes("rated"));
    await vi.waitFor(async () => expect(await left()).toHaveLength(4), SOON);
  });

  test("a task that fails is tried so often, where it stands; then it is left to a person", async () => {
    const { store, queue, graph } = await setUp();
    let begun = 0;
    const sound = errandGraph(store, none);
    const stream = sound.stream.bind(sound);
    const flaky = Object.assign(Object.create(sound) as WorkflowGraph, {
      stream: (...args: Parameters<typeof stream>) => {
        if (++begun <= 2) throw new Error("the network is away");
        return stream(...args);
      },
    });
    const settled: string[] = [];
    const onEvent = (event: BatchEvent) => {
      if (event.kind === "settled") settled.push(`${event.taskId} ${event.settled.outcome}`);
    };
    await place.worker(store, queue, none, { graphs: new Map([["errand", flaky]]), onEvent });
    await submitTask(queue, graph, { taskId: "flaky", input: {} }, { attempts: 3 });
    await vi.waitFor(() => expect(settled).toEqual(["flaky completed"]), SOON);
    begun = 0;
    await submitTask(queue, graph, { taskId: "worse", input: {} }, { attempts: 2 });
    await vi.waitFor(() => expect(settled).toEqual(["flaky completed", "worse failed"]), SOON);
    await vi.waitFor(async () => expect(await store.wakes("worse")).toEqual([]), SOON);
    expect(await statusOf(store, "worse")).toBe("failed");
    expect(await takenUpBy(store, "worse")).toEqual(["worker"]);
    expect(measuresOf(await store.events("worse"))).toMatchObject({ attempts: 2, resumed: true });
    // Nor does a job that comes twice try it again.
    begun = 0;
    await place.raw(queue, async (jobs) => {
      await jobs.add("wake", { taskId: "worse", attempts: 3, failures: 0 });
      await vi.waitFor(async () => {
        const counts = await jobs.getJobCounts("completed", "active", "waiting", "delayed");
        expect(counts).toMatchObject({ completed: 1, active: 0, waiting: 0, delayed: 0 });
      }, SOON);
    });
    expect(begun).toBe(0);
  });

  test("a task that processes keep dying of is not given to another", async () => {
    const { store, queue, world, graph } = await setUp();
    await submitTask(queue, graph, { taskId: "deadly", input: {} });
    await setStalled(place.location, queue.nameOf("errand"), 6);
    await place.worker(store, queue, world);
    await vi.waitFor(async () => expect(await store.wakes("deadly")).toEqual([]), SOON);
    const { status, lastError } = await describeTask(store, "deadly");
    expect([status, lastError?.message]).toEqual(["failed", expect.stringMatching(/^6 processes died/)]);
    expect(world.waits).toEqual([]);
  });

  test("a task of a newer release is left to workers of that release", async () => {
    const { store, queue, world } = await setUp();
    const newer = open();
    const graph = errandGraph(newer, world, undefined, 2);
    await submitTask(queue, graph, { taskId: "newer", input: {} });
    const log = vi.fn<(message: string) => void>();
    const old = await place.worker(store, queue, world, { log });
    await vi.waitFor(() => expect(log).toHaveBeenCalledWith(expect.stringMatching(/^task newer is left/)), SOON);
    await old.stop();
    expect(await statusOf(newer, "newer")).toBe("created");
    await place.raw(queue, async (jobs) => Promise.all((await jobs.getDelayed()).map((job) => job.promote())));
    await place.worker(newer, queue, world, { graphs: new Map([["errand", graph]]) });
    await vi.waitFor(() => expect(world.sent).toEqual(["newer"]), SOON);
  });

  test("a question that nobody answers in time goes on as its step says, wherever the task paused", async () => {
    const { store, queue, world } = await setUp();
    const graph = errandGraph(store, world, 200);
    const graphs = new Map([["errand", graph]]);
    await place.worker(store, queue, world, { graphs });
    await submitTask(queue, graph, { taskId: "ignored", input: { ask: true } });
    await vi.waitFor(() => expect(world.sent).toEqual(["ignored"]), SOON);
    // A pause outside of any worker has no job of its own for it.
    await graph.invoke({ ask: true } as never, { configurable: { thread_id: "elsewhere" } });
    await vi.waitFor(async () => {
      await upkeep.deadlines({ store, queue, graphs });
      expect(world.sent).toEqual(["ignored", "elsewhere"]);
    }, SOON);
  });

  test.each([
    ["hourly round", "deadlines", 1],
    ["round after it was given", "consents", Date.now()],
  ] as const)("a task goes on when a consent was given elsewhere, once: %s", async (_name, round, at) => {
    const { store, queue, world } = await setUp();
    const taskId = `consenting-${round}`;
    const model = new RemoteModel([{ next: "done" }]);
    const graph = compile(consenting, { store, model }) as unknown as WorkflowGraph;
    const graphs = new Map([["errand", graph]]);
    await place.worker(store, queue, world, { graphs });
    await submitTask(queue, graph, { taskId, input: {} });
    const waiting = async () => (await describeTask(store, taskId)).waiting?.map(({ kind }) => kind);
    await vi.waitFor(async () => expect(await waiting()).toEqual(["approval", "question"]), SOON);
    await vi.waitFor(async () => expect(await store.wakes(taskId)).toEqual([]), SOON);
    const given = { workflow: "letter", destination: "models.example", kind: "personal data", isAllowed: true };
    await store.keepConsents(taskId, [{ ...given, by: null, at }]);
    if (at === 1) expect(await upkeep.consents({ store, queue, graphs })).toBe(0);
    expect(await upkeep[round]({ store, queue, graphs })).toBe(1);
    await vi.waitFor(() => expect(model.prompts).toHaveLength(1), SOON);
    await vi.waitFor(async () => expect(await store.wakes(taskId)).toEqual([]), SOON);
    expect(await waiting()).toEqual(["question"]);
    expect(await upkeep[round]({ store, queue, graphs })).toBe(0);
    await store.withdrawConsents({ workflow: "letter" });
  });

  test("tasks that ended are kept for as long as the workers are told, or for ever", async () => {
    const { store, queue, world } = await setUp();
    const graph = errandGraph(store, world);
    const settings = { store, queue, graphs: new Map([["errand", graph]]) };
    await graph.invoke({} as never, { configurable: { thread_id: "old" } });
    await graph.invoke({ ask: true } as never, { configurable: { thread_id: "waits" } });
    expect(await upkeep.prune(settings)).toBe(0);
    expect(await upkeep.prune({ ...settings, keepEndedMs: 3_600_000 })).toBe(0);
    expect(await upkeep.prune({ ...settings, keepEndedMs: -1 })).toBeGreaterThan(0);
    expect(await store.look("old")).toBeNull();
    expect(await store.look("waits")).not.toBeNull();
  });

  test("upkeep of another release comes round no more, and its jobs are left without an error", async () => {
    const { store, queue, world } = await setUp();
    const raw = <T>(use: (jobs: Queue) => Promise<T>) => place.raw(queue, use, UPKEEP_QUEUE);
    const every = 24 * 3_600_000;
    await raw((jobs) => jobs.upsertJobScheduler("later", { every }, { name: "later" }));
    const said: string[] = [];
    await place.worker(store, queue, world, { upkeep: true, log: (message) => said.push(message) });
    const scheduled = await raw((jobs) => jobs.getJobSchedulers());
    expect(scheduled.map(({ key }) => key).toSorted()).toEqual(Object.keys(upkeep).toSorted());
    for (const name of ["later", "toString"]) {
      await raw(async (jobs) => {
        const job = await jobs.add(name, {});
        await vi.waitFor(async () => expect(await job.getState()).toBe("completed"), SOON);
      });
    }
    expect(said).toEqual([]);
  });

  test("what cannot be started leaves nothing behind", async () => {
    const { store, queue, graph } = await setUp();
    const beforeStart = (taskId: string) => store.append(taskId, 0, "source", { graph: "errand" });
    const submitted = submitTask(queue, graph, { taskId: "wrong", input: { nowhere: 1 } }, { beforeStart });
    await expect(submitted).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(await store.events("wrong")).toEqual([]);
  });

  test("an answer that is submitted is in the store before the task is woken", async () => {
    const { store, queue, world, graph } = await setUp();
    const taskId = "answered";
    await errandGraph(store, world).invoke({ ask: true } as never, { configurable: { thread_id: taskId } });
    await submitAnswer(queue, graph, {
      taskId,
      requestId: (await describeTask(store, taskId)).waiting?.[0]?.id ?? "",
      text: "yes",
      who: "ada",
    });
    expect((await describeTask(store, taskId)).waiting).toBeUndefined();
    await place.worker(store, queue, world);
    await vi.waitFor(() => expect(world.sent).toEqual([taskId]), SOON);
  });
});
