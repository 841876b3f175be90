import {
  CACHE_RULES,
  compile,
  defineTool,
  defineWorkflow,
  field,
  sqliteStore,
  answer,
  type TaskStore,
} from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { replay } from "../../src/workflow/replay.ts";

const shop = defineWorkflow({
  name: "shop",
  version: 1,
  goal: "Sell one thing.",
  input: ["catalogue"],
  state: {
    catalogue: field(z.string()).runtimeOnly(),
    article: field(z.string()),
    amount: field(z.number()),
    notes: field(z.array(z.string())).appendOnly(),
    stock: field(z.record(z.string(), z.number())).runtimeOnly(),
  },
  tools: {
    look: defineTool({
      description: "Looks into the store.",
      effect: "read",
      parameters: z.object({ shelf: z.string() }),
      run: ({ shelf }) => ({ shelf, teas: { darjeeling: 12, assam: 7, oolong: 140 } }),
    }),
  },
  onResult: {
    look: (result) => ({ stock: z.object({ teas: z.record(z.string(), z.number()) }).parse(result.value).teas }),
  },
  initial: "choose",
  maxDecisions: 500,
  steps: {
    choose: {
      writes: ["article", "amount", "notes"],
      tools: ["look"],
      instructions: `Find out what they want. ${"Be polite, be brief, be clear about prices. ".repeat(10)}`,
      to: ["choose", "pay"],
      maxDecisions: 400,
    },
    pay: {
      writes: ["notes"],
      tools: ["look"],
      instructions: `Say thanks. ${"Never ask for more than was agreed on. ".repeat(10)}`,
      to: ["choose", "done"],
      maxDecisions: 400,
    },
    done: { final: true },
  },
});
// Small prompts are cached too, so that going on pays.
const CACHED = { policy: "adaptive", provider: { ...CACHE_RULES.vllm, step: 1 } } as const;
const TASK = { configurable: { thread_id: "t" } };
// A state of some size, so that showing it anew costs more than what is added bit by bit.
const HELLO = { message: "hello", catalogue: "Green tea from the north slope, black tea from the south. ".repeat(20) };

const script: readonly ScriptedAnswer[] = [
  { ask: "What would you like?" },
  { calls: [{ tool: "look", args: { shelf: "tea" } }] },
  { patch: { article: "darjeeling", amount: 2 } },
  { ask: "Two?" },
  { next: "pay", patch: { notes: ["wants two"] } },
  { next: "choose" },
  { patch: { amount: 3 }, next: "pay" },
  { reply: "Thanks.", next: "done" },
];

/** What stands before the part that no later prompt has again. */
const now = (prompt: string) => /<now>\n[\s\S]*?\n<\/now>/.exec(prompt)?.[0] ?? "";
const stable = (prompt: string) => prompt.replace(/<(?:now|status|answer-schema)>\n[\s\S]*$/, "");

async function conversation(store: TaskStore, model: ReturnType<typeof scriptedModel>, view: object = CACHED) {
  const graph = compile(shop, { model, store, view });
  const first = await graph.invoke(HELLO, TASK);
  const second = await graph.invoke(answer(first, "tea"), TASK);
  await graph.invoke(answer(second, "yes"), TASK);
}

const kinds = async (store: TaskStore, kind: string) =>
  (await store.events("t")).filter((event) => event.kind === kind);

