import { WorkflowError } from "../errors.ts";
import { frozenCopy, isPlainObject, jsonEqual, shorten } from "../internal/json.ts";
import type { Execution, Pending } from "../state/execution.ts";
import { isFieldChannel } from "../state/fields.ts";

/** How a stored task of the version before becomes one of this version. */
export interface Migration {
  /** Fields that have another name now: old name to new. */
  readonly renameFields?: Readonly<Record<string, string>>;
  /** Fields whose values have another form now, by their new names. Null stays null. */
  readonly changeFields?: Readonly<Record<string, (value: unknown) => unknown>>;
  /** Fields that there are no longer. */
  readonly removeFields?: readonly string[];
  /** Steps that have another name now: old name to new. */
  readonly renameSteps?: Readonly<Record<string, string>>;
  /** Steps that there are no longer, with the step where a task that stood there goes on. */
  readonly removeSteps?: Readonly<Record<string, string>>;
}

/** Migrations by the version that each leads to. */
export type Migrations = Readonly<Record<number, Migration>>;

type Bag = Readonly<Record<string, unknown>>;
/** Channel versions: numbers or sortable texts, as the checkpointer makes them. */
type Versions = Readonly<Record<string, number | string>>;

/** Everything in a task's latest checkpoint that holds names of a workflow. */
export interface StoredTask {
  readonly execution: Execution;
  /** The channels that have values: fields, `execution`, and where the graph goes next. */
  readonly values: Bag;
  readonly channelVersions: Versions;
  /** Which versions of its channels each node has seen. */
  readonly versionsSeen: Readonly<Record<string, Versions>>;
}

/** LangGraph's channel that leads to a node is named after it. */
const BRANCH = "branch:to:";
/** The channel that holds a task's input until its first step. */
export const START_CHANNEL = "__start__";

/**
 * Applies one declared migration to everything that holds a name. All renames count at once, so names
 * can be swapped. What it leads to is not checked here. Pure.
 *
 * @param note gets what was done, in words; only what this task was touched by.
 * @throws STEP_FAILED with `details.field` where a function of `changeFields` throws.
 */
export function applyMigration(task: StoredTask, migration: Migration, note: (done: string) => void): StoredTask {
  const names = new Names(migration);
  noteNames(task, migration, note);
  const values = Object.entries(task.values).map(([channel, value]): [string | null, unknown] => {
    const name = names.channel(channel);
    if (name !== null && isFieldChannel(channel)) return [name, names.changed(name, value, note)];
    if (channel === START_CHANNEL && isPlainObject(value)) return [name, names.fields(value, true)];
    if (channel.startsWith(BRANCH) && typeof value === "string") return [name, names.place(value)];
    return [name, value];
  });
  const execution = migrateRecord(task.execution, names);
  return {
    execution,
    values: { ...kept(values), execution },
    channelVersions: renameVersions(task.channelVersions, names),
    versionsSeen: renameSeen(task.versionsSeen, names),
  };
}

/** What one migration makes of the names of the version before. */
class Names {
  private readonly migration: Migration;

  constructor(migration: Migration) {
    this.migration = migration;
  }

  /** A field's name now; null where there is no such field any more. */
  field(name: string): string | null {
    if (this.migration.removeFields?.includes(name)) return null;
    return own(this.migration.renameFields, name) ?? name;
  }

  /** A step's name now; null where there is no such step any more. */
  step(name: string): string | null {
    if (own(this.migration.removeSteps, name) !== undefined) return null;
    return own(this.migration.renameSteps, name) ?? name;
  }

  /** Where a task goes on that stood at a step. */
  place(name: string): string {
    return own(this.migration.removeSteps, name) ?? own(this.migration.renameSteps, name) ?? name;
  }

  channel(name: string): string | null {
    if (name.startsWith(BRANCH)) return BRANCH + this.place(name.slice(BRANCH.length));
    return isFieldChannel(name) ? this.field(name) : name;
  }

  /** A value in its new form, by the field's new name. */
  changed(name: string, value: unknown, note?: (done: string) => void): unknown {
    const change = own(this.migration.changeFields, name);
    if (!change || value === null || value === undefined) return value;
    let now: unknown;
    try {
      now = change(frozenCopy(value)) ?? null;
    } catch (error) {
      const said = shorten(error instanceof Error ? error.message : String(error));
      const message = `changeFields.${name} threw: ${said}`;
      throw new WorkflowError("STEP_FAILED", message, { cause: error, details: { field: name } });
    }
    if (!jsonEqual(value, now)) note?.(`field ${name} changed its form`);
    return now;
  }

