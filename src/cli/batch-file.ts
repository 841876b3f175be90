import { readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { batchTaskId, readLines, type BatchLine, type BatchLines, type BrokenLine } from "../batch/lines.ts";
import type { Policy } from "../view/options.ts";
import { usage } from "./exit.ts";
import { count, printable } from "./terminal.ts";

/** A file of tasks, read. */
export interface OpenBatch extends BatchLines {
  readonly file: string;
  /** The id of a line's task in the store. */
  readonly taskId: (workflow: string, line: BatchLine, policy?: Policy) => string;
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  EISDIR: "is a folder, not a file",
  EACCES: "may not be read",
};

/**
 * The text of a file of tasks.
 *
 * @throws USAGE where it cannot be read.
 */
export function readTasks(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw usage(`${printable(file)} ${UNREADABLE[code ?? ""] ?? `cannot be read: ${printable(message)}`}`);
  }
}

/** Of more broken lines, only the first are told. */
const TOLD = 10;

/** The lines that are no tasks, each with its reason; of many the first ten, and how many more there are. */
export function toldBroken(broken: readonly BrokenLine[]): readonly string[] {
  const told = broken.slice(0, TOLD).map(({ line, reason }) => `line ${line}: ${printable(reason)}`);
  const more = broken.length - told.length;
  return more > 0 ? [...told, `and ${count(more)} more`] : told;
}

/** Which lines of a file are left out, said before the others run; why is for the report. */
export function leftOut(broken: readonly BrokenLine[]): string {
  const told = broken.slice(0, TOLD).map(({ line }) => line);
  const more = broken.length - told.length;
  const numbers = `${told.join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
  const what = broken.length === 1 ? `line ${numbers} is no task and is` : `lines ${numbers} are no tasks and are`;
  return `${what} left out; the report says why`;
}

/** @throws USAGE where there is no such file, or no line of it is a task. */
export function openBatch(file: string): OpenBatch {
  const read = readLines(readTasks(file));
  if (read.lines.length + read.broken.length === 0) {
    throw usage(
      `${printable(file)} has no tasks; write one a line: {"id": "a", "message": "…", "input": {"field": 1}}`,
    );
  }
  if (read.lines.length === 0) {
    throw usage([`no line of ${printable(file)} is a task`, ...toldBroken(read.broken)].join("\n  "));
  }
  const name = basename(file, extname(file));
  return { ...read, file, taskId: (workflow, line, policy) => batchTaskId(name, workflow, line, policy) };
}
