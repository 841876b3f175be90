import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadSkills } from "../../src/skills/load.ts";
import { catalogue, bodyOf, resourceOf, resourcesOf } from "../../src/skills/stages.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";

const plain = (name: string, ...lines: readonly string[]) =>
  skillFile([`name: ${name}`, `description: Does ${name}.`, ...lines], `How to ${name}.\n`);
const told = (folder: string, { problems }: ReturnType<typeof loadSkills>) =>
  problems.map(({ file, line, code }) => `${file.slice(folder.length + 1)}:${line} ${code}`);
const names = ({ skills }: ReturnType<typeof loadSkills>) => skills.map(({ name }) => name);

describe("folders", () => {
  test("every folder with a SKILL.md is a skill, however deep; what is in it is its own", () => {
    const folder = folderWith({
      "b/SKILL.md": plain("b"),
      "b/inner/SKILL.md": plain("inner"),
      "a/skill.md": plain("a"),
      "more/.hidden/c/SKILL.md": plain("c"),
      "node_modules/d/SKILL.md": plain("d"),
      "README.md": "no skill",
    });
    const loaded = loadSkills(folder);
    expect(names(loaded)).toEqual(["a", "b", "c"]);
    expect(loaded.problems).toEqual([]);
    expect(names(loadSkills(join(folder, "b")))).toEqual(["b"]);
  });

  test("a broken one is reported with file and line, and the rest loads", () => {
    const folder = folderWith({
      "good/SKILL.md": plain("good"),
      "bad/SKILL.md": skillFile(["name: bad", "description: a: b"]),
      "worse/SKILL.md": "no front matter",
      "binary/SKILL.md": new Uint8Array([0x2d, 0x2d, 0x2d, 0xff, 0xfe]),
    });
    const loaded = loadSkills(folder);
    expect(names(loaded)).toEqual(["good"]);
    expect(told(folder, loaded)).toEqual([
      "bad/SKILL.md:3 INVALID_YAML",
      "binary/SKILL.md:1 NOT_TEXT",
      "worse/SKILL.md:1 NO_FRONT_MATTER",
    ]);
  });

  test("of two with one name the first counts, in the order of folders", () => {
    const folder = folderWith({ "mine/a/SKILL.md": plain("a"), "theirs/a/SKILL.md": plain("a") });
    const loaded = loadSkills([join(folder, "theirs"), join(folder, "mine")]);
    expect(loaded.skills.map(({ folder }) => folder.split("/").at(-2))).toEqual(["theirs"]);
    expect(told(folder, loaded)).toEqual(["mine/a/SKILL.md:1 DUPLICATE_NAME"]);
  });

  test("a folder that is not there", () => {
    expect(loadSkills(join(folderWith({}), "nowhere"))).toMatchObject({
      skills: [],
      problems: [{ code: "MISSING_FOLDER" }],
    });
  });

  test("a file of more than 10 MB is not read", () => {
    const folder = folderWith({ "big/SKILL.md": plain("big") + "x".repeat(10_000_000) });
    expect(told(folder, loadSkills(folder))).toEqual(["big/SKILL.md:1 TOO_LARGE"]);
  });

  test("the folder itself may be reached by a link", () => {
    const folder = folderWith({ "skills/a/SKILL.md": plain("a") });
    symlinkSync(join(folder, "skills"), join(folder, "link"));
    expect(loadSkills(join(folder, "link"))).toMatchObject({ skills: [{ name: "a" }], problems: [] });
  });

  test("links are refused", () => {
    const folder = folderWith({ "real/SKILL.md": plain("real"), "other/a/SKILL.md": plain("a") });
    symlinkSync(join(folder, "other/a"), join(folder, "linked"));
    mkdirSync(join(folder, "linked-file"));
    symlinkSync(join(folder, "real/SKILL.md"), join(folder, "linked-file/SKILL.md"));
    const loaded = loadSkills(folder);
    expect(names(loaded)).toEqual(["a", "real"]);
    expect(told(folder, loaded)).toEqual(["linked:1 LINK", "linked-file/SKILL.md:1 LINK"]);
  });

  test.skipIf(process.platform === "win32")("a pipe in the place of a file does not block", () => {
    const folder = folderWith({ "a/SKILL.md": plain("a"), "pipe/x": "" });
    execFileSync("mkfifo", [join(folder, "pipe/SKILL.md")]);
    const loaded = loadSkills(folder);
    expect(names(loaded)).toEqual(["a"]);
    expect(told(folder, loaded)).toEqual(["pipe/SKILL.md:1 UNREADABLE"]);
  });

  test.each(["../other.mjs", "/etc/passwd.js", "lib\\run.mjs", "linked.mjs", "missing.mjs", "folder.mjs"])(
    "an implementation at %s is refused",
    (module) => {
      const folder = folderWith({
        "a/SKILL.md": plain("a", `implementation: ${module}`),
        "a/folder.mjs/x": "",
        "other.mjs": "export const execute = 1",
      });
      symlinkSync(join(folder, "other.mjs"), join(folder, "a/linked.mjs"));
      expect(told(folder, loadSkills(folder))).toEqual(["a/SKILL.md:4 INVALID_IMPLEMENTATION"]);
    },
  );
});

describe("stages", () => {
  const files = {
    "a/SKILL.md": skillFile([
      "name: a",
      "description: >-",
      "  Does a",
      "  lot.",
      "when_to_use: Always.",
      "when_not_to_use: Never.",
    ]),
    "a/notes/deep.md": "deep",
    "a/run.py": "print()",
    "a/.secret": "x",
    "a/picture.png": new Uint8Array([0x89, 0x50, 0, 0xff]),
    "b/SKILL.md": plain("b"),
  };
  const first = (folder: string) => {
    const [skill] = loadSkills(folder).skills;
    if (!skill) throw new Error("nothing was loaded");
    return skill;
  };

  test("a line each, then the instructions, then the files", () => {
    const folder = folderWith(files);
    expect(catalogue(loadSkills(folder))).toBe(
      "- a: Does a lot. When to use: Always. When not to use: Never.\n- b: Does b.",
    );
    const skill = first(folder);
    expect(bodyOf(skill)).toBe("Do it well.");
    expect(resourcesOf(skill)).toEqual(["notes/deep.md", "picture.png", "run.py"]);
    expect(resourceOf(skill, "notes/deep.md")).toBe("deep");
    expect(resourceOf(skill, "./notes//deep.md")).toBe("deep");
  });

  test.each([
    "../b/SKILL.md",
    "notes/../../b/SKILL.md",
    "/etc/passwd",
    "",
    ".",
    "a\0b",
    "notes",
    "C:x",
    "..\\b",
    "link",
    "way/x",
  ])("the path %j leads to nothing", (path) => {
    const folder = folderWith(files);
    symlinkSync(join(folder, "b/SKILL.md"), join(folder, "a/link"));
    symlinkSync(join(folder, "b"), join(folder, "a/way"));
    expect(() => resourceOf(first(folder), path)).toThrow(expect.objectContaining({ type: "INVALID_RESOURCE" }));
  });

  test("a file that is no text is refused, with what there is", () => {
    const refusal = expect.objectContaining({
      message: "picture.png: it is no UTF-8 text",
      hint: "its files are: notes/deep.md, picture.png, run.py",
    });
    expect(() => resourceOf(first(folderWith(files)), "picture.png")).toThrow(refusal);
  });
});
