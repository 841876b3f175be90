import { loadSkills } from "statecard";
import { describe, expect, test } from "vitest";
import { listing, type ListingRequest } from "../../src/skills/listing.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";

const skill = (name: string, description: string, group?: string): [string, string] => [
  `${name}/SKILL.md`,
  skillFile([`name: ${name}`, `description: ${description}`, ...(group === undefined ? [] : [`group: ${group}`])]),
];
const many = (count: number, group?: string) =>
  Array.from({ length: count }, (_, index) =>
    skill(`${group ?? "alone"}-${String(index).padStart(2, "0")}`, `Work ${index} of ${group ?? "none"}.`, group),
  );

function list(files: readonly (readonly [string, string])[], asked: ListingRequest = {}, open?: readonly string[]) {
  const { skills, problems } = loadSkills(folderWith(Object.fromEntries(files)));
  expect(problems).toEqual([]);
  return listing(skills, open ? skills.filter(({ name }) => open.includes(name)) : skills, asked, undefined);
}

const files = [
  ...many(8, "logs"),
  ...many(6, "mail"),
  skill("mail", "All about mail, not letters."),
  skill("letters", "Writes letters."),
];

describe("many skills", () => {
  test("are listed by their groups, each with one entry: its own skill, or its members", async () => {
    expect(await list(files)).toBe(
      [
        "16 skills; say in group which to open, or in request what you want to do.",
        "- logs (group of 8): logs-00, logs-01, logs-02, logs-03, logs-04, logs-05, logs-06, logs-07",
        "- mail (group of 7): All about mail, not letters.",
        "- letters: Writes letters.",
      ].join("\n"),
    );
  });

  test("of a group are listed where it is opened, its own one among them", async () => {
    const opened = await list(files, { group: "mail" });
    expect(opened.split("\n")).toHaveLength(7);
    expect(opened).toContain("- mail: All about mail, not letters.");
    expect(opened).not.toContain("logs");
  });

  test("in no group are named only, where they are many", async () => {
    const listed = await list([...files, ...many(12)]);
    expect(listed).toMatch(/\nin no group: alone-00, alone-01, .*letters$/);
  });

  test("of a large group are chosen by a request, within it", async () => {
    const all = [...many(12, "logs"), ...many(3, "mail")];
    expect(await list(all, { group: "logs" })).toMatch(/^12 skills; say in request/);
    expect(await list(all, { group: "logs", request: "number 07" })).toMatch(/^- logs-07: /);
    expect(await list(all, { group: "logs", request: "mail" })).toMatch(/^none of 12 skills fits/);
  });
});

test("few are all listed, whatever their groups are", async () => {
  expect(await list(many(10, "logs"))).not.toContain("group");
});

test("only groups of skills that may be used now are there", async () => {
  const open = files.map(([file]) => file.split("/")[0] ?? "").filter((name) => !name.startsWith("logs"));
  await expect(list(files, { group: "logs" }, open)).rejects.toMatchObject({
    type: "UNKNOWN_GROUP",
    hint: "there are: mail",
  });
});

test("a group is written like a skill's name", () => {
  const { problems } = loadSkills(folderWith(Object.fromEntries([skill("one", "Does one, not two.", "All Logs")])));
  expect(problems).toMatchObject([{ code: "INVALID_VALUE", line: 4 }]);
});
