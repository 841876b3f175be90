import { readdirSync } from "node:fs";
import { join } from "node:path";
import { shorten } from "../internal/json.ts";
import { ToolError } from "../tools/tool-error.ts";
import { faultOfPath, readTextFile } from "./files.ts";
import { skillsOf, type Skill, type SkillSource } from "./skill.ts";

/** How long a line of a list may be. */
export const LINE_CHARACTERS = 400;
/** How many of its files a skill names, and how deep they may lie. */
const MAX_RESOURCES = 100;
const MAX_DEPTH = 6;

/** The first stage: a line for each skill, from which one is chosen. Pure. */
export function catalogue(source: SkillSource): string {
  return skillsOf(source).map(catalogueLine).join("\n");
}

/** A skill in one line: its name, what it does, when to use it and when not. Pure. */
function catalogueLine(skill: Skill): string {
  return `- ${skill.name}: ${shorten(usageOf(skill), LINE_CHARACTERS)}`;
}

/** What a skill does, when to use it and when not, on one line. Pure. */
export function usageOf({ description, whenToUse, whenNotToUse }: Skill): string {
  const parts = [
    description,
    whenToUse === null ? null : `When to use: ${whenToUse}`,
    whenNotToUse === null ? null : `When not to use: ${whenNotToUse}`,
  ];
  return parts
    .flatMap((part) => part ?? [])
    .join(" ")
    .replaceAll(/\s+/g, " ");
}

/** The second stage: a skill's instructions. Pure. */
export function bodyOf(skill: Skill): string {
  return skill.body.trim();
}

/** The files beside the instructions, by their paths in the skill's folder; hidden ones and links left out. */
export function resourcesOf({ folder, file }: Skill): readonly string[] {
  const found: string[] = [];
  const look = (path: string, depth: number): void => {
    for (const entry of entriesOf(join(folder, path))) {
      if (found.length >= MAX_RESOURCES) return;
      const inside = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.name.startsWith(".") || entry.name === "node_modules" || join(folder, inside) === file) continue;
      if (entry.isFile()) found.push(inside);
      else if (entry.isDirectory() && depth < MAX_DEPTH) look(inside, depth + 1);
    }
  };
  look("", 0);
  return found;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    // What cannot be listed, or has gone since, is not offered.
    return [];
  }
}

/**
 * The third stage: a file that a skill's instructions name. It has to be a text inside the skill's folder;
 * links are refused.
 *
 * @throws a ToolError that says why not, since paths come from a model.
 */
export function resourceOf(skill: Skill, path: string): string {
  const fault = faultOfPath(skill.folder, path);
  if (fault !== null) throw refused(skill, fault);
  const read = readTextFile(join(skill.folder, path));
  if (!read.ok) throw refused(skill, `${path}: ${read.fault.message}`);
  return read.text;
}

function refused(skill: Skill, message: string): ToolError {
  const there = resourcesOf(skill).join(", ");
  const hint = there === "" ? `${skill.name} has no files beside its instructions` : `its files are: ${there}`;
  return new ToolError(message, { type: "INVALID_RESOURCE", hint: shorten(hint, 1000) });
}
