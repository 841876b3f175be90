import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { readDeclaration, type ModuleCheck } from "./declaration.ts";
import { readFrontMatter } from "./front-matter.ts";
import type { Skill, SkillProblem } from "./skill.ts";

/** A skill as far as its file goes; null where something in it is an error. */
export interface ParsedSkill {
  readonly skill: Skill | null;
  readonly problems: readonly SkillProblem[];
}

/**
 * Reads the text of a SKILL.md. Pure.
 *
 * @param file its absolute path; its folder's name has to be the skill's.
 * @param checkModule looks at the implementation that the file names.
 */
export function parseSkill(text: string, file: string, checkModule: ModuleCheck): ParsedSkill {
  const folder = dirname(file);
  const split = readFrontMatter(text);
  if (!split.ok) return { skill: null, problems: [{ file, severity: "error", ...split.fault }] };
  const { frontMatter, body } = split;
  const { declaration, found } = readDeclaration(frontMatter, basename(folder), checkModule);
  const problems: SkillProblem[] = found.map((one) => ({ file, ...one }));
  if (body.trim() === "" && (declaration.implementation ?? declaration.workflow) === null) {
    const message = "there are no instructions after the front matter";
    problems.push({ file, line: frontMatter.lineOf(), severity: "warning", code: "EMPTY_BODY", message });
  }
  const isWhole = problems.every(({ severity }) => severity !== "error");
  const digest = createHash("sha256").update(text).digest("base64url").slice(0, 22);
  return { skill: isWhole ? { ...declaration, folder, file, body, digest } : null, problems };
}
