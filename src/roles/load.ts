import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { WorkflowError } from "../errors.ts";
import { MAX_ROLE_CHARACTERS, type Role } from "../workflow/role.ts";
import { invalidRole, parseRole } from "./parse.ts";

/** A character has up to four bytes; what is larger is not even read. */
const MAX_BYTES = 4 * MAX_ROLE_CHARACTERS;

/**
 * Reads a role document from a file; see `parseRole` for what it has to be.
 *
 * @param file a path, or a URL such as `new URL("./role.md", import.meta.url)`.
 * @throws INVALID_ROLE with `details.faults`, or where the file cannot be read.
 * @example defineWorkflow({ name: "support", role: loadRole("roles/support.md"), … })
 */
export function loadRole(file: string | URL): Role {
  const path = typeof file === "string" ? file : fileURLToPath(file);
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES) {
      const message = `it has ${size} bytes, at most ${MAX_BYTES} are read`;
      throw invalidRole(path, [{ line: 1, code: "TOO_LARGE", message }]);
    }
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof WorkflowError) throw error;
    const said = error instanceof Error ? error.message : String(error);
    throw new WorkflowError("INVALID_ROLE", `the role ${path} cannot be read: ${said}`, {
      details: { role: path },
      cause: error,
    });
  }
  return parseRole(textOf(bytes, path), path);
}

function textOf(bytes: Buffer, path: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // The same fault as a file full of NUL characters: it is no text.
  }
  throw invalidRole(path, [{ line: 1, code: "NOT_TEXT", message: "it is no UTF-8 text" }]);
}
