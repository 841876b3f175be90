import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { Command } from "@langchain/langgraph";
import fc from "fast-check";
import {
  defineTool,
  defineWorkflow,
  field,
  isWorkflowError,
  sqliteStore,
  type AnyWorkflow,
  type Execution,
} from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { compileAny } from "../../src/compile/compile.ts";
import { onFaultPoint } from "../../src/internal/fault-point.ts";
import { jsonBytes, jsonEqual } from "../../src/internal/json.ts";
import { rebuild } from "../../src/storage/export/rebuild.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { replay, type LoggedEvent } from "../../src/workflow/replay.ts";
import {
  buildWorkflow,
  fittingValue,
  makeDecision,
  Random,
  workflowPlans,
  type WorkflowPlan,
} from "../support/random-workflow.ts";

const ROUNDS_A_WORKFLOW = 30;
const WORKFLOWS = 4;
const SEED = 20_261_129;

/** A model of which each answer, or error, is made up when it is asked. */
class MadeUpModel extends BaseChatModel {
  private readonly respond: (prompt: string) => string;

  constructor(respond: (prompt: string) => string) {
    super({ maxRetries: 0 });
    this.respond = respond;
  }

  override _llmType(): string {
    return "made up";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const text = this.respond(messages.map((message) => message.text).join("\n"));
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

const withoutNulls = (state: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(state).filter(([, value]) => value !== null));

/** Compares everything that the log leads to with what is stored. */
async function compare(store: SqlStore, taskId: string): Promise<"same" | "same, but for a fork that came to nothing"> {
  const { task, events } = await store.exportTask(taskId);
  const { tasks, older } = rebuild(events);
  expect(older).toBeNull();
  const stored = { ...task, state: withoutNulls(task.state) };
  const told = tasks.map((each) => ({ ...each, state: withoutNulls(each.state) }));
  const at = told.findIndex((each) => jsonEqual(each, stored));
  if (at < 0) expect(told[0]).toEqual(stored);
  return at === 0 ? "same" : "same, but for a fork that came to nothing";
}

/** Plays a random task through honest answers, edits, forks, failures and retries. */
class Play {
  compared = 0;
  readonly done = new Map<string, number>();
  private readonly plan: WorkflowPlan;
  private readonly random: Random;
  private readonly store = sqliteStore(":memory:");
  private readonly graph: ReturnType<typeof compileAny>;
  private task = 0;
  private known: ReadonlySet<string> = new Set();

  constructor(plan: WorkflowPlan, seed: number) {
    this.plan = plan;
    this.random = new Random(seed);
    const workflow: AnyWorkflow = buildWorkflow(plan, {
      modelOf: (step) =>
        new MadeUpModel(() => {
          if (this.random.chance(0.06)) throw new Error("the provider is down");
          return makeDecision(plan, step, this.known, this.random, 0.6).text;
        }),
      runOf: (step) => async (state) => {
        if (this.random.chance(0.06)) throw new Error("the disk is full");
        return JSON.parse(makeDecision(plan, step, knownIn(state), this.random, 1).text) as object;
      },
    });
    this.graph = compileAny(workflow, { store: this.store });
  }

  async play(): Promise<void> {
    for (let round = 0; round < ROUNDS_A_WORKFLOW; round++) {
      const [name, act] = await this.next();
      try {
        this.done.set(name, (this.done.get(name) ?? 0) + 1);
        await act();
      } catch (error) {
        // A run that was cut short by LangGraph's own limit goes on with the next wake-up.
        const isCut = error instanceof Error && error.name === "GraphRecursionError";
        if (!isWorkflowError(error) && !isCut) throw error;
      }
      if (!(await this.store.head(this.id))) continue;
      this.known = knownIn((await this.store.exportTask(this.id)).task.state);
      const outcome = await compare(this.store, this.id);
      this.done.set(outcome, (this.done.get(outcome) ?? 0) + 1);
      this.compared++;
    }
    await this.store.close();
  }

  private get id(): string {
    return `t${this.task}`;
  }

  private get config() {
    return { configurable: { thread_id: this.id }, recursionLimit: 1 + this.random.below(5) };
  }

  private async next(): Promise<readonly [string, () => Promise<unknown>]> {
    const { random, graph, config } = this;
    const head = await this.store.head(this.id);
    if (!head) return ["start", () => graph.invoke(this.opening() as never, config)];
    if (random.chance(0.15)) return ["edit", () => graph.updateState(config, this.values(0.3))];
    if (random.chance(0.12)) {
      const byRun = random.chance(0.6);
      const old = await this.oldCheckpoint(byRun);
      return byRun
        ? ["fork", () => graph.invoke(null, old)]
        : ["fork by an edit", () => graph.updateState(old, this.values(0.3))];
    }
    const { status, pending, lastError } = head.execution;
    const isOver = status === "completed" || (status === "failed" && lastError?.code.endsWith("_LIMIT"));
    if (isOver) {
      this.task++;
      return ["start", () => graph.invoke(this.opening() as never, config)];
    }
    if (pending) return ["answer", () => graph.invoke(new Command({ resume: `it is ${random.below(9)}` }), config)];
    return [status === "failed" ? "retry" : "wake", () => graph.invoke(null, config)];
  }

  private opening(): object {
    const inputs = this.plan.fields.filter((one) => this.plan.input.includes(one.name) && this.random.chance(0.5));
    return { message: "hello", ...Object.fromEntries(inputs.map((one) => [one.name, fittingValue(one, this.random)])) };
  }

  private values(probability: number): Record<string, unknown> {
    const some = this.random.some(this.plan.fields, probability);
    return Object.fromEntries(some.map((one) => [one.name, fittingValue(one, this.random)]));
  }

  private async oldCheckpoint(withInput: boolean) {
    const ids: string[] = [];
    for await (const { checkpoint, metadata } of this.store.checkpointer.list(this.config)) {
      // LangGraph's updateState drops an input that it finds there.
      if (withInput || metadata?.source !== "input") ids.push(checkpoint.id);
    }
    return { ...this.config, configurable: { thread_id: this.id, checkpoint_id: this.random.pick(ids) } };
  }
}

const knownIn = (state: Readonly<Record<string, unknown>>) =>
  new Set(Object.keys(state).filter((name) => (state[name] ?? null) !== null));

test("the log leads to the stored task at every head, whatever happened to it", async () => {
  const done = new Map<string, number>();
  let compared = 0;
  const property = fc.asyncProperty(workflowPlans(), fc.integer(), async (plan, seed) => {
    const play = new Play(plan, seed);
    await play.play();
    compared += play.compared;
    for (const [name, count] of play.done) done.set(name, (done.get(name) ?? 0) + count);
  });
  await fc.assert(property, { seed: SEED, numRuns: WORKFLOWS, endOnFailure: true });
  expect(compared).toBeGreaterThan(WORKFLOWS * 20);
  for (const name of ["start", "edit", "fork", "fork by an edit", "answer", "retry", "wake"]) {
    expect(done.get(name) ?? 0, name).toBeGreaterThan(0);
  }
});

/** A workflow with a list that only grows, a tool that pays, and whatever the script says. */
function payments(answers: readonly (object | Error)[] | ((asked: number) => object)) {
  const pay = defineTool({
    description: "Pays.",
    parameters: z.object({ order: z.string() }),
    effect: "write",
    approve: ({ order }) => order.startsWith("dear"),
    run: ({ order }) => {
      if (order === "broken") throw new Error("no such order");
      return { receipt: `r-${order}` };
    },
  });
  const workflow = defineWorkflow({
    name: "payments",
    version: 1,
    state: {
      log: field(z.array(z.string())).appendOnly().maxBytes(100_000),
      note: field(z.string()).clearable(),
      tags: field(z.record(z.string(), z.string())),
    },
    input: ["tags"],
    tools: { pay },
    initial: "acting",
    steps: {
      acting: { tools: ["pay"], writes: ["log", "note", "tags"], to: ["acting", "done"], maxDecisions: 1000 },
      done: { final: true },
    },
    maxDecisions: 1000,
  });
  let asked = 0;
  const model = new MadeUpModel(() => {
    const answer = typeof answers === "function" ? answers(asked++) : (answers[asked++ % answers.length] ?? {});
    if (answer instanceof Error) throw answer;
    return JSON.stringify(answer);
  });
  const store = sqliteStore(":memory:");
  return { store, graph: compileAny(workflow as unknown as AnyWorkflow, { model, store }) };
}

const call = (order: string) => ({ tool: "pay", args: { order } });
const config = { configurable: { thread_id: "t" } };

/** Runs superstep by superstep and compares at each of them. */
async function runSlowly(graph: ReturnType<typeof compileAny>, store: SqlStore, input: unknown): Promise<void> {
  for (let rest = input; ; rest = null) {
    try {
      await graph.invoke(rest as never, { ...config, recursionLimit: 1 });
      break;
    } catch (error) {
      if (!(error instanceof Error && error.name === "GraphRecursionError")) throw error;
      expect(await compare(store, "t")).toBe("same");
    }
  }
  expect(await compare(store, "t")).toBe("same");
}

test("calls, approvals, fields that only grow, clearing and merging are replayed", async () => {
  const { graph, store } = payments([
    { patch: { log: ["a", "b"], note: "x", tags: { k: "v" } }, next: "acting" },
    { patch: { log: ["c"], tags: { l: "w" } }, clear: ["note"], next: "acting" },
    { calls: [call("1"), call("2")], patch: { log: ["paid"] }, next: "acting" },
    { calls: [call("broken"), call("3")], patch: { log: ["never"] }, next: "acting" },
    { calls: [call("dear 4"), call("5")], patch: { log: ["paid more"], note: "y" }, next: "acting" },
    { calls: [call("dear 6")] },
    { patch: { log: ["x"] }, ask: "Done?" },
    { next: "done" },
  ]);
  await runSlowly(graph, store, { message: "go", tags: { m: "n" } });
  await runSlowly(graph, store, new Command({ resume: { decisions: [{ type: "approve" }] } }));
  await runSlowly(graph, store, new Command({ resume: { decisions: [{ type: "reject", message: "too dear" }] } }));
  await graph.updateState(config, { log: ["a", "b", "c", "paid", "paid more", "x", "by hand"], note: null });
  await runSlowly(graph, store, new Command({ resume: "yes" }));
  const { task } = await store.exportTask("t");
  expect(task.execution.status).toBe("completed");
  expect(task.state).toEqual({
    log: ["a", "b", "c", "paid", "paid more", "x", "by hand"],
    note: null,
    tags: { k: "v", l: "w", m: "n" },
  });
  expect(task.journal).toHaveLength(6);
  expect(task.requests.map(({ request, answer }) => [request.kind, answer?.type])).toEqual([
    ["approval", "approve"],
    ["approval", "reject"],
    ["question", "text"],
  ]);
});

test("a fork of which nothing came leaves two lines; the next commit tells which is the task's", async () => {
  const { graph, store } = payments((asked) =>
    asked === 0
      ? { patch: { note: "one" }, next: "acting" }
      : asked === 1
        ? { ask: "Go on?" }
        : { patch: { note: "two" }, ask: "And now?" },
  );
  await graph.invoke({ message: "go" } as never, config);
  let old: string | undefined;
  for await (const { checkpoint } of store.checkpointer.list(config)) {
    if ((checkpoint.channel_values.execution as Execution).revision === 1) old = checkpoint.id;
  }
  onFaultPoint((point) => {
    if (point === "before-put") throw new Error("killed");
  });
  await expect(graph.invoke(null, { configurable: { thread_id: "t", checkpoint_id: old } })).rejects.toThrow("killed");
  onFaultPoint(null);
  expect((await store.head("t"))?.execution.revision).toBe(2);
  expect(await compare(store, "t")).toBe("same, but for a fork that came to nothing");
  // The fork was counted, so the question is asked anew.
  await graph.invoke(null, config);
  await graph.invoke(new Command({ resume: "yes" }), config);
  expect((await store.exportTask("t")).task).toMatchObject({ state: { note: "two" }, execution: { revision: 4 } });
  expect(await compare(store, "t")).toBe("same");
});

test("an entry takes no more room after 300 decisions than after 3, nor does pruning matter", async () => {
  const { graph, store } = payments((asked) => ({ patch: { log: [`line ${1000 + asked}`] }, next: "acting" }));
  await graph.invoke({ message: "go" } as never, { ...config, recursionLimit: 300 }).catch(() => null);
  const { events, task } = await store.exportTask("t");
  const decisions = events.filter(({ kind }) => kind === "decision");
  expect(decisions.length).toBeGreaterThan(280);
  const bytes = decisions.map((event) => jsonBytes(event.data));
  // The numbers in it get a digit or two longer.
  expect(Math.max(...bytes.slice(-20))).toBeLessThan(Math.max(...bytes.slice(1, 20)) + 60);
  expect(task.state.log).toHaveLength(decisions.length);
  let kept = 0;
  for await (const _tuple of store.checkpointer.list(config)) kept++;
  expect(kept).toBeLessThan(110);
  expect(await compare(store, "t")).toBe("same");
});

const event = (sequence: number, kind: string, data: Readonly<Record<string, unknown>>, revision = 0): LoggedEvent => ({
  sequence,
  revision,
  kind,
  data,
});
const started = { input: { message: "hi", note: "x" }, workflow: "w", version: 1, step: "a" };

test("a log that does not hold together is refused, with the entry and what is wrong with it", () => {
  const wrong = (events: readonly LoggedEvent[]) => () => replay("t", events);
  const says = (text: string) =>
    expect.objectContaining({ code: "INVALID_EXPORT", message: expect.stringContaining(text) });
  expect(wrong([event(1, "edited", { changes: {} })])).toThrow(says("entry 1: a edited comes before"));
  expect(wrong([event(1, "started", started), event(2, "edited", { changes: {} }, 3)])).toThrow(says("entry 2"));
  const commit = { kind: "retry", observation: null, record: { revision: 2 } };
  expect(wrong([event(1, "started", started), event(2, "retry", commit)])).toThrow(
    says("entry 2: the record does not fit"),
  );
  expect(wrong([event(1, "started", started), event(2, "decision", { record: {}, base: "x" })])).toThrow(
    says("another record"),
  );
  expect(wrong([event(1, "migrated", {})])).toThrow(says("does not say what the task was"));
});

test("entries of the first format are told apart, and a later snapshot makes up for them", () => {
  const old = [
    event(1, "started", { message: "hi", input: {} }),
    event(2, "decision", { kind: "decision", decision: {}, observation: null }),
  ];
  expect(replay("t", old)).toEqual({ tasks: [], older: 1 });
  const fresh = replay("t", [event(1, "started", started)]);
  expect(fresh).toMatchObject({
    tasks: [{ state: { note: "x" }, execution: { step: "a", status: "created" } }],
    older: null,
  });
  expect(replay("t", [event(1, "started", started), ...old.slice(1)]).older).toBe(2);
  const snapshot = fresh.tasks[0];
  expect(replay("t", [...old, event(3, "imported", { snapshot })])).toEqual({ tasks: [snapshot], older: null });
});
