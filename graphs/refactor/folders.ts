import { existsSync, statSync } from "node:fs";
import { delimiter, posix, resolve } from "node:path";
import { allowPaths, WorkflowError } from "statecard";

/**
 * The folders that an environment variable lists, as PATH does; undefined where it is not set.
 *
 * @throws INVALID_OPTIONS where one is empty, which would be the folder that the program runs in.
 */
export function foldersFrom(variable: string): readonly string[] | undefined {
  const folders = process.env[variable]?.split(delimiter);
  if (!folders?.includes("")) return folders;
  const message = `${variable} names an empty folder; list folders, separated by "${delimiter}", or unset it to allow the present one`;
  throw new WorkflowError("INVALID_OPTIONS", message);
}

const HIDDEN = /(?:^|\/)(?:\.|(?:node_modules|dist|coverage)(?:\/|$))/;

/** Whether the tools for files can work at a path: inside the project, and neither hidden, installed nor built. Pure. */
export function isWorkable(path: string): boolean {
  return posix.normalize(path) === path && !/^[/~]|^[a-z]:|\/$|\\/i.test(path) && !HIDDEN.test(path);
}

/** The folders that projects may lie in: among the clients as `folders`, else the one that the program runs in. */
function allowedFolders({ folders }: Readonly<Record<string, unknown>>): readonly string[] {
  const isList = Array.isArray(folders) && folders.length > 0 && folders.every((one) => typeof one === "string");
  return isList ? (folders as readonly string[]) : [process.cwd()];
}

/** A project's whole path, or why it may not be worked in. */
export function projectFolder(
  name: string | null,
  clients: Readonly<Record<string, unknown>>,
): { readonly folder: string } | { readonly refused: string } {
  const allowed = allowedFolders(clients);
  const folder = resolve(allowed[0] ?? ".", name ?? ".");
  const context = { tool: "project", taskId: "", step: "", state: {} };
  const verdict = allowPaths(allowed)({ path: folder } as never, context);
  if (verdict) return { refused: verdict.refuse };
  const isFolder = existsSync(folder) && statSync(folder).isDirectory();
  return isFolder ? { folder } : { refused: `${folder} is no folder` };
}
