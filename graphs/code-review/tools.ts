import { statSync } from "node:fs";
import { resolve } from "node:path";
import { allowPaths, fileTools, ToolError, type ToolContext } from "statecard";

/** The folders that may be reviewed, as `clients.reviewFolders` says; the working folder unless set. */
function foldersOf({ reviewFolders }: Readonly<Record<string, unknown>>): readonly string[] {
  const isList = Array.isArray(reviewFolders) && reviewFolders.every((folder) => typeof folder === "string");
  return isList && reviewFolders.length > 0 ? reviewFolders : [process.cwd()];
}

/** The directory under review, which has to be inside the allow-list; a relative one begins in its first folder. */
function directoryOf({ clients, state }: Pick<ToolContext, "clients" | "state">): string {
  const folders = foldersOf(clients);
  const directory = typeof state.directory === "string" ? state.directory : "";
  const refused = allowPaths(folders)({ path: directory }, { tool: "", taskId: "", step: "", state });
  if (refused) throw new ToolError(refused.refuse, { type: "OUTSIDE" });
  const path = resolve(folders[0] ?? "", directory);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw new ToolError(`there is no directory ${directory}`, { type: "NOT_FOUND" });
}

// Only what reads: a review changes nothing.
const { listFiles, readFile } = fileTools({ root: directoryOf, sensitive: "code" });
export const tools = { listFiles, readFile };
