import { expect, test } from "vitest";
import { addUsage, executionSchema, newExecution, NO_USAGE } from "../../src/state/execution.ts";

test("a new task's record is valid, at the initial step, with nothing used up", () => {
  const record = newExecution({ name: "ticket", version: 3, initial: "init" });
  expect(executionSchema.parse(record)).toEqual(record);
  expect(record).toMatchObject({
    workflow: "ticket",
    version: 3,
    status: "created",
    step: "init",
    completedSteps: [],
    revision: 0,
    decisions: 0,
    retryCount: 0,
    pending: null,
    lastError: null,
  });
});

test("usage adds up part by part", () => {
  const one = { calls: 1, inputTokens: 10, cachedTokens: 4, outputTokens: 2 };
  const two = { calls: 2, inputTokens: 100, cachedTokens: 40, outputTokens: 20 };
  expect(addUsage(one, two)).toEqual({ calls: 3, inputTokens: 110, cachedTokens: 44, outputTokens: 22 });
  expect(addUsage(NO_USAGE, one)).toEqual(one);
});
