import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { SkillContext } from "statecard";

/** What the skills of the code agent use of their context. */
export type CodeContext = Pick<SkillContext, "clients">;

/** A line of a file. */
interface CodeLine {
  /** `path:line`. */
  readonly place: string;
  readonly number: number;
  readonly text: string;
}

/** What a skill has shown. */
export interface Shown {
  /** What was asked for, in words. */
  readonly asked: string;
  readonly found: number;
  readonly lines: readonly CodeLine[];
}

/** The project of this example, of our own making. */
const BUNDLED = fileURLToPath(new URL("./project/", import.meta.url));
const CODE = /\.(?:c|h|md|ts|js|py)$/;
/** What is hidden or installed is not the project's code. */
const NOT_LISTED = /(?:^|\/)(?:\.|node_modules\/)/;
const MAX_LINE = 160;

/** The project's folder: the bundled one, or another as the client `codeFolder`. */
function folderOf({ codeFolder }: CodeContext["clients"]): string {
  return typeof codeFolder === "string" ? codeFolder : BUNDLED;
}

/** The files of the project that can be read, by their paths in it; links are none of them. */
export function filesOf(clients: CodeContext["clients"]): readonly string[] {
  const folder = folderOf(clients);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && CODE.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !NOT_LISTED.test(path))
    .toSorted();
}

/** The lines of a file that `filesOf` lists. */
export function linesOf(clients: CodeContext["clients"], path: string): readonly CodeLine[] {
  const text = readFileSync(join(folderOf(clients), path), "utf8");
  return text
    .split(/\r?\n/)
    .map((line, index) => ({ place: `${path}:${index + 1}`, number: index + 1, text: line.trim().slice(0, MAX_LINE) }))
    .filter((line) => line.text !== "");
}