describe("an adaptive prompt", () => {
  test("keeps all that it has shown, byte by byte, and adds to it (K18)", async () => {
    const model = scriptedModel(script);
    const store = sqliteStore(":memory:");
    await conversation(store, model);
    model.assertConsumed();
    for (const [index, prompt] of model.prompts.entries()) {
      const next = model.prompts[index + 1];
      if (next !== undefined) expect(next.startsWith(stable(prompt).trimEnd())).toBe(true);
    }
    expect(await kinds(store, "snapshot")).toHaveLength(1);
  });

  test("describes a step where it is entered, once, and the tools of every step before them all", async () => {
    const model = scriptedModel(script);
    await conversation(sqliteStore(":memory:"), model);
    const last = model.prompts.at(-1) ?? "";
    expect(last.match(/instructions: Find out what they want\./g)).toHaveLength(1);
    expect(last.match(/instructions: Say thanks\./g)).toHaveLength(1);
    expect(last.match(/^look\(shelf\) – /gm)).toHaveLength(1);
    expect(last.match(/^tools: those of every step$/gm)).toHaveLength(2);
  });

  test("ends with the step, the open moves and what has changed but cannot be read above", async () => {
    const model = scriptedModel(script);
    await conversation(sqliteStore(":memory:"), model);
    // At the step that is described last, with all its moves open, there is nothing to say.
    expect(now(model.prompts[0] ?? "")).toBe("");
    expect(model.prompts[0]).toContain("next: choose | pay\n</step>");
    // Kept by code from a result that stands above: not said again.
    expect(now(model.prompts[2] ?? "")).not.toContain("oolong");
    expect(now(model.prompts[3] ?? "")).toContain('changed since revision 0:\narticle: "darjeeling"\namount: 2\n');
    expect(now(model.prompts[7] ?? "")).toContain("step: pay\nnext: choose | done\n");
    expect(now(model.prompts[7] ?? "")).toContain("amount: 3\n");
  });

  test("goes on from the same snapshot in another process, and after a model call that failed", async () => {
    const uninterrupted = scriptedModel(script);
    await conversation(sqliteStore(":memory:"), uninterrupted);
    const store = sqliteStore(":memory:");
    const run = async (given: readonly ScriptedAnswer[], input: unknown) => {
      const model = scriptedModel(given);
      const graph = compile(shop, { model, store, view: CACHED });
      const result = await graph.invoke(input as never, TASK).catch(() => null);
      return { prompts: model.prompts, result };
    };
    const failed = await run([new Error("no connection")], HELLO);
    const first = await run(script.slice(0, 1), null);
    const second = await run(script.slice(1, 4), answer(first.result as never, "tea"));
    const third = await run(script.slice(4), answer(second.result as never, "yes"));
    expect([...first.prompts, ...second.prompts, ...third.prompts].map(stable)).toEqual(
      uninterrupted.prompts.map(stable),
    );
    expect(failed.prompts).toEqual(first.prompts);
    expect(await kinds(store, "snapshot")).toHaveLength(1);
  });

  test("takes a new snapshot after a fork, and shows nothing of the branch that was left", async () => {
    const store = sqliteStore(":memory:");
    await conversation(
      store,
      scriptedModel(script.slice(0, 3).concat({ ask: "LEFT BRANCH?" }, { ask: "And?" })),
      CACHED,
    );
    const model = scriptedModel([{ ask: "Again?" }]);
    const graph = compile(shop, { model, store, view: CACHED });
    const history = [];
    for await (const state of graph.getStateHistory(TASK)) history.push(state);
    const before = history.find(({ values }) => values.execution.revision === 4);
    await graph.invoke(null, before?.config as never);
    expect(model.prompts).toHaveLength(1);
    expect(model.prompts[0]).not.toContain("LEFT BRANCH");
    expect(model.prompts[0]).toMatch(/<state revision="4">/);
    expect(await kinds(store, "snapshot")).toHaveLength(2);
  });

  test("shows a correction by hand", async () => {
    const store = sqliteStore(":memory:");
    const graph = compile(shop, { model: scriptedModel(script.slice(0, 4)), store, view: CACHED });
    const first = await graph.invoke(HELLO, TASK);
    const paused = await graph.invoke(answer(first, "tea"), TASK);
    await graph.updateState(TASK, { amount: 77 });
    const model = scriptedModel([{ ask: "?" }]);
    await compile(shop, { model, store, view: CACHED }).invoke(answer(paused, "yes"), TASK);
    expect(now(model.prompts[0] ?? "")).toContain("amount: 77\n");
  });

  test("is the state alone where nothing is cached, and then leaves nothing in the log", async () => {
    const model = scriptedModel(script);
    const store = sqliteStore(":memory:");
    await conversation(store, model, { policy: "adaptive", provider: "none" });
    expect(await kinds(store, "snapshot")).toEqual([]);
    expect(model.prompts.at(-1)).toMatch(
      /<state revision="\d+">\ncompleted steps: choose, pay\ncatalogue: .*\narticle: "darjeeling"/,
    );
  });

  test("stays bounded however long the task runs, and so does what the log keeps of it", async () => {
    const rounds = 120;
    const model = scriptedModel([
      ...Array.from({ length: rounds }, (_, index) => ({
        patch: { amount: index, article: `an article with a rather long name, number ${index}` },
        because: `reason ${index} `.repeat(20),
      })),
      { ask: "enough?" },
    ]);
    const store = sqliteStore(":memory:");
    // Where reading costs something; a free cache lets a prompt grow to its limit.
    const view = { policy: "adaptive", provider: { ...CACHE_RULES.openai, minimum: 0, step: 1 } } as const;
    await compile(shop, { model, store, view }).invoke({ message: "hello" }, TASK);
    const sizes = model.prompts.map((prompt) => prompt.length);
    // After 40 decisions the choice looks as far ahead as it ever will.
    expect(Math.max(...sizes.slice(80))).toBeLessThanOrEqual(1.1 * Math.max(...sizes.slice(40, 80)));
    const events = await store.events("t");
    const taken = events.filter(({ kind }) => kind === "snapshot");
    expect(taken.length).toBeGreaterThan(1);
    expect(taken.length).toBeLessThan(rounds / 2);
    // The log still tells the whole task: snapshots say nothing new.
    const [replayed] = replay("t", events).tasks;
    expect(replayed?.state.amount).toBe(rounds - 1);
  });
});
