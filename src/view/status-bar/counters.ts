import type { CallResult, ToolUse } from "../../state/execution.ts";
import type { AnyWorkflow } from "../../workflow/define.ts";
import type { StatusBarInput } from "./input.ts";

/** The record keeps no more of a tool's failures in a row than these. */
const FAILURES_KEPT = 3;

/**
 * How often a tool was called with its latest result, and what follows from that. That calls bring nothing new is said
 * by the observation's own note, whatever is switched off here.
 */
export function counterLines(input: StatusBarInput, result: CallResult): readonly string[] {
  const { workflow, snapshot } = input;
  const tool = ownValue(workflow.tools, result.tool);
  const use = ownValue(snapshot.execution.toolUse ?? {}, result.tool);
  if (!tool || !use) return [];
  const { calls } = use;
  const { limit } = tool;
  if (limit !== undefined && calls >= limit) return [`${calls} of ${limit} calls allowed: stop calling it and report`];
  const counted = limit === undefined ? `call ${calls} of ${result.tool}` : `call ${calls} of ${limit} allowed`;
  const rule = afterFailure(workflow, snapshot.execution.step, result, use);
  if (rule) return [calls > 1 ? `${counted}; ${rule}` : rule];
  return calls > 1 ? [counted] : [];
}

/** What to do about a failure: look at the arguments, look at what there is, give up. */
function afterFailure(workflow: AnyWorkflow, step: string, result: CallResult, use: ToolUse): string | null {
  if (result.status !== "error" && result.status !== "timeout") return null;
  const failures = use.failed.length;
  if (failures <= 1) return "check its arguments before you call it again";
  if (failures < FAILURES_KEPT) return `failed ${failures} times in a row: ${lookFirst(workflow, step, result.tool)}`;
  return `failed ${FAILURES_KEPT} or more times in a row: give it up and report what is missing`;
}

function lookFirst(workflow: AnyWorkflow, step: string, failed: string): string {
  const readers = (workflow.steps[step]?.tools ?? []).filter(
    (name) => name !== failed && ownValue(workflow.tools, name)?.effect === "read",
  );
  if (readers.length === 0) return "use only names and values that you have seen";
  return `find out what there is first (${readers.slice(0, 3).join(", ")}), then call it with what you found`;
}

/** A member of a record that may come from a database: nothing from its prototype. */
function ownValue<T>(all: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(all, name) ? all[name] : undefined;
}
