import { field, defineWorkflow } from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { transcript } from "../../src/view/transcript.ts";

test("a transcript is what was said: opening message, decisions as they were written, answers", () => {
  const decision = { ask: "How urgent?", because: "unknown" };
  expect(
    transcript([
      { kind: "started", data: { message: "the network is down", input: {} } },
      { kind: "refused", data: { code: "REQUIRES", reason: "no" } },
      { kind: "decision", data: { step: "ask", decision } },
      { kind: "result", data: { observation: { kind: "answer", question: "How urgent?", text: "P1" } } },
      { kind: "edited", data: { fields: ["note"] } },
      { kind: "failure", data: {} },
      { kind: "decision", data: { decision: { next: "done" } } },
    ]),
  ).toEqual([
    { role: "user", text: "the network is down", observation: { kind: "message", text: "the network is down" } },
    { role: "assistant", text: JSON.stringify(decision), decision, from: "ask" },
    { role: "user", text: "P1", observation: { kind: "answer", question: "How urgent?", text: "P1" } },
    { role: "assistant", text: '{"next":"done"}', decision: { next: "done" } },
  ]);
});

test("a message that its decision carries too stands once, as the decision has it", () => {
  const opening = { kind: "message", text: "hello", at: 5 };
  const turns = transcript([
    { kind: "started", data: { input: { message: "hello" } }, sequence: 1 },
    { kind: "decision", data: { decision: { next: "a" }, observation: opening, to: "a" }, sequence: 2 },
    { kind: "decision", data: { decision: { next: "b" }, to: "b" }, sequence: 3 },
  ]);
  expect(turns.map(({ role, sequence, to }) => [role, sequence, to])).toEqual([
    ["user", 1, undefined],
    ["assistant", 2, "a"],
    ["assistant", 3, "b"],
  ]);
  expect(turns[0]?.observation).toEqual(opening);
});

test("what a fork left behind is not part of it", () => {
  const decided = (step: string) => ({ decision: { next: step }, to: step });
  const turns = transcript([
    { kind: "started", data: { input: { message: "hello" } }, revision: 0 },
    { kind: "decision", data: decided("a"), revision: 1 },
    { kind: "decision", data: decided("b"), revision: 2 },
    { kind: "forked", data: { snapshot: { execution: { revision: 1 } } }, revision: -1 },
    { kind: "decision", data: decided("c"), revision: 2 },
  ]);
  expect(turns.map(({ text }) => text)).toEqual(["hello", '{"next":"a"}', '{"next":"c"}']);
});

test("what is nothing is left out: a start without a message, no observation, no events", () => {
  expect(transcript([])).toEqual([]);
  expect(
    transcript([
      { kind: "started", data: { message: null } },
      { kind: "started", data: {} },
      { kind: "result", data: { observation: null } },
    ]),
  ).toEqual([]);
});

test("the events of a real run give its conversation", async () => {
  const workflow = defineWorkflow({
    name: "talk",
    version: 1,
    state: { name: field(z.string()) },
    initial: "ask",
    steps: { ask: { writes: ["name"], to: ["done"] }, done: { final: true } },
  });
  const asked = { ask: "Who are you?" };
  const told = { patch: { name: "Ann" }, reply: "Hello Ann.", next: "done" };
  const model = scriptedModel([asked, "no JSON at all", told]);
  const run = await runWorkflow(workflow, { model, message: "hello", answers: ["Ann"] });
  const turns = transcript(run.events);
  expect(turns.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect([turns[0]?.text, turns[2]?.text]).toEqual(["hello", "Ann"]);
  expect(JSON.parse(turns[1]?.text ?? "")).toEqual(asked);
  expect(JSON.parse(turns[3]?.text ?? "")).toEqual(told);
});
