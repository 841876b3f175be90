import {
  Command,
  END,
  INTERRUPT,
  MemorySaver,
  START,
  StateGraph,
  StateSchema,
  type StateSnapshot,
} from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import {
  answer,
  compile,
  defineWorkflow,
  describeTask,
  field,
  sqliteStore,
  type CompileOptions,
  type PauseValue,
  type StepContext,
  type TaskStore,
  type WorkflowGraph,
} from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const WHAT = "What is broken?";
const URGENT = "How urgent is it?";

/** Asks for what it does not know, by code. */
const support = defineWorkflow({
  name: "support",
  version: 1,
  state: { topic: field(z.string()), priority: field(z.string()), solution: field(z.string()) },
  input: ["topic"],
  initial: "gather",
  steps: {
    gather: {
      to: ["gather", "settled"],
      run: (state, context) => {
        const told = whatWasTold(context);
        const topic = told.topic ?? state.topic;
        if (topic === null) return { ask: WHAT };
        if (told.priority === undefined) return { patch: told, ask: URGENT };
        return { patch: { ...told, solution: `repair of ${topic}, ${told.priority}` }, next: "settled" };
      },
    },
    settled: { final: true },
  },
});

function whatWasTold({ observation }: StepContext): { topic?: string; priority?: string } {
  if (observation?.kind === "message") return { topic: observation.text };
  if (observation?.kind !== "answer") return {};
  return observation.question === WHAT ? { topic: observation.text } : { priority: observation.text };
}

const outerState = new StateSchema({
  message: z.string().nullable().default(null),
  topic: z.string().nullable().default(null),
  solution: z.string().nullable().default(null),
  log: z.array(z.string()).default([]),
});

type Outer = ReturnType<typeof outerGraph>;
type OuterInput = { message?: string; topic?: string; solution?: string };

/** Somebody else's graph with ours as one of its nodes. */
function outerGraph(inner: unknown, checkpointer?: BaseCheckpointSaver) {
  const builder = new StateGraph(outerState)
    .addNode("before", ({ log }) => ({ log: [...log, "before"] }))
    .addNode("support", inner as never)
    .addNode("after", ({ log, solution }) => ({ log: [...log, `after: ${solution}`] }))
    .addEdge(START, "before")
    .addEdge("before", "support")
    .addEdge("support", "after")
    .addEdge("after", END);
  return builder.compile(checkpointer ? { checkpointer } : {});
}

const alphabetically = (one: string, other: string) => one.localeCompare(other);
const withoutId = (name: string) => name.replace(/:.*/, "");
const thread = (id: string) => ({ configurable: { thread_id: id } });
const supportGraph = (options: CompileOptions = { store: sqliteStore(":memory:") }) => compile(support, options);

function asked(result: unknown): string[] {
  const interrupts = (result as { [INTERRUPT]?: { value: PauseValue }[] })[INTERRUPT] ?? [];
  return interrupts.flatMap(({ value }) => value.requests.map(({ question }) => question));
}

async function onlyTask(store: TaskStore): Promise<string> {
  const ids = (await store.tasks()).map(({ taskId }) => taskId);
  expect(ids).toHaveLength(1);
  return ids[0] ?? "";
}

