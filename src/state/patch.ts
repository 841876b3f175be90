import { isPlainObject, jsonEqual } from "../internal/json.ts";
import type { ErrorCode } from "../errors.ts";
import type { Field, Fields, State } from "./fields.ts";

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
  for (const [name, value] of Object.entries(change.patch ?? {})) {
    if (value === null || value === undefined) continue;
    const written = writeField(fields, state, name, value, writer);
    if (!written.ok) return written;
    if (!jsonEqual(written.value, state[name] ?? null)) changes[name] = written.value;
  }
  for (const name of change.clear ?? []) {
    const refusal = refuseClear(fields, state, name, writer) ?? refuseContradiction(name, changes);
    if (refusal) return { ok: false, refusal };
    if ((state[name] ?? null) !== null) changes[name] = null;
  }
  if (Object.keys(changes).length === 0) return { ok: true, state, changes };

  const next = { ...state, ...changes };
  for (const [rule, check] of Object.entries(checks)) {
    const reason = check(next);
    if (reason) return { ok: false, refusal: { code: "CHECK_FAILED", reason: `rule "${rule}": ${reason}` } };
  }
  return { ok: true, state: next, changes };
}

function writeField(
  fields: Fields,
  state: State,
  name: string,
  value: unknown,
  writer: Writer,
): { ok: true; value: unknown } | { ok: false; refusal: Refusal } {
  const refuse = (code: ErrorCode, reason: string) => ({ ok: false as const, refusal: { code, field: name, reason } });
  const declared = ownField(fields, name);
  if (!declared) return refuse("UNKNOWN_FIELD", `there is no field "${name}"; ${listFields(fields, writer)}`);
  const forbidden = refuseWriter(declared, name, writer);
  if (forbidden) return { ok: false, refusal: forbidden };

  const current = state[name] ?? null;
  const merged = declared.rules.appendOnly ? append(current, value) : merge(current, value);
  const checked = declared.check(merged);
  if (!checked.ok) return refuse(checked.code, `"${name}": ${checked.reason}`);
  if (declared.rules.writeOnce && current !== null && !jsonEqual(checked.value, current)) {
    return refuse("WRITE_ONCE", `"${name}" already has its value and never changes again; leave it out`);
  }
  return { ok: true, value: checked.value };
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
    return { code: "UNKNOWN_FIELD", field: name, reason: `cannot clear "${name}": there is no such field` };
  }
  const forbidden = refuseWriter(declared, name, writer);
  if (forbidden) return forbidden;
  if (!declared.rules.clearable && (state[name] ?? null) !== null) {
    return { code: "NOT_CLEARABLE", field: name, reason: `"${name}" cannot be cleared` };
  }
  return undefined;
}

function refuseContradiction(name: string, changes: Record<string, unknown>): Refusal | undefined {
  if (!Object.hasOwn(changes, name)) return undefined;
  return { code: "INVALID_DECISION", field: name, reason: `"${name}" is both set and cleared; do one` };
}

function ownField(fields: Fields, name: string): Field<unknown> | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function listFields(fields: Fields, writer: Writer): string {
  return `the fields are: ${(writer.writes ?? Object.keys(fields)).join(", ") || "none"}`;
}

/** Deep merge in which `null` and absent leave what is there. Lists and scalars replace. */
function merge(current: unknown, value: unknown): unknown {
  if (value === null || value === undefined) return current;
  if (!isPlainObject(value)) return value;
  const base = isPlainObject(current) ? current : {};
  const merged: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(base), ...Object.keys(value)])) {
    // A key such as __proto__ is data like any other and must not reach the prototype.
    const item = merge(Object.hasOwn(base, key) ? base[key] : null, Object.hasOwn(value, key) ? value[key] : null);
    if (item !== null && item !== undefined) {
      Object.defineProperty(merged, key, { value: item, enumerable: true, configurable: true, writable: true });
    } else if (Object.hasOwn(base, key)) {
      Object.defineProperty(merged, key, { value: null, enumerable: true, configurable: true, writable: true });
    }
  }
  return merged;
}

/** Adds items. A single item is taken as a list of one, and a list that begins with all present items as the whole. */
function append(current: unknown, value: unknown): unknown {
  const present = Array.isArray(current) ? (current as unknown[]) : [];
  if (!Array.isArray(value)) return [...present, value];
  const repeatsAll = present.length > 0 && present.every((item, index) => jsonEqual(item, value[index]));
  return repeatsAll ? value : [...present, ...(value as unknown[])];
}
