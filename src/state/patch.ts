import { frozenCopy, isPlainObject, jsonEqual, notJson, shorten } from "../internal/json.ts";
import { WorkflowError, type ErrorCode } from "../errors.ts";
import type { Field, FieldCheck, Fields, State } from "./fields.ts";

/** Why a change was refused: the rule's code, the field where one is to blame, and a sentence. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly field?: string;
  /** For a refused move: where it would have led. */
  readonly to?: string;
  /** For a refused move: the fields that are missing there. */
  readonly fields?: readonly string[];
}

/** Who makes the change: the model is held to `writes`, code steps and inputs may set runtime-only fields. */
export interface Writer {
  readonly kind: "model" | "code" | "input";
  /** The fields it may write; absent means all. */
  readonly writes?: readonly string[];
}

/** A rule over several fields: gives the reason where the state breaks it. */
export type CrossFieldCheck<S = State> = (state: S) => string | undefined | null | false;

export interface Change {
  readonly patch?: Readonly<Record<string, unknown>> | null;
  readonly clear?: readonly string[] | null;
}

export type PatchResult =
  | { readonly ok: true; readonly state: State; readonly changes: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly refusal: Refusal };

/**
 * Applies a change under the merge contract: deep merge; absent and `null` mean unchanged; lists
 * replace, unless the field is append-only, where they add; only `clear` deletes, and only clearable
 * fields. All or nothing: a refused change leaves the given state as the only state. Pure.
 *
 * (Not RFC 7396: strict output modes make every field required and nullable, so under
 * null-deletes a model that sets one field would erase the others.)
 *
 * @returns the new state and the fields whose values differ, or the refusal.
 * @example applyPatch(fields, state, { patch: { priority: "P1" } }, { kind: "model", writes: ["priority"] })
 */
export function applyPatch(
  fields: Fields,
  state: State,
  change: Change,
  writer: Writer,
  checks: Readonly<Record<string, CrossFieldCheck>> = {},
): PatchResult {
  const changes: Record<string, unknown> = {};
  const clear = new Set(change.clear ?? []);
  for (const [name, value] of Object.entries(change.patch ?? {})) {
    if (value === null || value === undefined) continue;
    const written = writeField(fields, state, name, value, writer);
    if (!written.ok) return written;
    if (clear.has(name)) return { ok: false, refusal: contradiction(name) };
    if (!jsonEqual(written.value, state[name] ?? null)) changes[name] = written.value;
  }
  for (const name of clear) {
    const refusal = refuseClear(fields, state, name, writer);
    if (refusal) return { ok: false, refusal };
    if ((state[name] ?? null) !== null) changes[name] = null;
  }
  if (Object.keys(changes).length === 0) return { ok: true, state, changes };

  const next = { ...state, ...changes };
  for (const [rule, check] of Object.entries(checks)) {
    const reason = askCheck(rule, check, next);
    if (reason) return { ok: false, refusal: { code: "CHECK_FAILED", reason: `rule "${rule}": ${shorten(reason)}` } };
  }
  return { ok: true, state: next, changes };
}

/** Asks a user's rule; where it throws, the error says which. */
function askCheck(rule: string, check: CrossFieldCheck, state: State): ReturnType<CrossFieldCheck> {
  try {
    return check(frozenCopy(state));
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError("STEP_FAILED", `rule "${rule}" threw: ${said}`, { cause: error });
  }
}

// A name from a model may be of any length; a refusal stays readable.
const MAX_NAME = 80;

function writeField(
  fields: Fields,
  state: State,
  name: string,
  value: unknown,
  writer: Writer,
): { ok: true; value: unknown } | { ok: false; refusal: Refusal } {
  const refuse = (code: ErrorCode, reason: string) => ({ ok: false as const, refusal: { code, field: name, reason } });
  const declared = ownField(fields, name);
  if (!declared) {
    const field = shorten(name, MAX_NAME);
    const reason = `there is no field "${field}"; ${listFields(fields, writer)}`;
    return { ok: false, refusal: { code: "UNKNOWN_FIELD", field, reason } };
  }
  const forbidden = refuseWriter(declared, name, writer);
  if (forbidden) return { ok: false, refusal: forbidden };

  const lost = notJson(value);
  if (lost) return refuse("INVALID_FIELD", `"${name}": ${lost}, which a checkpoint would not give back`);
  const current = state[name] ?? null;
  const checked = checkMerged(declared, current, value);
  if (!checked.ok) return refuse(checked.code, `"${name}": ${checked.reason}`);
  if (declared.rules.writeOnce && current !== null && !jsonEqual(checked.value, current)) {
    return refuse("WRITE_ONCE", `"${name}" already has its value and never changes again; leave it out`);
  }
  return { ok: true, value: checked.value };
}

