import { WorkflowError } from "../errors.ts";
import type { CallResult, Execution } from "../state/execution.ts";
import type { Fields, PatchOf, State, StateOf, ValueOf } from "../state/fields.ts";
import type { CrossFieldCheck } from "../state/patch.ts";
import type { Migrations } from "./migrations.ts";
import type { Move } from "./next-step.ts";
import type { Role } from "./role.ts";
import type { SensitiveData } from "./sensitive.ts";
import type { RuntimeStep, Step } from "./step.ts";
import type { Interceptor, Tools } from "./tool.ts";
import { findFaults } from "./validate.ts";
import { keyFaults } from "./validate-steps.ts";

/** What `defineWorkflow` takes. */
export interface WorkflowDefinition<
  F extends Fields,
  N extends string,
  I extends keyof F & string,
  T extends Tools = Tools,
> {
  readonly name: string;
  /** A whole number from 1; raise it when the state or the steps change. */
  readonly version: number;
  /** One sentence: what the workflow is for. The model reads it first. */
  readonly goal?: string;
  /** How the model should behave in every step. */
  readonly instructions?: string;
  /** Who the model is: `loadRole("role.md")`. Its parts are shown where they matter. */
  readonly role?: Role | null;
  readonly state: F;
  /** Fields that a caller may set when the task starts; those that the first step requires, it has to. */
  readonly input?: readonly I[];
  /** Rules over several fields, by name; each returns the reason where the state breaks it. */
  readonly checks?: Readonly<Record<string, CrossFieldCheck<StateOf<F>>>>;
  /** What steps may call, by name. */
  readonly tools?: T;
  /** True where messages and answers come from strangers: then they count as text from outside, as tool results do. */
  readonly untrustedMessages?: boolean;
  /**
   * What else may not leave the machine without consent, beside fields and tools that say so of themselves; each
   * names the kind of data that it is.
   */
  readonly sensitive?: SensitiveData;
  /** Checks every call before it runs, whatever tool it is of and whatever the model says. */
  readonly intercept?: Interceptor | readonly Interceptor[];
  /**
   * What code keeps of a tool's result, by tool: a patch that commits with the result, also where other
   * calls failed. So the state does not depend on whether a model notes what it has found out. It is asked
   * about every result, whatever its status; of one over 16 KB it gets the preview, as the model does.
   */
  readonly onResult?: { readonly [K in keyof T]?: (result: CallResult, state: StateOf<F>) => PatchOf<F> };
  /** How many calls of one decision run at once; 8 unless set. */
  readonly parallelCalls?: number;
  /** The size of the whole state as JSON: from when it is warned about, and what is refused; 4,096 and 32,768 bytes unless set. */
  readonly stateBudget?: { readonly warnBytes?: number; readonly maxBytes?: number };
  /**
   * How long a task is kept after something has last happened to it, in milliseconds, if it waits for somebody or
   * has ended; then it is removed with its log, at the next input or by `wakeDue`. For ever unless set.
   */
  readonly timeToLiveMs?: number;
  /** How tasks of older versions become tasks of this one, by the version that each leads to. */
  readonly migrations?: Migrations;
  readonly initial: NoInfer<N>;
  // Not Record<N, …>: with a third type parameter, TypeScript then widens `next` in steps without parameters.
  readonly steps: { readonly [K in N]: Step<F, NoInfer<N>, NoInfer<T>> };
  /** The most decisions in one task; 100 unless set, `Infinity` for none. */
  readonly maxDecisions?: number;
}

/** A checked workflow. Pass it to `compile`. */
export interface Workflow<F extends Fields = Fields, N extends string = string, I extends keyof F & string = never> {
  readonly name: string;
  readonly version: number;
  readonly goal: string;
  readonly instructions: string;
  readonly role: Role | null;
  readonly state: F;
  readonly input: readonly I[];
  readonly checks: Readonly<Record<string, CrossFieldCheck>>;
  readonly tools: Tools;
  readonly untrustedMessages: boolean;
  readonly sensitive: SensitiveData;
  readonly intercept: readonly Interceptor[];
  /** By tool; typed in the definition, so that a workflow can be spread into another definition. */
  // oxlint-disable-next-line typescript/no-generated-empty-object-type
  readonly onResult: Readonly<Record<never, never>>;
  readonly parallelCalls: number;
  readonly stateBudget: { readonly warnBytes: number; readonly maxBytes: number };
  /** Infinity for ever. */
  readonly timeToLiveMs: number;
  readonly migrations: Migrations;
  readonly initial: N;
  readonly steps: Readonly<Record<N, Step<F, N, never>>>;
  readonly maxDecisions: number;
}

