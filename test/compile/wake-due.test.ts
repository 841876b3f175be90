import { MemorySaver } from "@langchain/langgraph";
import { compile, defineTool, defineWorkflow, sqliteStore, wakeDue } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { dueTasks } from "../../src/compile/due-tasks.ts";

const HOUR_MS = 3_600_000;

const pay = defineTool({
  description: "Pays.",
  parameters: z.object({ amount: z.number() }),
  effect: "write",
  approve: true,
  run: () => "paid",
});

const payment = (name: string, timeToLiveMs = Infinity) =>
  defineWorkflow({
    name,
    version: 1,
    timeToLiveMs,
    state: {},
    tools: { pay },
    initial: "paying",
    steps: {
      paying: { tools: ["pay"], to: ["done", "late"], deadline: { afterMs: HOUR_MS, to: "late" } },
      late: { final: true },
      done: { final: true },
    },
  });

const twoPayments = { calls: [1, 2].map((amount) => ({ tool: "pay", args: { amount } })), next: "done" };

describe.each(["SQLite", "a LangGraph checkpointer"])("on %s", (kind) => {
  /** Tasks that wait for two approvals each, on a clock that the test holds. */
  async function paused(taskIds: readonly string[], timeToLiveMs?: number) {
    const clock = { at: Date.now(), now: () => clock.at };
    const place =
      kind === "SQLite" ? { store: sqliteStore(":memory:", { clock }) } : { checkpointer: new MemorySaver() };
    const model = scriptedModel(taskIds.map(() => twoPayments));
    const graph = compile(payment("payment", timeToLiveMs), { model, clock, ...place });
    for (const thread_id of taskIds) await graph.invoke({ message: "go" }, { configurable: { thread_id } });
    return { clock, graph };
  }

  const due = async (graph: Awaited<ReturnType<typeof paused>>["graph"], limit: number) => {
    const found: string[] = [];
    for await (const taskId of dueTasks(graph.runtime, limit)) found.push(taskId);
    return found.toSorted();
  };

  test("a task is due once, whatever has expired in it, and however the rows are read", async () => {
    const taskIds = ["a", "b", "c"];
    const { clock, graph } = await paused(taskIds);
    clock.at += HOUR_MS - 1;
    expect(await due(graph, 500)).toEqual([]);
    clock.at += 1;
    for (const limit of [1, 2, 4, 6, 500]) expect(await due(graph, limit)).toEqual(taskIds);
    const woken: string[] = [];
    expect((await wakeDue(graph, async (taskId) => woken.push(taskId))).toSorted()).toEqual(taskIds);
    expect(woken.toSorted()).toEqual(taskIds);
    expect((await wakeDue(graph)).toSorted()).toEqual(taskIds);
    expect(await due(graph, 500)).toEqual([]);
  });

  test("what is over is removed first, and is not woken", async () => {
    const { clock, graph } = await paused(["a", "b", "c"], 2 * HOUR_MS);
    clock.at += 3 * HOUR_MS;
    expect(await due(graph, 2)).toEqual([]);
    expect(await graph.runtime.store.tasks()).toEqual([]);
  });
});

test("tasks of other workflows in the same store are left alone", async () => {
  const clock = { at: Date.now(), now: () => clock.at };
  const store = sqliteStore(":memory:", { clock });
  const graphs = ["one", "other"].map((name) =>
    compile(payment(name), { store, clock, model: scriptedModel([twoPayments]) }),
  );
  for (const graph of graphs) {
    await graph.invoke({ message: "go" }, { configurable: { thread_id: graph.runtime.workflow.name } });
  }
  clock.at += HOUR_MS;
  const woken = await Promise.all(graphs.map((graph) => wakeDue(graph)));
  expect(woken).toEqual([["one"], ["other"]]);
});
