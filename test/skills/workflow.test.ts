import { fileURLToPath } from "node:url";
import {
  answer,
  compile,
  defineWorkflow,
  describeTask,
  field,
  isWorkflowError,
  loadSkills,
  workflowOf,
} from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { skillNamed } from "../../src/skills/skill.ts";
import { skillTools } from "../../src/skills/tools.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";
import { onBothDialects } from "../support/stores.ts";

const FOLDER = fileURLToPath(new URL("../support/skills/", import.meta.url));
const { skills, problems } = loadSkills(FOLDER);
const returnGoods = skillNamed(skills, "return-goods") ?? undefined;

async function shop() {
  const returning = await workflowOf(returnGoods);
  return defineWorkflow({
    name: "shop",
    version: 1,
    state: { article: field(z.string()), days: field(z.number()), refund: field(z.number()) },
    input: ["article", "days"],
    initial: "choosing",
    steps: {
      choosing: { writes: ["article"], to: ["choosing", "returning"] },
      returning: { ...returning, to: ["done"] },
      done: { requires: ["refund"], final: true },
    },
  });
}

test("a skill with a workflow loads without a problem, and is no tool", () => {
  expect(problems).toEqual([]);
  expect(returnGoods).toMatchObject({ workflow: "workflow.ts", implementation: null });
  expect(Object.keys(skillTools(skills, { reading: false }))).toEqual([]);
});

onBothDialects((dialect) => {
  test("runs as a step: its table holds, its question is the parent's, and its fields come back", async () => {
    const task = `return-${dialect.place.length}`;
    const config = { configurable: { thread_id: task } };
    const model = scriptedModel([
      { patch: { article: "kettle" }, next: "returning" },
      // In the skill: a step that its table does not lead to, one whose requirement is not met, then the question.
      { next: "done" },
      { next: "reckoning" },
      { ask: "Was it used?" },
      { patch: { isUsed: true }, next: "reckoning" },
    ]);
    const graph = async () => compile(await shop(), { store: dialect.open(), model });
    const paused = await (await graph()).invoke({ message: "take my kettle back" }, config);
    expect(paused.execution.step).toBe("returning");
    expect(model.prompts[2]).toContain("ILLEGAL_TRANSITION");
    expect(model.prompts[3]).toContain("reckoning needs isUsed");
    const store = dialect.open();
    expect((await describeTask(store, task)).waiting).toMatchObject([{ kind: "question" }]);
    // Another process goes on.
    const done = await (await graph()).invoke(answer(paused, "yes"), config);
    expect(done).toMatchObject({ refund: 20, execution: { status: "completed" } });
    expect(model.prompts[4]).toContain("Was it used?");
  });
});

test("what its parameters do not allow, and what is missing, does not start it", async () => {
  const { input, requires } = await workflowOf(returnGoods);
  expect(requires).toEqual(["article"]);
  expect(input({ article: "kettle", days: null })).toEqual({ article: "kettle", days: 0 });
  expect(() => input({ article: "kettle", days: 1.5 })).toThrow("return-goods cannot be run with this state: days");
});

describe("a fault is told when the definition is made", () => {
  const module = (state: string, input: string) => `export const workflow = {
    name: "w", version: 1, state: ${state}, input: ${input}, initial: "a",
    steps: { a: { to: ["b"], run: () => ({ next: "b" }) }, b: { final: true } } };`;
  const front = ["name: s", "description: Does it, not more.", "workflow: flow.mjs"];

  test.each([
    ["no workflow is declared", ["name: s", "description: Does it, not more."], "", /s: has no workflow/],
    ["the module exports none", front, "export const other = 1;", /exports no workflow/],
    ["the module cannot be loaded", front, "syntax error", /flow\.mjs could not be loaded/],
    [
      "a parameter is no input",
      [...front, "parameters: { file: string }"],
      module("{}", "[]"),
      /takes file, which is no input/,
    ],
    ["a field that it writes is not there", [...front, "writes: [found]"], module("{}", "[]"), /writes found/],
    ["its table is broken", front, module("{}", "[]").replace('to: ["b"]', 'to: ["c"]'), /UNKNOWN_STEP/],
  ])("%s", async (_what, frontMatter, code, said) => {
    const folder = folderWith({ "s/SKILL.md": skillFile(frontMatter), "s/flow.mjs": code });
    const error = await workflowOf(loadSkills(folder).skills[0]).catch((thrown: unknown) => thrown);
    expect(isWorkflowError(error, "INVALID_WORKFLOW")).toBe(true);
    expect(String(error)).toMatch(said);
  });

  test("of a skill that is not there", async () => {
    await expect(workflowOf(skills.find(({ name }) => name === "returns"))).rejects.toThrow("there is no such skill");
  });

  test("of fields that the parent does not have", async () => {
    const returning = await workflowOf(returnGoods);
    const define = () =>
      defineWorkflow({
        name: "shop",
        version: 1,
        state: {},
        initial: "returning",
        steps: { returning: { ...returning, to: ["done"] }, done: { final: true } },
      });
    expect(define).toThrow(/steps\.returning\.requires: there is no field "article"/);
    expect(define).toThrow(/steps\.returning\.writes: there is no field "refund"/);
  });
});

test("a skill is a tool or a step, not both", () => {
  const both = ["name: s", "description: Does it, not more.", "implementation: a.mjs", "workflow: a.mjs"];
  const loaded = loadSkills(folderWith({ "s/SKILL.md": skillFile(both), "s/a.mjs": "" }));
  expect(loaded.skills).toEqual([]);
  expect(loaded.problems).toMatchObject([{ code: "INVALID_IMPLEMENTATION", line: 5 }]);
});
