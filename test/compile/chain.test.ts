import { answer, compile, defineWorkflow, field, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";

// Three workflows, each with a state of its own. `brief` is what all of them may read and none may write.

const brief = field(z.object({ customer: z.string(), tone: z.string() })).describe("what holds for all of it");

const outline = defineWorkflow({
  name: "outline",
  version: 1,
  state: { brief, points: field(z.array(z.string())), scratch: field(z.string()) },
  input: ["brief"],
  initial: "collect",
  steps: {
    collect: { writes: ["points", "scratch"], to: ["done"] },
    done: { requires: ["points"], final: true },
  },
});

const draft = defineWorkflow({
  name: "draft",
  version: 1,
  state: { brief, points: field(z.array(z.string())).writeOnce(), text: field(z.string()), scratch: field(z.string()) },
  input: ["brief", "points"],
  initial: "write",
  steps: { write: { writes: ["text", "scratch"], to: ["done"] }, done: { requires: ["text"], final: true } },
});

const letter = defineWorkflow({
  name: "letter",
  version: 1,
  state: { brief, points: field(z.array(z.string())).runtimeOnly(), text: field(z.string()).runtimeOnly() },
  input: ["brief"],
  initial: "outlining",
  steps: {
    outlining: {
      workflow: outline,
      input: ({ brief }) => ({ brief }),
      output: ({ state }) => ({ patch: { points: state.points as string[] }, next: "drafting" }),
      to: ["drafting"],
    },
    drafting: {
      requires: ["points"],
      workflow: draft,
      input: ({ brief, points }) => ({ brief, points }),
      output: ({ state }) => ({ patch: { text: state.text as string }, next: "done" }),
      to: ["done"],
    },
    done: { requires: ["text"], final: true },
  },
});

const config = { configurable: { thread_id: "t" } };
const shared = { customer: "Ada", tone: "warm" };
const open = (...script: object[]) => {
  const model = scriptedModel(script as never);
  return { model, graph: compile(letter, { model, store: sqliteStore(":memory:") }) };
};

describe("a chain of workflows", () => {
  test("each link gets what the one before has made, and nothing else of it", async () => {
    const { graph, model } = open(
      { patch: { points: ["greet", "thank"], scratch: "private to the outline" }, next: "done" },
      { patch: { text: "Dear Ada, thank you." }, next: "done" },
    );
    const done = await graph.invoke({ brief: shared }, config);
    expect(done).toMatchObject({
      points: ["greet", "thank"],
      text: "Dear Ada, thank you.",
      execution: { status: "completed" },
    });
    const [first, second] = model.prompts.map((prompt) => JSON.stringify(prompt));
    expect(first).toContain("Ada");
    expect(second).toContain("Ada");
    expect(second).toContain("thank");
    expect(second).not.toContain("private to the outline");
  });

  test("what they share, and what came from before, no link can write", async () => {
    const { graph, model } = open(
      { patch: { brief: { tone: "cold" }, points: ["greet"] }, next: "done" },
      { patch: { points: ["greet"] }, next: "done" },
      { patch: { points: ["other"], text: "x" }, next: "done" },
      { patch: { text: "x" }, next: "done" },
    );
    const done = await graph.invoke({ brief: shared }, config);
    expect(done).toMatchObject({ brief: shared, points: ["greet"], text: "x" });
    expect(model.prompts).toHaveLength(4);
    expect(JSON.stringify(model.prompts[1])).toContain("FIELD_NOT_WRITABLE");
    expect(JSON.stringify(model.prompts[3])).toContain("FIELD_NOT_WRITABLE");
  });

  test("a link that asks pauses the chain; what was done before is not done again", async () => {
    const { graph, model } = open(
      { patch: { points: ["greet"] }, next: "done" },
      { ask: "How long?" },
      { patch: { text: "short" }, next: "done" },
    );
    const paused = await graph.invoke({ brief: shared }, config);
    expect(paused).toMatchObject({ points: ["greet"], execution: { step: "drafting" } });
    const done = await graph.invoke(answer(paused, "short"), config);
    expect(done.execution.status).toBe("completed");
    expect(model.prompts).toHaveLength(3);
  });
});
