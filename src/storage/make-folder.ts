import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** One level at a time: Node's recursive mkdir never returns below /proc. */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process may have been faster.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