  /** A bag of fields by their new names; with `change`, in their new forms too. */
  fields(bag: Bag, change: boolean): Bag {
    return kept(
      Object.entries(bag).map(([old, value]): [string | null, unknown] => {
        const name = this.field(old);
        return [name, name !== null && change ? this.changed(name, value) : value];
      }),
    );
  }
}

function migrateRecord(execution: Execution, names: Names): Execution {
  const { pending, lastError, last } = execution;
  const made: Record<string, number> = {};
  for (const [step, count] of Object.entries(execution.decisionsByStep)) {
    const name = names.step(step);
    if (name !== null) made[name] = (made[name] ?? 0) + count;
  }
  return {
    ...execution,
    step: names.place(execution.step),
    completedSteps: [...new Set(execution.completedSteps.flatMap((step) => names.step(step) ?? []))],
    decisionsByStep: made,
    pending: pending && migratePending(pending, execution.step, names),
    lastError: lastError && { ...lastError, step: names.place(lastError.step) },
    last: last && {
      ...last,
      step: names.place(last.step),
      decision: last.decision && { ...last.decision, ...renamedDecision(last.decision, names, false) },
    },
  };
}

function migratePending(pending: Pending, step: string, names: Names): Pending {
  if (pending.kind === "calls") {
    return { ...pending, ...(renamedDecision(pending, names, true) as Partial<typeof pending>) };
  }
  // The child's task is named by the step that started it.
  return (pending.kind === "workflow" || pending.kind === "workflows") && names.place(step) !== step
    ? { ...pending, startedAt: pending.startedAt ?? step }
    : pending;
}

/** The parts of a decision that hold names. What was decided is the past: only what will commit changes its form. */
function renamedDecision(decision: Bag, names: Names, change: boolean): Bag {
  const { patch, clear, next } = decision;
  return {
    ...(isPlainObject(patch) ? { patch: names.fields(patch, change) } : {}),
    ...(Array.isArray(clear) ? { clear: clear.flatMap((name) => names.field(String(name)) ?? []) } : {}),
    ...(typeof next === "string" ? { next: names.place(next) } : {}),
  };
}

function renameVersions(versions: Versions, names: Names): Versions {
  const renamed: Record<string, number | string> = {};
  for (const [channel, version] of Object.entries(versions)) {
    const name = names.channel(channel);
    if (name !== null) renamed[name] = later(renamed[name], version);
  }
  return renamed;
}

function renameSeen(seen: StoredTask["versionsSeen"], names: Names): StoredTask["versionsSeen"] {
  const renamed: Record<string, Record<string, number | string>> = {};
  for (const [node, versions] of Object.entries(seen)) {
    // What a removed step has seen says nothing about the step where the task goes on.
    const name = names.step(node);
    if (name === null) continue;
    const merged = (renamed[name] ??= {});
    for (const [channel, version] of Object.entries(renameVersions(versions, names))) {
      merged[channel] = later(merged[channel], version);
    }
  }
  return renamed;
}

/** Where two channels become one, the later version counts: it is the one that may not have been seen. */
function later(a: number | string | undefined, b: number | string): number | string {
  return a !== undefined && a > b ? a : b;
}

function noteNames(task: StoredTask, migration: Migration, note: (done: string) => void): void {
  const { step, completedSteps, decisionsByStep } = task.execution;
  const visited = new Set([step, ...completedSteps, ...Object.keys(decisionsByStep)]);
  const has = (field: string) => (task.values[field] ?? null) !== null;
  for (const [old, name] of Object.entries(migration.renameSteps ?? {})) {
    if (visited.has(old)) note(`step ${old} is now ${name}`);
  }
  for (const [old, place] of Object.entries(migration.removeSteps ?? {})) {
    if (old === step) note(`step ${old} is gone, the task goes on at ${place}`);
  }
  for (const [old, name] of Object.entries(migration.renameFields ?? {})) {
    if (has(old)) note(`field ${old} is now ${name}`);
  }
  for (const old of migration.removeFields ?? []) if (has(old)) note(`field ${old} is gone`);
}

function own<T>(names: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return names && Object.hasOwn(names, name) ? names[name] : undefined;
}

function kept(entries: readonly (readonly [string | null, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries.filter((entry): entry is [string, unknown] => entry[0] !== null));
}