describe.each<[name: string, makeSaver: () => BaseCheckpointSaver]>([
  ["MemorySaver", () => new MemorySaver()],
  ["SqliteSaver", () => SqliteSaver.fromConnString(":memory:")],
])("a workflow as a node of a foreign graph that has a %s", (_name, makeSaver) => {
  function setUp() {
    const inner = supportGraph();
    const outer = outerGraph(inner, makeSaver());
    const run = (input: OuterInput | null, id = "o-1") => outer.invoke(input, thread(id));
    const resume = (reply: unknown, id = "o-1") => outer.invoke(new Command({ resume: reply }), thread(id));
    return { inner, outer, run, resume, store: inner.runtime.store };
  }

  it("raises its pause in the parent, as a task of its own named after the parent's thread", async () => {
    const { run, store } = setUp();
    expect(asked(await run({}))).toEqual([WHAT]);
    const taskId = await onlyTask(store);
    expect(taskId).toMatch(/^o-1\|support:/);
    expect(await describeTask(store, taskId)).toMatchObject({ status: "waiting_user", step: "gather" });
  });

  it("takes from the parent's state what are its inputs, and nothing else", async () => {
    const { run, store } = setUp();
    expect(asked(await run({ topic: "the printer", solution: "an older one" }))).toEqual([URGENT]);
    const { state } = await describeTask(store, await onlyTask(store));
    expect(state).toMatchObject({ topic: "the printer", solution: null });
  });

  it("asks one question after the other, takes plain answers and decisions, and gives its output to the parent", async () => {
    const { run, resume, store } = setUp();
    expect(asked(await run({}))).toEqual([WHAT]);
    expect(asked(await resume("the printer"))).toEqual([URGENT]);
    const done = await resume({ decisions: [{ type: "respond", message: "P2" }] });
    expect(asked(done)).toEqual([]);
    expect(done).toMatchObject({
      topic: "the printer",
      solution: "repair of the printer, P2",
      log: ["before", "after: repair of the printer, P2"],
    });
    expect(await describeTask(store, await onlyTask(store))).toMatchObject({ status: "completed", revision: 5 });
  });

  it("answers nothing when the parent is merely woken, before the first answer and after it", async () => {
    const { run, resume, store } = setUp();
    await run({});
    expect(asked(await run(null))).toEqual([WHAT]);
    expect(asked(await run(null))).toEqual([WHAT]);
    await resume("the printer");
    // LangGraph itself would hand the first answer to the second question here.
    expect(asked(await run(null))).toEqual([URGENT]);
    expect(asked(await run(null))).toEqual([URGENT]);
    const { state, usage: _usage, ...task } = await describeTask(store, await onlyTask(store));
    expect([state.topic, state.priority, task.revision]).toEqual(["the printer", null, 3]);
    expect(await resume("P1")).toMatchObject({ solution: "repair of the printer, P1" });
  });

  it("goes on in the parent after it was answered under its own id", async () => {
    const { inner, run, store } = setUp();
    await run({ message: "the screen" });
    const own = thread(await onlyTask(store));
    const finished = await inner.invoke(new Command({ resume: "P3" }), own);
    expect(finished.execution.status).toBe("completed");
    expect(await run(null)).toMatchObject({ log: ["before", "after: repair of the screen, P3"] });
  });

  it("asks in the parent what it asks now, after an earlier question was answered under its own id", async () => {
    const { inner, run, resume, store } = setUp();
    await run({});
    await inner.invoke(new Command({ resume: "the cable" }), thread(await onlyTask(store)));
    expect(asked(await run(null))).toEqual([URGENT]);
    expect(await resume("P1")).toMatchObject({ solution: "repair of the cable, P1" });
  });

  it("does not take a late answer to an older question, given through the parent, for the newer one", async () => {
    const { inner, run, resume, store } = setUp();
    await run({});
    const taskId = await onlyTask(store);
    await inner.invoke(new Command({ resume: "the cable" }), thread(taskId));
    expect(asked(await resume("the mouse"))).toEqual([URGENT]);
    const { state, waiting } = await describeTask(store, taskId);
    expect([state.topic, state.priority, waiting?.length]).toEqual(["the cable", null, 1]);
    expect(asked(await run(null))).toEqual([URGENT]);
    expect(await resume("P1")).toMatchObject({ solution: "repair of the cable, P1" });
  });

  it("shows its state in the parent's getState with subgraphs", async () => {
    const { outer, run, resume } = setUp();
    await run({});
    await resume("the printer");
    const state = await outer.getState(thread("o-1"), { subgraphs: true });
    expect(state.tasks.map(({ name }) => name)).toEqual(["support"]);
    expect(asked({ [INTERRUPT]: state.tasks[0]?.interrupts })).toEqual([URGENT]);
    const inner = state.tasks[0]?.state as StateSnapshot;
    expect(inner.values).toMatchObject({ topic: "the printer", execution: { step: "gather", decisions: 2 } });
    expect(inner.next).toEqual(["act"]);
  });

  it("starts as a new task when the parent is forked to before the node; the old one keeps what it was told", async () => {
    const { outer, run, resume, store } = setUp();
    await run({});
    await resume("the printer");
    await resume("P2");
    const before = await historyAt(outer, "support");
    expect(asked(await outer.invoke(null, before.config))).toEqual([WHAT]);
    const tasks = await Promise.all((await store.tasks()).map(({ taskId }) => describeTask(store, taskId)));
    expect(new Set(tasks.map(({ state }) => state.topic))).toEqual(new Set([null, "the printer"]));
    expect(asked(await resume("the mouse"))).toEqual([URGENT]);
    expect(await resume("P3")).toMatchObject({ solution: "repair of the mouse, P3" });
  });

  it("keeps the tasks of two threads apart", async () => {
    const { run, resume, store } = setUp();
    await run({}, "o-1");
    await run({}, "o-2");
    await resume("the printer", "o-1");
    await resume("the screen", "o-2");
    expect(await resume("P1", "o-2")).toMatchObject({ solution: "repair of the screen, P1" });
    expect(await resume("P2", "o-1")).toMatchObject({ solution: "repair of the printer, P2" });
    expect(await store.tasks()).toHaveLength(2);
  });

  it("is not run again where the parent failed to store that the node was done", async () => {
    const inner = supportGraph();
    const saver = makeSaver();
    const outer = outerGraph(inner, saver);
    await outer.invoke({ message: "the screen" }, thread("o-1"));
    const put = saver.put.bind(saver);
    saver.put = () => Promise.reject(new Error("disk full"));
    await expect(outer.invoke(new Command({ resume: "P1" }), thread("o-1"))).rejects.toThrow("disk full");
    saver.put = put;
    const taskId = await onlyTask(inner.runtime.store);
    const { revision, status } = await describeTask(inner.runtime.store, taskId);
    expect(status).toBe("completed");
    const done = await outer.invoke(null, thread("o-1"));
    expect(done).toMatchObject({ log: ["before", "after: repair of the screen, P1"] });
    expect((await describeTask(inner.runtime.store, taskId)).revision).toBe(revision);
  });

  it("runs as another task each time the parent comes by", async () => {
    const inner = supportGraph();
    const again = new StateGraph(outerState)
      .addNode("support", inner as never)
      .addNode("count", ({ log, solution }) => ({ log: [...log, `${solution}`], topic: null }))
      .addEdge(START, "support")
      .addEdge("support", "count")
      .addConditionalEdges("count", ({ log }) => (log.length < 2 ? "support" : END), ["support", END])
      .compile({ checkpointer: makeSaver() });
    const resume = (reply: string) => again.invoke(new Command({ resume: reply }), thread("o-1"));
    expect(asked(await again.invoke({ topic: "the screen" }, thread("o-1")))).toEqual([URGENT]);
    expect(asked(await resume("P1"))).toEqual([WHAT]);
    expect(asked(await resume("the mouse"))).toEqual([URGENT]);
    expect((await resume("P2")).log).toEqual(["repair of the screen, P1", "repair of the mouse, P2"]);
    expect(await inner.runtime.store.tasks()).toHaveLength(2);
  });

  it("lets two nodes side by side wait at once, each answered by the id of its interrupt", async () => {
    const inner = supportGraph();
    const pair = new StateGraph(new StateSchema({ joined: z.boolean().default(false) }))
      .addNode("left", inner as never)
      .addNode("right", inner as never)
      .addNode("join", () => ({ joined: true }))
      .addEdge(START, "left")
      .addEdge(START, "right")
      .addEdge(["left", "right"], "join")
      .addEdge("join", END)
      .compile({ checkpointer: makeSaver() });
    const resume = (id: string, reply: string) => pair.invoke(new Command({ resume: { [id]: reply } }), thread("o-1"));
    const paused = (await pair.invoke({}, thread("o-1"))) as { [INTERRUPT]?: { id: string }[] };
    const [one, other] = (paused[INTERRUPT] ?? []).map(({ id }) => id);
    if (one === undefined || other === undefined) throw new Error("two pauses were expected");
    const first = await resume(one, "the screen");
    expect(asked(first).toSorted(alphabetically)).toEqual([URGENT, WHAT]);
    await resume(other, "the mouse");
    await resume(other, "P2");
    const done = await resume(one, "P1");
    expect([asked(done), done.joined]).toEqual([[], true]);
    const { store } = inner.runtime;
    const tasks = await Promise.all((await store.tasks()).map(({ taskId }) => describeTask(store, taskId)));
    expect(tasks.map(({ state }) => String(state.solution)).toSorted(alphabetically)).toEqual([
      "repair of the mouse, P2",
      "repair of the screen, P1",
    ]);
  });
});

