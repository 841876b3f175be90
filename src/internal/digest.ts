import { createHash } from "node:crypto";
import { canonicalJson } from "./json.ts";

/**
 * A short fingerprint of a JSON value: SHA-256 over its canonical form, 132 bits, base64url.
 *
 * @example digest({ a: 1, b: 2 }) === digest({ b: 2, a: 1 })
 */
export function digest(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("base64url").slice(0, 22);
}
