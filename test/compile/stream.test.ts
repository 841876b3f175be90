import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { Command, INTERRUPT, type StreamMode } from "@langchain/langgraph";
import { answer, compile, defineWorkflow, describeTask, field, sqliteStore, WorkflowGraph } from "statecard";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";

const QUESTION = "How urgent is it?";
const REPLY = 'All is well again: "net" works, 网络恢复了.';

/** Asks, then tells; every decision comes from the model. */
const support = defineWorkflow({
  name: "support",
  version: 1,
  state: { topic: field(z.string()), priority: field(z.enum(["P1", "P2", "P3"])) },
  initial: "ask",
  steps: {
    ask: { writes: ["topic", "priority"], to: ["tell"] },
    tell: { to: ["done"] },
    done: { final: true },
  },
});
const DECISIONS = [
  { because: "unknown", patch: { topic: "net" }, ask: QUESTION },
  { patch: { priority: "P1" }, next: "tell" },
  { because: "told", next: "done", reply: REPLY },
];

/** A chat model that writes its answers a few characters at a time. */
class PiecewiseModel extends BaseChatModel {
  private readonly script: readonly object[];
  private calls = 0;

  constructor(script: readonly object[]) {
    super({ maxRetries: 0 });
    this.script = script;
  }

  override _llmType(): string {
    return "piecewise";
  }

  override async _generate(): Promise<ChatResult> {
    const text = this.nextAnswer();
    return { generations: [{ text, message: new AIMessage(text) }] };
  }

  override async *_streamResponseChunks(): AsyncGenerator<ChatGenerationChunk> {
    for (const text of this.nextAnswer().match(/[\s\S]{1,5}/gu) ?? []) {
      yield new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
    }
  }

  private nextAnswer(): string {
    const given = this.script[this.calls++];
    if (!given) throw new Error(`call ${this.calls} was not expected`);
    return JSON.stringify(given);
  }
}

/** A promise that the test settles. */
function gate<T>(): { readonly opened: Promise<T>; readonly open: (value: T) => void } {
  let open = (_value: T) => {};
  const opened = new Promise<T>((resolve) => (open = resolve));
  return { opened, open: (value) => open(value) };
}

/** A model whose first answer comes when the test lets it. */
class HeldModel extends BaseChatModel {
  readonly asked = gate<void>();
  readonly held = gate<void>();
  private calls = 0;

  constructor() {
    super({ maxRetries: 0 });
  }

  override _llmType(): string {
    return "held";
  }

