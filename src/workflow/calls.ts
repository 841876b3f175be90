import type { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import { isPlainObject, notJson, shorten } from "../internal/json.ts";
import type { Call, Execution } from "../state/execution.ts";
import type { Refusal } from "../state/patch.ts";
import { dependenciesOf, referencesIn, valueAt, type Dependencies, type Problem } from "./references.ts";
import type { AnyWorkflow } from "./define.ts";
import type { AnyTool } from "./tool.ts";

/** More calls than this in one decision are taken for a mistake. */
const MAX_CALLS = 16;
const MAX_ARGUMENT_BYTES = 32_768;

/** What a decision's calls are checked against, beside the definition. */
export interface CallRules {
  /** What the task has called so far. */
  readonly toolUse?: Execution["toolUse"];
  /** How many calls are taken; 16 unless set. */
  readonly maxCalls?: number;
}

/**
 * Checks the calls of a decision: tools that the step lists, within their limits, arguments that fit, and
 * references that lead somewhere. Pure.
 */
export function admitCalls(
  workflow: AnyWorkflow,
  step: string,
  calls: readonly Call[],
  { toolUse = {}, maxCalls = MAX_CALLS }: CallRules = {},
): { ok: true; calls: readonly Call[] } | { ok: false; refusal: Refusal } {
  if (calls.length > maxCalls) {
    const reason = `${calls.length} calls in one decision; at most ${maxCalls} are taken`;
    return { ok: false, refusal: { code: "INVALID_DECISION", reason } };
  }
  const tools = toolsOf(workflow, step);
  const admitted: Call[] = [];
  for (const call of calls) {
    const { tool: name, args } = call;
    const tool = tools.includes(name) ? workflow.tools[name] : undefined;
    if (!tool) {
      const has = tools.length > 0 ? `its tools are ${tools.join(", ")}` : "it has none";
      const reason = `step ${step} has no tool "${shorten(name, 80)}"; ${has}`;
      return { ok: false, refusal: { code: "UNKNOWN_TOOL", reason } };
    }
    const made = toolUse[name]?.calls ?? 0;
    if (tool.limit !== undefined && made + admitted.filter((other) => other.tool === name).length >= tool.limit) {
      const times = tool.limit === 1 ? "once" : `${tool.limit} times`;
      const reason = `${name} may be called ${times} in a task, and ${toldCalls(made)}: stop and report what you have`;
      return { ok: false, refusal: { code: "TOOL_LIMIT", reason } };
    }
    const checked = admitArguments(name, tool, args, refersToResults(workflow, step));
    if (!checked.ok) return { ok: false, refusal: { code: checked.code, reason: checked.reason } };
    const { id, expect } = call;
    admitted.push({ tool: name, args: checked.args, ...(id ? { id } : {}), ...(expect?.length ? { expect } : {}) });
  }
  const dependencies = dependenciesIn(workflow, step, admitted);
  if (!dependencies.ok) return { ok: false, refusal: { code: "INVALID_REFERENCE", reason: dependencies.reason } };
  return { ok: true, calls: admitted };
}

function toldCalls(made: number): string {
  if (made === 0) return "this decision has more";
  return made === 1 ? "one call has been made" : `${made} have been made`;
}

/** The tools that a step may call. */
export function toolsOf(workflow: AnyWorkflow, step: string): readonly string[] {
  const declared = workflow.steps[step];
  const mapped = declared?.map?.tool;
  return mapped === undefined ? (declared?.tools ?? []) : [...(declared?.tools ?? []), mapped];
}

/** Only a model refers to results. What code hands over is data, whatever it looks like: it may come from outside. */
function refersToResults(workflow: AnyWorkflow, step: string): boolean {
  const declared = workflow.steps[step];
  return !declared?.run && !declared?.map;
}

/** What the calls of a step need of one another, or which reference leads nowhere. Pure. */
export function dependenciesIn(
  workflow: AnyWorkflow,
  step: string,
  calls: readonly Call[],
): ({ readonly ok: true } & Dependencies) | Problem {
  if (refersToResults(workflow, step)) return dependenciesOf(calls, workflow.tools);
  return { ok: true, references: calls.map(() => []), needs: calls.map(() => []) };
}

type Arguments = Readonly<Record<string, unknown>>;

/** Arguments with references are checked as far as they are known; the rest when the references are resolved. */
function admitArguments(
  name: string,
  tool: AnyTool,
  args: Arguments,
  mayRefer: boolean,
): { ok: true; args: Record<string, unknown> } | { ok: false; code: ErrorCode; reason: string } {
  const found = mayRefer ? referencesIn(args) : NO_REFERENCES;
  if (!found.ok) return { ok: false, code: "INVALID_REFERENCE", reason: `${name}: ${found.reason}` };
  if (found.references.length === 0) {
    const checked = checkArguments(name, tool, args);
    return checked.ok ? checked : { ok: false, code: "INVALID_ARGUMENTS", reason: checked.reason };
  }
  const places = found.references.map(({ at }) => at);
  const parsed = tool.parameters.safeParse(args);
  const touches = (path: readonly PropertyKey[]) =>
    places.some((at) => at.every((key, depth) => depth >= path.length || String(path[depth]) === key));
  const issues = (parsed.error?.issues ?? []).filter(({ path }) => !touches(path) && !isAbsent(args, path));
  if (issues.length > 0) return { ok: false, code: "INVALID_ARGUMENTS", reason: tellIssues(name, issues) };
  const problem = notJson(args);
  if (problem) return { ok: false, code: "INVALID_ARGUMENTS", reason: notStorable(name, problem) };
  const bytes = Buffer.byteLength(JSON.stringify(args));
  if (bytes > MAX_ARGUMENT_BYTES) return { ok: false, code: "INVALID_ARGUMENTS", reason: tooLarge(name, bytes) };
  return { ok: true, args: { ...args } };
}

const NO_REFERENCES: ReturnType<typeof referencesIn> = { ok: true, references: [] };

/** Strict output modes write null for what is left out. */
function isAbsent(args: Arguments, path: readonly PropertyKey[]): boolean {
  return valueAt(args, path.map(String)).value === null;
}

/** The value without the nulls of its objects, at any depth, that stand for what is left out. */
function leaveOut(
  value: unknown,
  isAbsentAt: (path: readonly string[]) => boolean,
  path: readonly string[] = [],
): unknown {
  if (Array.isArray(value)) return value.map((item, index) => leaveOut(item, isAbsentAt, [...path, String(index)]));
  if (!isPlainObject(value)) return value;
  const present = Object.entries(value).filter(([key, item]) => item !== null || !isAbsentAt([...path, key]));
  return Object.fromEntries(present.map(([key, item]) => [key, leaveOut(item, isAbsentAt, [...path, key])]));
}

/** The arguments as they are; without the nulls that the schema points at; without any, where it is a union that does not tell. */
function parseArguments(tool: AnyTool, args: Arguments) {
  const parsed = tool.parameters.safeParse(args);
  if (parsed.success) return parsed;
  const faults = new Set(parsed.error.issues.map(({ path }) => JSON.stringify(path.map(String))));
  const pointed = tool.parameters.safeParse(leaveOut(args, (path) => faults.has(JSON.stringify(path))));
  if (pointed.success) return pointed;
  const bare = tool.parameters.safeParse(leaveOut(args, () => true));
  return bare.success ? bare : parsed;
}

/**
 * Checks the arguments of a call against the tool's schema. Strict output modes make every argument, nested ones
 * too, required and nullable, so a null that the schema does not take means that it was left out. Pure.
 */
export function checkArguments(
  name: string,
  tool: AnyTool,
  args: Arguments,
): { ok: true; args: Record<string, unknown> } | { ok: false; reason: string } {
  const parsed = parseArguments(tool, args);
  if (!parsed.success) {
    return { ok: false, reason: tellIssues(name, parsed.error.issues) };
  }
  const value = parsed.data;
  const problem = isPlainObject(value) ? notJson(value) : "they are no object";
  if (problem || !isPlainObject(value)) {
    return { ok: false, reason: notStorable(name, problem ?? "they are no object") };
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > MAX_ARGUMENT_BYTES) {
    return { ok: false, reason: tooLarge(name, bytes) };
  }
  // What a schema leaves undefined would not survive the checkpoint either.
  return { ok: true, args: JSON.parse(JSON.stringify(value)) as Record<string, unknown> };
}

function tellIssues(name: string, issues: readonly z.core.$ZodIssue[]): string {
  const told = issues.map((issue) => [issue.path.join("."), issue.message].filter(Boolean).join(": "));
  return `the arguments of ${name} do not fit: ${shorten(told.join("; "), 300)}`;
}

function notStorable(name: string, problem: string): string {
  return `the arguments of ${name} cannot be stored as JSON: ${problem}`;
}

function tooLarge(name: string, bytes: number): string {
  return `the arguments of ${name} have ${bytes} bytes, at most ${MAX_ARGUMENT_BYTES} are taken`;
}

/**
 * Turns texts into what the schema wants where a form can only send texts: Agent Inbox returns every
 * edited argument as one. Pure.
 */
export function coerceArguments(tool: AnyTool, args: Arguments): Record<string, unknown> {
  const parsed = tool.parameters.safeParse(args);
  if (parsed.success) return { ...args };
  const misfits = new Set(parsed.error.issues.map((issue) => issue.path[0]));
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [name, misfits.has(name) ? readJson(value) : value]),
  );
}

/** Names that the schema knows nothing of and drops: where a person wrote them, a slip. Pure. */
export function unknownArguments(tool: AnyTool, args: Arguments): readonly string[] {
  const { shape, def } = tool.parameters as { shape?: Readonly<Record<string, unknown>>; def: { catchall?: unknown } };
  return shape === undefined || def.catchall !== undefined
    ? []
    : Object.keys(args).filter((name) => !Object.hasOwn(shape, name));
}

/** What a text holds as JSON; what is none stays as it is. Pure. */
export function readJson(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
