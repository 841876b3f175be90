import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { WorkflowError } from "../../errors.ts";
import { makeFolder } from "../make-folder.ts";
import { artifactFile, isArtifactFile } from "./artifact-files.ts";
import { headOf, logLines, parseStateFile, stateFile, type StateFile } from "./format.ts";
import type { TaskWithLog } from "./read-task.ts";

const STATE = "state.json";
const LOG = "events.log";
const ARTIFACTS = "artifacts";

/**
 * Writes a task as a folder. It is written beside its place and then renamed, so that a kill leaves no
 * half export. An earlier export of the same task is replaced; anything else in the way is refused.
 *
 * @param key signs every entry and the state, where there is one.
 * @throws USAGE where the folder holds something else or cannot be made.
 */
export function writeExport(folder: string, exported: TaskWithLog, key: string | undefined): StateFile {
  const { taskId, task, child, events, artifacts } = exported;
  // Where the folder is a link, what it points to is meant.
  const place = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  const replaces = isInTheWay(folder, place, taskId);
  const lines = logLines(events, key);
  const file = stateFile(taskId, task, child, headOf(lines), key);
  const suffix = randomBytes(4).toString("hex");
  const fresh = `${place}.new-${suffix}`;
  try {
    makeFolder(dirname(place));
    mkdirSync(fresh);
    mkdirSync(join(fresh, ARTIFACTS));
    for (const artifact of artifacts) writeFileSync(join(fresh, ARTIFACTS, artifactFile(artifact)), artifact.text);
    writeFileSync(join(fresh, LOG), lines.map((line) => `${line}\n`).join(""));
    writeFileSync(join(fresh, STATE), `${JSON.stringify(file, null, 2)}\n`);
    const old = `${place}.old-${suffix}`;
    if (replaces) renameSync(place, old);
    renameSync(fresh, place);
    if (replaces) rmSync(old, { recursive: true });
  } catch (error) {
    // Below a file, even removing what is not there fails.
    if (existsSync(fresh)) rmSync(fresh, { recursive: true, force: true });
    const said = error instanceof Error ? error.message : String(error);
    throw new WorkflowError("USAGE", `${folder} could not be written: ${said}; name another folder`, {
      cause: error,
      details: { folder },
    });
  }
  return file;
}

/** @returns true where an earlier export of the task is to be replaced. */
function isInTheWay(folder: string, place: string, taskId: string): boolean {
  if (!existsSync(place)) return false;
  const refuse = (why: string) =>
    new WorkflowError("USAGE", `${folder} ${why}; nothing was written: name a new folder`, { details: { folder } });
  if (!statSync(place).isDirectory()) throw refuse("is a file");
  const names = readdirSync(place);
  if (names.length === 0) return false;
  const others = names.filter((name) => ![STATE, LOG, ARTIFACTS].includes(name));
  if (others.length > 0) throw refuse(`is not empty and no export: it has ${others[0]}`);
  const foreign = names.includes(ARTIFACTS) ? foreignArtifact(join(place, ARTIFACTS)) : null;
  if (foreign !== null) throw refuse(`is not empty and no export: it has ${foreign}`);
  const parsed = names.includes(STATE) ? parseStateFile(readFileSync(join(place, STATE), "utf8")) : null;
  if (!parsed?.ok) throw refuse("is not empty, and whether it is an export of this task cannot be told");
  if (parsed.file.taskId !== taskId) throw refuse(`holds an export of another task, ${parsed.file.taskId}`);
  return true;
}

/** What no export can have written where artifacts are. */
function foreignArtifact(folder: string): string | null {
  if (!statSync(folder).isDirectory()) return `a file ${ARTIFACTS}`;
  const name = readdirSync(folder).find((one) => !isArtifactFile(one));
  return name === undefined ? null : `${ARTIFACTS}/${name}`;
}

/** The files of an export as they are. */
export interface ExportFolder {
  readonly folder: string;
  readonly log: string;
  /** Null where `state.json` is missing. */
  readonly state: string | null;
  /** Reads a file of `artifacts/`; null where it is missing. */
  readonly artifact: (name: string) => Uint8Array | null;
}

/**
 * Reads an export's files without judging them.
 *
 * @throws INVALID_EXPORT where there is none.
 */
export function readExport(folder: string): ExportFolder {
  const invalid = (why: string, cause?: unknown) =>
    new WorkflowError("INVALID_EXPORT", `${folder} is no export: ${why}`, { cause, details: { folder } });
  if (!existsSync(folder)) throw invalid("there is no such folder; name the one that statecard export wrote");
  if (!statSync(folder).isDirectory()) throw invalid("it is a file; name the folder that statecard export wrote");
  const read = <T>(name: string, as: (bytes: Uint8Array) => T): T | null => {
    try {
      return as(readFileSync(join(folder, name)));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw invalid(`its ${name} cannot be read: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  };
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const readText = (name: string) => read(name, (bytes) => decoder.decode(bytes));
  const log = readText(LOG);
  if (log === null) throw invalid(`it has no ${LOG}`);
  const artifact = (name: string) => read(join(ARTIFACTS, name), (bytes) => bytes);
  return { folder, log, state: readState(readText), artifact };
}

/** A `state.json` that is no text is as good as none: the log can make up for it. */
function readState(read: (name: string) => string | null): string | null {
  try {
    return read(STATE);
  } catch {
    return "";
  }
}
