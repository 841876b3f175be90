import { isPlainObject, notJson, shorten } from "../internal/json.ts";
import type { Call } from "../state/execution.ts";
import type { Refusal } from "../state/patch.ts";
import type { AnyWorkflow } from "./define.ts";
import type { AnyTool } from "./tool.ts";

/** More calls than this in one decision are taken for a mistake. */
const MAX_CALLS = 16;
const MAX_ARGUMENT_BYTES = 32_768;

type Arguments = Readonly<Record<string, unknown>>;

/** Checks the calls of a decision: tools that the step lists, arguments that fit. Pure. */
export function admitCalls(
  workflow: AnyWorkflow,
  step: string,
  calls: readonly Call[],
): { ok: true; calls: readonly Call[] } | { ok: false; refusal: Refusal } {
  if (calls.length > MAX_CALLS) {
    const reason = `${calls.length} calls in one decision; at most ${MAX_CALLS} are taken`;
    return { ok: false, refusal: { code: "INVALID_DECISION", reason } };
  }
  const tools = workflow.steps[step]?.tools ?? [];
  const admitted: Call[] = [];
  for (const { tool: name, args } of calls) {
    const tool = tools.includes(name) ? workflow.tools[name] : undefined;
    if (!tool) {
      const has = tools.length > 0 ? `its tools are ${tools.join(", ")}` : "it has none";
      const reason = `step ${step} has no tool "${shorten(name, 80)}"; ${has}`;
      return { ok: false, refusal: { code: "UNKNOWN_TOOL", reason } };
    }
    const checked = checkArguments(name, tool, args);
    if (!checked.ok) return { ok: false, refusal: { code: "INVALID_ARGUMENTS", reason: checked.reason } };
    admitted.push({ tool: name, args: checked.args });
  }
  return { ok: true, calls: admitted };
}

/**
 * Checks the arguments of a call against the tool's schema. Strict output modes make every argument
 * required and nullable, so a null that the schema does not take means that it was left out. Pure.
 */
export function checkArguments(
  name: string,
  tool: AnyTool,
  args: Arguments,
): { ok: true; args: Record<string, unknown> } | { ok: false; reason: string } {
  let parsed = tool.parameters.safeParse(args);
  if (!parsed.success) {
    const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
    const again = tool.parameters.safeParse(given);
    if (again.success) parsed = again;
  }
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => [issue.path.join("."), issue.message].filter(Boolean).join(": "));
    return { ok: false, reason: `the arguments of ${name} do not fit: ${shorten(issues.join("; "), 300)}` };
  }
  const value = parsed.data;
  const problem = isPlainObject(value) ? notJson(value) : "they are no object";
  if (problem || !isPlainObject(value)) {
    return { ok: false, reason: `the arguments of ${name} cannot be stored as JSON: ${problem}` };
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > MAX_ARGUMENT_BYTES) {
    return {
      ok: false,
      reason: `the arguments of ${name} have ${bytes} bytes, at most ${MAX_ARGUMENT_BYTES} are taken`,
    };
  }
  // What a schema leaves undefined would not survive the checkpoint either.
  return { ok: true, args: JSON.parse(JSON.stringify(value)) as Record<string, unknown> };
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

function readJson(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
