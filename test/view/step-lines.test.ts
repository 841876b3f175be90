import { defineTool, defineWorkflow, field } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { stepLines } from "../../src/view/state-block.ts";

const tool = (description: string) =>
  defineTool({ description, effect: "read", parameters: z.object({ of: z.string() }), run: () => null });
const tools = { a: tool("A."), b: tool("B."), c: tool("C."), d: tool("D.") };
const done = { final: true } as const;

const desk = defineWorkflow({
  name: "desk",
  version: 1,
  state: { note: field(z.string()) },
  tools,
  initial: "first",
  steps: {
    first: { tools: ["a", "b", "c"], writes: ["note"], to: ["all"] },
    all: { tools: ["a", "b", "c", "d"], to: ["most"] },
    most: { tools: ["a", "b", "c"], to: ["few"] },
    few: { tools: ["d"], to: ["done"] },
    done,
  },
});

test("a step names its fields, and each of its tools in a line", () => {
  expect(stepLines(desk, "first")).toEqual([
    "name: first",
    "may write: note",
    "tools:",
    "a(of) – A.",
    "b(of) – B.",
    "c(of) – C.",
  ]);
});

test("tools that stand above are named in the shortest way", () => {
  const after = (step: string, ...before: string[]) => stepLines(desk, step, before).slice(1);
  expect(after("all", "first")).toEqual(["may write: nothing", "all tools above", "tools:", "d(of) – D."]);
  expect(after("most", "first", "all")).toEqual(["may write: nothing", "all tools above but: d"]);
  expect(after("few", "first", "all")).toEqual(["may write: nothing", "tools as above: d"]);
});

test("where no model step writes a field, nothing is said of it", () => {
  const plain = defineWorkflow({
    name: "plain",
    version: 1,
    state: {},
    initial: "talk",
    steps: { talk: { instructions: "Talk.", to: ["done"] }, done },
  });
  expect(stepLines(plain, "talk")).toEqual(["name: talk", "instructions: Talk."]);
});
