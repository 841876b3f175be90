import { Command, INTERRUPT, MemorySaver } from "@langchain/langgraph";
import {
  answer,
  compile,
  defineTool,
  defineWorkflow,
  field,
  signedIn,
  sqliteStore,
  wakeDue,
  type Tool,
} from "statecard";
import { onFaultPoint, scriptedModel } from "statecard/testing";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";

// What a hostile review of calls and approvals has found, so that it stays mended.

const config = { configurable: { thread_id: "t" } };
const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
afterEach(() => onFaultPoint(null));

/** A workflow of one acting step. */
function acting(tools: Record<string, Tool<never>>, approve?: unknown) {
  return defineWorkflow({
    name: "acting",
    version: 1,
    state: { note: field(z.string()) },
    tools: tools as never,
    initial: "acting",
    steps: {
      acting: {
        tools: Object.keys(tools) as never,
        writes: ["note"],
        to: ["acting", "done"],
        ...(approve ? { approve: approve as never } : {}),
      },
      done: { final: true },
    },
  });
}

const payInto = (paid: unknown[], run?: (args: { n: number }) => unknown) =>
  defineTool({
    description: "Pays.",
    parameters: z.object({ n: z.number() }),
    effect: "write",
    run: (args) => {
      paid.push(args.n);
      return run?.(args) ?? "paid";
    },
  }) as unknown as Tool<never>;
const call = (n: number, tool = "pay") => ({ tool, args: { n } });

test("a run whose signal is aborted before it holds the lease gives the task back", async () => {
  const graph = compile(acting({ pay: payInto([]) }), {
    model: scriptedModel([{ ask: "Well?" }, { next: "done" }]),
    store: sqliteStore(":memory:"),
  });
  await graph.invoke({ message: "go" }, config);
  await expect(graph.invoke(null, { ...config, signal: AbortSignal.abort() })).rejects.toThrow();
  const done = await graph.invoke({ message: "yes" }, config);
  expect(done.execution.status).toBe("completed");
});

describe("a tool's result", () => {
  const odd = Object.create({ constructor: undefined }) as object;
  test.each<[what: string, result: () => unknown, value: unknown]>([
    // oxlint-disable-next-line unicorn/no-thenable -- query builders are such objects
    ["that is a thenable of another kind", () => ({ then: (done: (value: string) => void) => done("late") }), "late"],
    ["that is a promise", () => Promise.resolve("later"), "later"],
    ["with a date in it", () => ({ at: new Date(0), receipt: "r-1" }), expect.stringContaining("r-1")],
    ["with a big integer in it", () => ({ id: 10n, receipt: "r-1" }), expect.stringContaining("r-1")],
    ["of an odd kind", () => odd, expect.anything()],
  ])("%s is ok, and the body has run once", async (_what, result, value) => {
    const paid: unknown[] = [];
    const graph = compile(acting({ pay: payInto(paid, result) }), {
      model: scriptedModel([{ calls: [call(5)], next: "done" }]),
      store: sqliteStore(":memory:"),
    });
    const done = await graph.invoke({ message: "go" }, config);
    expect(done.execution.observation).toMatchObject({ results: [{ status: "ok", value }] });
    expect(paid).toEqual([5]);
  });

  test("that cannot be told by its thrower is an error, not a crash", async () => {
    const tool = payInto([], () => {
      throw Object.create(null) as Error;
    });
    const model = scriptedModel([{ calls: [call(5)], next: "done" }, { next: "done" }]);
    const done = await compile(acting({ pay: tool }), { model, store: sqliteStore(":memory:") }).invoke(
      { message: "go" },
      config,
    );
    expect(done.execution.status).toBe("completed");
  });

  test("is cut only after secrets were taken out of it", async () => {
    const key = `sk-${"abcdefghij".repeat(30)}`;
    const tool = payInto([], () => {
      throw new Error(`${"x".repeat(1900)} ${key}`);
    });
    const store = sqliteStore(":memory:");
    const model = scriptedModel([{ calls: [call(5)], next: "done" }, { next: "done" }]);
    await compile(acting({ pay: tool }), { model, store }).invoke({ message: "go" }, config);
    expect(JSON.stringify(await store.events("t"))).not.toContain("sk-abcdefghij");
  });
});