  override async _generate(): Promise<ChatResult> {
    const isFirst = this.calls++ === 0;
    this.asked.open();
    if (isFirst) await this.held.opened;
    const text = JSON.stringify({ patch: { topic: isFirst ? "late" : "in time" }, ask: QUESTION });
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

/** Counts to three by code, a step at a time. */
const counting = defineWorkflow({
  name: "counting",
  version: 1,
  state: { total: field(z.number()) },
  initial: "count",
  steps: {
    count: {
      to: ["count", "done"],
      run: ({ total }) => ({ patch: { total: (total ?? 0) + 1 }, next: (total ?? 0) + 1 < 3 ? "count" : "done" }),
    },
    done: { final: true },
  },
});

const supportGraph = () => compile(support, { model: new PiecewiseModel(DECISIONS), store: sqliteStore(":memory:") });
const countingGraph = () => compile(counting, { store: sqliteStore(":memory:") });
const task = (id = "t-1") => ({ configurable: { thread_id: id } });

async function collect<T>(stream: AsyncIterable<T> | Promise<AsyncIterable<T>>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

/** What a stream in one mode gives up to the pause, and from the answer to the end. */
async function streamBoth(mode: StreamMode): Promise<{ toPause: any[]; toEnd: any[] }> {
  const graph = supportGraph();
  const options = { ...task(), streamMode: mode };
  const toPause = await collect<unknown>(graph.stream({ message: "net is down" }, options));
  const toEnd = await collect<unknown>(graph.stream(new Command({ resume: "P1" }), options));
  return { toPause, toEnd };
}

async function expectFree(graph: Pick<WorkflowGraph, "runtime">, taskId: string): Promise<void> {
  await vi.waitFor(
    async () => {
      const { store } = graph.runtime;
      await store.release(await store.acquire(taskId));
    },
    { timeout: 60_000 },
  );
}

describe("invoke", () => {
  it("gives the values with the pause, then the values at the end", async () => {
    const graph = supportGraph();
    const paused = await graph.invoke({ message: "net is down" }, task());
    expect(paused[INTERRUPT]?.[0]?.value?.question).toBe(QUESTION);
    const done = await graph.invoke(answer(paused, "P1"), task());
    expect(done).toMatchObject({ topic: "net", priority: "P1" });
    expect(done.execution).toMatchObject({ status: "completed", step: "done", taskId: "t-1" });
    expect(INTERRUPT in done).toBe(false);
  });
});

describe("stream", () => {
  it("gives, in mode values, the state after each superstep and the pause at last", async () => {
    const { toPause, toEnd } = await streamBoth("values");
    expect(toPause.map((chunk) => chunk.execution?.revision ?? "pause")).toEqual([0, 1, "pause"]);
    expect(toPause.at(-1)[INTERRUPT][0].value.question).toBe(QUESTION);
    expect(toEnd.map((chunk) => chunk.execution.step)).toEqual(["ask", "ask", "tell", "done"]);
    expect(toEnd.at(-1)).toMatchObject({ priority: "P1", execution: { status: "completed" } });
  });

  it("gives, in mode updates, what each node wrote, in the order of the table", async () => {
    const { toPause, toEnd } = await streamBoth("updates");
    expect(toPause.map((chunk) => Object.keys(chunk))).toEqual([["ask"], [INTERRUPT]]);
    expect(toPause[0].ask).toMatchObject({ topic: "net", execution: { status: "waiting_user" } });
    expect(toEnd.map((chunk) => Object.keys(chunk))).toEqual([["act"], ["ask"], ["tell"]]);
    expect(toEnd[1].ask).toMatchObject({ priority: "P1" });
    expect(toEnd[1].ask).not.toHaveProperty("topic");
  });

  it("gives, in mode custom, the pieces of a reply as they are written", async () => {
    const { toPause, toEnd } = await streamBoth("custom");
    expect(toPause).toEqual([]);
    expect(toEnd.every((chunk) => chunk.type === "reply")).toBe(true);
    expect(toEnd.length).toBeGreaterThan(3);
    expect(toEnd.map((chunk) => chunk.delta).join("")).toBe(REPLY);
  });

  it("gives, in mode messages, the text of a reply piece by piece and never the decision around it", async () => {
    const { toPause, toEnd } = await streamBoth("messages");
    const texts = toEnd.map(([message]) => message.text as string).filter(Boolean);
    expect(texts.length).toBeGreaterThan(3);
    expect(texts.join("")).toBe(REPLY);
    expect(toEnd.filter(([message]) => message.text).map(([, metadata]) => metadata.langgraph_node)).toEqual(
      texts.map(() => "tell"),
    );
    // A decision without a reply has no text at all.
    expect(toPause.map(([message]) => message.text)).toEqual(toPause.map(() => ""));
  });

  it("gives, in mode tasks, the start and the end of each node, the paused one with its interrupt", async () => {
    const { toPause, toEnd } = await streamBoth("tasks");
    const names = (chunks: any[]) => chunks.map((chunk) => `${chunk.name} ${"input" in chunk ? "starts" : "ends"}`);
    expect(names(toPause)).toEqual(["ask starts", "ask ends", "act starts", "act ends"]);
    expect(toPause.at(-1).interrupts[0].value.question).toBe(QUESTION);
    expect(names(toEnd)).toEqual(["act", "ask", "tell"].flatMap((name) => [`${name} starts`, `${name} ends`]));
    expect(toEnd.map((chunk) => chunk.error ?? null)).toEqual(toEnd.map(() => null));
  });

  it("gives, in mode checkpoints, every stored checkpoint with what is due next", async () => {
    const { toPause, toEnd } = await streamBoth("checkpoints");
    expect(toPause.map((chunk) => chunk.next)).toEqual([["__start__"], ["ask"], ["act"]]);
    expect(toEnd.map((chunk) => [chunk.values.execution.revision, ...chunk.next])).toEqual([
      [1, "act"],
      [2, "ask"],
      [3, "tell"],
      [4],
    ]);
  });

  it("gives, in mode debug, checkpoints, tasks and results", async () => {
    const { toEnd } = await streamBoth("debug");
    expect(toEnd.filter((chunk) => chunk.type === "task_result").map((chunk) => chunk.payload.name)).toEqual([
      "act",
      "ask",
      "tell",
    ]);
    expect(new Set(toEnd.map((chunk) => chunk.type))).toEqual(new Set(["checkpoint", "task", "task_result"]));
  });

  it("gives several modes at once, each chunk with its mode, and the JSON of a decision in none that shows text", async () => {
    const graph = supportGraph();
    const streamMode: StreamMode[] = ["values", "updates", "custom", "messages", "tasks", "debug", "checkpoints"];
    const options = { ...task(), streamMode };
    const toPause = await collect<any>(graph.stream({ message: "net is down" }, options));
    const toEnd = await collect<any>(graph.stream(new Command({ resume: "P1" }), options));
    const all = [...toPause, ...toEnd];
    expect(new Set(all.map(([mode]) => mode))).toEqual(new Set(streamMode));
    const custom = all.flatMap(([mode, chunk]) => (mode === "custom" ? [chunk.delta] : []));
    const messages = all.flatMap(([mode, chunk]) => (mode === "messages" ? [chunk[0].text] : []));
    expect([custom.join(""), messages.join("")]).toEqual([REPLY, REPLY]);
  });

  it("refuses by throwing from the stream what invoke refuses", async () => {
    const graph = supportGraph();
    await graph.invoke({ message: "net is down" }, task());
    const refused = collect(graph.stream({ message: "net is down" }, { ...task(), streamMode: "updates" }));
    await expect(refused).rejects.toMatchObject({ code: "TASK_STARTED" });
  });
});

describe("streamEvents", () => {
  it("gives the reply's text as the model's tokens, and no other text of the model", async () => {
    const graph = supportGraph();
    const events: any[] = [];
    for (const input of [{ message: "net is down" }, new Command({ resume: "P1" })]) {
      events.push(...(await collect(graph.streamEvents(input as never, { ...task(), version: "v2" }))));
    }
    const tokens = events.flatMap(({ event, data }) => (event === "on_chat_model_stream" ? [data.chunk.text] : []));
    expect(tokens.length).toBeGreaterThan(3);
    expect(tokens.join("")).toBe(REPLY);
    const ends = events.flatMap(({ event, data }) => (event === "on_chat_model_end" ? [data.output.text] : []));
    expect(ends).toEqual(["", "", REPLY]);
    const nodes = events.flatMap(({ event, name }) => (event === "on_chain_end" ? [name as string] : []));
    for (const name of ["ask", "act", "tell"]) expect(nodes).toContain(name);
  });
});

describe("reading and correcting a task", () => {
  it("gives an empty state for a task that does not exist", async () => {
    const state = await supportGraph().getState(task("nobody"));
    expect([state.next, state.tasks]).toEqual([[], []]);
  });

  it("shows the pause in getState and every update in getStateHistory", async () => {
    const graph = supportGraph();
    const paused = await graph.invoke({ message: "net is down" }, task());
    const state = await graph.getState(task());
    expect(state.next).toEqual(["act"]);
    expect(state.tasks[0]?.interrupts).toEqual(paused[INTERRUPT]);
    await graph.invoke(answer(paused, "P1"), task());
    const history = await collect(graph.getStateHistory(task()));
    expect(history.map(({ values }) => values.execution.revision)).toEqual([4, 3, 2, 1, 0, 0]);
    expect((await graph.getState(task())).tasks).toEqual([]);
  });

  it("reads an older state by the config that the history gave, and goes on from it as a fork", async () => {
    const graph = compile(support, {
      model: new PiecewiseModel([...DECISIONS, DECISIONS[0] ?? {}]),
      store: sqliteStore(":memory:"),
    });
    await graph.invoke({ message: "net is down" }, task());
    await graph.invoke(new Command({ resume: "P1" }), task());
    const history = await collect(graph.getStateHistory(task()));
    const start = history.find(({ next }) => next[0] === "ask" && next.length === 1)?.config;
    const first = history.findLast(({ next }) => next[0] === "ask");
    expect((await graph.getState(start ?? {})).values.execution.revision).toBe(2);
    const forked = await graph.invoke(null, first?.config);
    expect(forked[INTERRUPT]?.[0]?.value?.requests[0]?.id).toBe("q1.1");
  });

  it("goes on from a config that a stream of checkpoints gave, although its run is over", async () => {
    const graph = compile(support, {
      model: new PiecewiseModel([DECISIONS[0] ?? {}, DECISIONS[0] ?? {}, ...DECISIONS.slice(1)]),
      store: sqliteStore(":memory:"),
    });
    const options = { ...task(), streamMode: "checkpoints" as const };
    const chunks = await collect<any>(graph.stream({ message: "net is down" }, options));
    const beforeAsking = chunks.find((chunk) => chunk.next[0] === "ask").config;
    const forked = await graph.invoke(null, beforeAsking);
    expect(forked[INTERRUPT]?.[0]?.value?.requests[0]?.id).toBe("q1.1");
    const done = await graph.invoke(answer(forked, "P1"), task());
    expect(done.execution.status).toBe("completed");
  });

  it("lets updateState correct a field of a waiting task, gives back no lease, and the question stays open", async () => {
    const graph = supportGraph();
    const paused = await graph.invoke({ message: "net is down" }, task());
    const config = await graph.updateState(task(), { topic: "wifi" });
    expect(Object.keys(config.configurable ?? {}).toSorted()).toEqual(["checkpoint_id", "checkpoint_ns", "thread_id"]);
    expect((await describeTask(graph.runtime.store, "t-1")).waiting).toHaveLength(1);
    const done = await graph.invoke(answer(paused, "P1"), task());
    expect([done.topic, done.execution.status]).toEqual(["wifi", "completed"]);
  });

  it("refuses in updateState what the schema or the table does not allow, and changes nothing", async () => {
    const graph = supportGraph();
    await graph.invoke({ message: "net is down" }, task());
    const before = await graph.getState(task());
    const execution = { ...before.values.execution, step: "done", status: "completed", pending: null };
    await expect(graph.updateState(task(), { priority: "P9" })).rejects.toMatchObject({ code: "INVALID_UPDATE" });
    await expect(graph.updateState(task(), { execution })).rejects.toMatchObject({ code: "ILLEGAL_STATE" });
    await expect(graph.updateState(task(), null, "__end__")).rejects.toMatchObject({ code: "ILLEGAL_STATE" });
    await expect(graph.updateState(task("nobody"), { topic: "x" })).rejects.toMatchObject({ code: "UNKNOWN_TASK" });
    expect(await graph.getState(task())).toEqual(before);
    await expectFree(graph, "t-1");
  });
});

describe("batch and withConfig", () => {
  it("runs a batch of tasks, each on its own", async () => {
    const ids = ["a", "b", "c", "d"];
    const results = await countingGraph().batch(
      ids.map((message) => ({ message })),
      ids.map((id) => task(id)),
    );
    expect(results.map(({ execution }) => execution.taskId)).toEqual(ids);
    expect(results.map(({ total, execution }) => [total, execution.status])).toEqual(ids.map(() => [3, "completed"]));
  });

  it("lets one of a batch fail without the others", async () => {
    const outcomes = await countingGraph().batch([{ message: "a" }, { message: "" }], [task("a"), task("b")], {
      returnExceptions: true,
    });
    expect(outcomes[0]).toMatchObject({ total: 3 });
    expect(outcomes[1]).toMatchObject({ code: "INVALID_MESSAGE" });
  });

  it("keeps its checks, its store and its task under withConfig", async () => {
    const graph = supportGraph();
    const bound = graph.withConfig({ tags: ["night"], configurable: { thread_id: "t-9" } });
    expect(bound).toBeInstanceOf(WorkflowGraph);
    await bound.invoke({ message: "net is down" });
    expect((await graph.getState(task("t-9"))).next).toEqual(["act"]);
    const lease = await graph.runtime.store.acquire("t-9");
    await expect(bound.invoke(null)).rejects.toMatchObject({ code: "TASK_BUSY" });
    await graph.runtime.store.release(lease);
    await expect(bound.invoke({ message: "net is down" })).rejects.toMatchObject({ code: "TASK_STARTED" });
  });

  it("keeps the task of withConfig where a call adds settings of its own", async () => {
    const graph = countingGraph();
    const bound = graph.withConfig({ configurable: { thread_id: "t-9" } });
    const done = await bound.invoke({ message: "go" }, { configurable: { statecard_user: "ann" } });
    expect(done.execution.taskId).toBe("t-9");
  });
});

describe("a run that its caller leaves", () => {
  it("ends, where the caller stops reading after one chunk, without losing the task's place", async () => {
    const graph = countingGraph();
    for await (const _chunk of await graph.stream({ message: "go" }, { ...task(), streamMode: "updates" })) break;
    await expectFree(graph, "t-1");
    const done = await graph.invoke(null, task());
    expect([done.total, done.execution.decisions, done.execution.status]).toEqual([3, 3, "completed"]);
  });

  it("holds nothing where the stream is never read", async () => {
    const graph = countingGraph();
    const unread = await graph.stream({ message: "go" }, { ...task(), streamMode: "updates" });
    await vi.waitFor(async () => expect(await graph.runtime.store.head("t-1")).not.toBeNull(), { timeout: 60_000 });
    await expectFree(graph, "t-1");
    await expect(graph.invoke({ message: "go" }, task())).rejects.toMatchObject({ code: "TASK_STARTED" });
    expect(unread.locked).toBe(false);
  });

  it("can be woken after an abort in the middle of a model call, and a late answer changes nothing", async () => {
    const model = new HeldModel();
    const graph = compile(support, { model, store: sqliteStore(":memory:") });
    const abort = new AbortController();
    const run = graph.invoke({ message: "net is down" }, { ...task(), signal: abort.signal });
    const refusal = expect(run).rejects.toThrow(/abort/i);
    await model.asked.opened;
    await expect(graph.invoke(null, task())).rejects.toMatchObject({ code: "TASK_BUSY" });
    abort.abort();
    await refusal;
    await expectFree(graph, "t-1");
    model.held.open();
    const woken = await graph.invoke(null, task());
    expect(woken[INTERRUPT]?.[0]?.value?.question).toBe(QUESTION);
    const { values } = await graph.getState(task());
    expect([values.topic, values.execution.decisions]).toEqual(["in time", 1]);
  });

  it("can be woken after an abort in the middle of a code step, and what that step returns later is ignored", async () => {
    const gates = [gate<number>(), gate<number>()];
    const started = gate<void>();
    let visits = 0;
    const slow = defineWorkflow({
      name: "slow",
      version: 1,
      state: { visit: field(z.number()) },
      initial: "work",
      steps: {
        work: {
          to: ["done"],
          run: async () => {
            const own = gates[visits++];
            started.open();
            return { patch: { visit: (await own?.opened) ?? 0 }, next: "done" };
          },
        },
        done: { final: true },
      },
    });
    const graph = compile(slow, { store: sqliteStore(":memory:") });
    const abort = new AbortController();
    const run = graph.invoke({ message: "go" }, { ...task(), signal: abort.signal });
    const refusal = expect(run).rejects.toThrow(/abort/i);
    await started.opened;
    abort.abort();
    await refusal;
    await expectFree(graph, "t-1");
    const woken = graph.invoke(null, task());
    gates[0]?.open(1);
    gates[1]?.open(2);
    expect(await woken).toMatchObject({ visit: 2, execution: { decisions: 1, status: "completed" } });
  });

  it("lets one of three invokes at once run; the others cause nothing", async () => {
    const graph = countingGraph();
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => graph.invoke({ message: "go" }, task())));
    const finished = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const codes = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason.code] : []));
    expect(finished.map(({ total, execution }) => [total, execution.decisions])).toEqual([[3, 3]]);
    for (const code of codes) expect(["TASK_BUSY", "TASK_STARTED"]).toContain(code);
  });
});
