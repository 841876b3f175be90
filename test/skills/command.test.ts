import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonOf, shareOneProcess, statecard } from "../support/cli.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";

shareOneProcess();

const GOOD = skillFile(["name: good", "description: Does good, never harm."]);
const BAD = skillFile(["name: bad", "description: Does: bad"]);
const check = (folder: string, ...more: readonly string[]) => statecard(["skills", "check", ".", ...more], { folder });

test("skills that all load", async () => {
  const { code, stdout, stderr } = await check(folderWith({ "good/SKILL.md": GOOD }));
  expect({ code, stderr, stdout }).toEqual({
    code: 0,
    stderr: "",
    stdout: "1 skill loads, 0 left out; warnings: 0, advice: 0\n",
  });
});

test("a broken one with its line, warnings and advice", async () => {
  const odd = skillFile(["name: odd", "description: Does odd things.", "colour: red"]);
  const folder = folderWith({ "good/SKILL.md": GOOD, "bad/SKILL.md": BAD, "odd/SKILL.md": odd });
  const { code, stdout } = await check(folder);
  expect(code).toBe(3);
  expect(stdout.trimEnd().split("\n")).toEqual([
    expect.stringMatching(/^bad\/SKILL\.md:3 error INVALID_YAML: .*has to be quoted$/),
    "odd/SKILL.md:4 warning UNKNOWN_KEY: unknown key colour; it means nothing here",
    expect.stringMatching(/^odd\/SKILL\.md:1 advice NO_LIMITS: odd does not say when not to use it/),
    "2 skills load, 1 left out; warnings: 1, advice: 1",
  ]);
});

test("as JSON", async () => {
  const folder = folderWith({ "good/SKILL.md": GOOD, "bad/SKILL.md": BAD });
  const result = await check(folder, "--json");
  expect(result.code).toBe(3);
  expect(jsonOf(result)).toMatchObject({
    ok: false,
    loaded: 1,
    broken: 1,
    warnings: 0,
    advice: 0,
    problems: [{ file: "bad/SKILL.md", line: 3, severity: "error", code: "INVALID_YAML" }],
  });
});

test("what steers a terminal is taken out", async () => {
  const steering = skillFile(["name: good", "description: Does good only.", '"\\e[31mred": 1']);
  const { stdout } = await check(folderWith({ "good/SKILL.md": steering }));
  expect(stdout).toContain("unknown key  [31mred");
});

test("folders without skills, or that are not there, are wrong usage", async () => {
  const folder = folderWith({ "README.md": "nothing" });
  expect(await check(folder)).toMatchObject({ code: 2, stderr: "USAGE: there is no SKILL.md in .\n" });
  const nowhere = await statecard(["skills", "check", join(folder, "nowhere")], { folder });
  expect(nowhere.code).toBe(2);
  expect((await statecard(["skills", "look", "."], { folder })).code).toBe(2);
});
