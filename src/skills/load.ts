import { readdirSync, statSync, type Dirent } from "node:fs";
import { join, resolve } from "node:path";
import { faultOfPath, readTextFile } from "./files.ts";
import { parseSkill } from "./parse.ts";
import type { Skill, SkillProblem, SkillProblemCode } from "./skill.ts";

/** What was found in folders of skills. */
export interface LoadedSkills {
  /** Those without an error, in the order of folders and names. */
  readonly skills: readonly Skill[];
  readonly problems: readonly SkillProblem[];
}

/** A scan: what was found, and the folders that it depends on. */
export interface Scan extends LoadedSkills {
  readonly folders: readonly string[];
}

/** Folders deeper than this are not looked into. */
const MAX_DEPTH = 12;
const NOT_LOOKED_INTO: ReadonlySet<string> = new Set(["node_modules", ".git"]);
const SKILL_FILES = ["SKILL.md", "skill.md"];

/**
 * Loads every skill in a folder or several: each folder with a SKILL.md is one, however deep, and is not
 * looked into for more. What is broken is reported and left out, the rest loads. Of two skills with one name
 * the first counts, so put the folders that win first. Nothing of a skill is run.
 *
 * @example
 * const { skills, problems } = loadSkills("skills");
 * for (const { file, line, message } of problems) console.warn(`${file}:${line} ${message}`);
 */
export function loadSkills(folders: string | readonly string[]): LoadedSkills {
  const { skills, problems } = scanSkills(folders);
  return { skills, problems };
}

/** `loadSkills`, with the folders to watch for changes. */
export function scanSkills(folders: string | readonly string[]): Scan {
  const scan = { skills: [] as Skill[], problems: [] as SkillProblem[], folders: [] as string[] };
  for (const folder of [folders].flat()) {
    const root = rootOf(folder);
    if (root === null) scan.problems.push(problem(resolve(folder), "MISSING_FOLDER", "there is no such folder"));
    else look(root, 0, scan);
  }
  return scan;
}

interface Growing {
  readonly skills: Skill[];
  readonly problems: SkillProblem[];
  readonly folders: string[];
}

/** The folder that a caller names may be reached by links; only inside it none is followed. */
function rootOf(folder: string): string | null {
  try {
    const root = resolve(folder);
    return statSync(root).isDirectory() ? root : null;
  } catch {
    return null;
  }
}

function look(folder: string, depth: number, scan: Growing): void {
  if (scan.folders.includes(folder)) return;
  scan.folders.push(folder);
  const entries = entriesOf(folder, scan);
  const file = SKILL_FILES.find((name) => entries.some((entry) => entry.name === name && !entry.isDirectory()));
  if (file !== undefined) return add(join(folder, file), scan);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink() && leadsToFolder(path)) {
      scan.problems.push(problem(path, "LINK", "it is a link, and links are not followed; name its target too"));
    }
    if (entry.isDirectory() && depth < MAX_DEPTH && !NOT_LOOKED_INTO.has(entry.name)) look(path, depth + 1, scan);
  }
}

function entriesOf(folder: string, scan: Growing): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    scan.problems.push(problem(folder, "UNREADABLE", said));
    return [];
  }
}

function leadsToFolder(link: string): boolean {
  try {
    return statSync(link).isDirectory();
  } catch {
    return false;
  }
}

function add(file: string, scan: Growing): void {
  const read = readTextFile(file);
  if (!read.ok) {
    scan.problems.push(problem(file, read.fault.code, read.fault.message));
    return;
  }
  const folder = join(file, "..");
  const { skill, problems } = parseSkill(read.text, file, (module) => faultOfPath(folder, module));
  scan.problems.push(...problems);
  if (skill === null) return;
  const first = scan.skills.find(({ name }) => name === skill.name);
  if (first) scan.problems.push(problem(file, "DUPLICATE_NAME", `"${skill.name}" is taken by ${first.file}`));
  else scan.skills.push(skill);
}

function problem(file: string, code: SkillProblemCode, message: string): SkillProblem {
  return { file, line: 1, severity: "error", code, message };
}
