import { defineWorkflow, field, type Execution } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { checkLegal, type Proposed } from "../../src/storage/legal.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const workflow = anyWorkflow(
  defineWorkflow({
    name: "gate",
    version: 1,
    state: {
      amount: field(z.number()),
      receipt: field(z.string()).writeOnce(),
      log: field(z.array(z.string())).appendOnly(),
    },
    checks: { small: (state) => (state.amount ?? 0) > 100 && "too much" },
    initial: "collect",
    steps: {
      collect: {
        writes: ["amount", "log"],
        to: ["collect", "pay", { to: "gift", when: (s) => s.amount === 0, because: "not free" }],
      },
      pay: { requires: ["amount"], writes: ["receipt"], to: ["done"] },
      gift: { to: ["done"] },
      done: { final: true },
    },
  }),
);

const fresh = newExecution(workflow);
const at = (step: string, changes: Partial<Execution> = {}): Execution => ({
  ...fresh,
  taskId: "t",
  status: "running",
  step,
  revision: 3,
  decisions: 3,
  ...changes,
});
const next = (step: string, changes: Partial<Execution> = {}): Execution =>
  at(step, { revision: 4, decisions: 4, ...changes });
const branch = (name: string) => ({ [`branch:to:${name}`]: null });
const question = { kind: "question", decision: 4, question: "?" } as const;
const failure = { code: "GUARD", message: "closed", step: "collect" };

/** A proposed checkpoint; the channels lead where its record says unless the case says otherwise. */
function proposed(parts: Partial<Proposed> & { execution: Execution | undefined }): Proposed {
  const values = { amount: 5, ...(parts.values ?? branch(parts.execution?.step ?? "collect")) };
  return { source: "loop", from: at("collect"), ...parts, values };
}

const legal: readonly [string, Proposed][] = [
  [
    "the first checkpoint of a task",
    proposed({ source: "input", from: null, execution: fresh, values: { __start__: {} } }),
  ],
  ["the input taken, with no new revision", proposed({ from: fresh, execution: fresh, values: branch("collect") })],
  ["a move of the table", proposed({ execution: next("pay"), values: { ...branch("pay"), amount: 5 } })],
  [
    "a guarded move while its guard is true",
    proposed({ execution: next("gift"), values: { ...branch("gift"), amount: 0 } }),
  ],
  ["a step that repeats itself", proposed({ execution: next("collect") })],
  [
    "a question: the step stays and act is due",
    proposed({ execution: next("collect", { pending: question, status: "waiting_user" }), values: branch("act") }),
  ],
  [
    "an answer: the step is due again",
    proposed({ from: at("collect", { pending: question }), execution: next("collect") }),
  ],
  [
    "the move to a final step, after which nothing runs",
    proposed({ from: at("pay"), execution: next("done", { status: "completed" }), values: {} }),
  ],
  [
    "a failure, after which nothing runs",
    proposed({ execution: next("collect", { status: "failed", lastError: failure }), values: {} }),
  ],
  ["an update that leaves the record as it is", proposed({ source: "update", execution: at("collect") })],
  ["a fork", proposed({ source: "fork", execution: at("collect") })],
  [
    "a fork of a task's very beginning",
    proposed({ source: "fork", from: fresh, execution: fresh, values: { __start__: {} } }),
  ],
  [
    "a retry of a failed task",
    proposed({
      source: "update",
      from: at("collect", { status: "failed", lastError: failure }),
      execution: next("collect", {
        decisions: 3,
        retryCount: 1,
        last: { kind: "retry", step: "collect", decision: null, observation: null, usage: fresh.usage, measures: null },
      }),
    }),
  ],
];