test("a body that changes its arguments changes nothing that is on record", async () => {
  const paid: number[] = [];
  const tool = defineTool({
    description: "Pays.",
    parameters: z.object({ n: z.number() }),
    effect: "write",
    run: (args) => {
      paid.push(args.n);
      (args as { n: number }).n = 99;
    },
  }) as unknown as Tool<never>;
  const store = sqliteStore(":memory:");
  const graph = compile(acting({ pay: tool }), {
    model: scriptedModel([{ calls: [call(5), call(6)], next: "done" }]),
    store,
  });
  await graph.invoke({ message: "go" }, config);
  expect(paid).toEqual([5, 6]);
  const decided = (await store.events("t")).find((event) => event.kind === "decision")?.data.decision;
  expect(decided).toMatchObject({ calls: [{ args: { n: 5 } }, { args: { n: 6 } }] });
});

test("a call that has run is not asked about again, whatever its rule has become", async () => {
  const paid: unknown[] = [];
  const rule = { pay: (_args: unknown, state: { note: string | null }) => state.note === "strict", other: true };
  const workflow = acting({ pay: payInto(paid), other: payInto([]) }, rule);
  const graph = compile(workflow, {
    model: scriptedModel([{ calls: [call(5), call(1, "other")], next: "done" }]),
    store: sqliteStore(":memory:"),
  });
  await graph.invoke({ message: "go" }, config);
  await graph.updateState(config, { note: "strict" });
  const paused = await graph.invoke(null, config);
  expect(paused[INTERRUPT]?.[0]?.value?.requests.map(({ id }) => id)).toEqual(["a1.1.0"]);
  const done = await graph.invoke(answer(paused, "approve"), as("ada"));
  expect(done.execution.status).toBe("completed");
  expect(paid).toEqual([5]);
});

test("of several replies none is stored where one is refused", async () => {
  const graph = compile(acting({ pay: payInto([]) }, ["pay"]), {
    model: scriptedModel([{ calls: [call(1), call(2)], next: "done" }, { next: "done" }]),
    store: sqliteStore(":memory:"),
  });
  await graph.invoke({ message: "go" }, config);
  const half = {
    decisions: [{ type: "approve" }, { type: "edit", editedAction: { name: "pay", args: { n: "much" } } }],
  };
  await expect(graph.invoke(new Command({ resume: half }), config)).rejects.toMatchObject({ code: "INVALID_REPLY" });
  const none = { decisions: [{ type: "reject" }, { type: "reject" }] };
  const done = await graph.invoke(new Command({ resume: none }), config);
  expect(done.execution.status).toBe("completed");
});

test("an edit is checked by the tool of the child workflow that asked", async () => {
  const ran: unknown[] = [];
  const tool = (parameters: z.ZodObject, run: (args: unknown) => void) =>
    defineTool({ description: "Pays.", parameters, effect: "write", approve: true, run }) as unknown as Tool<never>;
  const child = (name: string, pay: Tool<never>) => ({ ...acting({ pay }), name });
  const first = child(
    "first",
    tool(z.object({ n: z.number() }), () => {}),
  );
  const currency = z.string().default("EUR");
  const second = child(
    "second",
    tool(z.object({ n: z.number(), currency }), (args) => ran.push(args)),
  );
  const parent = defineWorkflow({
    name: "parent",
    version: 1,
    state: { note: field(z.string()) },
    input: ["note"],
    initial: "two",
    steps: {
      one: { workflow: first, to: ["done"] },
      two: { workflow: second, to: ["one", "done"], output: () => ({ next: "done" }) },
      done: { final: true },
    },
  });
  const graph = compile(parent, {
    store: sqliteStore(":memory:"),
    model: scriptedModel([{ calls: [call(1)], next: "done" }]),
  });
  await graph.invoke({ note: "x" }, config);
  const edit = { type: "edit", args: { n: 5, currency: "USD" } };
  await graph.invoke(new Command({ resume: edit }), as("ada"));
  expect(ran).toEqual([{ n: 5, currency: "USD" }]);
});

