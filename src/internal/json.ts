/** A value that survives `JSON.stringify` and `JSON.parse` unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** True for `{}` and objects made from literals or JSON; false for arrays, dates and class instances. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Deep equality of JSON values; the order of keys does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b || Object.is(a, b)) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const left = Object.entries(a);
  const right = b as Record<string, unknown>;
  return (
    left.length === Object.keys(b).length &&
    left.every(([key, item]) => Object.hasOwn(b, key) && jsonEqual(item, right[key]))
  );
}

/** JSON with sorted keys: equal values give equal text, whatever order their keys came in. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(",")}]`;
  if (!isPlainObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.keys(value)
    .toSorted()
    .filter((key) => value[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(",")}}`;
}

/** A deeply frozen copy of a JSON value, so that whoever gets it can change neither it nor the original. */
export function frozenCopy<T>(value: T): T {
  return copyAny(value) as T;
}

function copyAny(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(copyAny));
  // What is no JSON gets here only before it was checked.
  if (!isPlainObject(value)) return Object.freeze(structuredClone(value));
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    if (key === "__proto__") Object.defineProperty(copy, key, { value: copyAny(item), enumerable: true });
    else copy[key] = copyAny(item);
  }
  return Object.freeze(copy);
}

/** A deep copy of a JSON value, for whoever may change it. */
export function jsonCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** The bytes of a value written as JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "");
}

/** The deepest nesting of a value; real states are far below, and recursion has an end. */
const MAX_DEPTH = 64;

/** Keys that LangGraph's serializer, or a plain assignment, would turn into something else. */
const REVIVED = ["lc", "lg_name", "__proto__"];

/** Says what in a value would not survive as JSON; null where all of it does. */
export function notJson(value: unknown, depth = 0): string | null {
  if (value === null || typeof value === "string" || typeof value === "boolean") return null;
  if (typeof value === "number") return Number.isFinite(value) ? null : `it holds ${value}`;
  if (value === undefined) return depth > 0 ? null : "it is undefined";
  if (typeof value !== "object") return `it holds a ${typeof value}`;
  if (!Array.isArray(value) && !isPlainObject(value))
    return `it holds a ${value.constructor?.name ?? "classless object"}`;
  if (REVIVED.some((key) => Object.hasOwn(value, key))) return `it holds one of the keys ${REVIVED.join(", ")}`;
  if (depth >= MAX_DEPTH) return `it is nested more than ${MAX_DEPTH} levels deep`;
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const item of items) {
    const problem = notJson(item, depth + 1);
    if (problem) return problem;
  }
  return null;
}

/** Whether a value is nested deeper than anything that is kept; recursion over what a model wrote has to end. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth >= MAX_DEPTH || Object.values(value).some((item) => isTooDeep(item, depth + 1));
}

/** Cuts a text for a log line or error message; says how much was left out. */
export function shorten(text: string, length = 200): string {
  if (text.length <= length) return text;
  // Half a character is no text: providers refuse a prompt that holds one.
  const kept = text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
  return `${kept}… (${text.length - kept.length} more characters)`;
}