/** A workflow whose names are not known to the type checker, as the runtime handles it. */
export type AnyWorkflow = Omit<Workflow<Fields, string, string>, "steps" | "onResult"> & {
  readonly steps: Readonly<Record<string, RuntimeStep>>;
  readonly onResult: Readonly<Record<string, ResultKeeper | undefined>>;
};

/** What code keeps of a tool's result, as the runtime handles it. */
type ResultKeeper = (result: CallResult, state: never) => Readonly<Record<string, unknown>>;

const DEFAULT_PARALLEL_CALLS = 8;
const DEFAULT_TASK_DECISIONS = 100;
const DEFAULT_STEP_DECISIONS = 25;

/**
 * Declares a workflow: typed state, steps, and which may follow which. Wrong step and field names
 * are compile errors; everything else that is wrong with the structure is reported at once.
 *
 * @throws INVALID_WORKFLOW with `details.faults`: a list of `{path, code, message}`.
 * @example
 * const ticket = defineWorkflow({
 *   name: "ticket", version: 1, goal: "Bring a support ticket to a solution.",
 *   state: { priority: field(z.enum(["P1", "P2", "P3"])) },
 *   initial: "ask",
 *   steps: { ask: { writes: ["priority"], to: ["done"] }, done: { requires: ["priority"], final: true } },
 * });
 */
export function defineWorkflow<
  const F extends Fields,
  N extends string,
  const I extends keyof F & string = never,
  // Without tools there is no name that a step could list.
  // oxlint-disable-next-line typescript/no-generated-empty-object-type
  const T extends Tools = Record<never, never>,
>(definition: WorkflowDefinition<F, N, I, T>): Workflow<F, N, I> {
  const workflow = {
    name: definition.name,
    version: definition.version,
    goal: definition.goal ?? "",
    instructions: definition.instructions ?? "",
    role: definition.role ? Object.freeze({ ...definition.role }) : null,
    state: definition.state,
    input: definition.input ?? [],
    checks: (definition.checks ?? {}) as Readonly<Record<string, CrossFieldCheck>>,
    tools: definition.tools ?? {},
    untrustedMessages: definition.untrustedMessages ?? false,
    sensitive: definition.sensitive ?? {},
    intercept: [definition.intercept ?? []].flat(),
    onResult: definition.onResult ?? {},
    parallelCalls: definition.parallelCalls ?? DEFAULT_PARALLEL_CALLS,
    stateBudget: { warnBytes: 4096, maxBytes: 32_768, ...definition.stateBudget },
    timeToLiveMs: definition.timeToLiveMs ?? Infinity,
    migrations: definition.migrations ?? {},
    initial: definition.initial,
    steps: definition.steps,
    maxDecisions: definition.maxDecisions ?? DEFAULT_TASK_DECISIONS,
  } as unknown as Workflow<F, N, I>;
  const faults = [...keyFaults("", definition, workflow), ...findFaults(anyWorkflow(workflow))];
  if (faults.length > 0) {
    const lines = faults.map((fault) => `  ${fault.path}: ${fault.message} (${fault.code})`);
    const count = faults.length === 1 ? "1 fault" : `${faults.length} faults`;
    throw new WorkflowError("INVALID_WORKFLOW", `workflow "${definition.name}" has ${count}:\n${lines.join("\n")}`, {
      details: { workflow: definition.name, faults },
    });
  }
  return workflow;
}

/** Forgets the names of a workflow, for code that handles any. */
export function anyWorkflow<F extends Fields, N extends string, I extends keyof F & string>(
  workflow: Workflow<F, N, I>,
): AnyWorkflow {
  return workflow;
}

/** The input of a workflow: a message, and the fields that it declares as input. */
export type WorkflowInput<F extends Fields, I extends keyof F & string> = {
  readonly message?: string | null;
} & { readonly [K in I]?: ValueOf<F[K]> | null };

/** How many decisions a step may make in one task. */
export function stepLimit(workflow: AnyWorkflow, step: string): number {
  return workflow.steps[step]?.maxDecisions ?? DEFAULT_STEP_DECISIONS;
}

/** A task at one moment: the runtime's record and the state. */
export interface Snapshot {
  readonly execution: Execution;
  readonly state: State;
  /** The transitions out of its step, where the state is not whole, so that conditions cannot be asked about it. */
  readonly moves?: readonly Move[];
}
