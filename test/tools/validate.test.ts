import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isWorkflowError } from "../../src/errors.ts";
import type { Fault } from "../../src/workflow/fault.ts";
import { defineWorkflow } from "../../src/workflow/define.ts";
import { defineTool } from "../../src/workflow/tool.ts";

type Loose = Readonly<Record<string, unknown>>;

/** The faults of a workflow with one tool, each as `path code`. */
function told(tool: Loose, workflow: Loose = {}): readonly string[] {
  const pay = defineTool({
    description: "Pays.",
    effect: "write",
    parameters: z.object({}),
    run: () => null,
    ...tool,
  } as never);
  try {
    defineWorkflow({
      name: "good",
      version: 1,
      state: {},
      tools: { pay },
      initial: "work",
      steps: { work: { tools: ["pay"], to: ["done"] }, done: { final: true } },
      ...workflow,
    } as never);
  } catch (error) {
    if (!isWorkflowError(error, "INVALID_WORKFLOW")) throw error;
    return (error.details.faults as readonly Fault[]).map(({ path, code }) => `${path} ${code}`);
  }
  return [];
}

const check = () => null;

describe("the parts of a tool", () => {
  test.each<readonly [string, Loose]>([
    ["a limit", { limit: 1 }],
    ["retries by name", { retry: { tries: 3, on: ["EAGAIN"] } }],
    ["retries by a function", { retry: { tries: 1, on: () => true, delayMs: 0 } }],
    ["a schema of its result", { result: z.object({ receipt: z.string() }) }],
    ["conflicts", { conflicts: () => "account" }],
    ["one check", { intercept: check }],
    ["several checks", { intercept: [check, check] }],
  ])("%s is sound", (_name, tool) => expect(told(tool)).toEqual([]));

  test.each<readonly [string, Loose, readonly string[]]>([
    ["a limit of 0", { limit: 0 }, ["tools.pay INVALID_LIMIT"]],
    ["a limit of a half", { limit: 1.5 }, ["tools.pay INVALID_LIMIT"]],
    ["a limit that is text", { limit: "3" }, ["tools.pay INVALID_LIMIT"]],
    ["a limit without end", { limit: Number.POSITIVE_INFINITY }, ["tools.pay INVALID_LIMIT"]],
    ["no tries", { retry: { tries: 0, on: ["E"] } }, ["tools.pay.retry INVALID_LIMIT"]],
    ["tries and a half", { retry: { tries: 2.5, on: ["E"] } }, ["tools.pay.retry INVALID_LIMIT"]],
    ["retries of nothing named", { retry: { tries: 2, on: [] } }, ["tools.pay.retry INVALID_TOOL"]],
    ["retries of anything", { retry: { tries: 2 } }, ["tools.pay.retry INVALID_TOOL"]],
    ["retries by one name", { retry: { tries: 2, on: "EAGAIN" } }, ["tools.pay.retry INVALID_TOOL"]],
    ["a negative wait", { retry: { tries: 2, on: ["E"], delayMs: -1 } }, ["tools.pay.retry INVALID_LIMIT"]],
    ["a number of retries", { retry: 3 }, ["tools.pay.retry INVALID_TOOL"]],
    [
      "everything wrong",
      { retry: { delayMs: "1" } },
      ["tools.pay.retry INVALID_LIMIT", "tools.pay.retry INVALID_TOOL", "tools.pay.retry INVALID_LIMIT"],
    ],
    ["a result that is no schema", { result: { type: "string" } }, ["tools.pay INVALID_TOOL"]],
    ["conflicts that are a key", { conflicts: "account" }, ["tools.pay INVALID_TOOL"]],
    ["what code keeps as an object", { onResult: {} }, ["tools.pay INVALID_TOOL"]],
    ["a check that is a text", { intercept: "no" }, ["tools.pay.intercept INVALID_TOOL"]],
    ["a check that is missing", { intercept: [check, undefined] }, ["tools.pay.intercept INVALID_TOOL"]],
    ["a check that is null", { intercept: null }, ["tools.pay.intercept INVALID_TOOL"]],
  ])("%s is a fault", (_name, tool, faults) => expect(told(tool)).toEqual(faults));

  test("the workflow's own checks are looked at too", () => {
    expect(told({}, { intercept: [check] })).toEqual([]);
    expect(told({}, { intercept: [check, "no"] })).toEqual(["intercept INVALID_TOOL"]);
  });
});
