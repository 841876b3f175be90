import { z } from "zod";
import { isPlainObject } from "../internal/json.ts";
import type { AnyWorkflow } from "./define.ts";
import type { RuntimeStep } from "./step.ts";
import type { Migration } from "./migrations.ts";
import type { ApprovalRule } from "./tool.ts";
import { toolsOf } from "./calls.ts";
import { NAME, type Fault } from "./fault.ts";
import { targets } from "./next-step.ts";

/** What is wrong with the tools of a definition and with where they are used. Pure. */
export function toolFaults(workflow: AnyWorkflow): readonly Fault[] {
  const used = new Set(Object.keys(workflow.steps).flatMap((step) => toolsOf(workflow, step)));
  return [
    ...interceptFaults("intercept", workflow.intercept),
    ...Object.keys(workflow.tools).flatMap((name) => declarationFaults(workflow, name, used.has(name))),
    ...Object.entries(workflow.steps).flatMap(([name, step]) => useFaults(workflow, `steps.${name}`, step)),
    ...keeperFaults(workflow),
  ];
}

/** A slip in a name would leave the state without what code should keep. */
function keeperFaults({ onResult, tools }: AnyWorkflow): Fault[] {
  return Object.keys(onResult).flatMap((name): Fault[] => {
    const path = `onResult.${name}`;
    if (!Object.hasOwn(tools, name)) return [{ path, code: "UNKNOWN_TOOL", message: `there is no tool "${name}"` }];
    const keeper: unknown = onResult[name];
    if (keeper === undefined || typeof keeper === "function") return [];
    return [{ path, code: "INVALID_TOOL", message: "must be a function" }];
  });
}

function declarationFaults(workflow: AnyWorkflow, name: string, used: boolean): Fault[] {
  const path = `tools.${name}`;
  const tool = workflow.tools[name];
  const faults: Fault[] = [];
  const fault = (code: Fault["code"], message: string) => faults.push({ path, code, message });
  if (!NAME.test(name)) fault("INVALID_NAME", "use 1 to 64 letters, digits, _ and -, starting with a letter");
  if (!tool || typeof tool.run !== "function") {
    fault("INVALID_TOOL", "is no tool; make it with defineTool");
    return faults;
  }
  if (!used) fault("UNUSED_TOOL", "no step lists it in its tools");
  if (!(tool.timeoutMs > 0)) fault("INVALID_LIMIT", "timeoutMs must be above 0");
  try {
    const schema = z.toJSONSchema(tool.parameters) as { type?: unknown };
    if (schema.type !== "object") fault("INVALID_TOOL", "its parameters must be a zod object");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    fault("INVALID_TOOL", `its parameters would not survive as JSON: ${why}`);
  }
  if (tool.limit !== undefined && !isCount(tool.limit)) {
    fault("INVALID_LIMIT", "limit must be a whole number of at least 1");
  }
  if (tool.result !== undefined && !(tool.result instanceof z.ZodType)) {
    fault("INVALID_TOOL", "its result must be a zod schema");
  }
  for (const part of ["conflicts", "onResult", "reconcile"] as const) {
    const given: unknown = tool[part];
    if (given !== undefined && typeof given !== "function") fault("INVALID_TOOL", `its ${part} must be a function`);
  }
  faults.push(...retryFaults(`${path}.retry`, tool.retry), ...interceptFaults(`${path}.intercept`, tool.intercept));
  if (typeof tool.approve === "object") faults.push(...ruleFaults(`${path}.approve`, tool.approve));
  return faults;
}

const isCount = (value: unknown) => typeof value === "number" && Number.isInteger(value) && value >= 1;

/** What is wrong with a rule of retries, which may come from where nobody checks types. */
function retryFaults(path: string, rule: unknown): readonly Fault[] {
  if (rule === undefined) return [];
  const fault = (code: Fault["code"], message: string): Fault => ({ path, code, message });
  if (!isPlainObject(rule)) return [fault("INVALID_TOOL", "must be an object: { tries, on, delayMs? }")];
  const { tries, on, delayMs = 0 } = rule;
  const isNamed = Array.isArray(on) && on.length > 0 && on.every((name) => typeof name === "string" && name !== "");
  return [
    ...(isCount(tries) ? [] : [fault("INVALID_LIMIT", "tries must be a whole number of at least 1")]),
    ...(isNamed || typeof on === "function"
      ? []
      : [fault("INVALID_TOOL", "on must name the errors that are tried again, or be a function")]),
    ...(typeof delayMs === "number" && delayMs >= 0 && Number.isFinite(delayMs)
      ? []
      : [fault("INVALID_LIMIT", "delayMs must be a number of at least 0")]),
  ];
}

function interceptFaults(path: string, intercept: unknown): readonly Fault[] {
  const checks: readonly unknown[] = intercept === undefined ? [] : [intercept].flat();
  if (checks.every((check) => typeof check === "function")) return [];
  return [{ path, code: "INVALID_TOOL", message: "must be a function or a list of functions" }];
}

