import { resolve } from "node:path";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { isOpenDatabase } from "../internal/open-databases.ts";
import type { Interceptor } from "../workflow/tool.ts";
import { judgeArguments, judgeCommandLine, type CommandLimits } from "./shell/judge.ts";
import { isInside } from "./inside.ts";

type Arguments = Readonly<Record<string, unknown>>;

export interface ForbidCommandsOptions extends CommandLimits {
  /** The argument that holds the command: a text for a shell, or a list of a program and its arguments; `command` unless set. */
  readonly argument?: string;
}

/**
 * Refuses shell commands that destroy what cannot be brought back: deleting roots, homes and system
 * folders, formatting and overwriting disks, writing to system files, stopping the machine, running what
 * was just downloaded, overwriting what others have pushed, and so on. It reads a command as the shell
 * would, through quotes, `sudo`, `bash -c`, pipes and substitutions, and refuses what it cannot read. With
 * `allow`, only the listed programs run, and those still not dangerously. A call without the argument passes.
 *
 * It is a net, not a sandbox: it knows many dangerous commands and not all of them, it does not see what
 * scripts and other programs do, and what looks harmless to it can still do harm. Where a model's commands
 * must not reach something, run them where it is out of reach.
 *
 * @example
 * const shell = defineTool({ …, intercept: forbidCommands({ forbid: ["npm publish"] }) });
 */
export function forbidCommands(options: ForbidCommandsOptions = {}): Interceptor<Arguments> {
  const { argument = "command", ...limits } = options;
  return (args) => {
    const command = args[argument];
    if (command === undefined || command === null) return null;
    const reason = judge(command, limits);
    return reason === null ? null : { refuse: `${argument} was refused: ${shorten(reason, 300)}` };
  };
}

function judge(command: unknown, limits: CommandLimits): string | null {
  if (typeof command === "string") return judgeCommandLine(command, limits);
  return isTexts(command) ? judgeArguments(command, limits) : "it is neither a text nor a list of texts";
}

export interface AllowPathsOptions {
  /** The arguments that hold a path or a list of paths; `path` unless set. */
  readonly arguments?: readonly string[];
}

/**
 * Refuses paths that lead out of the given folders: by `..`, by links, as absolute paths, by `~` or as
 * addresses; also a database that this process has open, which even reading it would damage. Relative paths begin in the first folder, so the tool has to resolve them there too. A call
 * without the argument passes. What changes on the disk between this check and the tool's use of the path,
 * such as a new link, it cannot see.
 *
 * @example
 * const readFile = defineTool({ …, intercept: allowPaths(["/srv/reports"]) });
 */
export function allowPaths(folders: readonly string[], options: AllowPathsOptions = {}): Interceptor<Arguments> {
  if (folders.length === 0 || folders.some((folder) => folder === "")) {
    throw new WorkflowError("INVALID_OPTIONS", "allowPaths needs at least one folder, and none of them empty");
  }
  const roots = folders.map((folder) => resolve(folder));
  const names = options.arguments ?? ["path"];
  return (args) => {
    for (const name of names) {
      const value = args[name];
      if (value === undefined || value === null) continue;
      const paths = typeof value === "string" ? [value] : value;
      if (!isTexts(paths)) return { refuse: `${name} is neither a path nor a list of paths` };
      const bad = paths.find((path) => !isPlain(path) || !isInside(roots, path));
      if (bad === undefined) {
        const used = paths.find((path) => isOpenDatabase(resolve(roots[0] ?? "", path)));
        if (used === undefined) continue;
        return { refuse: `${name} ${JSON.stringify(shorten(used))} is a database that this process has open` };
      }
      const shown = JSON.stringify(shorten(bad));
      return { refuse: `${name} ${shown} is no plain path inside the allowed folders: ${roots.join(", ")}` };
    }
    return null;
  };
}

/** Whether every reader of a path takes it for the same: no home, no address, no end in its middle. */
function isPlain(path: string): boolean {
  return !path.includes("\0") && !path.startsWith("~") && !/^file:|^[a-z][a-z0-9+.-]+:\/\//i.test(path.trim());
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
