import { z } from "zod";
import { REDACTED } from "../../internal/redact.ts";
import { shorten } from "../../internal/json.ts";
import type { CallResult } from "../../state/execution.ts";
import type { State } from "../../state/fields.ts";
import { resourcesIn, withResources, type Resource } from "../../state/resources.ts";
import { defineTool, type Reconciled, type ToolContext } from "../../workflow/tool.ts";
import { forbidCommands } from "../interceptors.ts";
import { ToolError } from "../tool-error.ts";
import { runProgram } from "./command.ts";
import { applyEdits, areApplied } from "./edits.ts";
import { checksumOf, Folder, MAX_FILES, type FileNow } from "./folder.ts";

/** Less than what a result may hold before a preview takes its place. */
const PIECE_BYTES = 12_000;
/** Characters of up to three bytes. */
const LONG_LINE = PIECE_BYTES / 3;
const MAX_TEXT = 30_000;
const SHOWN = 200;
const TESTS_TIMEOUT_MS = 300_000;

export interface FileToolsOptions {
  /** The folder that holds the files. No path leads out of it. A function where each task has its own. */
  readonly root: string | ((task: Pick<ToolContext, "clients" | "state">) => string);
  /** The state field, made with `resourceField()`, that keeps checksums; `resources` unless set. */
  readonly resources?: string;
  /** The program, with its arguments, that runs the project's tests; `node --test` unless set. */
  readonly tests?: readonly string[];
  /** The programs that `runCommand` may start; none unless set. */
  readonly commands?: readonly string[];
  /** What kind of data the files hold, where that may not leave the machine without consent; by path where that depends on it. */
  readonly sensitive?: string | { readonly kinds: readonly string[]; readonly of: (path: string) => string | null };
}

const path = z.string().min(1).max(400).describe("relative to the project's folder");
const below = path.optional().describe("only in this folder");
const editSchema = z.object({
  find: z.string().min(1).max(MAX_TEXT).describe("text that is in the file exactly once"),
  replace: z.string().max(MAX_TEXT),
});

/** The arguments and a new text's path and checksum, as changes give them back. */
const changed = z.object({ path: z.string(), checksum: z.string() });
const drifted = z.object({ changed: z.array(z.string()), gone: z.array(z.string()) });

/**
 * Tools for the files of one folder: `listFiles`, `searchFiles`, `readFile`, `writeFile`, `editFile`, `checkFiles`,
 * `runTests` and `runCommand`. They keep in the state which files the task knows, each with its checksum. A file
 * that is not as the task knows it, since somebody else has changed it, is never written over: the call fails with
 * `CHANGED_OUTSIDE`, and the file has to be read again. Changes are whole or not there, and after a crash it is
 * found out whether one was written.
 *
 * Hidden files (`.env`, `.git`), `node_modules`, `dist` and links are not touched. A program that `runTests` or
 * `runCommand` starts can do whatever this process can: list `runCommand` under `approve`.
 *
 * @example
 * const { readFile, editFile, runTests } = fileTools({ root: "/srv/project" });
 * defineWorkflow({
 *   state: { resources: resourceField() },
 *   tools: { readFile, editFile, runTests },
 *   steps: { working: { tools: ["readFile", "editFile", "runTests"], … } },
 * })
 */