async function historyAt(outer: Outer, next: string): Promise<StateSnapshot> {
  for await (const snapshot of outer.getStateHistory(thread("o-1"))) if (snapshot.next[0] === next) return snapshot;
  throw new Error(`the history has no checkpoint before ${next}`);
}

describe("a workflow inside a foreign graph", () => {
  it("refuses to run where a pause could not be kept, before anything is written", async () => {
    const inner = supportGraph();
    const outer = outerGraph(inner);
    await expect(outer.invoke({ message: "x" })).rejects.toMatchObject({ code: "MISSING_CHECKPOINTER" });
    await expect(outer.invoke({ message: "x" }, thread("o-1"))).rejects.toMatchObject({ code: "MISSING_CHECKPOINTER" });
    expect(await inner.runtime.store.tasks()).toEqual([]);
  });

  it.each<[kept: string, checkpointer: BaseCheckpointSaver | undefined]>([
    ["a graph with a checkpointer", new MemorySaver()],
    ["a graph without one", undefined],
  ])(
    "is a task like any other when a node of %s invokes it with a thread id of its own",
    async (_kept, checkpointer) => {
      const inner = supportGraph();
      const outer = outerGraph(async () => {
        const paused = await inner.invoke({ message: "the mouse" }, thread("own-1"));
        return { log: asked(paused) };
      }, checkpointer);
      const result = await outer.invoke({}, thread("o-1"));
      expect(asked(result)).toEqual([]);
      expect(result.log).toEqual([URGENT, "after: null"]);
      expect(await onlyTask(inner.runtime.store)).toBe("own-1");
      const done = await inner.invoke(new Command({ resume: "P1" }), thread("own-1"));
      expect(done.solution).toBe("repair of the mouse, P1");
    },
  );

  it("streams its updates under the parent's namespace, and raises its pause once", async () => {
    const outer = outerGraph(supportGraph(), new MemorySaver());
    const options = { ...thread("o-1"), streamMode: ["updates" as const], subgraphs: true };
    const chunks: [namespace: string[], mode: string, chunk: object][] = [];
    for await (const chunk of await outer.stream({ message: "the mouse" }, options)) chunks.push(chunk as never);
    const seen = chunks.map(([namespace, , chunk]) => [namespace.map(withoutId).join("/"), ...Object.keys(chunk)]);
    expect(seen).toEqual([
      ["", "before"],
      ["support", "gather"],
      ["", INTERRUPT],
    ]);
  });

  it("streams the text of a reply through the parent, and not the decision around it", async () => {
    const model = scriptedModel([{ because: "it is easy", reply: "It is done.", next: "settled" }]);
    const inner = compile(talk, { model, store: sqliteStore(":memory:") });
    const outer = outerGraph(inner, new MemorySaver());
    const options = { ...thread("o-1"), streamMode: "messages" as const, subgraphs: true };
    const texts: string[] = [];
    for await (const [, [message]] of (await outer.stream({ message: "hi" }, options)) as never as AsyncIterable<
      [string[], [{ text: string }]]
    >) {
      texts.push(message.text);
    }
    expect(texts.join("")).toBe("It is done.");
  });

  it("stops the parent with an error where it has failed, instead of going on without a result", async () => {
    const inner = compile(giveUp, { store: sqliteStore(":memory:") });
    const outer = outerGraph(inner, new MemorySaver());
    await expect(outer.invoke({}, thread("o-1"))).rejects.toThrow(/STEP_LIMIT|its limit/);
    expect((await outer.getState(thread("o-1"))).values.log).toEqual(["before"]);
  });
});

