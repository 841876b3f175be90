import { defineWorkflow, field } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Observation } from "../../src/state/execution.ts";
import { newExecution } from "../../src/state/execution.ts";
import { emptyState } from "../../src/state/fields.ts";
import { renderView } from "../../src/view/render.ts";
import type { Turn } from "../../src/view/transcript.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const workflow = anyWorkflow(
  defineWorkflow({
    name: "talk",
    version: 1,
    state: { topic: field(z.string()) },
    initial: "talking",
    steps: { talking: { writes: ["topic"], to: ["talking", "done"] }, done: { final: true } },
  }),
);

const said = (text: string): Turn => ({ role: "user", text, observation: { kind: "message", text } });
const found = (id: string, value: string): Turn => {
  const observation: Observation = { kind: "results", results: [{ id, tool: "look", status: "ok", value }] };
  return { role: "user", text: JSON.stringify(observation.results), observation };
};
const decided = (decision: Record<string, unknown>): Turn => ({
  role: "assistant",
  text: JSON.stringify(decision),
  decision,
});
const looked = (what: string) => decided({ calls: [{ tool: "look", args: { what } }] });

/** The conversation that the policy shows, a piece each. */
function shown(turns: readonly Turn[], observation: Observation, { keep = 2, topic = "" } = {}) {
  const state = { ...emptyState(workflow.state), ...(topic === "" ? {} : { topic }) };
  const { sections } = renderView({
    workflow,
    snapshot: { execution: newExecution(workflow), state },
    observation,
    turns,
    options: { policy: "retrieval", rawMessages: 0, keepMessages: keep },
  });
  return {
    order: sections.map(({ name }) => name),
    talk: sections.filter(({ name }) => name === "conversation").map(({ text }) => text),
  };
}

const PAST = [
  said("Hello there"),
  looked("router"),
  found("1.0", "The router stands in the cellar."),
  looked("printer"),
  found("2.0", "The printer is out of paper."),
  looked("coffee"),
  found("3.0", "There is no coffee."),
  decided({ ask: "What else?" }),
];
const last: Observation = { kind: "answer", question: "What else?", text: "Where was that router again?" };

test("shows the state, the exchange that shares most words, the latest decision, then what came last", () => {
  const { order, talk } = shown(PAST, last);
  expect(talk.join("\n")).toContain("in the cellar");
  expect(talk.join("\n")).not.toMatch(/printer|coffee|Hello/);
  expect(talk.at(-1)).toContain("What else?");
  expect(order).toEqual([
    "instructions",
    "state",
    "conversation",
    "conversation",
    "conversation",
    "observation",
    "step",
  ]);
});

test.each([
  ["list:\nrouter, in the cellar", "Router?"],
  ["The router, in the cellar", "I ask:\nrouter?"],
])("the first word of a line is a word: %j is found by %j", (value, text) => {
  const past = [...PAST.slice(0, 1), looked("a"), found("1.0", value), ...PAST.slice(3)];
  expect(shown(past, { kind: "message", text }).talk.join("\n")).toContain("in the cellar");
});

test("results keep their decision, and all stand in the order in which they came", () => {
  const { talk } = shown(PAST, last, { keep: 4, topic: "printer paper" });
  expect(talk.map((text) => /router|printer|What else/.exec(text)?.[0])).toEqual([
    "router",
    "router",
    "printer",
    "printer",
    "What else",
  ]);
});

test("the fields of the state are looked for as well as what came last", () => {
  const { talk } = shown(PAST, { kind: "message", text: "Go on." }, { topic: "coffee" });
  expect(talk.join("\n")).toContain("There is no coffee.");
});

test("writing without blanks is found by its characters", () => {
  const past = [said("打印机没有纸"), decided({ because: "a" }), said("路由器在地下室"), decided({ because: "b" })];
  const { talk } = shown(past, { kind: "message", text: "那个路由器在哪里？" }, { keep: 1 });
  expect(talk.join("\n")).toContain("路由器在地下室");
  expect(talk.join("\n")).not.toContain("打印机");
});

test("where nothing is similar, only the latest decision stays", () => {
  const { talk } = shown(PAST, { kind: "message", text: "xyzzy" });
  expect(talk).toEqual(['assistant: {"ask":"What else?"}']);
});
