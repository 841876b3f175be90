import { describe, expect, test } from "vitest";
import { parseSkill } from "../../src/skills/parse.ts";
import { skillFile } from "../support/skill-folders.ts";

const FILE = "/skills/find-errors/SKILL.md";
const START = ["name: find-errors", "description: Finds errors in a log."];

/** Reads a file whose implementation is there. */
const parse = (text: string) => parseSkill(text, FILE, () => null);
const parseLines = (...lines: readonly string[]) => parse(skillFile(lines));
const problemsOf = (...lines: readonly string[]) =>
  parseLines(...lines).problems.map(({ line, severity, code }) => `${line} ${severity} ${code}`);

describe("the public format", () => {
  test("all of its keys", () => {
    const { skill, problems } = parseLines(
      ...START,
      "license: MIT",
      "compatibility: Needs git",
      'metadata: { author: someone, version: "1.0" }',
      "allowed-tools: Bash(git add:*) Read",
    );
    expect(problems).toEqual([]);
    expect(skill).toMatchObject({
      name: "find-errors",
      description: "Finds errors in a log.",
      license: "MIT",
      compatibility: "Needs git",
      metadata: { author: "someone", version: "1.0" },
      allowedTools: ["Bash(git add:*)", "Read"],
      whenToUse: null,
      implementation: null,
      parameters: {},
      folder: "/skills/find-errors",
      file: FILE,
      body: "Do it well.\n",
    });
  });

  test.each([
    ["a byte order mark", `\uFEFF${skillFile(START)}`],
    ["CRLF", skillFile(START).replaceAll("\n", "\r\n")],
    ["spaces behind the fences", skillFile(START).replaceAll("---", "---  ")],
    ["a comment and an empty line", skillFile(["# what it is", "", ...START])],
    ["a folded block", skillFile(["name: find-errors", "description: >-", "  Finds errors", "  in a log."])],
    ["a literal block", skillFile(["name: find-errors", "description: |", "  Finds errors in a log.", ""])],
    ["single quotes", skillFile(["name: 'find-errors'", "description: 'Finds errors in a log.'"])],
    ["a text over two lines", skillFile(["name: find-errors", "description: Finds errors", "  in a log."])],
    ["an alias", skillFile(["name: find-errors", "license: &text Finds errors in a log.", "description: *text"])],
  ])("%s makes no difference", (_what, text) => {
    const { skill, problems } = parse(text);
    expect(problems).toEqual([]);
    expect(skill).toMatchObject({ name: "find-errors", description: "Finds errors in a log.", body: "Do it well.\n" });
  });

  test("values stay as they are written", () => {
    const { skill } = parseLines("name: find-errors", "description: 1.0", "metadata:", "  version: 1.10", "  on: no");
    expect(skill).toMatchObject({ description: "1.0", metadata: { version: "1.10", on: "no" } });
  });

  test("a fence inside the body ends nothing", () => {
    expect(parse(skillFile(START, "One\n---\nTwo\n")).skill?.body).toBe("One\n---\nTwo\n");
  });

  test.each([
    [["description: Finds errors."], "2 error MISSING_NAME"],
    [["name: ", "description: Finds errors."], "2 error MISSING_NAME"],
    [["description: Finds errors.", "name: find-bugs"], "3 error INVALID_NAME"],
    [["name: Find-Errors", "description: Finds errors."], "2 error INVALID_NAME"],
    [["name: find--errors", "description: Finds errors."], "2 error INVALID_NAME"],
    [["name: -find", "description: Finds errors."], "2 error INVALID_NAME"],
    [["name: find-errors"], "2 error MISSING_DESCRIPTION"],
    [["name: find-errors", "description:"], "3 error MISSING_DESCRIPTION"],
    [["name: find-errors", "description: [a, b]"], "3 error INVALID_DESCRIPTION"],
    [["name: find-errors", `description: ${"x".repeat(1025)}`], "3 error INVALID_DESCRIPTION"],
    [[...START, `compatibility: ${"x".repeat(501)}`], "4 error INVALID_COMPATIBILITY"],
  ])("%j is refused", (lines, problem) => {
    expect(problemsOf(...lines)).toEqual([problem]);
    expect(parseLines(...lines).skill).toBeNull();
  });

  test("a name of 64 characters and a description of 1024 are not too long", () => {
    const name = "a".repeat(64);
    const text = skillFile([`name: ${name}`, `description: ${"x".repeat(1024)}`]);
    expect(parseSkill(text, `/skills/${name}/SKILL.md`, () => null).problems).toEqual([]);
    const longer = skillFile([`name: ${name}a`, "description: x"]);
    expect(parseSkill(longer, `/skills/${name}a/SKILL.md`, () => null).skill).toBeNull();
  });

  test("odd keys and values are warned of, and the skill loads", () => {
    const lines = [
      ...START,
      "version: 2",
      "allowed-tools: [Read, Grep]",
      "metadata:",
      "  tags: [a, b]",
      "license: [MIT]",
    ];
    expect(problemsOf(...lines)).toEqual([
      "4 warning UNKNOWN_KEY",
      "5 warning ODD_VALUE",
      "7 warning ODD_VALUE",
      "8 warning ODD_VALUE",
    ]);
    expect(parseLines(...lines).skill).toMatchObject({
      allowedTools: ["Read", "Grep"],
      metadata: { tags: '["a","b"]' },
    });
  });

  test("a skill without instructions is warned of", () => {
    expect(parse(skillFile(START, "\n")).problems).toMatchObject([{ severity: "warning", code: "EMPTY_BODY" }]);
  });
});

