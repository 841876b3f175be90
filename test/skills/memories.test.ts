import { compile, condense, defineWorkflow, field, Memories, Memory, type MemoryItem } from "statecard";
import { onFaultPoint, scriptedModel, type FaultPoint } from "statecard/testing";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { loadSkills } from "../../src/skills/load.ts";
import { skillTools } from "../../src/skills/tools.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";
import { onBothDialects } from "../support/stores.ts";

const LOOK = [
  "name: look",
  "description: Looks into the cellar, not into the attic.",
  "implementation: look.mjs",
  "effect: write",
  "idempotent: true",
  "parameters:",
  "  text: { type: string, default: '' }",
];
/** Finds something else each time that its body runs, as skills that ask the world do. */
const MODULE = `
let looks = 0;
export function execute({ text }) {
  const found = text || "The router was seen " + ++looks + " times.";
  return { status: "success", output: found.length, newMemories: [{ type: "fact", text: found, priority: 3 }] };
}`;

afterEach(() => onFaultPoint(null));

/** A workflow with the skill, loaded anew from a folder of its own. */
function cellar() {
  const folder = folderWith({ "look/SKILL.md": skillFile(LOOK), "look/look.mjs": MODULE });
  return defineWorkflow({
    name: "cellar",
    version: 1,
    state: { customer: field(z.string()) },
    input: ["customer"],
    tools: skillTools(loadSkills(folder), { tools: ["look"], reading: false }),
    initial: "looking",
    steps: { looking: { tools: ["look"], to: ["looking", "done"] }, done: { final: true } },
  });
}

const look = (text?: string) => ({ calls: [{ tool: "look", args: text === undefined ? {} : { text } }] });
const stable = ({ createdAt: _created, updatedAt: _updated, id: _id, ...rest }: MemoryItem) => rest;

let users = 0;

onBothDialects((dialect) => {
  /** Each run gets a store of its own, as after a restart. */
  function setting(withMemories = true) {
    const customer = `ann-${++users}`;
    const clock = { time: 1_000_000, now: () => clock.time };
    const open = () => dialect.open(clock);
    const memoriesIn = (store: ReturnType<typeof open>) =>
      withMemories ? { memories: new Memories({ store: store.memory(), userField: "customer" }) } : {};
    const memory = new Memory(open().memory(), { user: customer });
    return { customer, clock, open, memoriesIn, memory, task: `task-${customer}` };
  }

  test("what a skill found is remembered with its links, and the model is told in its next view", async () => {
    const { customer, clock, open, memoriesIn, memory, task } = setting();
    const store = open();
    const model = scriptedModel([look("The router is in the cellar."), { next: "done" }]);
    const graph = compile(cellar(), { store, model, clock, ...memoriesIn(store) });
    await graph.invoke({ customer, message: "go" }, { configurable: { thread_id: task } });
    const [written] = await memory.list();
    expect(written && stable(written)).toEqual({
      type: "fact",
      text: "The router is in the cellar.",
      priority: 3,
      taskId: task,
      step: "looking",
      skill: "look",
    });
    expect(model.prompts[1]).toContain(`remembered of 1.0 for later tasks: ${written?.id} (fact, priority 3)`);
    expect(model.prompts[1]).toContain("(fact, priority 3, written by this task): The router is in the cellar.");
  });

  test.each<FaultPoint>([
    "after-intent",
    "after-call",
    "after-result",
    "before-commit",
    "before-put",
    "inside-put",
    "after-put",
  ])("an end at %s doubles no memory and loses none", async (point) => {
    const { customer, clock, open, memoriesIn, memory, task } = setting();
    const workflow = cellar();
    const config = { configurable: { thread_id: task } };
    const model = scriptedModel([look(), { next: "done" }]);
    const go = async (input: unknown) => {
      const store = open();
      return compile(workflow, { store, model, clock, ...memoriesIn(store) }).invoke(input as never, config);
    };
    let hasEnded = false;
    let hasResult = false;
    onFaultPoint((reached) => {
      hasResult ||= reached === "after-result";
      // Checkpoints are also put before the call.
      if (reached !== point || hasEnded || (point.endsWith("-put") && !hasResult)) return;
      hasEnded = true;
      throw new Error("killed");
    });
    await expect(go({ customer, message: "go" })).rejects.toThrow("killed");
    // Nobody waits for what an ended process had begun.
    clock.time += 60_000;
    const ended = await go(null);
    expect(ended.execution.status).toBe("completed");
    const all = await memory.list();
    expect(all).toHaveLength(1);
    // The body may have run twice; what is remembered is what the journal has.
    const [result] = (await open().events(task)).flatMap(({ data, kind }) =>
      kind === "result" ? (data.observation as { results: { value: unknown }[] }).results : [],
    );
    expect(result?.value).toMatchObject({ newMemories: [{ text: all[0]?.text }] });
  });

  test("a long one is condensed", async () => {
    const { customer, clock, open, memoriesIn, memory, task } = setting();
    const long = Array.from({ length: 300 }, (_, line) => `Shelf ${line} holds ${line * 7} boxes of screws.`).join(
      "\n",
    );
    const store = open();
    const model = scriptedModel([look(long), { next: "done" }]);
    const graph = compile(cellar(), { store, model, clock, ...memoriesIn(store) });
    await graph.invoke({ customer, message: "go" }, { configurable: { thread_id: task } });
    expect((await memory.list()).map(({ text }) => text)).toEqual([condense(long, 1000)]);
  });

  test("without memories, or without an owner, they stay in the result, and the model is told why", async () => {
    const without = setting(false);
    const store = without.open();
    const model = scriptedModel([look("Lost."), { next: "done" }]);
    const graph = compile(cellar(), { store, model, clock: without.clock });
    await graph.invoke({ customer: without.customer }, { configurable: { thread_id: without.task } });
    expect(await without.memory.list()).toEqual([]);
    expect(model.prompts[1]).toContain("Lost.");
    expect(model.prompts[1]).not.toContain("remembered");

    const unknown = setting();
    const asked = scriptedModel([look("Lost."), { next: "done" }]);
    const other = compile(cellar(), { store, model: asked, clock: unknown.clock, ...unknown.memoriesIn(store) });
    await other.invoke({ message: "go" }, { configurable: { thread_id: unknown.task } });
    expect(asked.prompts[1]).toContain("what 1.0 found was not remembered: it is not known whose memory this is");
  });
});