function useFaults(workflow: AnyWorkflow, path: string, step: RuntimeStep): Fault[] {
  const faults: Fault[] = [];
  for (const tool of step.tools ?? []) {
    if (!Object.hasOwn(workflow.tools, tool)) {
      faults.push({ path: `${path}.tools`, code: "UNKNOWN_TOOL", message: `there is no tool "${tool}"` });
    }
  }
  if (step.tools && step.workflow) {
    faults.push({ path, code: "INVALID_STEP", message: "runs a workflow, which has tools of its own" });
  }
  const approvals = Array.isArray(step.approve)
    ? step.approve.map((tool: string) => [tool, true] as const)
    : Object.entries(step.approve ?? {});
  for (const [tool, approval] of approvals) {
    if (!step.tools?.includes(tool)) {
      const message = `asks for an approval of "${tool}", which this step does not list in its tools`;
      faults.push({ path: `${path}.approve`, code: "APPROVAL_WITHOUT_TOOL", message });
    }
    if (typeof approval === "object") faults.push(...ruleFaults(`${path}.approve.${tool}`, approval as ApprovalRule));
  }
  const { deadline } = step;
  if (!deadline) return faults;
  if (!(deadline.afterMs > 0)) {
    faults.push({ path: `${path}.deadline`, code: "INVALID_LIMIT", message: "afterMs must be above 0" });
  }
  if (!targets(step).includes(deadline.to)) {
    const message = `leads to "${deadline.to}", which is not among the steps that may follow (to)`;
    faults.push({ path: `${path}.deadline`, code: "UNKNOWN_STEP", message });
  }
  return faults;
}

/** What is wrong with an approval rule. */
function ruleFaults(path: string, rule: ApprovalRule): readonly Fault[] {
  const { approvers, count = 1, expiresAfterMs = 1 } = rule;
  const fault = (message: string): Fault => ({ path, code: "INVALID_APPROVAL", message });
  const people = approvers && new Set(approvers).size;
  return [
    ...(Number.isInteger(count) && count >= 0 ? [] : [fault("count must be a whole number")]),
    ...(people !== undefined && people < count
      ? [fault(`asks for ${count} people and names ${people}: it could never be given`)]
      : []),
    ...(approvers?.some((name) => name.trim() === "") ? [fault("an approver's name is empty")] : []),
    ...(expiresAfterMs > 0 ? [] : [fault("expiresAfterMs must be above 0")]),
  ];
}

/** What is wrong with the migrations of a definition: they have to lead to what there is now. Pure. */
export function migrationFaults(workflow: AnyWorkflow): readonly Fault[] {
  const faults: Fault[] = [];
  const versions = Object.keys(workflow.migrations).map(Number);
  for (const version of versions) {
    const path = `migrations.${version}`;
    const fault = (message: string) => faults.push({ path, code: "INVALID_MIGRATION", message });
    if (!Number.isInteger(version) || version < 2 || version > workflow.version) {
      fault(`leads to version ${version}; migrations lead to versions 2 to ${workflow.version}`);
      continue;
    }
    const migration: Migration = workflow.migrations[version] ?? {};
    // What an older migration leads to may have been renamed or removed by a newer one since.
    const since = versions.filter((other) => other > version).toSorted((a, b) => a - b);
    const later = since.map((other): Migration => workflow.migrations[other] ?? {});
    const fields = [...Object.values(migration.renameFields ?? {}), ...Object.keys(migration.changeFields ?? {})];
    for (const name of fields.filter((name) => !leadsTo(workflow.state, name, later, "renameFields", "removeFields")))
      fault(`there is no field "${name}"`);
    const steps = [...Object.values(migration.renameSteps ?? {}), ...Object.values(migration.removeSteps ?? {})];
    for (const name of steps.filter((name) => !leadsTo(workflow.steps, name, later, "renameSteps", "removeSteps")))
      fault(`there is no step "${name}"`);
    const removedFields = migration.removeFields ?? [];
    const removedSteps = Object.keys(migration.removeSteps ?? {});
    for (const name of removedFields.filter((name) => Object.hasOwn(migration.renameFields ?? {}, name)))
      fault(`field "${name}" is renamed and removed; do one`);
    for (const name of removedSteps.filter((name) => Object.hasOwn(migration.renameSteps ?? {}, name)))
      fault(`step "${name}" is renamed and removed; do one`);
    if (version !== workflow.version) continue;
    const taken = new Set([
      ...Object.values(migration.renameFields ?? {}),
      ...Object.values(migration.renameSteps ?? {}),
    ]);
    for (const name of removedFields.filter((name) => Object.hasOwn(workflow.state, name) && !taken.has(name)))
      fault(`removes field "${name}", which is there`);
    for (const name of removedSteps.filter((name) => Object.hasOwn(workflow.steps, name) && !taken.has(name)))
      fault(`removes step "${name}", which is there`);
  }
  return faults;
}

/** Whether a name of some version is, by the migrations since, one of today's names, or gone on purpose. */
function leadsTo(
  known: Readonly<Record<string, unknown>>,
  name: string,
  later: readonly Migration[],
  renames: "renameFields" | "renameSteps",
  removes: "removeFields" | "removeSteps",
): boolean {
  let now = name;
  for (const migration of later) {
    const removed = migration[removes] ?? [];
    if (Array.isArray(removed) ? removed.includes(now) : Object.hasOwn(removed, now)) return true;
    const renamed = migration[renames] ?? {};
    now = (Object.hasOwn(renamed, now) ? renamed[now] : undefined) ?? now;
  }
  return Object.hasOwn(known, now);
}