/** Strict output modes write null for what is absent; only where the schema asks for null is it one. */
function checkMerged(declared: Field<unknown>, current: unknown, value: unknown): FieldCheck<unknown> {
  const mergeAs = (nulls: "absent" | "kept") =>
    declared.rules.appendOnly ? append(current, value, nulls) : merge(current, value, nulls);
  const checked = declared.check(mergeAs("absent"));
  if (checked.ok) return checked;
  const withNulls = declared.check(mergeAs("kept"));
  return withNulls.ok ? withNulls : checked;
}

function refuseWriter(declared: Field<unknown>, name: string, writer: Writer): Refusal | undefined {
  if (declared.rules.runtimeOnly && writer.kind === "model") {
    return { code: "RUNTIME_ONLY", field: name, reason: `"${name}" is kept by the runtime; leave it out` };
  }
  if (writer.writes && !writer.writes.includes(name)) {
    const reason = `this step may not write "${name}"; it may write: ${writer.writes.join(", ") || "nothing"}`;
    return { code: "FIELD_NOT_WRITABLE", field: name, reason };
  }
  return undefined;
}

function refuseClear(fields: Fields, state: State, name: string, writer: Writer): Refusal | undefined {
  const declared = ownField(fields, name);
  if (!declared) {
    const field = shorten(name, MAX_NAME);
    return { code: "UNKNOWN_FIELD", field, reason: `cannot clear "${field}": there is no such field` };
  }
  const forbidden = refuseWriter(declared, name, writer);
  if (forbidden) return forbidden;
  const { clearable, writeOnce, appendOnly } = declared.rules;
  if ((!clearable || writeOnce || appendOnly) && (state[name] ?? null) !== null) {
    return { code: "NOT_CLEARABLE", field: name, reason: `"${name}" cannot be cleared` };
  }
  return undefined;
}

function contradiction(name: string): Refusal {
  return { code: "INVALID_DECISION", field: name, reason: `"${name}" is both set and cleared; do one` };
}

function ownField(fields: Fields, name: string): Field<unknown> | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function listFields(fields: Fields, writer: Writer): string {
  return `the fields are: ${(writer.writes ?? Object.keys(fields)).join(", ") || "none"}`;
}

/** How a null in a patch is read where there is no value yet. */
type Nulls = "absent" | "kept";

/** Deep merge in which `null` and absent leave what is there. Lists and scalars replace. */
function merge(current: unknown, value: unknown, nulls: Nulls): unknown {
  if (value === null || value === undefined) return current;
  if (Array.isArray(value)) return value.map((item: unknown) => fresh(item, nulls));
  if (!isPlainObject(value)) return value;
  const base = isPlainObject(current) ? current : {};
  const merged: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(base), ...Object.keys(value)])) {
    const known = Object.hasOwn(base, key);
    const given = Object.hasOwn(value, key) ? value[key] : undefined;
    const item = merge(known ? base[key] : null, given, nulls);
    if (item === undefined || (item === null && !known && (nulls === "absent" || given === undefined))) continue;
    // A key such as __proto__ is data like any other and must not reach the prototype.
    Object.defineProperty(merged, key, { value: item, enumerable: true, configurable: true, writable: true });
  }
  return merged;
}

/** A list's item: there is nothing to merge it with. */
function fresh(item: unknown, nulls: Nulls): unknown {
  return item === null ? null : merge(null, item, nulls);
}

/** Adds items. A single item is taken as a list of one, and a list that begins with all present items as the whole. */
function append(current: unknown, value: unknown, nulls: Nulls): unknown {
  const present = Array.isArray(current) ? (current as unknown[]) : [];
  const items = (Array.isArray(value) ? (value as unknown[]) : [value]).map((item) => fresh(item, nulls));
  const repeatsAll =
    Array.isArray(value) && present.length > 0 && present.every((item, index) => jsonEqual(item, items[index]));
  return repeatsAll ? items : [...present, ...items];
}
