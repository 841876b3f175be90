import { rmSync } from "node:fs";
import { join } from "node:path";
import { artifactTools, defineWorkflow, field } from "statecard";
import { runWorkflow, scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { loadSkills } from "../../src/skills/load.ts";
import { skillTools, type SkillToolsOptions } from "../../src/skills/tools.ts";
import type { AnyTool } from "../../src/workflow/tool.ts";
import { folderWith, skillFile, writeFiles } from "../support/skill-folders.ts";

const COUNT = [
  "name: count-words",
  "description: Counts the words of a text, not its letters.",
  "when_to_use: When somebody asks how long a text is.",
  "implementation: count.mjs",
  "effect: none",
  "reads: [language]",
  "writes: [words]",
  "parameters:",
  "  text: { type: string, description: The text, examples: [one two] }",
  "  unit: { enum: [word, line], default: word }",
];
const COUNT_MODULE = `
export async function execute({ text, unit }, { state, skill, resource, clock, signal }) {
  const words = text.split(unit === "line" ? "\\n" : " ").length;
  return {
    status: "success",
    output: { words, unit, seen: state, skill: skill.name, rules: resource("rules.txt"), aborted: signal.aborted },
    newMemories: [{ type: "fact", text: "The text has " + words + " words.", priority: 1 }],
    state: { words },
    metadata: { words },
  };
}`;
const files = {
  "count-words/SKILL.md": skillFile(COUNT, "Call it once.\n"),
  "count-words/count.mjs": COUNT_MODULE,
  "count-words/rules.txt": "no rules",
  "write-letter/SKILL.md": skillFile(
    ["name: write-letter", "description: Writes letters, no invoices."],
    "Begin with a greeting.\n",
  ),
  "write-letter/closing.md": "Yours sincerely",
};

/** Runs a script in a workflow whose one step has all tools of the skills in a folder. */
async function run(folder: string, script: readonly ScriptedAnswer[], options: SkillToolsOptions = {}) {
  const tools: Readonly<Record<string, AnyTool>> = { ...skillTools(loadSkills(folder), options), ...artifactTools };
  const workflow = defineWorkflow({
    name: "skills",
    version: 1,
    state: { language: field(z.string()), words: field(z.number()), secret: field(z.string()) },
    input: ["language", "secret"],
    tools,
    initial: "work",
    steps: { work: { tools: Object.keys(tools), writes: ["words"], to: ["work", "done"] }, done: { final: true } },
  });
  const model = scriptedModel([...script, { next: "done" }]);
  const input = { language: "en", secret: "s3" };
  const ran = await runWorkflow(workflow, { model, message: "go", input, clock: { now: () => 1000 } });
  const results = ran.events.flatMap((event) => {
    const observation = event.data.observation as { results?: readonly Record<string, unknown>[] } | undefined;
    return event.kind === "result" ? (observation?.results ?? []) : [];
  });
  return { ...ran, results, prompts: model.prompts };
}
const call = (tool: string, args: object) => ({ calls: [{ tool, args }] });
const count = (args: object) => call("count-words", args);

describe("reading", () => {
  test("the list, the instructions, a file", async () => {
    const { results } = await run(folderWith(files), [
      call("listSkills", {}),
      call("readSkill", { skill: "write-letter" }),
      call("readSkill", { skill: "count-words" }),
      call("readSkillResource", { skill: "write-letter", path: "closing.md" }),
    ]);
    expect(results.map(({ value }) => value)).toEqual([
      "- count-words: Counts the words of a text, not its letters. When to use: When somebody asks how long a text is.\n- write-letter: Writes letters, no invoices.",
      "skill: write-letter\nits files, for readSkillResource: closing.md\n\nBegin with a greeting.",
      "skill: count-words\nits files, for readSkillResource: count.mjs, rules.txt\nthe tool that does it: count-words\n\nCall it once.",
      "Yours sincerely",
    ]);
  });

  test("long instructions are set aside whole, and can be read on in", async () => {
    const body = Array.from({ length: 2000 }, (_, line) => `Step ${line + 1} of the work.`).join("\n");
    const folder = folderWith({ "long/SKILL.md": skillFile(["name: long", "description: Long."], body) });
    const { results } = await run(folder, [
      call("readSkill", { skill: "long" }),
      (prompt) => {
        const [id] = /\d+\.\d+-[0-9a-f]{8}/.exec(prompt) ?? [];
        return call("readArtifact", { id, from: 1500, lines: 1 });
      },
    ]);
    expect(results[0]).toMatchObject({ status: "ok", artifact: expect.any(String) });
    expect(results[1]?.value).toContain("Step 1498 of the work.");
  });

  test("slips are told, with what there is", async () => {
    const { results } = await run(folderWith(files), [
      call("readSkill", { skill: "write-letters" }),
      call("readSkillResource", { skill: "write-letter", path: "../count-words/rules.txt" }),
    ]);
    expect(results).toMatchObject([
      { status: "error", errorType: "UNKNOWN_SKILL", hint: "there are: count-words, write-letter" },
      { status: "error", errorType: "INVALID_RESOURCE", hint: "its files are: closing.md" },
    ]);
  });

  test("a step lists and reads only what it may use", async () => {
    const steps = { work: ["write-letter"] };
    const { results } = await run(
      folderWith(files),
      [call("listSkills", {}), call("readSkill", { skill: "count-words" })],
      {
        steps,
      },
    );
    expect(results).toMatchObject([
      { value: "- write-letter: Writes letters, no invoices." },
      { errorType: "UNKNOWN_SKILL", hint: "there are: write-letter" },
    ]);
  });

  test("of many, names first, and the best for a request", async () => {
    const many = Array.from({ length: 12 }, (_, position) => [
      `skill-${position}/SKILL.md`,
      skillFile([`name: skill-${position}`, `description: Paints walls in the colour number${position}.`]),
    ]);
    const { results } = await run(folderWith(Object.fromEntries(many)), [
      call("listSkills", {}),
      call("listSkills", { request: "I want number7" }),
      call("listSkills", { request: "xyz" }),
    ]);
    expect(results.map(({ value }) => value)).toEqual([
      expect.stringMatching(/^12 skills; say in request what you want to do\. Their names: skill-0, skill-1, skill-10/),
      "- skill-7: Paints walls in the colour number7.",
      expect.stringMatching(/^none of 12 skills fits by its words: skill-0,/),
    ]);
  });
});

describe("running", () => {
  test("a skill is a tool: described, checked, with the fields that it may see", async () => {
    const { results, state, prompts } = await run(folderWith(files), [
      count({ text: "a b c" }),
      count({ text: "a\nb", unit: "line" }),
    ]);
    expect(results[0]).toMatchObject({
      tool: "count-words",
      status: "ok",
      value: {
        status: "success",
        output: {
          words: 3,
          unit: "word",
          seen: { language: "en" },
          skill: "count-words",
          rules: "no rules",
          aborted: false,
        },
        newMemories: [{ type: "fact", text: "The text has 3 words.", priority: 1 }],
        metadata: { words: 3, durationMs: 0 },
      },
    });
    expect(results[1]).toMatchObject({ value: { output: { words: 2, seen: { language: "en", words: 3 } } } });
    expect(state).toMatchObject({ words: 2 });
    const [prompt] = prompts;
    expect(JSON.stringify(prompt)).toContain("When to use: When somebody asks how long a text is.");
    expect(JSON.stringify(prompt)).toContain("count-words");
  });

  test("wrong arguments go back to the model before anything runs", async () => {
    const { results, refused } = await run(folderWith(files), [
      count({ text: "a", unit: "letter" }),
      count({ txt: "a" }),
    ]);
    expect(results).toEqual([]);
    expect(refused).toMatchObject([{ code: "INVALID_ARGUMENTS" }, { code: "INVALID_ARGUMENTS" }]);
  });

  test.each([
    ["return { status: 'failure', output: 'no such log' }", "SKILL_FAILED", "no such log"],
    [
      "return { status: 'failure', output: { type: 'NO_LOG', error: 'no such log', advice: 'list' } }",
      "NO_LOG",
      "no such log",
    ],
    ["throw new Error('boom')", "Error", "boom"],
    ["return { status: 'fine', output: 1 }", "INVALID_SKILL_RESULT", "status"],
    ["return 'done'", "INVALID_SKILL_RESULT", "gave no result of a skill"],
    ["return { status: 'success', output: 1, more: 2 }", "INVALID_SKILL_RESULT", "more"],
    ["return { status: 'success', output: new Date(0) }", "INVALID_SKILL_RESULT", "would not survive as JSON"],
    [
      "return { status: 'success', output: 1, state: { secret: 'x' } }",
      "INVALID_SKILL_RESULT",
      "may not change secret",
    ],
    [
      "return { status: 'success', output: 'x'.repeat(20000), state: { words: 1 } }",
      "INVALID_SKILL_RESULT",
      "would be lost",
    ],
  ])("%s", async (body, errorType, error) => {
    const folder = folderWith({ ...files, "count-words/count.mjs": `export const execute = () => { ${body} };` });
    const { results, state } = await run(folder, [count({ text: "a" })]);
    expect(results).toMatchObject([{ status: "error", errorType, error: expect.stringContaining(error) }]);
    expect(state).toMatchObject({ words: null });
  });

  test("one that needs more has not failed", async () => {
    const body =
      "export const execute = () => ({ status: 'require_more', output: 'which text?', state: { words: 0 } });";
    const { results, state } = await run(folderWith({ ...files, "count-words/count.mjs": body }), [
      count({ text: "a" }),
    ]);
    expect(results).toMatchObject([{ status: "ok", value: { status: "require_more", output: "which text?" } }]);
    expect(state).toMatchObject({ words: 0 });
  });

  test.each([
    ["export const execute = 1;", "exports no function execute"],
    ["export const execute = (", "could not be loaded"],
    ["import './missing.mjs'; export const execute = () => 1;", "could not be loaded"],
  ])("a module like %j is told as broken", async (text, said) => {
    const folder = folderWith({ ...files, "count-words/count.mjs": text });
    const { results } = await run(folder, [count({ text: "a" })]);
    expect(results).toMatchObject([
      { status: "error", errorType: "BROKEN_SKILL", error: expect.stringContaining(said) },
    ]);
  });

  test("a module whose import is there the next time works then", async () => {
    const folder = folderWith({
      ...files,
      "count-words/count.mjs":
        "import { value } from './late.mjs'; export const execute = () => ({ status: 'success', output: value });",
    });
    const { results } = await run(folder, [
      count({ text: "a" }),
      () => {
        writeFiles(folder, { "count-words/late.mjs": "export const value = 7;" });
        return count({ text: "a" });
      },
    ]);
    expect(results).toMatchObject([{ errorType: "BROKEN_SKILL" }, { value: { output: 7 } }]);
  });

  test("a module in TypeScript, which is read anew after a change", async () => {
    const module = (value: number) =>
      `import { half } from "./half.ts";\nexport const execute = (): object => ({ status: "success", output: half(${value}) });`;
    const folder = folderWith({
      ...files,
      "count-words/SKILL.md": skillFile(COUNT.map((line) => line.replace("count.mjs", "count.ts"))),
      "count-words/count.ts": module(4),
      "count-words/half.ts": "export const half = (value: number): number => value / 2;",
    });
    const { results } = await run(folder, [
      count({ text: "a" }),
      () => {
        writeFiles(folder, { "count-words/count.ts": module(10) });
        return count({ text: "a" });
      },
    ]);
    expect(results).toMatchObject([{ value: { output: 2 } }, { value: { output: 5 } }]);
  });

  test("a JavaScript module is read anew after a change too, and a missing one is told", async () => {
    const folder = folderWith(files);
    const change = (text: string) => writeFiles(folder, { "count-words/count.mjs": text });
    const { results } = await run(folder, [
      count({ text: "a" }),
      () => {
        change("export const execute = () => ({ status: 'success', output: 'changed' });");
        return count({ text: "a" });
      },
      () => {
        rmSync(join(folder, "count-words/count.mjs"));
        return count({ text: "a" });
      },
    ]);
    expect(results).toMatchObject([
      { value: { output: { words: 1 } } },
      { value: { output: "changed" } },
      { errorType: "BROKEN_SKILL", error: expect.stringContaining("there is no count.mjs") },
    ]);
  });
});

describe("declarations", () => {
  test("the application's word counts for more than the skill's", async () => {
    const declarations = { "count-words": { limit: 1, intercept: () => ({ refuse: "not now" }) } };
    const { results } = await run(folderWith(files), [count({ text: "a" })], { declarations });
    expect(results).toMatchObject([{ status: "refused", error: expect.stringContaining("not now") }]);
  });

  test("false makes no tool of a skill", () => {
    const tools = skillTools(loadSkills(folderWith(files)), { declarations: { "count-words": false } });
    expect(Object.keys(tools)).toEqual(["listSkills", "readSkill", "readSkillResource"]);
  });

  test.each([
    { declarations: { "count-word": { approve: true as const } } },
    { tools: ["count-word"] },
    { tools: ["write-letter", "count-word"] },
  ])("%j names no implementation", (options) => {
    expect(() => skillTools(loadSkills(folderWith(files)), options)).toThrow(
      expect.objectContaining({ code: "INVALID_WORKFLOW", message: expect.stringContaining('"count-word"') }),
    );
  });

  test("tools that are named are the only ones, and the type checker knows them", () => {
    const skills = loadSkills(folderWith(files));
    const none = skillTools(skills, { tools: [] });
    expect(Object.keys(none)).toEqual(["listSkills", "readSkill", "readSkillResource"]);
    const tools = { ...skillTools(skills, { tools: ["count-words"], reading: false }), ...artifactTools };
    const workflow = defineWorkflow({
      name: "typed",
      version: 1,
      state: {},
      tools,
      initial: "work",
      steps: {
        work: { tools: ["count-words", "readArtifact", "searchArtifact"], to: ["done"] },
        done: { final: true },
      },
    });
    expect(Object.keys(workflow.tools)).toEqual(["count-words", "readArtifact", "searchArtifact"]);
    // @ts-expect-error -- no tool of this name
    expect(tools["count-word"]).toBeUndefined();
    // @ts-expect-error -- left out
    expect(tools.listSkills).toBeUndefined();
  });

  test("effect, time limit and trust are those that are declared", () => {
    const skills = loadSkills(folderWith(files));
    const { "count-words": tool, readSkill } = skillTools(skills);
    expect(tool).toMatchObject({ effect: "none", repeatable: true, timeoutMs: 30_000 });
    expect(readSkill).toMatchObject({ effect: "read", trusted: false });
    expect(skillTools(skills, { trusted: true }).readSkill).toMatchObject({ trusted: true });
  });

  test("a name that begins with a digit", () => {
    const lines = ["name: 2-words", "description: Does two.", "implementation: run.mjs"];
    const folder = folderWith({ "2-words/SKILL.md": skillFile(lines), "2-words/run.mjs": COUNT_MODULE });
    expect(Object.keys(skillTools(loadSkills(folder)))).toContain("_2-words");
  });
});
