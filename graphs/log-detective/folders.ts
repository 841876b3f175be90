import { existsSync, realpathSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The log of this example, of our own making, lies here. */
const bundledLogs = fileURLToPath(new URL("./logs/", import.meta.url));

/**
 * Where logs may lie: among the clients as `logFolders`, else the bundled folder and the one in which the
 * program was started.
 */
export function logFolders({ logFolders }: Readonly<Record<string, unknown>>): readonly string[] {
  const isList = Array.isArray(logFolders) && logFolders.every((folder) => typeof folder === "string");
  const folders = isList && logFolders.length > 0 ? (logFolders as readonly string[]) : [bundledLogs, process.cwd()];
  return folders.map((folder) => resolve(folder));
}

/** The path that a name stands for, in the first of the folders that has it, and whether it may be read. */
export function locate(
  file: string,
  clients: Readonly<Record<string, unknown>>,
): { readonly path: string; readonly allowed: boolean } {
  const folders = logFolders(clients);
  const paths = (isAbsolute(file) ? [file] : folders.map((folder) => join(folder, file))).filter((path) =>
    folders.some((folder) => isInside(folder, path)),
  );
  const path = paths.find((candidate) => existsSync(candidate)) ?? paths.at(-1);
  if (path === undefined || file.includes("\0")) return { path: file, allowed: false };
  const allowed = !existsSync(path) || folders.some((folder) => isInside(realpathSync(folder), realpathSync(path)));
  return { path, allowed };
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith("../") && !isAbsolute(way);
}
