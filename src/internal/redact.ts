import { isPlainObject } from "./json.ts";

/** What stands where a secret was. */
export const REDACTED = "[redacted]";

// Formats of keys that providers issue; what looks like one never reaches a state, prompt, log or error.
const KEY_FORMATS = [
  String.raw`\b(?:sk|pk|rk)-[\w-]{8,}`,
  String.raw`\bgh[pousr]_\w{20,}`,
  String.raw`\bgithub_pat_\w{20,}`,
  String.raw`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
  String.raw`\bAIza[\w-]{30,}`,
  String.raw`\bxox[abprs]-[\w-]{10,}`,
  String.raw`\bhf_\w{20,}`,
  String.raw`\bnpm_\w{30,}`,
  String.raw`\bglpat-[\w-]{18,}`,
  String.raw`\bsc_[A-Za-z0-9_-]{40,}`,
  String.raw`\b[Bb]earer\s+[\w.~+/-]{16,}=*`,
  // A first part without an end is looked at again from every "-eyJ" in it, so it must have one.
  String.raw`\beyJ[\w-]{10,1000}\.eyJ[\w-]{10,}\.[\w-]{10,}`,
  String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
];

// What environment variables of such names hold is a secret without being declared.
const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
const MIN_FOUND = 12;
const MIN_DECLARED = 4;

/** Whether an environment variable's name says that its value is a secret. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** The values that are secret in this process; they have no other home than its environment. */
const values = new Set<string>();
let pattern: RegExp | null = null;

/**
 * Declares the names of environment variables whose values must never be kept or shown. Those whose
 * names end in KEY, TOKEN, SECRET, PASSWORD or CREDENTIALS are known without it.
 */
export function declareSecrets(names: readonly string[]): void {
  for (const name of names) {
    const value = process.env[name];
    if (value !== undefined && value.length >= MIN_DECLARED) values.add(value);
  }
  pattern = null;
}

function compiled(): RegExp {
  if (pattern) return pattern;
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && value.length >= MIN_FOUND && SECRET_NAME.test(name)) values.add(value);
  }
  // The longest first: one secret may begin like another.
  const literal = [...values].toSorted((a, b) => b.length - a.length).map(escape);
  pattern = new RegExp([...literal, ...KEY_FORMATS].join("|"), "g");
  return pattern;
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

/** Replaces secrets and whatever looks like an API key. */
export function redact(text: string): string {
  return text.replaceAll(compiled(), REDACTED);
}

/** `redact` for every text in a JSON value, keys included. What holds no secret is returned as it is. */
export function redactDeep<T>(value: T): T {
  return redactAny(value) as T;
}

function redactAny(value: unknown): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) {
    const items = value.map(redactAny);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [redact(key), redactAny(item)] as const);
  const same = entries.every(([key, item]) => Object.hasOwn(value, key) && value[key] === item);
  return same ? value : Object.fromEntries(entries);
}

// What may be the beginning of a secret: a run of the characters that keys are made of.
const OPEN_END = /(?:[Bb]earer\s*)?[\w.~+/=-]*$/;
const OPEN_KEY = /-----BEGIN (?![\s\S]*-----END [A-Z ]*PRIVATE KEY-----)[\s\S]*$/;
const LONGEST_HELD = 16_384;

/** How much of a text's end may be the beginning of a secret. */
function openLength(text: string): number {
  compiled();
  let longest = Math.max(OPEN_END.exec(text)?.[0].length ?? 0, OPEN_KEY.exec(text)?.[0].length ?? 0);
  for (const value of values) {
    // A password may hold blanks and signs that no key has.
    for (let length = Math.min(value.length, text.length); length > longest; length--) {
      if (text.endsWith(value.slice(0, length))) longest = length;
    }
  }
  return longest;
}

/** Redacts a text that comes in pieces: a piece is held back while it may be the beginning of a secret. */
export class StreamRedactor {
  private held = "";

  push(piece: string): string {
    this.held += piece;
    const open = openLength(this.held);
    return this.release(open > LONGEST_HELD ? this.held.length : this.held.length - open);
  }

  end(): string {
    return this.release(this.held.length);
  }

  private release(length: number): string {
    const text = this.held.slice(0, length);
    this.held = this.held.slice(length);
    return redact(text);
  }
}
