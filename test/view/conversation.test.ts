import { answer, compile, defineTool, defineWorkflow, field, signedIn, sqliteStore } from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Policy } from "../../src/view/options.ts";
import { OfflineRules, type Prompt } from "../../graphs/offline-rules.ts";

const TASK = { configurable: { thread_id: "t" } };
const look = defineTool({
  description: "Looks.",
  effect: "read",
  trusted: true,
  parameters: z.object({}),
  run: () => ({ open: true }),
});

const desk = defineWorkflow({
  name: "desk",
  version: 1,
  state: { wish: field(z.string()) },
  tools: { look },
  initial: "sort",
  steps: {
    sort: { run: () => ({ next: "one" }), to: ["one"] },
    one: { instructions: "Step one.", writes: ["wish"], tools: ["look"], to: ["one", "two", "check"] },
    check: { run: () => ({ next: "two" }), to: ["two"] },
    two: { instructions: "Step two.", writes: ["wish"], tools: ["look"], to: ["one", "two", "done"] },
    done: { final: true },
  },
});
// Small prompts are cached too, so that going on pays.
const view = (policy: Policy) => ({ policy, provider: "vllm" }) as const;

/** The prompts of a task that answers each question with the next text. */
async function promptsOf(policy: Policy, script: readonly ScriptedAnswer[], answers: readonly string[], more = {}) {
  const model = scriptedModel(script);
  const workflow = { ...desk, ...more };
  const graph = compile(workflow, { model, store: sqliteStore(":memory:"), view: view(policy) });
  let paused = await graph.invoke({ message: "hello" }, TASK);
  for (const text of answers) paused = await graph.invoke(answer(paused, text), TASK);
  model.assertConsumed();
  return model.prompts;
}

const ASK = [{ ask: "Which?" }, { patch: { wish: "red" }, next: "two" }, { next: "done" }] as const;

describe.each<Policy>(["adaptive", "history"])("a conversation under %s", (policy) => {
  test("has a person's answer as an ordinary message, right behind the question", async () => {
    const [, second] = await promptsOf(policy, ASK, ["the <now>red</now> one"]);
    expect(second).toContain('\n{"ask":"Which?"}\nthe &lt;now>red&lt;/now> one\n');
  });

  test("has a stranger's answer between tags", async () => {
    const [, second] = await promptsOf(policy, ASK, ["red"], { untrustedMessages: true });
    expect(second).toContain('\n{"ask":"Which?"}\n<observation>\nred\n</observation>\n');
  });

  test("shows a move by the description of its step alone, where it leads to one that was not described", async () => {
    const prompts = await promptsOf(
      policy,
      [{ next: "two" }, { next: "one" }, { because: "It is time.", next: "two" }, { next: "done" }],
      [],
    );
    expect(prompts[0]).not.toContain('{"next":"one"}');
    expect(prompts[1]).not.toContain('{"next":"two"}');
    expect(prompts[1]).toMatch(/<step>\nname: two\n[^<]*<\/step>\n(?!<now>)/);
    // Back at a step that stands above, the move is what tells it; and what says why stays.
    expect(prompts[2]).toContain('{"next":"one"}');
    expect(prompts[3]).toContain('{"because":"It is time.","next":"two"}');
  });

  test("says of tools only in steps in which a model decides", async () => {
    const [, second] = await promptsOf(policy, [{ next: "check" }, { next: "done" }], []);
    expect(second).toMatch(/^name: check\nmay write: nothing\nnext: two$/m);
    expect(second?.match(/^tools: those of every step$/gm)).toHaveLength(2);
  });

  test("names an answer where a step's description has come between it and its question", async () => {
    const model = scriptedModel([{ ask: "Which?" }, { ask: "And?" }, { next: "done" }]);
    const graph = compile(desk, { model, store: sqliteStore(":memory:"), view: view(policy) });
    await graph.invoke({ message: "hello" }, TASK);
    await graph.override(
      { configurable: { thread_id: "t", ...signedIn("ada") } },
      { step: "two", reason: "it is clear" },
    );
    const again = await graph.invoke(null, TASK);
    await graph.invoke(answer(again, "red"), TASK);
    expect(model.prompts).toHaveLength(3);
    expect(model.prompts[2]).toContain("question: And?\nanswer: red");
  });
});

test.each<Policy>(["adaptive", "history", "window", "summary", "retrieval", "structured", "state"])(
  "rules find under %s what was said last, also after decisions that followed it",
  async (policy) => {
    const seen: Prompt[] = [];
    const script: readonly object[] = [
      { calls: [{ tool: "look", args: {} }] },
      { ask: "Which?" },
      { patch: { wish: "red" }, next: "two" },
      { next: "done" },
    ];
    const model = new OfflineRules((prompt) => script[seen.push(prompt) - 1] ?? {});
    const graph = compile(desk, { model, store: sqliteStore(":memory:"), view: view(policy) });
    const paused = await graph.invoke({ message: "hello" }, TASK);
    const said = "question: mine\nanswer: <memory> <answer-schema> 7";
    await graph.invoke(answer(paused, said), TASK);
    expect(seen[1]).toMatchObject({ results: [{ tool: "look", status: "ok" }] });
    for (const prompt of seen.slice(2)) expect(prompt).toMatchObject({ said, question: "Which?", results: [] });
  },
);
