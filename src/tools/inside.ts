import { readlinkSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";

/** A chain of links longer than this leads nowhere. */
const MAX_LINKS = 40;

/** Whether a path, taken from the first folder, stays within one of the folders, links included. */
export function isInside(folders: readonly string[], path: string): boolean {
  const base = folders[0];
  if (base === undefined) return false;
  const roots = folders.map((folder) => follow(resolve(folder)));
  // A tool may tidy a path up before it opens it, or leave that to the system, where `link/..` is what is
  // above the link's target; backslashes may be separators. It has to be inside in every reading.
  const readings = [path, path.replaceAll("\\", "/")].flatMap((text) => [from(base, text), resolve(base, text)]);
  return readings.every((reading) => roots.some((root) => isWithin(root, follow(reading))));
}

function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Joins without tidying up: what `..` leads to depends on the links before it. */
function from(folder: string, path: string): string {
  return isAbsolute(path) ? path : folder + sep + path;
}

/** Where an absolute path leads, part by part as the system does it. What does not exist leads to itself. */
function follow(path: string, links = 0): string {
  if (links > MAX_LINKS) throw new Error(`${path} is a circle of links`);
  let at = parse(path).root;
  for (const part of path.slice(at.length).split(sep)) {
    if (part === "" || part === ".") continue;
    at = part === ".." ? dirname(at) : target(join(at, part), links);
  }
  return at;
}

function target(path: string, links: number): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  try {
    // A link to what does not exist yet: writing through it makes its target.
    return follow(from(dirname(path), readlinkSync(path)), links + 1);
  } catch (error) {
    if (isMissing(error)) return path;
    throw error;
  }
}

/** Nothing is there, or it is no link. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && ["ENOENT", "ENOTDIR", "EINVAL"].includes(String(error.code));
}
