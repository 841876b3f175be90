import { readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { batchTaskId, readLines, type BatchLine, type BatchLines } from "../batch/lines.ts";
import type { Policy } from "../view/options.ts";
import { usage } from "./exit.ts";
import { printable } from "./terminal.ts";

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

/** @throws USAGE where there is no such file, or no line in it. */
export function openBatch(file: string): OpenBatch {
  const read = readLines(readTasks(file));
  if (read.lines.length + read.broken.length === 0) {
    throw usage(
      `${printable(file)} has no tasks; write one a line: {"id": "a", "message": "…", "input": {"field": 1}}`,
    );
  }
  const name = basename(file, extname(file));
  return { ...read, file, taskId: (workflow, line, policy) => batchTaskId(name, workflow, line, policy) };
}
