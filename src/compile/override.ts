import { WorkflowError } from "../errors.ts";
import { jsonEqual } from "../internal/json.ts";
import type { Execution } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { cancelled, type Cancellation } from "../workflow/record.ts";

/** What an override changes: the step, fields, or both; and why. */
export interface Override {
  readonly step?: string;
  readonly values?: Readonly<Record<string, unknown>>;
  readonly reason: string;
}

const KEY = "__statecard_permit";

/** What somebody may write past the table, and why. The kind is also that of the event which logs it. */
export interface Permission extends Cancellation {
  readonly kind: "override" | "cancelled";
}

/** The right to write one checkpoint past the table. JSON cannot make one, so no client can. */
class Permit {
  readonly #permission: Permission;

  constructor(permission: Permission) {
    this.#permission = permission;
  }

  static read(value: unknown): Permission | null {
    return typeof value === "object" && value !== null && #permission in value ? value.#permission : null;
  }
}

/** Gives the right to end a task for good. */
export function permitCancel({ who, reason }: Cancellation): Readonly<Record<string, unknown>> {
  return { [KEY]: new Permit({ kind: "cancelled", who, reason }) };
}

/**
 * Gives the right to write past the table, to somebody with a name and for a reason; both are logged.
 *
 * @throws OVERRIDE_REFUSED without a name or a reason.
 */
export function permitOverride(who: string | null, reason: string): Readonly<Record<string, unknown>> {
  if (who === null) {
    throw new WorkflowError("OVERRIDE_REFUSED", "an override needs to know who does it, and nobody is signed in");
  }
  if (reason.trim() === "") {
    throw new WorkflowError("OVERRIDE_REFUSED", "an override needs a reason: it is logged, and somebody will ask");
  }
  return { [KEY]: new Permit({ kind: "override", who, reason }) };
}

/** What a write may do past the table, where it has the right to anything. */
export function permissionIn(configurable: unknown): Permission | null {
  return Permit.read((configurable as Readonly<Record<string, unknown>> | undefined)?.[KEY]);
}

/**
 * The record after an override. What was pending is dropped; the limits that were used stay used. Pure.
 *
 * @throws INVALID_UPDATE where a step or value is not one of the workflow's.
 */
export function overridden(workflow: AnyWorkflow, execution: Execution, change: Override): Execution {
  const step = change.step ?? execution.step;
  const invalid = (why: string) => new WorkflowError("INVALID_UPDATE", `the override was refused: ${why}`);
  if (!Object.hasOwn(workflow.steps, step)) {
    throw invalid(`there is no step "${step}"; the steps are: ${Object.keys(workflow.steps).join(", ")}`);
  }
  for (const [name, value] of Object.entries(change.values ?? {})) {
    const field = Object.hasOwn(workflow.state, name) ? workflow.state[name] : undefined;
    if (!field) throw invalid(`there is no field "${name}"; the fields are: ${Object.keys(workflow.state).join(", ")}`);
    const checked = value === null ? { ok: true as const } : field.check(value);
    if (!checked.ok) throw invalid(`"${name}": ${checked.reason}`);
  }
  const isFinal = workflow.steps[step]?.final === true;
  const moved = step !== execution.step;
  const completedSteps = moved && !execution.completedSteps.includes(execution.step);
  return {
    ...execution,
    step,
    status: isFinal ? "completed" : "running",
    completedSteps: completedSteps ? [...execution.completedSteps, execution.step] : execution.completedSteps,
    retryCount: moved ? 0 : execution.retryCount,
    pending: null,
    lastError: null,
    revision: execution.revision + 1,
    last: null,
  };
}

/** Whether a record is the one that an override of its parent makes, apart from what overrides may change. Pure. */
export function isOverrideOf(workflow: AnyWorkflow, from: Execution, execution: Execution): boolean {
  return (
    Object.hasOwn(workflow.steps, execution.step) &&
    jsonEqual(execution, overridden(workflow, from, { step: execution.step, reason: "" }))
  );
}

/** Whether a record is the one that cancelling its parent makes. A task that has come to its end cannot be cancelled. Pure. */
export function isCancelOf(from: Execution, execution: Execution, by: Cancellation): boolean {
  const hasEnded = from.status === "completed" || from.status === "cancelled";
  return !hasEnded && jsonEqual(execution, cancelled(from, by));
}
