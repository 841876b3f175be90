import { compile, defineTool, defineWorkflow, describeTask, field } from "statecard";
import { afterAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { submitAnswer, submitTask } from "../../src/batch/queue/submit.ts";
import type { WorkflowGraph } from "../../src/compile/workflow-graph.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { onBothQueues } from "../support/queues.ts";

// Faults that users of such systems reported, over workers on a queue.

/** The clients of a workflow that is not used here. */
const NOBODY = { wait: async () => {}, send: async () => {} };
const SOON = { timeout: 60_000, interval: 20 };

interface Clients {
  /** Called when a task is run. */
  readonly begin: (taskId: string) => void;
  /** What the one tool does. */
  readonly pay: (taskId: string) => Promise<void>;
}

const clientsOf = (clients: Readonly<Record<string, unknown>>) => clients as unknown as Clients;

/** Asks so many questions, then pays; the queues of the tests are those of a workflow of this name. */
function errand(store: SqlStore, clients: Clients): WorkflowGraph {
  const workflow = defineWorkflow({
    name: "errand",
    version: 1,
    state: { note: field(z.string()), questions: field(z.number()), asked: field(z.number()).runtimeOnly() },
    input: ["note", "questions"],
    tools: {
      pay: defineTool({
        description: "Pays.",
        parameters: z.object({ note: z.string() }),
        effect: "write",
        run: (_args, { clients: given, taskId }) => clientsOf(given).pay(taskId),
      }),
    },
    initial: "asking",
    maxDecisions: 100,
    steps: {
      asking: {
        maxDecisions: 100,
        to: ["asking", "paying"],
        run({ questions, asked }, { clients: given, taskId }) {
          clientsOf(given).begin(taskId);
          const number = (asked ?? 0) + 1;
          return number > (questions ?? 0)
            ? { next: "paying" }
            : { patch: { asked: number }, ask: `Question ${number}?` };
        },
      },
      paying: {
        tools: ["pay"],
        to: ["done"],
        run: ({ note }) => ({ calls: [{ tool: "pay", args: { note: note ?? "" } }], next: "done" }),
      },
      done: { final: true },
    },
  });
  return compile(workflow, { store, clients: { ...clients } }) as unknown as WorkflowGraph;
}

onBothQueues((place) => {
  const stores: SqlStore[] = [];
  const open = () => {
    const store = place.schema.open({ maxConnections: 4 });
    stores.push(store);
    return store;
  };
  afterAll(() => Promise.all(stores.map((store) => store.close())));

  /** Two workers that share nothing but the database and the queue. */
  async function setUp(
    { begin = () => {}, pay = async () => {}, concurrency = 4 } = {} as Partial<Clients> & { concurrency?: number },
  ) {
    const paid: string[] = [];
    const clients: Clients = {
      begin,
      async pay(taskId) {
        await pay(taskId);
        paid.push(taskId);
      },
    };
    const store = open();
    const queue = await place.queue(store);
    for (const own of [store, open()]) {
      const graphs = new Map([["errand", errand(own, clients)]]);
      await place.worker(own, queue, NOBODY, { graphs, concurrency });
    }
    const graph = errand(store, clients);
    const submit = (taskId: string, input: object) => submitTask(queue, graph, { taskId, input: { ...input } });
    const say = (taskId: string, requestId: string, text: string) =>
      submitAnswer(queue, graph, { taskId, requestId, text, who: "ada" });
    const asked = (taskId: string, question: string) =>
      vi.waitFor(async () => {
        const [request] = (await describeTask(store, taskId)).waiting ?? [];
        expect(request?.question).toBe(question);
        return request?.id ?? "";
      }, SOON);
    return { store, paid, submit, say, asked };
  }

  test("K1: of answers to one pause at once one counts, and it is paid once", async () => {
    const { store, paid, submit, say, asked } = await setUp();
    await submit("t", { note: "now", questions: 1 });
    const id = await asked("t", "Question 1?");
    const answers = await Promise.allSettled(["yes", "yes", "no"].map((text) => say("t", id, text)));
    const refused = answers.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    expect(refused).toHaveLength(2);
    for (const error of refused)
      expect(error).toMatchObject({ code: expect.stringMatching(/^(?:STALE_RESUME|TASK_FINISHED)$/) });
    await vi.waitFor(async () => expect((await describeTask(store, "t")).status).toBe("completed"), SOON);
    expect(paid).toEqual(["t"]);
  });

  test("K14: questions in a row, each gone on with by a worker, store a bounded amount each", async () => {
    const { submit, say, asked } = await setUp();
    await submit("t14", { questions: 99 });
    const sizes: number[] = [];
    for (let number = 1; number <= 9; number++) {
      const id = await asked("t14", `Question ${number}?`);
      if (number % 8 === 1) sizes.push(await bytesStored());
      if (number < 9) await say("t14", id, `answer ${number}`);
    }
    const [one = 0, nine = 0] = sizes;
    expect(nine).toBeGreaterThan(one);
    expect((nine - one) / 8).toBeLessThan(8192);
  });

  async function bytesStored(): Promise<number> {
    const tables = await place.schema.query(
      "select table_name as name from information_schema.tables where table_schema = current_schema()",
    );
    const sums = tables.map(({ name }) => `select sum(pg_column_size(t.*)) as bytes from ${String(name)} t`);
    const [row] = await place.schema.query(
      `select sum(bytes) as bytes from (${sums.join(" union all ")}) as all_of_it`,
    );
    return Number(row?.bytes);
  }

  test("K26: tasks of two tenants at one worker see nothing of one another", async () => {
    const { store, paid, submit, say, asked } = await setUp();
    // The same name on purpose.
    const tenants = { acme: "@acme/t", zeta: "@zeta/t" };
    await Promise.all(
      Object.entries(tenants).map(([tenant, task]) => submit(task, { note: `of ${tenant}`, questions: 1 })),
    );
    for (const [tenant, task] of Object.entries(tenants))
      await say(task, await asked(task, "Question 1?"), `${tenant} says`);
    await vi.waitFor(() => expect(paid.toSorted()).toEqual(["@acme/t", "@zeta/t"]), SOON);
    for (const [own, other] of [
      ["acme", "zeta"],
      ["zeta", "acme"],
    ] as const) {
      const task = tenants[own];
      await vi.waitFor(async () => expect((await describeTask(store, task)).status).toBe("completed"), SOON);
      const seen = JSON.stringify([
        await describeTask(store, task),
        await store.events(task),
        await store.tasks({ tenant: own, limit: 10 }),
      ]);
      expect(seen).toContain(`of ${own}`);
      expect(seen).toContain(`${own} says`);
      expect(seen).not.toContain(other);
    }
  });

  test("K27: of four tasks one hangs, one throws and one waits: the fourth ends, and each is told apart", async () => {
    let release = () => {};
    const hung = new Promise<void>((resolve) => (release = resolve));
    // Two workers with one place each, one of which the task that hangs has.
    const { store, paid, submit, say, asked } = await setUp({
      concurrency: 1,
      pay: (task) => (task === "hangs" ? hung : Promise.resolve()),
      begin(task) {
        if (task === "throws") throw new Error("the shop is closed");
      },
    });
    await submit("hangs", { questions: 0 });
    await submit("throws", { questions: 0 });
    await submit("waits", { questions: 1 });
    await submit("ends", { questions: 0 });
    const id = await asked("waits", "Question 1?");
    const standing = async () =>
      Object.fromEntries(
        await Promise.all(
          ["hangs", "throws", "waits", "ends"].map(async (task) => {
            const { status, lastError } = await describeTask(store, task);
            return [task, [status, lastError?.code]] as const;
          }),
        ),
      );
    await vi.waitFor(
      async () =>
        expect(await standing()).toEqual({
          hangs: ["running", undefined],
          throws: ["failed", "STEP_FAILED"],
          waits: ["waiting_user", undefined],
          ends: ["completed", undefined],
        }),
      SOON,
    );
    // The one that throws is left to a person; the one that waits goes on although the other still hangs.
    await vi.waitFor(async () => expect(await store.wakes("throws")).toEqual([]), SOON);
    await say("waits", id, "yes");
    await vi.waitFor(() => expect(paid.toSorted()).toEqual(["ends", "waits"]), SOON);
    release();
    await vi.waitFor(() => expect(paid).toContain("hangs"), SOON);
  });
});