test("a task that has not taken its input in is neither overridden nor edited, and loses nothing", async () => {
  const store = sqliteStore(":memory:");
  const graph = compile(acting({ pay: payInto([]) }), { model: scriptedModel([{ ask: "Well?" }]), store });
  let left = 1;
  onFaultPoint((point) => {
    if (point === "after-put" && left-- > 0) throw new Error("killed");
  });
  await expect(graph.invoke({ message: "remember me" }, config)).rejects.toThrow("killed");
  onFaultPoint(null);
  await expect(graph.override(as("ada"), { step: "acting", reason: "x" })).rejects.toMatchObject({
    code: "INVALID_UPDATE",
  });
  await expect(graph.updateState(config, { note: "x" })).rejects.toMatchObject({ code: "INVALID_UPDATE" });
  const paused = await graph.invoke(null, config);
  expect(paused.execution.observation).toMatchObject({ kind: "message", text: "remember me" });
});

test("one due task that fails does not keep the others from being woken", async () => {
  const clock = { time: 1_000_000, now: () => clock.time };
  const workflow = defineWorkflow({
    name: "due",
    version: 1,
    state: { note: field(z.string()) },
    input: ["note"],
    initial: "asking",
    steps: {
      asking: { deadline: { afterMs: 10, to: "late" }, to: ["late"], run: () => ({ ask: "Well?" }) },
      late: {
        to: ["done"],
        run: ({ note }) => {
          if (note === "fails") throw new Error("no");
          return { next: "done" };
        },
      },
      done: { final: true },
    },
  });
  const graph = compile(workflow, { store: sqliteStore(":memory:", { clock }), clock });
  for (const note of ["fine", "fails"]) await graph.invoke({ note }, { configurable: { thread_id: note } });
  clock.time += 10;
  await expect(wakeDue(graph)).rejects.toThrow("no");
  expect((await graph.getState({ configurable: { thread_id: "fine" } })).values.execution.status).toBe("completed");
});

test("on another checkpointer a quorum of two is two people as well", async () => {
  const paid: unknown[] = [];
  const graph = compile(acting({ pay: payInto(paid) }, { pay: { count: 2 } }), {
    model: scriptedModel([{ calls: [call(5)], next: "done" }]),
    checkpointer: new MemorySaver(),
  });
  const paused = await graph.invoke({ message: "go" }, config);
  await graph.invoke(answer(paused, "approve"), as("ada"));
  await expect(graph.invoke(answer(paused, "approve"), as("ada"))).rejects.toMatchObject({ code: "ALREADY_APPROVED" });
  expect(paid).toEqual([]);
  await graph.invoke(answer(paused, "approve"), as("bob"));
  expect(paid).toEqual([5]);
});

test("a schema that transforms its input is applied to an edit once", async () => {
  const paid: unknown[] = [];
  const tool = defineTool({
    description: "Pays.",
    parameters: z.object({ n: z.string().transform(Number).pipe(z.number()) }),
    effect: "write",
    approve: true,
    run: ({ n }) => {
      paid.push(n);
    },
  }) as unknown as Tool<never>;
  const graph = compile(acting({ pay: tool }), {
    model: scriptedModel([{ calls: [{ tool: "pay", args: { n: "5" } }], next: "done" }]),
    store: sqliteStore(":memory:"),
  });
  await graph.invoke({ message: "go" }, config);
  const done = await graph.invoke(new Command({ resume: { type: "edit", args: { n: "7" } } }), as("ada"));
  expect(done.execution.status).toBe("completed");
  expect(paid).toEqual([7]);
});
