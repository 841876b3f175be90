import { Embeddings } from "@langchain/core/embeddings";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPORTED, TUNING } from "../../bench/skills-requests.ts";
import { chooseSkills } from "../../src/skills/choose.ts";
import { loadSkills } from "../../src/skills/load.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";
import { dataFolder } from "../support/trajectories.ts";

const FRUIT = [
  "apple",
  "pear",
  "plum",
  "cherry",
  "quince",
  "medlar",
  "fig",
  "grape",
  "olive",
  "mulberry",
  "walnut",
  "hazel",
];

/** A skill for each fruit, each with what is given for it. */
function fruits(
  count: number,
  special: Readonly<Record<string, { readonly lines?: readonly string[]; readonly body?: string }>> = {},
) {
  const files = FRUIT.slice(0, count).map((fruit) => {
    const { lines = [], body = `How to pick a ${fruit}.` } = special[fruit] ?? {};
    return [`${fruit}/SKILL.md`, skillFile([`name: ${fruit}`, `description: Picks a ${fruit}.`, ...lines], body)];
  });
  return loadSkills(folderWith(Object.fromEntries(files))).skills;
}
const names = (skills: readonly { readonly name: string }[]) => skills.map(({ name }) => name);

describe("few and many", () => {
  test("up to ten are all given, whatever is asked", async () => {
    expect(await chooseSkills(fruits(10), "a plum")).toHaveLength(10);
  });

  test("of more the best five, those that share no word left out", async () => {
    const skills = fruits(12);
    expect(names(await chooseSkills(skills, "which plum or fig?"))).toEqual(expect.arrayContaining(["plum", "fig"]));
    expect(await chooseSkills(skills, "which plum or fig?")).toHaveLength(2);
    expect(await chooseSkills(skills, "picks")).toHaveLength(5);
    expect(await chooseSkills(skills, "picks", { limit: 3 })).toHaveLength(3);
    expect(await chooseSkills(skills, "")).toEqual([]);
  });

  test("what the step does not allow goes first", async () => {
    const skills = fruits(12);
    expect(names(await chooseSkills(skills, "a plum", { allowed: ["pear", "fig"] }))).toEqual(["fig", "pear"]);
    const allButPlum = FRUIT.filter((fruit) => fruit !== "plum");
    expect(names(await chooseSkills(skills, "a plum or a fig", { allowed: allButPlum }))).toEqual(["fig"]);
  });
});

describe("ranking", () => {
  test("words in other forms, in any part", async () => {
    const skills = fruits(12, {
      fig: { lines: ["when_to_use: After somebody complained about wasps."] },
      plum: { body: "## Ladders\nMind the third step." },
      pear: { body: "Everybody is stung sooner or later." },
    });
    const first = async (request: string) => (await chooseSkills(skills, request))[0]?.name;
    expect(await first("a wasp!")).toBe("fig");
    expect(await first("LADDER")).toBe("plum");
    expect(await first("steps")).toBe("plum");
    expect(await first("getting stung")).toBe("pear");
  });

  test("a description counts for more than instructions", async () => {
    const skills = fruits(12, {
      fig: { body: "Sometimes there are wasps." },
      grape: { lines: ["when_to_use: Where there are wasps."] },
    });
    expect(names(await chooseSkills(skills, "wasps"))).toEqual(["grape", "fig"]);
  });

  test("a comment in code is no heading", async () => {
    const skills = fruits(12, {
      fig: { body: "```sh\n# wasps\n```\nls\n" },
      olive: { body: "# Wasps\n```sh\nls\n```\n" },
    });
    expect(names(await chooseSkills(skills, "wasps"))).toEqual(["olive", "fig"]);
  });
});

/** Knows of each text only whether it is about something sour. */
class Sourness extends Embeddings {
  embedded = 0;

  constructor() {
    super({});
  }

  override embedDocuments(texts: string[]) {
    this.embedded += texts.length;
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }

  override embedQuery(text: string) {
    return Promise.resolve(/lemon|quince|cherry|sour/i.test(text) ? [1, 0.1] : [0.1, 1]);
  }
}

test("with embeddings, what is meant counts as well; each skill is embedded once", async () => {
  const skills = fruits(12);
  const embeddings = new Sourness();
  const chosen = names(await chooseSkills(skills, "a lemon, or a plum", { embeddings, limit: 3 }));
  expect(chosen.toSorted()).toEqual(["cherry", "plum", "quince"]);
  await chooseSkills(skills, "something sour", { embeddings });
  expect(embeddings.embedded).toBe(12);
});

const folder = join(dataFolder, "skills");
const isMissing = !existsSync(folder);
const title = isMissing
  ? `recorded skills (skipped: ${folder} not found; set STATECARD_DATA to the folder of recorded data)`
  : "recorded skills";

describe.skipIf(isMissing)(title, () => {
  const { skills } = isMissing ? { skills: [] } : loadSkills(folder);
  const inARow = (text: string) => {
    const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
    return words.slice(2).map((word, position) => `${words[position]} ${words[position + 1]} ${word}`);
  };

  test("30 requests to tune and 30 to report, about skills that are there, and about different ones", () => {
    const named = [TUNING, REPORTED].map((requests) => new Set(requests.map(({ skill }) => skill)));
    expect([TUNING.length, REPORTED.length]).toEqual([30, 30]);
    expect(new Set([...(named[0] ?? []), ...(named[1] ?? [])]).size).toBe(36);
    for (const { skill } of [...TUNING, ...REPORTED]) expect(names(skills)).toContain(skill);
  });

  test("no request has three words in a row of its skill's description", () => {
    for (const { skill, text } of [...TUNING, ...REPORTED]) {
      const description = inARow(skills.find(({ name }) => name === skill)?.description ?? "");
      expect(inARow(text).filter((words) => description.includes(words))).toEqual([]);
    }
  });

  test("the right one is among five for at least 95 % of the reported requests", async () => {
    const missed: string[] = [];
    for (const { skill, text } of REPORTED) {
      if (!names(await chooseSkills(skills, text)).includes(skill)) missed.push(text);
    }
    expect(missed.length / REPORTED.length).toBeLessThanOrEqual(0.05);
  });
});
