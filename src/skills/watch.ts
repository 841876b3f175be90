import { existsSync, lstatSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { FolderWatchers } from "./folder-watchers.ts";
import { scanSkills, type LoadedSkills } from "./load.ts";
import type { Skill, SkillProblem } from "./skill.ts";

/** What a change of the folders led to. */
export interface SkillsChange extends LoadedSkills {
  /** The names of skills that are there now and were not before. */
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** Skills that have become broken: their last good version still counts. */
  readonly kept: readonly string[];
}

/** Skills that follow their folders. */
export interface SkillsWatch extends LoadedSkills {
  /** Stops watching; the skills stay as they are. */
  readonly close: () => void;
}

export interface WatchOptions {
  /** How long after the first sign of a change everything is looked at again, in milliseconds; 100 unless set. */
  readonly delayMs?: number;
}

const DEFAULT_DELAY_MS = 100;
/** Folders that keep changing while they are looked at are looked at again after the next sign. */
const MAX_ROUNDS = 5;

/**
 * Loads skills and loads them anew whenever something in their folders changes. The system's signs only say
 * when to look: what counts is a fresh look at everything. A skill that becomes broken keeps its last good
 * version and is among the problems. Skills that have not changed stay the same objects. A watch keeps the
 * process alive until it is closed.
 *
 * @param onChange is called after a change of skills or problems, not for the first load.
 * @example
 * const watched = watchSkills("skills", ({ problems }) => problems.forEach(report));
 * defineWorkflow({ tools: skillTools(watched), … });
 */
export function watchSkills(
  folders: string | readonly string[],
  onChange: (change: SkillsChange) => void,
  { delayMs = DEFAULT_DELAY_MS }: WatchOptions = {},
): SkillsWatch {
  const roots = [folders].flat();
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;
  // Not begun anew by each sign: a file that is written all the time would put the look off for ever.
  const watchers = new FolderWatchers(() => {
    if (!isClosed) timer ??= setTimeout(look, delayMs);
  });
  /** Looks until every folder that was found was being watched before the look. */
  const follow = (): LoadedSkills => {
    let scan = scanSkills(roots);
    for (let round = 0; round < MAX_ROUNDS && watchers.watchOnly([...scan.folders, ...aroundRoots(roots)]); round++) {
      scan = scanSkills(roots);
    }
    return { skills: scan.skills, problems: [...scan.problems, ...[...watchers.blind].map(unwatched)] };
  };
  const look = () => {
    timer = null;
    const before = now;
    const next = settle(before, follow());
    if (isSame(before, next)) return;
    now = next;
    onChange(changeOf(before, next));
  };

  let now: LoadedSkills = settle({ skills: [], problems: [] }, follow());
  return {
    get skills() {
      return now.skills;
    },
    get problems() {
      return now.problems;
    },
    close() {
      isClosed = true;
      if (timer) clearTimeout(timer);
      watchers.close();
    },
  };
}

/** Where a root that is not there would appear, and where one that is a link would be led elsewhere. */
function aroundRoots(roots: readonly string[]): readonly string[] {
  return roots.flatMap((root) => {
    let at = resolve(root);
    if (isLink(at)) return [dirname(at)];
    if (existsSync(at)) return [];
    while (!existsSync(at)) at = dirname(at);
    return [at];
  });
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function unwatched([folder, message]: readonly [string, string]): SkillProblem {
  const told = `its changes will not be noticed: ${message}`;
  return { file: folder, line: 1, severity: "warning", code: "UNREADABLE", message: told };
}

/** What counts after a look: skills that are as before stay the same objects, broken ones their last version. */
function settle(before: LoadedSkills, { skills, problems }: LoadedSkills): LoadedSkills {
  const same = (skill: Skill) => before.skills.find((one) => one.file === skill.file && one.digest === skill.digest);
  const isBroken = brokenBy(problems);
  const isTaken = ({ name, file }: Skill) => skills.some((skill) => skill.name === name || skill.file === file);
  const kept = before.skills.filter((skill) => isBroken(skill) && !isTaken(skill));
  return { skills: [...skills.map((skill) => same(skill) ?? skill), ...kept], problems };
}

/** Whether an error is about a skill's file, or a folder that it is in. */
function brokenBy(problems: readonly SkillProblem[]): (skill: Skill) => boolean {
  const errors = problems.filter(({ severity }) => severity === "error");
  return ({ file }) => errors.some((error) => file === error.file || file.startsWith(error.file + sep));
}

function isSame(before: LoadedSkills, next: LoadedSkills): boolean {
  const isSameList =
    before.skills.length === next.skills.length && next.skills.every((skill) => before.skills.includes(skill));
  return isSameList && JSON.stringify(before.problems) === JSON.stringify(next.problems);
}

function changeOf(before: LoadedSkills, next: LoadedSkills): SkillsChange {
  const named = (list: readonly Skill[], name: string) => list.find((skill) => skill.name === name);
  const names = (list: readonly Skill[]) => list.map(({ name }) => name);
  const isBroken = brokenBy(next.problems);
  return {
    ...next,
    added: names(next.skills.filter(({ name }) => !named(before.skills, name))),
    changed: names(next.skills.filter((skill) => ![undefined, skill].includes(named(before.skills, skill.name)))),
    removed: names(before.skills.filter(({ name }) => !named(next.skills, name))),
    kept: names(next.skills.filter((skill) => before.skills.includes(skill) && isBroken(skill))),
  };
}
