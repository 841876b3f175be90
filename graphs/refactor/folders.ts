import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { allowPaths } from "statecard";

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
