import { isPlainObject, jsonEqual, shorten } from "../internal/json.ts";
import type { Expectation } from "../state/execution.ts";
import { pathKeys, valueAt } from "./references.ts";

/**
 * What a result was expected to be and is not; null where all of it came true. Pure.
 *
 * @example unmetExpectation({ periods: [] }, [{ path: "periods", is: "not empty" }]) // "periods is empty"
 */
export function unmetExpectation(value: unknown, expectations: readonly Expectation[]): string | null {
  for (const expectation of expectations) {
    const problem = problemOf(value, expectation);
    if (problem) return problem;
  }
  return null;
}

function problemOf(value: unknown, { path = "", is, value: wanted }: Expectation): string | null {
  const name = shorten(path, 80) || "the result";
  const at = valueAt(value, pathKeys(path));
  const found = at.found ? at.value : null;
  if (found === null) return `${name} is missing`;
  if (is === "present") return null;
  if (is === "not empty") return isEmpty(found) ? `${name} is empty` : null;
  if (wanted === undefined) return `it is not said what ${name} should be ${is}`;
  const holds = {
    "equal to": () => jsonEqual(found, wanted),
    "at least": () => isAtLeast(found, wanted),
    "at most": () => isAtLeast(wanted, found),
    containing: () => contains(found, wanted),
  }[is]();
  return holds ? null : `${name} is not ${is} ${shorten(JSON.stringify(wanted), 80)}`;
}

function isEmpty(value: unknown): boolean {
  if (typeof value === "string") return value.trim() === "";
  if (Array.isArray(value)) return value.length === 0;
  return isPlainObject(value) && Object.keys(value).length === 0;
}

function isAtLeast(value: unknown, least: unknown): boolean {
  if (typeof value === "number" && typeof least === "number") return value >= least;
  return typeof value === "string" && typeof least === "string" && value >= least;
}

function contains(value: unknown, part: unknown): boolean {
  if (typeof value === "string") return value.includes(String(part));
  return Array.isArray(value) && value.some((item) => jsonEqual(item, part));
}
