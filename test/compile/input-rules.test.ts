import fc from "fast-check";
import { defineWorkflow, field, type Execution } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { admitInput, type Admitted, type Situation } from "../../src/compile/admit-input.ts";
import { questionRequest } from "../../src/people/requests.ts";
import { newExecution } from "../../src/state/execution.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const workflow = anyWorkflow(
  defineWorkflow({
    name: "visit",
    version: 1,
    state: {
      place: field(z.string().max(10)),
      days: field(z.number().int()).runtimeOnly(),
      report: field(z.string()),
    },
    input: ["place", "days"],
    checks: { far: (state) => state.place === "moon" && (state.days ?? 0) < 3 && "too short for the moon" },
    initial: "travel",
    steps: { travel: { writes: ["place", "report"], to: ["home"] }, home: { final: true } },
  }),
);

const started: Execution = { ...newExecution(workflow), taskId: "t", status: "running", revision: 1, decisions: 1 };
const first = questionRequest({ kind: "question", decision: 1, question: "where to?" }, 0);
const second = { ...first, id: "w1.0/q1.0" };
const head = (changes: Partial<Execution> = {}) => ({
  checkpointId: "c",
  execution: { ...started, ...changes },
  forks: 0,
  updatedAt: 0,
});

const nothing: Situation = { taskId: "t", head: null, open: [], startedWithThis: false };
const waiting: Situation = { ...nothing, head: head(), open: [first] };
const waitingForTwo: Situation = { ...nothing, head: head(), open: [first, second] };
const midway: Situation = { ...nothing, head: head() };
const failed: Situation = {
  ...nothing,
  head: head({ status: "failed", lastError: { code: "GUARD", message: "closed", step: "travel" } }),
};
const finished: Situation = { ...nothing, head: head({ status: "completed", step: "home" }) };
const repeated: Situation = { ...waiting, startedWithThis: true };
const foreign: Situation = { ...nothing, head: head({ workflow: "other" }) };

const admitted: readonly [string, Situation, unknown, Admitted][] = [
  ["a message starts a new task", nothing, { message: "go" }, { kind: "start", input: { message: "go" } }],
  ["fields start a new task", nothing, { place: "sea", days: 2 }, { kind: "start", input: { place: "sea", days: 2 } }],
  ["null fields and messages are as if absent", nothing, { message: null, place: null }, { kind: "start", input: {} }],
  ["an empty input starts a new task", nothing, {}, { kind: "start", input: {} }],
  ["no input wakes a waiting task", waiting, null, { kind: "wake" }],
  ["no input wakes a task that stopped midway", midway, undefined, { kind: "wake" }],
  ["no input looks at a finished task", finished, null, { kind: "wake" }],
  ["no input tries a failed task again", failed, null, { kind: "retry" }],
  ["a message answers the only question", waiting, { message: "sea" }, { kind: "answer", request: first, text: "sea" }],
];

const refused: readonly [string, Situation, unknown, string][] = [
  ["no input for a task that is not there", nothing, null, "UNKNOWN_TASK"],
  ["a message for a finished task", finished, { message: "more" }, "TASK_FINISHED"],
  ["a message for a failed task", failed, { message: "more" }, "TASK_UNFINISHED"],
  ["the opening input again", repeated, { message: "go" }, "TASK_STARTED"],
  [
    "the opening input again, of a task midway",
    { ...midway, startedWithThis: true },
    { message: "go" },
    "TASK_STARTED",
  ],
  ["a message for two open questions", waitingForTwo, { message: "sea" }, "TASK_WAITING"],
  ["fields for a waiting task", waiting, { place: "sea" }, "TASK_WAITING"],
  ["a message with fields for a waiting task", waiting, { message: "sea", place: "sea" }, "TASK_WAITING"],
  ["an empty input for a waiting task", waiting, {}, "TASK_WAITING"],
  ["a message for a task that stopped midway", midway, { message: "more" }, "TASK_UNFINISHED"],
  ["a message for another workflow's task", foreign, { message: "go" }, "WRONG_WORKFLOW"],
  ["a wake-up of another workflow's task", foreign, null, "WRONG_WORKFLOW"],
  ["a text", nothing, "go", "INVALID_INPUT"],
  ["a number", nothing, 5, "INVALID_INPUT"],
  ["a list", nothing, [{ message: "go" }], "INVALID_INPUT"],
  ["an instance of a class", nothing, new Map([["message", "go"]]), "INVALID_INPUT"],
  ["a message that is no text", nothing, { message: 5 }, "INVALID_INPUT"],
  ["an empty message", nothing, { message: " " }, "INVALID_MESSAGE"],
  ["a message with control characters", nothing, { message: "a\u0000b" }, "INVALID_MESSAGE"],
  ["half of a surrogate pair", nothing, { message: "a\ud83db" }, "INVALID_MESSAGE"],
  ["a message above 64 KB", nothing, { message: "x".repeat(65_537) }, "MESSAGE_TOO_LARGE"],
  ["an unknown field", nothing, { where: "sea" }, "INVALID_INPUT"],
  ["a field that is no input", nothing, { report: "done" }, "INVALID_INPUT"],
  ["the execution record", nothing, { message: "go", execution: { step: "home" } }, "INVALID_INPUT"],
  ["a prototype's key", nothing, JSON.parse('{"__proto__": {"place": "sea"}}'), "INVALID_INPUT"],
  ["a value outside the schema", nothing, { place: "x".repeat(11) }, "INVALID_INPUT"],
  ["values that break a rule over two fields", nothing, { place: "moon", days: 1 }, "INVALID_INPUT"],
  ["an invalid input for a finished task", finished, { where: "sea" }, "INVALID_INPUT"],
];

