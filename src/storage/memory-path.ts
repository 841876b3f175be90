import { InvalidNamespaceError } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../errors.ts";

// An index of PostgreSQL takes about 2,700 bytes, and a word stands beside them.
const MAX_PATH_BYTES = 1500;
const MAX_KEY_BYTES = 500;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * A namespace as one text, `users/ann/`: what begins with it is below it, and no label can be mistaken for
 * two. Pure.
 *
 * @throws InvalidNamespaceError as LangGraph's own stores do.
 */
export function pathOf(namespace: readonly string[], allowEmpty = false): string {
  if (namespace.length === 0 && !allowEmpty) throw new InvalidNamespaceError("Namespace cannot be empty.");
  for (const label of namespace) checkLabel(label);
  const path = namespace.map((label) => `${encodeURIComponent(label)}/`).join("");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw new InvalidNamespaceError("The namespace is too long.");
  return path;
}

function checkLabel(label: unknown): void {
  if (typeof label !== "string") {
    throw new InvalidNamespaceError(`Namespace labels must be strings, but got ${typeof label}.`);
  }
  if (label === "") throw new InvalidNamespaceError("Namespace labels cannot be empty strings.");
  if (/[.:\0]/.test(label) || LONE_SURROGATE.test(label)) {
    throw new InvalidNamespaceError(
      `Invalid namespace label ${JSON.stringify(label)}: it cannot contain periods, colons, NUL bytes or halves of characters.`,
    );
  }
}

export function namespaceIn(path: string): string[] {
  return path.split("/").slice(0, -1).map(decodeURIComponent);
}

/** The first text that stands behind everything that begins with the path: `/` is followed by `0`. */
export function pathEnd(path: string): string {
  return path === "" ? "\u{10FFFF}" : `${path.slice(0, -1)}0`;
}

/** A key as both databases store it. */
export function storedKey(key: string): string {
  if (
    typeof key !== "string" ||
    LONE_SURROGATE.test(key) ||
    Buffer.byteLength(encodeURIComponent(key)) > MAX_KEY_BYTES
  ) {
    throw new WorkflowError("INVALID_OPTIONS", `a key has to be a text of at most ${MAX_KEY_BYTES} bytes`);
  }
  return encodeURIComponent(key);
}

export function keyIn(stored: string): string {
  return decodeURIComponent(stored);
}