/** One model step that talks. */
const talk = defineWorkflow({
  name: "talk",
  version: 1,
  state: { note: field(z.string()) },
  initial: "say",
  steps: { say: { writes: ["note"], to: ["settled"] }, settled: { final: true } },
});

/** Never comes to an end and so reaches its limit. */
const giveUp = defineWorkflow({
  name: "give-up",
  version: 1,
  state: { note: field(z.string()) },
  initial: "turn",
  steps: {
    turn: { to: ["turn", "settled"], maxDecisions: 2, run: () => ({ patch: { note: "round" }, next: "turn" }) },
    settled: { final: true },
  },
});

/** Hands its topic to the support workflow and takes over the solution. */
const desk = defineWorkflow({
  name: "desk",
  version: 1,
  state: { topic: field(z.string()), outcome: field(z.string()) },
  input: ["topic"],
  initial: "open",
  steps: {
    open: { to: ["helping"], run: () => ({ next: "helping" }) },
    helping: {
      workflow: support,
      input: ({ topic }) => ({ topic }),
      output: ({ state, status }) => ({ patch: { outcome: `${status}: ${String(state.solution)}` } }),
      to: ["closed"],
    },
    closed: { final: true },
  },
});

describe.each<[name: string, options: () => CompileOptions]>([
  ["the SQLite store", () => ({ store: sqliteStore(":memory:") })],
  ["a plain checkpointer", () => ({ checkpointer: new MemorySaver() })],
])("a workflow as a step of another workflow, on %s", (_name, options) => {
  function setUp() {
    const graph = compile(desk, options());
    const { store } = graph.runtime;
    // The same tasks, as another process that has only the child workflow would see them.
    const child = compile(support, { store });
    return { graph, child, store };
  }
  const parentThread = thread("p-1");
  async function childOf(store: TaskStore): Promise<string> {
    const child = (await store.tasks()).find(({ taskId }) => taskId !== "p-1");
    return child?.taskId ?? "";
  }

  it("passes the child's questions up, takes their answers in the parent, and takes over the result", async () => {
    const { graph, store } = setUp();
    const first = await graph.invoke({}, parentThread);
    expect(asked(first)).toEqual([WHAT]);
    expect(await describeTask(store, "p-1")).toMatchObject({ status: "waiting_user", step: "helping" });
    const second = await graph.invoke(answer(first, "the printer"), parentThread);
    expect(asked(second)).toEqual([URGENT]);
    const done = await graph.invoke(new Command({ resume: "P2" }), parentThread);
    expect(done.outcome).toBe("completed: repair of the printer, P2");
    expect(done.execution).toMatchObject({
      status: "completed",
      step: "closed",
      completedSteps: ["open", "helping"],
      observation: { kind: "workflow", workflow: "support", status: "completed" },
    });
  });

  it("gives the child its declared input and keeps the two states apart", async () => {
    const { graph, store } = setUp();
    expect(asked(await graph.invoke({ topic: "the screen" }, parentThread))).toEqual([URGENT]);
    const child = await describeTask(store, await childOf(store));
    expect(child).toMatchObject({ workflow: "support", state: { topic: "the screen", priority: null } });
    const parent = await describeTask(store, "p-1");
    expect(Object.keys(parent.state).toSorted(alphabetically)).toEqual(["outcome", "topic"]);
  });

  it("takes a new message to the parent as the answer to the child's open question", async () => {
    const { graph } = setUp();
    await graph.invoke({ topic: "the screen" }, parentThread);
    const done = await graph.invoke({ message: "P1" }, parentThread);
    expect(done.outcome).toBe("completed: repair of the screen, P1");
  });

  it("answers nothing when the parent is merely woken", async () => {
    const { graph, store } = setUp();
    await graph.invoke({}, parentThread);
    expect(asked(await graph.invoke(null, parentThread))).toEqual([WHAT]);
    await graph.invoke(new Command({ resume: "the printer" }), parentThread);
    expect(asked(await graph.invoke(null, parentThread))).toEqual([URGENT]);
    expect((await describeTask(store, await childOf(store))).state).toMatchObject({ priority: null });
  });

  it("goes on in the parent after the child was answered under its own id", async () => {
    const { graph, child, store } = setUp();
    await graph.invoke({ topic: "the screen" }, parentThread);
    const finished = await child.invoke(new Command({ resume: "P3" }), thread(await childOf(store)));
    expect(finished.execution.status).toBe("completed");
    const done = await graph.invoke(null, parentThread);
    expect(done.outcome).toBe("completed: repair of the screen, P3");
  });

  it("asks in the parent what the child asks now, and takes no late answer to the older question for it", async () => {
    const { graph, child, store } = setUp();
    const shown = await graph.invoke({}, parentThread);
    const childId = await childOf(store);
    await child.invoke(new Command({ resume: "the cable" }), thread(childId));
    await graph.invoke(answer(shown, "the mouse"), parentThread).catch(() => null);
    expect((await describeTask(store, childId)).state).toMatchObject({ topic: "the cable", priority: null });
    expect(asked(await graph.invoke(null, parentThread))).toEqual([URGENT]);
    const done = await graph.invoke(new Command({ resume: "P1" }), parentThread);
    expect(done.outcome).toBe("completed: repair of the cable, P1");
  });

  it("refuses a second answer to a question that the parent has passed on, and changes nothing", async () => {
    const { graph, store } = setUp();
    const shown = await graph.invoke({}, parentThread);
    await graph.invoke(answer(shown, "the printer"), parentThread);
    await expect(graph.invoke(answer(shown, "the mouse"), parentThread)).rejects.toMatchObject({
      code: "STALE_RESUME",
    });
    expect((await describeTask(store, await childOf(store))).state).toMatchObject({ topic: "the printer" });
  });

  it("starts a new child when the parent is forked to before the step", async () => {
    const { graph } = setUp();
    await graph.invoke({ topic: "the screen" }, parentThread);
    await graph.invoke(new Command({ resume: "P1" }), parentThread);
    const snapshots: StateSnapshot[] = [];
    for await (const snapshot of graph.getStateHistory(parentThread)) snapshots.push(snapshot);
    const before = snapshots.find(({ next }) => next[0] === "helping");
    expect(asked(await graph.invoke(null, before?.config))).toEqual([URGENT]);
    const done = await graph.invoke(new Command({ resume: "P3" }), parentThread);
    expect(done.outcome).toBe("completed: repair of the screen, P3");
  });
});

