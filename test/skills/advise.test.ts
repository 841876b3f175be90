import { describe, expect, test } from "vitest";
import { adviseOnSkills } from "../../src/skills/advise.ts";
import { loadSkills } from "../../src/skills/load.ts";
import { folderWith, skillFile } from "../support/skill-folders.ts";

/** The advice on skills with these front matters, beside their names. */
function adviceOn(skills: Readonly<Record<string, readonly string[]>>) {
  const files = Object.entries(skills).map(([name, lines]) => [
    `${name}/SKILL.md`,
    skillFile([`name: ${name}`, ...lines]),
  ]);
  const found = adviseOnSkills(loadSkills(folderWith(Object.fromEntries(files))));
  return found.map(({ severity, code, message }) => `${severity} ${code} ${message}`);
}

describe("descriptions that can be confused", () => {
  test("the same words in other forms and another order", () => {
    const [advice, ...more] = adviceOn({
      "find-errors": ["description: Finds errors in log files, not in code."],
      "search-logs": ["description: Searching a log file for an error. Not for code."],
    });
    expect(more).toEqual([]);
    expect(advice).toContain("advice CONFUSABLE search-logs can be confused with find-errors: 80 % of the words");
    expect(advice).toContain("(logs, file, error, code)");
  });

  test("a few common words do not confuse", () => {
    expect(
      adviceOn({
        "find-errors": ["description: Finds errors in the log of a service, not in code."],
        "write-letter": ["description: Writes the letter to a customer of a service, not to a colleague."],
      }),
    ).toEqual([]);
  });
});

describe("when not to use it", () => {
  test("is missed where nothing says it", () => {
    expect(adviceOn({ a: ["description: Finds errors."] })).toEqual([
      "advice NO_LIMITS a does not say when not to use it; say so in the description, or in when_not_to_use",
    ]);
  });

  test.each([
    ["description: Finds errors. Don't use it for code."],
    ["description: Only for logs."],
    ["description: Finds errors.\nwhen_to_use: After a crash, unless it was planned."],
    ["description: Finds errors.\nwhen_not_to_use: For code."],
  ])("%j says it", (lines) => {
    expect(adviceOn({ a: [lines] })).toEqual([]);
  });
});
