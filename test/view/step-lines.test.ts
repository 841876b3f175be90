import { defineTool, defineWorkflow, field } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { renderPrefix } from "../../src/view/prefix.ts";
import { commonTools, stepLines } from "../../src/view/state-block.ts";

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
  const after = (step: string, ...before: string[]) => stepLines(desk, step, { steps: before }).slice(1);
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

describe("tools that every step has in which a model decides", () => {
  const counter = defineWorkflow({
    name: "counter",
    version: 1,
    state: { note: field(z.string()) },
    tools,
    initial: "sort",
    steps: {
      sort: { run: () => ({ next: "talk" }), to: ["talk"] },
      talk: { tools: ["a", "b"], to: ["look"] },
      look: { tools: ["b", "a", "c"], to: ["sell"] },
      sell: { tools: ["a", "b", "c", "d"], to: ["done"] },
      done,
    },
  });
  const common = commonTools(counter);
  const after = (step: string, ...steps: string[]) => stepLines(counter, step, { common, steps }).slice(1);

  test("are told once, at the beginning of every prompt", () => {
    expect(common).toEqual(["a", "b"]);
    expect(renderPrefix(counter)).toContain("\n\nTools of every step:\na(of) – A.\nb(of) – B.\n\n");
    expect(after("talk")).toEqual(["tools: those of every step"]);
    expect(after("look")).toEqual(["more tools:", "c(of) – C."]);
    expect(after("sell", "talk", "look")).toEqual(["all tools above", "more tools:", "d(of) – D."]);
    expect(after("look", "talk", "sell")).toEqual(["more tools as above: c"]);
    expect(after("talk", "sell")).toEqual(["tools: those of every step"]);
  });

  test("are no others than each of them has, and none where a single step is", () => {
    expect(commonTools(desk)).toEqual([]);
    const alone = defineWorkflow({
      name: "alone",
      version: 1,
      state: {},
      tools: { a: tools.a },
      initial: "first",
      steps: { first: { tools: ["a"], to: ["done"] }, done },
    });
    expect(commonTools(alone)).toEqual([]);
    expect(renderPrefix(alone)).not.toContain("Tools of every step");
    expect(stepLines(alone, "first")).toContain("tools:");
  });

  test("have no arguments left out that a model would take for texts", () => {
    expect(renderPrefix(counter)).toContain("What has no type is a string.");
  });
});
