import { readFileSync } from "node:fs";
import type { BaseMessage } from "@langchain/core/messages";
import { runWorkflow, scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { OfflineRules } from "../../graphs/offline-rules.ts";
import { decideServiceDesk, serviceDeskRules } from "../../graphs/service-desk/rules.ts";
import { serviceDesk } from "../../graphs/service-desk/workflow.ts";
import { mermaidOf } from "../../src/cli/graph.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const clock = { now: () => Date.UTC(2026, 2, 1, 10, 0) };

function byRules(message: string, answers: readonly string[] = []) {
  return runWorkflow(serviceDesk, { model: serviceDeskRules(), message, answers, clock });
}

test("its README shows its table", () => {
  expect(readFileSync("graphs/service-desk/README.md", "utf8")).toContain(mermaidOf(anyWorkflow(serviceDesk)));
});

test("its README shows what the model is told after the third call", async () => {
  const prompts: string[] = [];
  class Recording extends OfflineRules {
    override async _generate(messages: BaseMessage[]) {
      prompts.push(messages.map((message) => message.text).join("\n"));
      return super._generate(messages);
    }
  }
  await runWorkflow(serviceDesk, { model: new Recording(decideServiceDesk), input: { customer: "1002" }, clock });
  const told = prompts.find((prompt) => prompt.includes("3 of 3 calls allowed")) ?? "";
  for (const tag of ["facts", "status"]) {
    const block = new RegExp(`<${tag}>\\n[\\s\\S]*?\\n</${tag}>`).exec(
      told.slice(told.lastIndexOf("<observation")),
    )?.[0];
    expect(readFileSync("graphs/service-desk/README.md", "utf8")).toContain(block);
  }
});

describe("by the rules", () => {
  test("the third call succeeds", async () => {
    const run = await byRules("Please cancel my contract, customer 1001.");
    expect(run.task).toMatchObject({ status: "completed", step: "cancelled" });
    expect(run.state).toMatchObject({
      provider: "Streamly",
      callsMade: 3,
      confirmation: "S-2207",
      report: "Your contract with Streamly is cancelled. Confirmation: S-2207.",
      todos: [{ status: "completed" }, { status: "completed" }, { status: "completed" }],
    });
  });

  test("three calls are made in vain, and the end says so", async () => {
    const run = await byRules("cancel 1002 please");
    expect(run.task).toMatchObject({ status: "completed", step: "not_cancelled" });
    expect(run.state).toMatchObject({ callsMade: 3, confirmation: null });
    expect(run.state.report).toBe(
      'Your contract with FitClub is not cancelled. I called 3 times: nobody answered; the line was busy; they refused ("We take cancellations in writing only, three months ahead."). Open: the cancellation, best in writing.',
    );
    expect(run.state.todos).toMatchObject([{ status: "completed" }, { status: "completed" }, { status: "cancelled" }]);
  });

  test("no more calls are made than are needed", async () => {
    const run = await byRules("1003");
    expect(run.state).toMatchObject({ callsMade: 1, confirmation: "DC-88" });
  });

  test.each([
    ["Hello", ["what?", "hm"], "Nothing is cancelled: I have no customer number. Open: everything."],
    [
      "9999",
      ["8888", "no idea"],
      "Nothing is cancelled: I found no contract under 8888. Open: the right customer number.",
    ],
  ])("what cannot be found is said (%s)", async (message, answers, report) => {
    const run = await byRules(message, answers);
    expect(run.task).toMatchObject({ status: "completed", step: "not_cancelled" });
    expect(run.state).toMatchObject({ report, callsMade: null });
  });

  test("a customer number that was wrong at first can be put right", async () => {
    const run = await byRules("9999", ["sorry, it is 1003"]);
    expect(run.task).toMatchObject({ step: "cancelled" });
  });
});

/** The decisions up to the first call, and then those of a script. */
function byScript(customer: string, ...script: ScriptedAnswer[]) {
  const model = scriptedModel([{ next: "preparing" }, find(customer), { next: "calling" }, ...script]);
  return runWorkflow(serviceDesk, { model, input: { customer }, clock });
}
const find = (customer: string) => ({ calls: [{ tool: "findNumber", args: { customer } }] });
const call = (customer: string, number: string) => ({ calls: [{ tool: "callProvider", args: { customer, number } }] });
const FITCLUB = call("1002", "0800 555 020");

describe("whatever a model says", () => {
  test("there is no fourth call", async () => {
    const report = { patch: { report: "no" }, next: "not_cancelled" };
    const run = await byScript("1002", FITCLUB, FITCLUB, FITCLUB, FITCLUB, { next: "reporting" }, report);
    expect(run.refused).toMatchObject([{ code: "TOOL_LIMIT" }]);
    expect(run.state).toMatchObject({ callsMade: 3 });
    expect(run.task).toMatchObject({ step: "not_cancelled" });
  });

  test("it does not give up while calls are left", async () => {
    const run = await byScript("1003", { next: "reporting" }, call("1003", "0800 555 030"), { ask: "Shall I go on?" });
    expect(run.refused).toMatchObject([{ code: "GUARD", to: "reporting" }]);
    expect(run.state).toMatchObject({ confirmation: "DC-88" });
  });

  test("it cannot claim a cancellation that nobody has confirmed, nor deny one", async () => {
    const claim = { patch: { report: "It is cancelled." }, next: "cancelled" };
    const honest = { patch: { report: "It is not." }, next: "not_cancelled" };
    const invented = { ...claim, patch: { report: "It is cancelled.", confirmation: "X-1" } };
    const vain = await byScript("1002", FITCLUB, FITCLUB, FITCLUB, { next: "reporting" }, claim, invented, honest);
    expect(vain.refused.map(({ code }) => code)).toEqual(["REQUIRES", "RUNTIME_ONLY"]);
    expect(vain.task).toMatchObject({ step: "not_cancelled" });

    const done = await byScript("1003", call("1003", "0800 555 030"), { next: "reporting" }, honest, claim);
    expect(done.refused.map(({ code }) => code)).toEqual(["GUARD"]);
    expect(done.task).toMatchObject({ step: "cancelled" });
  });

  test("a wrong number is an error with advice, and counts as a call", async () => {
    const run = await byScript("1002", call("1002", "0800 555 999"), { ask: "Is that right?" });
    const result = { status: "error", errorType: "NOT_IN_SERVICE", hint: "look the number up with findNumber" };
    const told = run.events.findLast(({ kind }) => kind === "result")?.data.observation;
    expect(told).toMatchObject({ kind: "results", results: [result] });
    expect(run.state).toMatchObject({ callsMade: 1, callLog: "the call did not go through" });
  });
});