describe("an input is taken:", () => {
  test.each(admitted)("%s", (_name, situation, input, expected) => {
    expect(admitInput(workflow, input, situation)).toEqual(expected);
  });
});

describe("an input is refused:", () => {
  test.each(refused)("%s", (_name, situation, input, code) => {
    expect(() => admitInput(workflow, input, situation)).toThrow(expect.objectContaining({ code }));
  });
});

test("a refused input of a waiting task tells what is open", () => {
  const details = { taskId: "t", open: [first, second] };
  expect(() => admitInput(workflow, { message: "sea" }, waitingForTwo)).toThrow(expect.objectContaining({ details }));
});

test("a refused field tells which fields can be set", () => {
  const details = expect.objectContaining({ field: "report", settable: ["place", "days"] }) as unknown;
  expect(() => admitInput(workflow, { report: "x" }, nothing)).toThrow(expect.objectContaining({ details }));
});

test("deciding what an input means changes neither the input nor the situation", () => {
  const input = Object.freeze({ message: "sea" });
  const before = structuredClone(waiting);
  admitInput(workflow, input, waiting);
  expect(waiting).toEqual(before);
});

test("a start without what the first step requires is refused, with the fields and what to do", () => {
  const { travel } = workflow.steps;
  const strict = { ...workflow, steps: { ...workflow.steps, travel: { ...travel, requires: ["place", "days"] } } };
  expect(admitInput(strict, { place: "sea", days: 0 }, nothing)).toMatchObject({ kind: "start" });
  expect(admitInput(strict, null, midway)).toEqual({ kind: "wake" });
  expect(admitInput(strict, { message: "sea" }, waiting)).toMatchObject({ kind: "answer" });
  const details = expect.objectContaining({ fields: ["days"], settable: ["place", "days"] }) as unknown;
  const message =
    'workflow "visit" starts only with days: give it as input; fields that can be set at the start: place, days';
  for (const input of [{ place: "sea" }, { place: "sea", days: null }]) {
    expect(() => admitInput(strict, input, nothing)).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message, details }),
    );
  }
  expect(() => admitInput(strict, { message: "go" }, nothing)).toThrow(/starts only with place, days: give them/);
});

test("a task starts exactly when it has what the first step requires", () => {
  const fields = ["a", "b", "c", "d"] as const;
  const some = fc.subarray([...fields]);
  fc.assert(
    fc.property(some, some, fc.boolean(), (requires, given, isNull) => {
      const drawn = anyWorkflow(
        defineWorkflow({
          name: "drawn",
          version: 1,
          state: { a: field(z.string()), b: field(z.string()), c: field(z.string()), d: field(z.string()) },
          input: fields,
          initial: "first",
          steps: { first: { requires, to: ["last"] }, last: { final: true } },
        }),
      );
      const left = isNull ? fields.filter((name) => !given.includes(name)).map((name) => [name, null]) : [];
      const input = Object.fromEntries([...given.map((name) => [name, ""]), ...left]) as object;
      const missing = requires.filter((name) => !given.includes(name));
      const start = () => admitInput(drawn, input, nothing);
      if (missing.length === 0) expect(start()).toMatchObject({ kind: "start" });
      else expect(start).toThrow(expect.objectContaining({ details: { fields: missing, settable: fields } }));
    }),
  );
});
