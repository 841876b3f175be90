import { z } from "zod";
import { isPlainObject, shorten } from "../internal/json.ts";
import type { Call } from "../state/execution.ts";
import type { AnyTool } from "./tool.ts";

/** One place in a call's arguments that takes its value from an earlier call's result. */
interface Reference {
  /** Where it stands in the arguments. */
  readonly at: readonly string[];
  readonly text: string;
  /** The call that it names. */
  readonly call: string;
  /** The path into that call's result; empty for the whole. */
  readonly path: readonly string[];
}

/** What a call is named by references: the id that its decision gave it, or its place: `c1`, `c2`, … */
export function callName(call: Call, position: number): string {
  return call.id ?? `c${position + 1}`;
}

const FORM = /^([A-Za-z_][\w-]*)((?:\.[^.[\]]+|\[\d+\])*)$/;

type Found = { readonly ok: true; readonly references: readonly Reference[] } | Problem;
export interface Problem {
  readonly ok: false;
  readonly reason: string;
}

/**
 * Finds the references in a call's arguments: objects of the form `{"$ref": "c1.path.0.name"}`. Texts are
 * never looked into, whatever they look like. Pure.
 *
 * @returns the references, or which one is malformed.
 */
export function referencesIn(args: unknown): Found {
  const references: Reference[] = [];
  const problem = walk(args, [], references);
  return problem ? { ok: false, reason: problem } : { ok: true, references };
}

function walk(value: unknown, at: readonly string[], found: Reference[]): string | null {
  if (Array.isArray(value)) return firstProblem(value.entries(), at, found);
  if (!isPlainObject(value)) return null;
  if (!Object.hasOwn(value, "$ref")) return firstProblem(Object.entries(value), at, found);
  const text = value.$ref;
  const where = at.join(".") || "the arguments";
  if (typeof text !== "string" || Object.keys(value).length > 1) {
    return `${where}: a reference has the form {"$ref": "c1.path"} and nothing beside it`;
  }
  const match = FORM.exec(text);
  if (!match) return `${where}: "${shorten(text, 80)}" is no reference; write {"$ref": "c1"} or {"$ref": "c1.path"}`;
  const [, call = "", rest = ""] = match;
  found.push({ at, text, call, path: pathKeys(rest) });
  return null;
}

/** The keys of a path as references and expectations write it: `periods[0].revenue` or `periods.0.revenue`. Pure. */
export function pathKeys(path: string): readonly string[] {
  const keys = path.replaceAll(/\[(\d+)\]/g, ".$1").replace(/^\./, "");
  return keys === "" ? [] : keys.split(".");
}

function firstProblem(
  entries: Iterable<readonly [string | number, unknown]>,
  at: readonly string[],
  found: Reference[],
): string | null {
  for (const [key, item] of entries) {
    const problem = walk(item, [...at, String(key)], found);
    if (problem) return problem;
  }
  return null;
}

/** The references of each call, and the positions of the calls that they name. */
export interface Dependencies {
  readonly references: readonly (readonly Reference[])[];
  readonly needs: readonly (readonly number[])[];
}

/**
 * Checks the references of a decision's calls before any of them runs: each has to name an earlier call of
 * the same decision, so there are no cycles; and where the tool declares its result, a field that is there,
 * of a type that fits. Pure.
 */
export function dependenciesOf(
  calls: readonly Call[],
  tools: Readonly<Record<string, AnyTool>>,
): ({ readonly ok: true } & Dependencies) | Problem {
  const names = calls.map(callName);
  const twice = names.find((name, position) => names.indexOf(name) !== position);
  if (twice !== undefined) return { ok: false, reason: `two calls have the id "${shorten(twice, 80)}"` };
  const all: (readonly Reference[])[] = [];
  for (const [position, call] of calls.entries()) {
    const found = referencesIn(call.args);
    if (!found.ok) return { ok: false, reason: `${names[position]}: ${found.reason}` };
    all.push(found.references);
  }
  const needs = all.map((references) => [...new Set(references.map(({ call }) => names.indexOf(call)))]);
  for (const [position, references] of all.entries()) {
    for (const reference of references) {
      const reason = problemOf(reference, position, { calls, names, needs, tools });
      if (reason)
        return { ok: false, reason: `${names[position]}, reference "${shorten(reference.text, 80)}": ${reason}` };
    }
  }
  return { ok: true, references: all, needs };
}

interface Known {
  readonly calls: readonly Call[];
  readonly names: readonly string[];
  readonly needs: readonly (readonly number[])[];
  readonly tools: Readonly<Record<string, AnyTool>>;
}