describe("what is no front matter", () => {
  test.each([
    ["", "1 error NO_FRONT_MATTER"],
    ["# A heading\n", "1 error NO_FRONT_MATTER"],
    ["---\nname: find-errors\n", "1 error NO_FRONT_MATTER"],
    ["---\n---\nText", "2 error INVALID_YAML"],
    ["---\njust text\n---\n", "2 error INVALID_YAML"],
    ["---\n- a\n- b\n---\n", "2 error INVALID_YAML"],
    ["---\nname: find-errors\ndescription: [unclosed\n---\n", "3 error INVALID_YAML"],
    ["---\nname: a\nname: b\n---\n", "3 error INVALID_YAML"],
    [`---\n${"[".repeat(5000)}\n---\n`, "2 error INVALID_YAML"],
    [skillFile([...START, `# ${"x".repeat(16_000)}`]), "2 error INVALID_YAML"],
  ])("%#", (text, problem) => {
    const { skill, problems } = parse(text);
    expect(skill).toBeNull();
    expect(problems.map(({ line, severity, code }) => `${line} ${severity} ${code}`)).toEqual([problem]);
  });

  test("the commonest slip is explained", () => {
    const [problem] = parseLines("name: find-errors", "description: Use when: always").problems;
    expect(problem).toMatchObject({ line: 3, code: "INVALID_YAML" });
    expect(problem?.message).toContain("has to be quoted");
  });

  test("aliases cannot fill the memory", () => {
    const lines = ["a: &a [x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 9; level++) {
      const [name, from] = ["abcdefghij"[level], "abcdefghij"[level - 1]];
      lines.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${from}`).join(", ")}]`);
    }
    expect(parseLines(...lines).problems).toMatchObject([{ code: "INVALID_YAML" }]);
  });
});

describe("our keys", () => {
  test("when to use it and when not", () => {
    const lines = [...START, "when_to_use: After a crash.", "when_not_to_use: For source code."];
    expect(parseLines(...lines)).toMatchObject({
      skill: { whenToUse: "After a crash.", whenNotToUse: "For source code." },
      problems: [],
    });
  });

  test("an implementation with its parameters, fields and limits", () => {
    const { skill, problems } = parseLines(
      ...START,
      "implementation: scripts/find.ts",
      "effect: read",
      "timeout_ms: 5000",
      "limit: 3",
      "reads: [service]",
      "writes: findings summary",
      "parameters:",
      "  file: { type: string, description: Which log, examples: [app.log] }",
      "  level:",
      "    enum: [error, warning]",
      "    default: error",
      "  lines: integer",
    );
    expect(problems).toEqual([]);
    expect(skill).toMatchObject({
      implementation: { module: "scripts/find.ts", effect: "read", idempotent: false, timeoutMs: 5000, limit: 3 },
      reads: ["service"],
      writes: ["findings", "summary"],
      parameters: {
        file: { type: "string", description: "Which log", examples: ["app.log"] },
        level: { enum: ["error", "warning"], default: "error" },
        lines: { type: "integer" },
      },
    });
  });

  test.each([
    [["parameters: file"], "5 error INVALID_PARAMETERS"],
    [["parameters:", "  file: { kind: string }"], "6 error INVALID_PARAMETERS"],
    [["parameters:", "  file: text"], "6 error INVALID_PARAMETERS"],
    [["parameters:", "  a: string", "  b c: string"], "7 error INVALID_PARAMETERS"],
    [["parameters:", "  __proto__: string"], "5 error INVALID_PARAMETERS"],
    [["parameters:", "  lines: { type: integer, examples: [many] }"], "6 error INVALID_PARAMETERS"],
    [["parameters:", "  lines: { type: integer, maximum: 5, default: 6 }"], "6 error INVALID_PARAMETERS"],
    [["parameters:", "  lines: { type: integer, enum: [1, two] }"], "6 error INVALID_PARAMETERS"],
    [["effect: destroy"], "5 error INVALID_VALUE"],
    [["timeout_ms: 0"], "5 error INVALID_VALUE"],
    [["limit: many"], "5 error INVALID_VALUE"],
    [["reads: { a: b }"], "5 error INVALID_VALUE"],
    [["writes: [1]"], "5 error INVALID_VALUE"],
    [["when_to_use: [a, b]"], "5 error INVALID_VALUE"],
  ])("%j is refused", (lines, problem) => {
    expect(problemsOf(...START, "implementation: find.ts", ...lines)).toEqual([problem]);
  });

  test("an implementation that is no module, or is not there", () => {
    expect(problemsOf(...START, "implementation: find.py")).toEqual(["4 error INVALID_IMPLEMENTATION"]);
    const missing = parseSkill(skillFile([...START, "implementation: find.ts"]), FILE, (module) => `no ${module}`);
    expect(missing.problems).toMatchObject([{ line: 4, code: "INVALID_IMPLEMENTATION", message: "no find.ts" }]);
  });

  test("what belongs to an implementation means nothing without one", () => {
    expect(problemsOf(...START, "effect: read", "parameters: { a: string }")).toEqual([
      "4 warning ODD_VALUE",
      "5 warning ODD_VALUE",
    ]);
  });

  test("all that is wrong is reported, in the order of lines", () => {
    expect(problemsOf("colour: red", "name: other", "implementation: a.py", "description: ''")).toEqual([
      "2 warning UNKNOWN_KEY",
      "3 error INVALID_NAME",
      "4 error INVALID_IMPLEMENTATION",
      "5 error MISSING_DESCRIPTION",
    ]);
  });
});