export function fileTools(options: FileToolsOptions) {
  const into = options.resources ?? "resources";
  const { root, tests = ["node", "--test"], commands = [] } = options;
  const folderOf = (context: ToolContext) => new Folder(typeof root === "string" ? root : root(context));
  const known = (state: State) => resourcesIn(state[into]);
  const knownAs = (state: State, path: string) => known(state).find((resource) => resource.path === path);
  const keep = (status: Resource["status"]) => (result: CallResult, state: State) => {
    const value = result.status === "ok" ? changed.safeParse(result.value).data : undefined;
    return value ? { [into]: withResources(known(state), [{ kind: "file", ...value, status }]) } : {};
  };
  const { byPath, any } = sensitiveTools(options.sensitive);
  // One after the other: what reads, tests or checks files sees the changes that were decided before it.
  const conflicts = () => "files";

  return {
    listFiles: defineTool({
      ...any,
      description: "Lists the files of the project.",
      effect: "read",
      parameters: z.object({ below }),
      conflicts,
      run({ below }, context) {
        const folder = folderOf(context);
        const files = folder.list(below === undefined ? "" : folder.plain(below));
        return { files: files.slice(0, SHOWN), ...leftOut(files.length) };
      },
    }),
    searchFiles: defineTool({
      ...any,
      description: "Finds a text, literally, in the files of the project: path, line number and line.",
      effect: "read",
      parameters: z.object({ text: z.string().min(1).max(200), below }),
      conflicts,
      run({ text, below }, context) {
        const folder = folderOf(context);
        const files = folder.list(below === undefined ? "" : folder.plain(below));
        const found = files.flatMap((path) => linesWith(readable(folder, path), text, path));
        // There may be more, and nothing else would tell.
        const part =
          files.length === MAX_FILES ? { searchedOnly: MAX_FILES, note: "search in one folder, by below" } : {};
        return { found: found.slice(0, SHOWN), ...leftOut(found.length), ...part };
      },
    }),
    readFile: defineTool({
      ...byPath,
      description: "Reads a text file, a long one in pieces. What is written has to be read first.",
      effect: "read",
      parameters: z.object({
        path,
        from: z.number().int().min(1).optional().describe("the line to begin with; 1 unless given"),
      }),
      conflicts,
      run({ path, from = 1 }, context) {
        const folder = folderOf(context);
        const plain = folder.plain(path);
        const now = existing(folder, plain);
        const before = knownAs(context.state, plain);
        const isDrift = before !== undefined && before.checksum !== now.checksum;
        return {
          path: plain,
          checksum: now.checksum,
          ...(isDrift ? { note: "files changed outside: this one is not as the task knew it" } : {}),
          ...pieceOf(now.text, from),
        };
      },
      onResult: keep("read"),
    }),
    writeFile: defineTool({
      ...byPath,
      description: "Writes a whole text file: a new one, or one that was read before.",
      effect: "write",
      parameters: z.object({ path, text: z.string().max(MAX_TEXT) }),
      conflicts,
      run({ path, text }, context) {
        const folder = folderOf(context);
        const plain = folder.plain(path);
        const now = folder.read(plain);
        requireKnown(plain, now, knownAs(context.state, plain));
        return written(folder, plain, now, text);
      },
      reconcile({ path, text }, context) {
        const folder = folderOf(context);
        const plain = folder.plain(path);
        return outcome(folder, plain, knownAs(context.state, plain), (now) => now.checksum === checksumOf(text));
      },
      onResult: keep("written"),
    }),
    editFile: defineTool({
      ...byPath,
      description:
        "Changes a text file that was read before: each edit replaces a text that occurs exactly once, one edit after the other. All edits of a file in one call.",
      effect: "write",
      parameters: z.object({ path, edits: z.array(editSchema).min(1).max(20) }),
      conflicts,
      run({ path, edits }, context) {
        const folder = folderOf(context);
        const plain = folder.plain(path);
        const now = existing(folder, plain);
        requireKnown(plain, now, knownAs(context.state, plain));
        return written(folder, plain, now, applyEdits(now.text, edits));
      },
      reconcile({ path, edits }, context) {
        const folder = folderOf(context);
        const plain = folder.plain(path);
        const before = knownAs(context.state, plain);
        return outcome(folder, plain, before, ({ text }) =>
          areApplied(text, edits, (undone) => checksumOf(undone) === before?.checksum),
        );
      },
      onResult: keep("written"),
    }),
    checkFiles: defineTool({
      ...any,
      description: "Says which of the files that the task knows were changed or deleted outside of it.",
      effect: "read",
      trusted: true,
      parameters: z.object({}),
      conflicts,
      run(_args, context) {
        const drift = folderOf(context).drift(known(context.state));
        const pathsOf = (status: Resource["status"]) =>
          drift.filter((resource) => resource.status === status).map(({ path }) => path);
        return { changed: pathsOf("changed outside"), gone: pathsOf("gone") };
      },
      onResult(result, state) {
        const value = result.status === "ok" ? drifted.safeParse(result.value).data : undefined;
        if (!value || value.changed.length + value.gone.length === 0) return {};
        const marked = known(state).map((resource): Resource => {
          if (value.gone.includes(resource.path)) return { ...resource, status: "gone" };
          return value.changed.includes(resource.path) ? { ...resource, status: "changed outside" } : resource;
        });
        return { [into]: marked };
      },
    }),
    runTests: defineTool({
      ...any,
      description:
        "Runs the project's tests and says whether they pass, with the end of what they print. Without a test, nothing passes.",
      effect: "write",
      idempotent: true,
      timeoutMs: TESTS_TIMEOUT_MS,
      parameters: z.object({}),
      conflicts,
      async run(_args, context) {
        const { exitCode, output } = await runProgram(folderOf(context).root, tests, context.signal);
        const count = testsIn(output);
        return { passed: exitCode === 0 && count !== 0, exitCode, ...(count === null ? {} : { tests: count }), output };
      },
    }),
    runCommand: defineTool({
      ...any,
      description: `Runs a program in the project's folder, without a shell: ${commands.join(", ") || "none is allowed"}.`,
      effect: "write",
      timeoutMs: TESTS_TIMEOUT_MS,
      parameters: z.object({ command: z.array(z.string().max(2000)).min(1).max(50).describe("program and arguments") }),
      intercept: forbidCommands({ allow: commands }),
      conflicts,
      run: ({ command }, context) => runProgram(folderOf(context).root, command, context.signal),
    }),
  };
}

