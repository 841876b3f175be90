import { isWorkflowError } from "../errors.ts";
import { frozenCopy, isPlainObject, jsonEqual, shorten } from "../internal/json.ts";
import { executionSchema, type Execution } from "../state/execution.ts";
import { isFieldChannel, pickState, type State } from "../state/fields.ts";
import { admitDecision } from "./advance.ts";
import type { AnyWorkflow } from "./define.ts";
import { applyMigration, START_CHANNEL, type StoredTask } from "./migrations.ts";

/** Why a stored task cannot be run by a workflow. Nothing of it is changed until that is settled. */
export interface Quarantine {
  readonly kind: "quarantined";
  readonly reason: string;
  /** The version that the task was stored by, and the workflow's. */
  readonly from: number;
  readonly to: number;
  /** True where the workflow was changed without a new version, as while developing. */
  readonly sameVersion: boolean;
  readonly field?: string;
  readonly step?: string;
  readonly tool?: string;
  /** All fields whose values do not fit, of which the reason names the first. */
  readonly unfit: readonly string[];
}

/** A stored task as a workflow of today takes it. */
export type Verdict =
  | { readonly kind: "fits" }
  | {
      readonly kind: "migrated";
      readonly task: StoredTask;
      readonly from: number;
      readonly to: number;
      /** What was done, in words. */
      readonly steps: readonly string[];
    }
  | Quarantine;

/** What is wrong with a task for its workflow, and the name that is to blame. */
type Misfit = Pick<Quarantine, "reason" | "field" | "step" | "tool"> & { readonly unfit?: readonly string[] };

/**
 * Makes a stored task one of the workflow's present version: applies the declared migrations version by
 * version, then checks that everything fits. What does not is quarantined, never guessed. Pure; doing it
 * twice changes nothing more.
 *
 * @param stored of a task of this workflow, whatever the version.
 */
export function migrateTask(workflow: AnyWorkflow, stored: StoredTask): Verdict {
  const from = stored.execution.version;
  const to = workflow.version;
  const quarantine = ({ unfit = [], ...misfit }: Misfit): Quarantine => ({
    kind: "quarantined",
    from,
    to,
    sameVersion: from === to,
    unfit,
    ...misfit,
  });
  const parsed = executionSchema.safeParse(stored.execution);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return quarantine({ reason: `its execution record is damaged at ${issue?.path.join(".")}: ${issue?.message}` });
  }
  if (from > to) {
    return quarantine({
      reason: `it was written by version ${from}, a newer release than this one, which has version ${to}; run it with that release`,
    });
  }
  const steps: string[] = [];
  const note = (done: string) => steps.push(done);
  let task = stored;
  try {
    for (let version = from + 1; version <= to; version++) {
      const migration = workflow.migrations[version];
      if (migration) task = applyMigration(task, migration, note);
    }
  } catch (error) {
    if (!isWorkflowError(error, "STEP_FAILED")) throw error;
    return quarantine({ reason: error.message, field: String(error.details.field) });
  }
  task = settle(workflow, task, note);
  const misfit = findMisfit(workflow, task, from);
  if (misfit) return quarantine(misfit);
  return jsonEqual(task, stored) ? { kind: "fits" } : { kind: "migrated", task, from, to, steps };
}

/** The same task without the values of some fields, which is how a developer lets it go on. Pure. */
export function emptyFields(stored: StoredTask, fields: readonly string[]): StoredTask {
  const emptied = (bag: StoredTask["values"]) =>
    Object.fromEntries(Object.entries(bag).map(([name, value]) => [name, fields.includes(name) ? null : value]));
  const input = stored.values[START_CHANNEL];
  const start = isPlainObject(input) ? { [START_CHANNEL]: emptied(input) } : {};
  return { ...stored, values: { ...emptied(stored.values), ...start } };
}

/** What needs no declaration: the version, fields that are new or were empty, names that only the past knows. */
function settle(workflow: AnyWorkflow, task: StoredTask, note: (done: string) => void): StoredTask {
  const { execution } = task;
  const isNewVersion = execution.version !== workflow.version;
  const values: Record<string, unknown> = {};
  const gone = new Set<string>();
  for (const [name, value] of Object.entries(task.values)) {
    if (isFieldChannel(name) && !Object.hasOwn(workflow.state, name) && value === null) gone.add(name);
    else values[name] = Object.hasOwn(workflow.state, name) ? completed(workflow, name, value) : value;
  }
  // LangGraph gives a missing channel its default, null, so that alone makes no task another one.
  const fresh = Object.keys(workflow.state).filter((name) => isNewVersion && !Object.hasOwn(values, name));
  for (const name of fresh) {
    values[name] = null;
    note(`field ${name} is new and empty`);
  }
  const record = settleRecord(workflow, execution, values[START_CHANNEL] !== undefined);
  const versions = Object.entries(task.channelVersions).filter(([name]) => !gone.has(name));
  return {
    execution: record,
    values: { ...values, execution: record },
    channelVersions: Object.fromEntries(versions),
    versionsSeen: task.versionsSeen,
  };
}

/** Parts of a value that its schema has got defaults for since. */
function completed(workflow: AnyWorkflow, name: string, value: unknown): unknown {
  const checked = value === null ? undefined : workflow.state[name]?.check(value);
  return checked?.ok && !jsonEqual(checked.value, value) ? checked.value : value;
}

