import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** No file of a skill may be larger. */
const MAX_FILE_BYTES = 10_000_000;

/** Why a file cannot be read. */
interface FileFault {
  readonly code: "UNREADABLE" | "LINK" | "TOO_LARGE" | "NOT_TEXT";
  readonly message: string;
}

export type FileRead = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly fault: FileFault };

/**
 * Reads a text file that is no link. What is looked at is what is read: a link that takes the file's place in
 * between is not followed.
 */
export function readTextFile(path: string): FileRead {
  const failed = (code: FileFault["code"], message: string): FileRead => ({ ok: false, fault: { code, message } });
  let file: number | null = null;
  try {
    // Opening a pipe would wait for a writer otherwise. Windows has neither flag.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const found = fstatSync(file);
    if (!found.isFile()) return failed("UNREADABLE", "it is no file");
    if (found.size > MAX_FILE_BYTES) {
      return failed("TOO_LARGE", `it has ${found.size} bytes, at most ${MAX_FILE_BYTES} are read`);
    }
    const bytes = readFileSync(file);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    return text.includes("\0") ? failed("NOT_TEXT", "it holds NUL characters") : { ok: true, text };
  } catch (error) {
    if (hasCode(error, "ELOOP", "EMLINK")) return failed("LINK", "it is a link, and links are not followed");
    if (hasCode(error, "ERR_ENCODING_INVALID_ENCODED_DATA")) return failed("NOT_TEXT", "it is no UTF-8 text");
    return failed("UNREADABLE", error instanceof Error ? error.message : String(error));
  } finally {
    if (file !== null) closeSync(file);
  }
}

/** Whether an error of the file system has one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/**
 * Says why a path, as a skill or a model names it, is no file inside a skill's folder; null where it is. Links
 * are refused wherever they lead.
 */
export function faultOfPath(folder: string, path: string): string | null {
  const parts = path.split("/").filter((part) => part !== "." && part !== "");
  const isPlain = parts.length > 0 && !path.startsWith("/") && !/[\\\0]|^[a-z]:/i.test(path) && !parts.includes("..");
  if (!isPlain) return `${JSON.stringify(path)} is no plain path inside the skill's folder`;
  try {
    for (let length = 1; length <= parts.length; length++) {
      const found = lstatSync(join(folder, ...parts.slice(0, length)));
      if (found.isSymbolicLink()) return `${path} is or goes through a link, and links are not followed`;
      if (length === parts.length && !found.isFile()) return `${path} is no file`;
    }
    return null;
  } catch (error) {
    return hasCode(error, "ENOENT", "ENOTDIR") ? `there is no ${path}` : `${path} cannot be read`;
  }
}