/** How many tests Node's test runner says it has run; null where another one has, or it does not say. */
function testsIn(output: string): number | null {
  const [, count] = [...output.matchAll(/^(?:#|ℹ) tests (\d+)\r?$/gm)].at(-1) ?? [];
  return count === undefined ? null : Number(count);
}

/** What tools for files hold: those for one file by its path, others whatever any file may hold. */
function sensitiveTools(sensitive: FileToolsOptions["sensitive"]) {
  if (sensitive === undefined) return { byPath: {}, any: {} };
  if (typeof sensitive === "string") return { byPath: { sensitive }, any: { sensitive } };
  const { kinds, of } = sensitive;
  return {
    byPath: { sensitive: { kinds, of: ({ path }: { readonly path: string }) => of(path) } },
    any: { sensitive: { kinds, of: () => undefined } },
  };
}

/** @throws ToolError CHANGED_OUTSIDE or NOT_READ, where the file is not as the task knows it. */
function requireKnown(path: string, now: FileNow | null, before: Resource | undefined): void {
  if (now === null && (before === undefined || before.status === "gone")) return;
  if (before === undefined) {
    throw new ToolError(`${path} exists, and the task has not read it; nothing was written`, {
      type: "NOT_READ",
      hint: `read ${path} first`,
    });
  }
  if (now?.checksum === before.checksum) return;
  const what = now === null ? "is gone" : "was changed";
  const message = `files changed outside: ${path} ${what} since the task last read or wrote it; nothing was written`;
  throw new ToolError(message, {
    type: "CHANGED_OUTSIDE",
    hint:
      now === null ? "check with checkFiles what else has changed" : `read ${path} again, and change what is there now`,
  });
}

function existing(folder: Folder, path: string): FileNow {
  const now = folder.read(path);
  if (now) return now;
  throw new ToolError(`there is no file ${path}`, { type: "NOT_FOUND", hint: "listFiles says which there are" });
}

/** Nobody can change the file between the check and this, but who does it within the same millisecond. */
function written(folder: Folder, path: string, now: FileNow | null, text: string) {
  if (text.includes(REDACTED) && !now?.text.includes(REDACTED)) {
    throw new ToolError(`the text holds ${REDACTED}, which stands for a secret that it must not replace`, {
      type: "REDACTED",
      hint: "use editFile on other lines, and leave the secret where it is",
    });
  }
  return { path, checksum: folder.write(path, text), before: now?.checksum ?? null, bytes: Buffer.byteLength(text) };
}

/** Whether a change was written, as far as the file tells: it is as it was before, or as the change makes it. */
function outcome(
  folder: Folder,
  path: string,
  before: Resource | undefined,
  isWritten: (now: FileNow) => boolean | null,
): Reconciled {
  const now = folder.read(path);
  if (now !== null && isWritten(now) === true) {
    return { happened: true, value: { path, checksum: now.checksum, before: before?.checksum ?? null } };
  }
  const isAsBefore =
    now === null ? before === undefined || before.status === "gone" : now.checksum === before?.checksum;
  return isAsBefore ? { happened: false } : null;
}

function readable(folder: Folder, path: string): string {
  try {
    return folder.read(path)?.text ?? "";
  } catch (error) {
    // A picture or a very long file: nothing to find in it.
    if (error instanceof ToolError) return "";
    throw error;
  }
}

function linesWith(text: string, wanted: string, path: string) {
  if (!text.includes(wanted)) return [];
  return text
    .split("\n")
    .flatMap((line, index) =>
      line.includes(wanted) ? [{ path, line: index + 1, text: shorten(line.trim(), 160) }] : [],
    );
}

function leftOut(count: number) {
  return count > SHOWN ? { leftOut: count - SHOWN } : {};
}

/** Whole lines from one on, as many as fit; of a very long line, its beginning. */
function pieceOf(text: string, from: number) {
  const lines = text.split(/(?<=\n)/);
  let end = from - 1;
  let bytes = 0;
  for (let line = lines[end]; line !== undefined; line = lines[end]) {
    bytes += Buffer.byteLength(JSON.stringify(line));
    if (bytes > PIECE_BYTES && end >= from) break;
    end++;
  }
  const piece = lines.slice(from - 1, end).join("");
  const isLong = Buffer.byteLength(JSON.stringify(piece)) > PIECE_BYTES;
  return {
    text: isLong ? shorten(piece, LONG_LINE) : piece,
    lines: lines.length,
    ...(end < lines.length ? { goOnFrom: end + 1 } : {}),
  };
}