const illegal: readonly [string, string, Proposed][] = [
  ["no record", "ILLEGAL_STATE", proposed({ execution: undefined, values: branch("collect") })],
  [
    "a task that starts elsewhere",
    "ILLEGAL_STATE",
    proposed({ source: "input", from: null, execution: { ...fresh, step: "pay" }, values: {} }),
  ],
  [
    "a task that starts at a later revision",
    "ILLEGAL_STATE",
    proposed({ source: "input", from: null, execution: at("collect"), values: {} }),
  ],
  ["a second input", "ILLEGAL_STATE", proposed({ source: "input", execution: at("collect"), values: {} })],
  [
    "a move outside the table",
    "ILLEGAL_TRANSITION",
    proposed({ execution: next("done", { status: "completed" }), values: {} }),
  ],
  ["a move to a step that is not there", "ILLEGAL_TRANSITION", proposed({ execution: next("nowhere") })],
  ["a move to the action node", "ILLEGAL_TRANSITION", proposed({ execution: next("act") })],
  ["a move to a prototype's key", "ILLEGAL_TRANSITION", proposed({ execution: next("constructor") })],
  [
    "a move out of a final step",
    "ILLEGAL_TRANSITION",
    proposed({ from: at("done", { status: "completed" }), execution: next("collect") }),
  ],
  ["a leap of the revision", "ILLEGAL_STATE", proposed({ execution: next("pay", { revision: 5 }) })],
  ["a revision that goes back", "ILLEGAL_STATE", proposed({ execution: next("pay", { revision: 2 }) })],
  ["another step in the same revision", "ILLEGAL_STATE", proposed({ execution: at("pay") })],
  ["fewer decisions in the same revision", "ILLEGAL_STATE", proposed({ execution: at("collect", { decisions: 0 }) })],
  ["an update that moves the task", "ILLEGAL_STATE", proposed({ source: "update", execution: next("pay") })],
  [
    "an update that resets a limit",
    "ILLEGAL_STATE",
    proposed({ source: "update", execution: at("collect", { decisionsByStep: {}, decisions: 0 }) }),
  ],
  ["a fork that moves the task", "ILLEGAL_STATE", proposed({ source: "fork", execution: next("pay") })],
  [
    "a retry of a task that did not fail",
    "ILLEGAL_STATE",
    proposed({ source: "update", execution: next("collect", { decisions: 3, retryCount: 1 }) }),
  ],
  ["a branch to another step", "ILLEGAL_STATE", proposed({ execution: next("pay"), values: branch("gift") })],
  [
    "a second branch",
    "ILLEGAL_STATE",
    proposed({ execution: next("pay"), values: { ...branch("pay"), ...branch("gift") } }),
  ],
  [
    "a branch past a question",
    "ILLEGAL_STATE",
    proposed({ execution: next("collect", { pending: question }), values: branch("collect") }),
  ],
  [
    "a branch to act with nothing to do",
    "ILLEGAL_STATE",
    proposed({ execution: next("collect"), values: branch("act") }),
  ],
  [
    "a branch out of a finished task",
    "ILLEGAL_STATE",
    proposed({ from: at("pay"), execution: next("done", { status: "completed" }), values: branch("collect") }),
  ],
  [
    "a branch out of a failed task",
    "ILLEGAL_STATE",
    proposed({ execution: next("collect", { status: "failed", lastError: failure }), values: branch("collect") }),
  ],
  ["no branch where a step is due", "ILLEGAL_STATE", proposed({ execution: next("pay"), values: {} })],
  [
    "a new start of a finished task",
    "ILLEGAL_STATE",
    proposed({ from: at("pay"), execution: next("done", { status: "completed" }), values: { __start__: {} } }),
  ],
  [
    "a branch and a new start",
    "ILLEGAL_STATE",
    proposed({ execution: next("pay"), values: { ...branch("pay"), __start__: {} } }),
  ],
];

const illegalStates: readonly [string, Proposed][] = [
  ["a value of a wrong type", proposed({ execution: next("pay"), values: { ...branch("pay"), amount: "5" } })],
  [
    "a state that breaks a rule over several fields",
    proposed({ execution: next("pay"), values: { ...branch("pay"), amount: 101 } }),
  ],
  [
    "an entry without a required field",
    proposed({ execution: next("pay"), values: { ...branch("pay"), amount: null } }),
  ],
  [
    "a guarded move while its guard is false",
    proposed({ execution: next("gift"), values: { ...branch("gift"), amount: 5 } }),
  ],
];

describe("the saver accepts", () => {
  test.each(legal)("%s", (_name, checkpoint) => {
    expect(() => checkLegal(workflow, checkpoint)).not.toThrow();
  });
});

describe("the saver refuses", () => {
  test.each(illegal)("%s", (_name, code, checkpoint) => {
    expect(() => checkLegal(workflow, checkpoint)).toThrow(expect.objectContaining({ code }));
  });
});

describe("the saver refuses the state of", () => {
  test.each(illegalStates)("%s", (_name, checkpoint) => {
    expect(() => checkLegal(workflow, checkpoint)).toThrow(
      expect.objectContaining({ code: expect.any(String) as string }),
    );
  });
});

test("a refusal names the source and the two steps", () => {
  const checkpoint = proposed({ execution: next("done"), values: {} });
  const details = { from: "collect", to: "done", source: "loop" };
  expect(() => checkLegal(workflow, checkpoint)).toThrow(expect.objectContaining({ details }));
});
