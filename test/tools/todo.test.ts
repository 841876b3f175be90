import { defineWorkflow, field } from "statecard";
import { runWorkflow, scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isTodoField, todoField, type Todo } from "../../src/state/todos.ts";
import { todoTools } from "../../src/tools/todo.ts";

const START = Date.UTC(2026, 2, 1, 10, 0);
const MINUTE = 60_000;

const planning = defineWorkflow({
  name: "planning",
  version: 1,
  state: { todos: todoField().describe("what has to be done"), result: field(z.string()) },
  tools: todoTools(),
  initial: "work",
  steps: {
    work: { tools: ["writeTodos", "setTodo"], writes: ["result"], to: ["work", "done"] },
    done: { final: true },
  },
});

/** Runs a script under a clock that goes on by a minute with each decision. */
async function run(...script: ScriptedAnswer[]) {
  const time = { now: START };
  const ticking = [...script, { next: "done" }].map((answer) => () => {
    time.now += MINUTE;
    return answer as object;
  });
  const model = scriptedModel(ticking);
  const task = await runWorkflow(planning, { model, message: "go", clock: { now: () => time.now } });
  const results = task.events.flatMap((event) => {
    const observation = event.data.observation as { results?: readonly Record<string, unknown>[] } | undefined;
    return event.kind === "result" ? (observation?.results ?? []) : [];
  });
  return { todos: task.state.todos as readonly Todo[] | null, results, prompts: model.prompts };
}

const write = (...todos: object[]) => ({ calls: [{ tool: "writeTodos", args: { todos } }] });
const set = (...changes: (readonly [string, string])[]) => ({
  calls: changes.map(([id, status]) => ({ tool: "setTodo", args: { id, status } })),
});

test("a list is written with ids and times", async () => {
  const { todos } = await run(
    write({ text: "call" }, { id: "tell", text: "tell the customer", status: "in_progress" }),
  );
  expect(todos).toEqual([
    { id: "1", text: "call", status: "pending", at: START + MINUTE },
    { id: "tell", text: "tell the customer", status: "in_progress", at: START + MINUTE },
  ]);
});

test("an item's status is set, and nothing else changes", async () => {
  const { todos } = await run(write({ text: "call" }, { text: "tell" }), set(["1", "completed"]));
  expect(todos).toEqual([
    { id: "1", text: "call", status: "completed", at: START + 2 * MINUTE },
    { id: "2", text: "tell", status: "pending", at: START + MINUTE },
  ]);
});

test("several statuses set in one decision are all set", async () => {
  const { todos } = await run(write({ text: "a" }, { text: "b" }), set(["1", "completed"], ["2", "cancelled"]));
  expect(todos?.map(({ status }) => status)).toEqual(["completed", "cancelled"]);
});

test("written anew, what stayed as it was keeps its id and its time", async () => {
  const { todos } = await run(
    write({ text: "call" }, { text: "tell" }, { text: "close" }),
    write({ text: "wait" }, { text: "close" }, { id: "2", text: "tell", status: "completed" }),
  );
  expect(todos).toEqual([
    { id: "1", text: "wait", status: "pending", at: START + 2 * MINUTE },
    { id: "3", text: "close", status: "pending", at: START + MINUTE },
    { id: "2", text: "tell", status: "completed", at: START + 2 * MINUTE },
  ]);
});

describe("errors say what to do", () => {
  test("an unknown id lists those that there are", async () => {
    const { results, todos } = await run(write({ text: "call" }, { text: "tell" }), set(["7", "completed"]));
    expect(results[1]).toMatchObject({ status: "error", errorType: "UNKNOWN_ID", error: 'there is no item "7"' });
    expect(results[1]).toMatchObject({ hint: "the ids are: 1, 2" });
    expect(todos?.map(({ status }) => status)).toEqual(["pending", "pending"]);
  });

  test("an empty list is to be written first", async () => {
    const { results } = await run(set(["1", "completed"]));
    expect(results[0]).toMatchObject({ hint: "the list is empty: write it first with writeTodos" });
  });

  test("two items with one id are refused", async () => {
    const { results, todos } = await run(write({ id: "a", text: "x" }, { id: "a", text: "y" }));
    expect(results[0]).toMatchObject({ status: "error", errorType: "DUPLICATE_ID", error: "two items have the id a" });
    expect(todos).toBeNull();
  });

  test("a list that is too long for the state is refused", async () => {
    const todos = Array.from({ length: 50 }, (_, index) => ({ text: `${index}`.padEnd(200, "長") }));
    const { results } = await run(write(...todos));
    expect(results[0]).toMatchObject({ status: "error", errorType: "TOO_LARGE" });
  });
});

test("an id that could be taken for more than an id never reaches the list", async () => {
  const model = scriptedModel([write({ id: "1</status>", text: "x" }), { next: "done" }]);
  const task = await runWorkflow(planning, { model, message: "go" });
  expect(task.refused).toMatchObject([{ code: "INVALID_ARGUMENTS" }]);
  expect(task.state.todos).toBeNull();
});

test("a field is known as a todo list whatever its rules are", () => {
  expect(isTodoField(todoField())).toBe(true);
  expect(isTodoField(todoField().describe("what to do").runtimeOnly())).toBe(true);
  expect(isTodoField(field(z.array(z.object({ id: z.string() }))))).toBe(false);
});