function settleRecord(workflow: AnyWorkflow, execution: Execution, notStarted: boolean): Execution {
  const isStep = (name: string) => Object.hasOwn(workflow.steps, name);
  const step = notStarted ? workflow.initial : execution.step;
  const { lastError } = execution;
  return {
    ...execution,
    version: workflow.version,
    step,
    completedSteps: execution.completedSteps.filter(isStep),
    decisionsByStep: Object.fromEntries(Object.entries(execution.decisionsByStep).filter(([name]) => isStep(name))),
    lastError: lastError && !isStep(lastError.step) ? { ...lastError, step } : lastError,
  };
}

/** The first thing that does not fit, or null. */
function findMisfit(workflow: AnyWorkflow, task: StoredTask, from: number): Misfit | null {
  const state = pickState(workflow.state, task.values);
  return (
    stepMisfit(workflow, task.execution, from) ??
    fieldMisfit(workflow, task.values, from) ??
    ruleMisfit(workflow, state) ??
    pendingMisfit(workflow, task.execution, state)
  );
}

function stepMisfit(workflow: AnyWorkflow, { step, status }: Execution, from: number): Misfit | null {
  const declared = Object.hasOwn(workflow.steps, step) ? workflow.steps[step] : undefined;
  if (!declared) {
    const steps = listed(Object.keys(workflow.steps));
    const reason = `step "${step}" is not in version ${workflow.version}, whose steps are ${steps}; ${declare(workflow, from, `renameSteps: { ${key(step)}: "…" }`, "or removeSteps with the step where the task goes on")}`;
    return { reason, step };
  }
  if (declared.final && status !== "completed") {
    return { reason: `it stands at step "${step}", which ends a task now, but it has not ended`, step };
  }
  if (!declared.final && status === "completed") {
    return { reason: `it has ended at step "${step}", which ends no task now`, step };
  }
  return null;
}

function fieldMisfit(workflow: AnyWorkflow, values: StoredTask["values"], from: number): Misfit | null {
  const misfits: { field: string; reason: string }[] = [];
  const input = values[START_CHANNEL];
  for (const [name, value] of [...Object.entries(values), ...Object.entries(isPlainObject(input) ? input : {})]) {
    if (!isFieldChannel(name) || value === null) continue;
    const field = Object.hasOwn(workflow.state, name) ? workflow.state[name] : undefined;
    if (!field) {
      const fields = listed(Object.keys(workflow.state));
      const reason = `field "${name}" has a value and is not in version ${workflow.version}, whose fields are ${fields}; ${declare(workflow, from, `renameFields: { ${key(name)}: "…" }`, "or removeFields")}`;
      misfits.push({ field: name, reason });
      continue;
    }
    const checked = field.check(value);
    if (checked.ok) continue;
    const reason = `field "${name}" was ${kindOf(value)} and does not fit its schema: ${checked.reason}; ${declare(workflow, from, `changeFields: { ${key(name)}: (value) => … }`)}`;
    misfits.push({ field: name, reason });
  }
  const [worst] = misfits;
  return worst ? { ...worst, unfit: misfits.map(({ field }) => field) } : null;
}

function ruleMisfit(workflow: AnyWorkflow, state: State): Misfit | null {
  for (const [rule, check] of Object.entries(workflow.checks)) {
    try {
      const reason = check(frozenCopy(state));
      if (reason) return { reason: `its state breaks the rule "${rule}": ${shorten(reason)}` };
    } catch (error) {
      const said = shorten(error instanceof Error ? error.message : String(error));
      return { reason: `the rule "${rule}" threw on its state: ${said}` };
    }
  }
  return null;
}

/** Refusals that come from names and schemas. Others depend on the state, and their time is when the results are there. */
const STRUCTURAL = new Set<string>([
  "UNKNOWN_TOOL",
  "INVALID_ARGUMENTS",
  "INVALID_REFERENCE",
  "UNKNOWN_FIELD",
  "INVALID_FIELD",
  "FIELD_TOO_LARGE",
  "FIELD_NOT_WRITABLE",
  "NOT_CLEARABLE",
  "ILLEGAL_TRANSITION",
]);

function pendingMisfit(workflow: AnyWorkflow, execution: Execution, state: State): Misfit | null {
  const { pending, step } = execution;
  if (pending?.kind === "workflow" || pending?.kind === "workflows") {
    const declared = workflow.steps[step];
    const child = (pending.kind === "workflow" ? declared?.workflow : declared?.map?.workflow)?.name;
    if (child === pending.workflow) return null;
    const now = child === undefined ? "no workflow" : `workflow "${child}"`;
    return { reason: `it runs workflow "${pending.workflow}" in step "${step}", which runs ${now} now`, step };
  }
  if (pending?.kind !== "calls") return null;
  try {
    const admitted = admitDecision(workflow, { execution, state: frozenCopy(state) }, pending);
    if (admitted.ok || !STRUCTURAL.has(admitted.refusal.code)) return null;
    const { code, reason, field } = admitted.refusal;
    const tool = pending.calls.find((call) => reason.includes(call.tool))?.tool;
    return {
      reason: `the decision that waits for its calls does not fit any more: ${reason}`,
      ...(field === undefined ? {} : { field }),
      ...(tool !== undefined && (code === "UNKNOWN_TOOL" || code === "INVALID_ARGUMENTS") ? { tool } : {}),
    };
  } catch (error) {
    // A condition that throws is reported where it is asked again: when the results are there.
    if (isWorkflowError(error)) return null;
    throw error;
  }
}

function declare(workflow: AnyWorkflow, from: number, what: string, or = ""): string {
  if (from === workflow.version) return "the workflow was changed and its version was not";
  return `declare it: migrations: { ${workflow.version}: { ${what} } }${or && `, ${or}`}`;
}

function key(name: string): string {
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name) ? name : JSON.stringify(name);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "a text";
  if (typeof value === "boolean") return "true or false";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "none") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
