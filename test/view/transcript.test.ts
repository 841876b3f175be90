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
    { role: "user", text: "the network is down" },
    { role: "assistant", text: JSON.stringify(decision) },
    { role: "user", text: "P1" },
    { role: "assistant", text: '{"next":"done"}' },
  ]);
});

test("what has no text is left out: a start without a message, a child's end, no events", () => {
  expect(transcript([])).toEqual([]);
  expect(
    transcript([
      { kind: "started", data: { message: null } },
      { kind: "started", data: {} },
      { kind: "result", data: { observation: { kind: "workflow", workflow: "child", status: "completed" } } },
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