function problemOf(reference: Reference, position: number, { calls, names, needs, tools }: Known): string | null {
  const target = names.indexOf(reference.call);
  if (target < 0) {
    return `this decision has no call "${shorten(reference.call, 40)}"; it has ${names.join(", ")}. Results of earlier decisions cannot be referred to: write the value`;
  }
  if (target === position) return "a call cannot use its own result";
  if (target > position) {
    return reaches(needs, target, position)
      ? `${names[target]} needs ${names[position]} in turn: a cycle`
      : `${names[target]} comes later; put it before ${names[position]}`;
  }
  const from = tools[calls[target]?.tool ?? ""];
  const to = tools[calls[position]?.tool ?? ""];
  if (!from?.result) return null;
  const given = schemaAt(jsonSchema(from.result), reference.path);
  if (!given.ok) return `the result of ${names[target]} (${calls[target]?.tool}) ${given.reason}`;
  const wanted = to ? schemaAt(jsonSchema(to.parameters), reference.at) : null;
  return wanted?.ok ? misfit(given.schema, wanted.schema) : null;
}

function reaches(needs: readonly (readonly number[])[], from: number, to: number, seen = new Set<number>()): boolean {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return (needs[from] ?? []).some((next) => next >= 0 && reaches(needs, next, to, seen));
}

type Schema = Readonly<Record<string, unknown>>;

// Deriving a JSON schema takes tens of microseconds and never changes for a given zod schema.
const derived = new WeakMap<z.ZodType, Schema | null>();

/** Null where a schema has no form in JSON: then nothing is known before the call runs. */
function jsonSchema(schema: z.ZodType): Schema | null {
  let known = derived.get(schema);
  if (known === undefined) {
    try {
      known = z.toJSONSchema(schema) as Schema;
    } catch {
      known = null;
    }
    derived.set(schema, known);
  }
  return known;
}

type SchemaAt = { readonly ok: true; readonly schema: Schema | null } | { readonly ok: false; readonly reason: string };

/** The schema at a path, null where that is not known; not ok where there can be nothing. */
function schemaAt(root: Schema | null, path: readonly string[]): SchemaAt {
  let schema = root;
  for (const [depth, key] of path.entries()) {
    if (schema === null || (schema.type !== "object" && schema.type !== "array")) {
      const simple = typeof schema?.type === "string";
      if (!simple) return { ok: true, schema: null };
      return { ok: false, reason: `is no object at "${path.slice(0, depth).join(".")}", so it has no "${key}"` };
    }
    if (schema.type === "array") {
      if (!/^\d+$/.test(key))
        return { ok: false, reason: `has a list where "${key}" is asked for; name an item by its number` };
      schema = isPlainObject(schema.items) ? schema.items : null;
      continue;
    }
    const properties = isPlainObject(schema.properties) ? schema.properties : {};
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (property === undefined && schema.additionalProperties === false) {
      return {
        ok: false,
        reason: `has no field "${shorten(key, 40)}"; it has ${Object.keys(properties).join(", ") || "none"}`,
      };
    }
    schema = isPlainObject(property) ? property : null;
  }
  return { ok: true, schema };
}

function misfit(given: Schema | null, wanted: Schema | null): string | null {
  const [from, to] = [given?.type, wanted?.type];
  if (typeof from !== "string" || typeof to !== "string" || from === to) return null;
  if (from === "integer" && to === "number") return null;
  return `it gives a value of type ${from}, and ${to} is wanted`;
}

/** A value at a path, own properties only; not found where one is missing. Pure. */
export function valueAt(
  value: unknown,
  path: readonly string[],
): { readonly found: boolean; readonly value?: unknown } {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return { found: false };
    // A list's length is no item of it.
    if (Array.isArray(at) && !/^\d+$/.test(key)) return { found: false };
    at = (at as Readonly<Record<string, unknown>>)[key];
  }
  return at === undefined ? { found: false } : { found: true, value: at };
}

/**
 * Puts values in the place of references, on the structure and once: what a value looks like is never looked
 * at, so a result cannot pull in another. Pure.
 *
 * @param resultOf the whole result of an earlier call.
 */
export function resolveReferences(
  args: Call["args"],
  resultOf: (call: string) => unknown,
): { readonly ok: true; readonly args: Call["args"] } | Problem {
  const problems: string[] = [];
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (!isPlainObject(value)) return value;
    if (!Object.hasOwn(value, "$ref")) {
      const resolved: Record<string, unknown> = {};
      for (const [key, item] of Object.entries(value)) {
        Object.defineProperty(resolved, key, {
          value: resolve(item),
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
      return resolved;
    }
    const found = referencesIn(value);
    const [reference] = found.ok ? found.references : [];
    if (!reference) return null;
    const result = valueAt(resultOf(reference.call), reference.path);
    if (!result.found)
      problems.push(`reference "${reference.text}": the result of ${reference.call} has nothing there`);
    return result.value;
  };
  const resolved = resolve(args) as Call["args"];
  const [problem] = problems;
  return problem === undefined ? { ok: true, args: resolved } : { ok: false, reason: problem };
}