describe("a workflow as a step of another workflow", () => {
  const store = () => sqliteStore(":memory:");

  it("passes questions up through two levels", async () => {
    const company = defineWorkflow({
      name: "company",
      version: 1,
      state: { report: field(z.string()) },
      initial: "handling",
      steps: {
        handling: {
          workflow: desk,
          output: ({ state }) => ({ patch: { report: String(state.outcome) } }),
          to: ["over"],
        },
        over: { final: true },
      },
    });
    const graph = compile(company, { store: store() });
    const first = await graph.invoke({}, thread("c-1"));
    expect(asked(first)).toEqual([WHAT]);
    const second = await graph.invoke(answer(first, "the printer"), thread("c-1"));
    expect(asked(second)).toEqual([URGENT]);
    const done = await graph.invoke(answer(second, "P2"), thread("c-1"));
    expect(done.report).toBe("completed: repair of the printer, P2");
  });

  it("stops the parent with a typed error where the child fails and no output takes it, and stays there", async () => {
    const strict = defineWorkflow({
      name: "strict",
      version: 1,
      state: { outcome: field(z.string()) },
      initial: "helping",
      steps: { helping: { workflow: giveUp, to: ["closed"], writes: ["outcome"] }, closed: { final: true } },
      // A field that only a caller sets would be reported as never written.
      input: ["outcome"],
    });
    const graph = compile(strict, { store: store() });
    await expect(graph.invoke({}, thread("p-1"))).rejects.toMatchObject({
      code: "STEP_FAILED",
      message: expect.stringMatching(/give-up.*helping.*limit/s) as string,
    });
    expect(await describeTask(graph.runtime.store, "p-1")).toMatchObject({
      status: "failed",
      step: "helping",
      lastError: { code: "STEP_FAILED" },
    });
  });

  it("tells output that the child has failed, which can lead the parent another way", async () => {
    const tolerant = defineWorkflow({
      name: "tolerant",
      version: 1,
      state: { outcome: field(z.string()) },
      initial: "helping",
      steps: {
        helping: {
          workflow: giveUp,
          output: ({ status, state }) => ({
            patch: { outcome: `${status} after ${String(state.note)}` },
            next: status === "failed" ? "handed_on" : "closed",
          }),
          to: ["closed", "handed_on"],
        },
        handed_on: { final: true },
        closed: { final: true },
      },
    });
    const done = await compile(tolerant, { store: store() }).invoke({}, thread("p-1"));
    expect(done.outcome).toBe("failed after round");
    expect(done.execution).toMatchObject({ step: "handed_on", status: "completed" });
  });

  it("goes on in the child where an error had stopped it, when the parent is resumed", async () => {
    let visits = 0;
    const shaky = defineWorkflow({
      name: "shaky",
      version: 1,
      state: { first: field(z.string()), second: field(z.string()) },
      initial: "one",
      steps: {
        one: { to: ["two"], run: () => ({ patch: { first: `visit ${++visits}` }, next: "two" }) },
        two: {
          to: ["settled"],
          run: () => {
            if (++visits === 2) throw new Error("the line went dead");
            return { patch: { second: `visit ${visits}` }, next: "settled" };
          },
        },
        settled: { final: true },
      },
    });
    const caller = defineWorkflow({
      name: "caller",
      version: 1,
      state: { outcome: field(z.string()) },
      initial: "calling",
      steps: {
        calling: {
          workflow: shaky,
          output: ({ state }) => ({ patch: { outcome: `${String(state.first)}, ${String(state.second)}` } }),
          to: ["settled"],
        },
        settled: { final: true },
      },
    });
    const graph = compile(caller, { store: store() });
    await expect(graph.invoke({}, thread("p-1"))).rejects.toMatchObject({
      code: "STEP_FAILED",
      message: expect.stringContaining("the line went dead") as string,
    });
    expect((await describeTask(graph.runtime.store, "p-1")).status).toBe("failed");
    const done = await graph.invoke(null, thread("p-1"));
    // The finished step of the child was not done again.
    expect([done.outcome, visits]).toEqual(["visit 1, visit 3", 3]);
  });

  it("leaves the parent where it is when output throws or names a step outside the table", async () => {
    const astray = (output: () => { next?: "open" | "closed" }) =>
      defineWorkflow({
        name: "astray",
        version: 1,
        state: { outcome: field(z.string()) },
        input: ["outcome"],
        initial: "open",
        steps: {
          open: { to: ["talking"], run: () => ({ next: "talking" }) },
          talking: { workflow: talk, output, to: ["closed"] },
          closed: { final: true },
        },
      });
    const said = { reply: "hello", next: "settled" };
    const thrower = astray(() => {
      throw new Error("no output today");
    });
    const throwing = compile(thrower, { store: store(), model: scriptedModel([said]) });
    await expect(throwing.invoke({}, thread("p-1"))).rejects.toMatchObject({ code: "STEP_FAILED" });
    expect((await describeTask(throwing.runtime.store, "p-1")).step).toBe("talking");

    const stray = compile(
      astray(() => ({ next: "open" })),
      { store: store(), model: scriptedModel([said]) },
    );
    const failed = await stray.invoke({}, thread("p-1"));
    expect(failed.execution).toMatchObject({
      status: "failed",
      step: "talking",
      lastError: { code: "ILLEGAL_TRANSITION" },
    });
  });

  it("streams the text of the child's reply, and not the decision around it", async () => {
    const talking = defineWorkflow({
      name: "talking",
      version: 1,
      state: { outcome: field(z.string()) },
      input: ["outcome"],
      initial: "talking",
      steps: { talking: { workflow: talk, output: () => ({}), to: ["closed"] }, closed: { final: true } },
    });
    const model = scriptedModel([{ because: "it is easy", reply: "It is done.", next: "settled" }]);
    const graph: Pick<WorkflowGraph, "stream"> = compile(talking, { store: store(), model });
    const texts: string[] = [];
    for await (const [message] of await graph.stream({}, { ...thread("p-1"), streamMode: "messages" })) {
      texts.push(message.text);
    }
    expect(texts.join("")).toBe("It is done.");
  });
});
