import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { watchSkills, type SkillsChange } from "../../src/skills/watch.ts";
import { folderWith, skillFile, writeFiles } from "../support/skill-folders.ts";

const text = (name: string, description = `Does ${name}.`) =>
  skillFile([`name: ${name}`, `description: ${description}`]);
const files = { "skills/a/SKILL.md": text("a"), "skills/b/SKILL.md": text("b") };

/** Watches the folder `skills` of a folder with these files. */
function watching(given: Readonly<Record<string, string>> = files) {
  const folder = folderWith(given);
  const changes: SkillsChange[] = [];
  const watched = watchSkills(join(folder, "skills"), (change) => changes.push(change), { delayMs: 20 });
  onTestFinished(watched.close);
  return {
    folder,
    changes,
    watched,
    write: (more: Readonly<Record<string, string>>) => writeFiles(folder, more),
    names: () => watched.skills.map(({ name }) => name).toSorted(),
    described: (name: string) => watched.skills.find((skill) => skill.name === name)?.description,
  };
}
const until = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 20 });

test("a folder that is dropped in is there, changed it is changed, taken out it is gone", async () => {
  const { write, names, described, watched, changes, folder } = watching();
  const [, b] = watched.skills;
  write({ "skills/deep/er/c/SKILL.md": text("c") });
  await until(() => expect(names()).toEqual(["a", "b", "c"]));
  write({ "skills/deep/er/c/SKILL.md": text("c", "Does it better.") });
  await until(() => expect(described("c")).toBe("Does it better."));
  rmSync(join(folder, "skills/a"), { recursive: true });
  await until(() => expect(names()).toEqual(["b", "c"]));
  expect(watched.skills).toContain(b);
  const all = (part: "added" | "changed" | "removed") => [...new Set(changes.flatMap((change) => change[part]))];
  expect([all("added"), all("removed")]).toEqual([["c"], ["a"]]);
  expect(all("changed")).toEqual(["c"]);
});

test("one that becomes broken keeps its last good version, is reported, and recovers", async () => {
  const { write, described, watched, changes } = watching();
  write({ "skills/a/SKILL.md": skillFile(["name: a", "description: x: y"]) });
  await until(() => expect(watched.problems).toMatchObject([{ line: 3, code: "INVALID_YAML" }]));
  expect(described("a")).toBe("Does a.");
  expect(changes.at(-1)).toMatchObject({ kept: ["a"], removed: [] });
  write({ "skills/a/SKILL.md": text("a", "Does a again.") });
  await until(() => expect(described("a")).toBe("Does a again."));
  expect(watched.problems).toEqual([]);
});

test("one that is broken from the start is not there until it is mended", async () => {
  const { write, names, watched } = watching({ "skills/a/SKILL.md": "nothing" });
  expect(watched.problems).toMatchObject([{ code: "NO_FRONT_MATTER" }]);
  expect(names()).toEqual([]);
  write({ "skills/a/SKILL.md": text("a") });
  await until(() => expect(names()).toEqual(["a"]));
});

test("a folder that is replaced by another is followed", async () => {
  const { write, described, folder } = watching();
  write({ "new/SKILL.md": text("a", "Does it anew.") });
  renameSync(join(folder, "skills/a"), join(folder, "old"));
  renameSync(join(folder, "new"), join(folder, "skills/a"));
  await until(() => expect(described("a")).toBe("Does it anew."));
  write({ "skills/a/SKILL.md": text("a", "Does it once more.") });
  await until(() => expect(described("a")).toBe("Does it once more."));
});

test("a link to the folder may be led elsewhere", async () => {
  const folder = folderWith({ "one/a/SKILL.md": text("a"), "two/a/SKILL.md": text("a", "Does it elsewhere.") });
  const link = (target: string) => {
    symlinkSync(join(folder, target), join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "now"));
  };
  link("one");
  const watched = watchSkills(join(folder, "now"), () => {}, { delayMs: 20 });
  onTestFinished(watched.close);
  expect(watched.skills).toMatchObject([{ description: "Does a." }]);
  link("two");
  await until(() => expect(watched.skills).toMatchObject([{ description: "Does it elsewhere." }]));
  writeFiles(folder, { "two/a/SKILL.md": text("a", "Changed there.") });
  await until(() => expect(watched.skills).toMatchObject([{ description: "Changed there." }]));
});

test("one that is replaced by a link keeps its last good version", async () => {
  const { watched, names, folder } = watching();
  renameSync(join(folder, "skills/a"), join(folder, "away"));
  symlinkSync(join(folder, "away"), join(folder, "skills/a"));
  await until(() => expect(watched.problems).toMatchObject([{ code: "LINK" }]));
  expect(names()).toEqual(["a", "b"]);
});

test("a folder that is not there yet is waited for; while it is away the skills stay", async () => {
  const { write, names, watched, folder } = watching({ "other.txt": "" });
  expect(watched.problems).toMatchObject([{ code: "MISSING_FOLDER" }]);
  mkdirSync(join(folder, "skills"));
  write({ "skills/a/SKILL.md": text("a") });
  await until(() => expect(names()).toEqual(["a"]));
  renameSync(join(folder, "skills"), join(folder, "away"));
  await until(() => expect(watched.problems).toMatchObject([{ code: "MISSING_FOLDER" }]));
  expect(names()).toEqual(["a"]);
  write({ "skills/b/SKILL.md": text("b") });
  await until(() => expect(names()).toEqual(["b"]));
});

test("what changes no skill tells nobody, and after the end nothing does", async () => {
  const { write, names, changes, watched, folder } = watching();
  const before = watched.skills;
  write({ "skills/a/notes.md": "a note", "skills/a/SKILL.md": text("a") });
  write({ "skills/c/SKILL.md": text("c") });
  await until(() => expect(names()).toEqual(["a", "b", "c"]));
  expect(watched.skills.slice(0, 2)).toEqual(before);
  const told = changes.length;
  expect(changes.flatMap(({ changed }) => changed).filter((name) => name !== "c")).toEqual([]);
  watched.close();
  const other = watchSkills(join(folder, "skills"), () => {}, { delayMs: 20 });
  onTestFinished(other.close);
  write({ "skills/d/SKILL.md": text("d") });
  await until(() => expect(other.skills).toHaveLength(4));
  expect(names()).toEqual(["a", "b", "c"]);
  expect(changes).toHaveLength(told);
});
