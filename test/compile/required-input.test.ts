import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { compile, defineWorkflow, field, sqliteStore, type WorkflowGraph } from "statecard";
import { HttpApi } from "statecard/server";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { runBatch } from "../../src/batch/batch.ts";
import { submitTask } from "../../src/batch/queue/submit.ts";
import { startOnly } from "../../src/compile/start-only.ts";
import { mcpServer } from "../../src/mcp/server.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";

const order = defineWorkflow({
  name: "order",
  version: 1,
  state: { drink: field(z.string()), name: field(z.string()), price: field(z.number()).runtimeOnly() },
  input: ["drink", "name"],
  initial: "pricing",
  steps: {
    pricing: { requires: ["drink"], to: ["served"], run: () => ({ patch: { price: 3 }, next: "served" }) },
    served: { final: true },
  },
});

const WITHOUT = { message: "go", name: "Ada" };
const SAYS =
  'workflow "order" starts only with drink: give it as input; fields that can be set at the start: drink, name';
const refusal = { code: "INVALID_INPUT", message: SAYS };
const config = { configurable: { thread_id: "t" } };
const noQueue = { wake: () => Promise.reject(new Error("woken")) } as never;

interface Place {
  readonly store: SqlStore;
  readonly graph: WorkflowGraph;
}

async function overHttp({ graph, store }: Place): Promise<unknown> {
  const api = new HttpApi({ graphs: { order: graph }, store, log: () => {} });
  onTestFinished(() => api.stop(0));
  const { message, ...input } = WITHOUT;
  const body = JSON.stringify({ graph: "order", taskId: "t", message, input });
  const headers = { host: "127.0.0.1", "content-type": "application/json" };
  const request = new Request("http://127.0.0.1/tasks", { method: "POST", headers, body });
  const answer = await api.fetch(request, { incoming: { socket: { remoteAddress: "127.0.0.1" } } });
  const { code, detail } = (await answer.json()) as { code: string; detail: string };
  expect(answer.status).toBe(422);
  return { code, message: detail };
}

async function overMcp({ graph, store }: Place): Promise<unknown> {
  const same = () => Promise.resolve(graph);
  const { signal } = new AbortController();
  const remember = (taskId: string) => store.append(taskId, 0, "source", { graph: "order" });
  const server = mcpServer({ store, agent: "tester", signal, graphOf: same, graphNamed: same, remember }, "1.0.0");
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  onTestFinished(() => client.close());
  const { message, ...fields } = WITHOUT;
  const given = { graph: "order", message, fields, task: "t" };
  const { structuredContent } = await client.callTool({ name: "start_task", arguments: given });
  return (structuredContent as { error: unknown }).error;
}

async function inBatch({ graph, store }: Place): Promise<unknown> {
  const tasks = [
    { taskId: "t", input: WITHOUT },
    { taskId: "good", input: { drink: "latte" } },
  ];
  const beforeStart = (taskId: string) => store.append(taskId, 0, "source", { graph: "order" });
  const settled = await runBatch(graph, { tasks, workers: 1, attempts: 2, backoffMs: 1, beforeStart });
  expect(settled.find(({ taskId }) => taskId === "good")).toMatchObject({ outcome: "completed" });
  await graph.runtime.store.deleteTask("good");
  return settled.find(({ taskId }) => taskId === "t")?.error;
}

/** What a promise was refused with. */
const refused = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

test.each<readonly [string, (place: Place) => Promise<unknown>]>([
  ["invoke", ({ graph }) => refused(graph.invoke(WITHOUT as never, config))],
  ["a start that runs nothing", ({ graph }) => refused(startOnly(graph, "t", WITHOUT))],
  ["a worker's queue", ({ graph }) => refused(submitTask(noQueue, graph, { taskId: "t", input: WITHOUT }))],
  ["a batch", inBatch],
  ["HTTP", overHttp],
  ["MCP", overMcp],
])(
  "a start without an input that the first step requires is refused, and nothing is stored: %s",
  async (_way, start) => {
    const store = sqliteStore(":memory:");
    onTestFinished(() => store.close());
    const graph = compile(order, { store }) as unknown as WorkflowGraph;
    expect(await start({ store, graph })).toMatchObject(refusal);
    expect(await store.tasks()).toEqual([]);
    expect(await store.wakes()).toEqual([]);
    expect(await store.head("t")).toBeNull();
    expect(await store.events("t")).toEqual([]);
    expect(await store.owner("t")).toBeNull();
    // Nothing is in the way of a start that has it.
    const done = await graph.invoke({ drink: "latte" } as never, config);
    expect(done).toMatchObject({ drink: "latte", price: 3, execution: { status: "completed" } });
  },
);

test("a parent that gives its child too little is told so", async () => {
  const parent = defineWorkflow({
    name: "parent",
    version: 1,
    state: { drink: field(z.string()) },
    input: ["drink"],
    initial: "ordering",
    steps: {
      ordering: { to: ["done"], workflow: order, input: ({ drink }) => ({ drink }) },
      done: { final: true },
    },
  });
  const graph = compile(parent, { store: sqliteStore(":memory:") });
  const message = expect.stringContaining(`step ordering: ${refusal.message}`) as string;
  await expect(graph.invoke({}, config)).rejects.toMatchObject({ code: "STEP_FAILED", message });
  const done = await graph.invoke({ drink: "latte" }, { configurable: { thread_id: "t-2" } });
  expect(done.execution.status).toBe("completed");
});
