import { statSync } from "node:fs";
import { resolve } from "node:path";

/** SQLite's own files beside a database. */
const BESIDE = ["", "-wal", "-shm", "-journal"];

// By its absolute path, how often each is open.
const open = new Map<string, number>();

export function databaseOpened(file: string): void {
  const path = resolve(file);
  open.set(path, (open.get(path) ?? 0) + 1);
}

export function databaseClosed(file: string): void {
  const path = resolve(file);
  const left = (open.get(path) ?? 0) - 1;
  if (left > 0) open.set(path, left);
  else open.delete(path);
}

/**
 * Whether a path is an SQLite database that this process has open, or a file of SQLite's beside it, by whatever
 * name or link. Nobody else in the process may even read one: on POSIX, closing any handle of a file drops all
 * locks that the process has on it, SQLite's too, and the next process that writes damages the database.
 *
 * @see https://www.sqlite.org/howtocorrupt.html section 2.2
 */
export function isOpenDatabase(path: string): boolean {
  if (open.size === 0) return false;
  const found = identityOf(path);
  if (found === null) return false;
  return [...open.keys()].some((file) => BESIDE.some((end) => identityOf(file + end) === found));
}

/** What a path leads to, whatever its name; null where it leads to nothing that could be opened. */
function identityOf(path: string): string | null {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}
