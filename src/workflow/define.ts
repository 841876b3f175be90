import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import type { Fields, PatchOf, State, StateOf, ValueOf } from "../state/fields.ts";
import type { CallResult, Execution, Observation } from "../state/execution.ts";
import type { CrossFieldCheck } from "../state/patch.ts";
import type { Approval, Interceptor, Tool, Tools } from "./tool.ts";
import type { Migrations } from "./migrations.ts";
import { findFaults } from "./validate.ts";
import type { z } from "zod";

/** What a code step gets beside the state. */
export interface StepContext {
  readonly taskId: string;
  readonly step: string;
  readonly revision: number;
  readonly observation: Observation | null;
  /** What the caller of `compile` passed as `clients`: databases, APIs, other agents. */
  readonly clients: Readonly<Record<string, unknown>>;
  readonly clock: Clock;
  /** Aborted when the run is cancelled; pass it on to whatever takes long. */
  readonly signal: AbortSignal | undefined;
  /** LangChain's config of this run, to pass on to models and agents so that traces nest. */
  readonly config: RunnableConfig;
}

/** What a code step returns: the same decision that a model would make. */
export interface StepResult<F extends Fields, N extends string> {
  readonly patch?: PatchOf<F>;
  readonly clear?: readonly (keyof F & string)[];
  readonly next?: N;
  /** Tools to call; the patch and the move commit with their results, if every call is ok. */
  readonly calls?: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[];
  readonly ask?: string;
  readonly reply?: string;
  readonly because?: string;
}

/** A transition with a condition: open only while `when` holds; `because` is told when it does not. */
export interface GuardedMove<F extends Fields, N extends string> {
  readonly to: N;
  readonly when: (state: StateOf<F>) => boolean;
  readonly because: string;
}

/** A finished child workflow as its parent's step sees it. */
export interface ChildResult {
  readonly state: State;
  readonly status: "completed" | "failed";
}

/** Which calls of a step a person has to approve, by tool; a list means every call of those. */
export type Approvals<F extends Fields, T extends Tools> =
  | readonly (keyof T & string)[]
  | { readonly [K in keyof T]?: Approval<T[K] extends Tool<infer S> ? z.infer<S> : never, StateOf<F>> };

/** What a model has decided, as an output guard sees it: nothing of it counts yet. */
export interface GuardedOutput<F extends Fields, N extends string> {
  readonly patch: PatchOf<F>;
  readonly reply: string | null;
  readonly ask: string | null;
  readonly next: N | null;
}

/**
 * Looks at a model's decision before it counts. Returns nothing to let it pass; `mend` to change the reply or
 * fields, which are then checked like any other; `sendBack` to have the model mend it: that works once, then
 * the decision passes and the log tells the doubt.
 *
 * @param wasSentBack true where this guard has sent this decision back already: mend it now, if it must be.
 */
export type OutputGuard<F extends Fields, N extends string> = (
  output: GuardedOutput<F, N>,
  state: StateOf<F>,
  wasSentBack: boolean,
) =>
  | { readonly mend: { readonly reply?: string; readonly patch?: PatchOf<F> } }
  | { readonly sendBack: string }
  | null
  | undefined
  | void;

/** How a step plans. */
export interface PlanRule<Name extends string = string> {
  /** The field that keeps the plan and what became of it, made with `planField()`. */
  readonly into: Name;
  /** The model that plans and plans again, where it differs from the one that concludes. */
  readonly planner?: BaseChatModel;
  /** How often a plan that did not come true is made again; 2 unless set. Then follows a free loop. */
  readonly maxReplans?: number;
  /** The rounds of that free loop; 10 unless set. */
  readonly maxRounds?: number;
  /** The calls of one plan at most; 50 unless set. */
  readonly maxCalls?: number;
}

/** How a step loops freely. */
export interface ReactRule<Name extends string = string> {
  /** The field that keeps what was called and found, made with `planField()`. */
  readonly into: Name;
  /** The rounds of calls at most; 10 unless set. */
  readonly maxRounds?: number;
}

/** What became of one item of a list. */
export interface MapResult {
  readonly status: CallResult["status"] | "completed" | "failed";
  /** A tool's result, or a finished workflow's state. */
  readonly value: unknown;
  readonly error: string | null;
}

/** A step that does the same for each item of a list. */
export interface MapRule<F extends Fields, N extends string, T extends Tools> {
  /** The items, at most 1,000. */
  readonly over: (state: StateOf<F>) => readonly unknown[];
  /** The tool to call for each item; or else `workflow`. */
  readonly tool?: keyof T & string;
  /** The workflow to run for each item, as a task of its own. */
  readonly workflow?: AnyWorkflow;
  /** The tool's arguments or the workflow's inputs for an item. */
  readonly input: (item: never, index: number, state: StateOf<F>) => Readonly<Record<string, unknown>>;
  /** How many run at once; 4 unless set. */
  readonly parallel?: number;
  /** What to make of all results, in the order of the items, and where to go. */
  readonly output: (results: readonly MapResult[], state: StateOf<F>) => StepResult<F, N>;
}

/** One step. Without `run`, `workflow` or `final` a model decides. */
export interface Step<F extends Fields = Fields, N extends string = string, T extends Tools = Tools> {
  /** The steps that may follow. The only way from here to anywhere. */
  readonly to?: readonly (N | GuardedMove<F, N>)[];
  /** Entry condition: this step is not offered, and refused, until these fields have values. */
  readonly requires?: readonly (keyof F & string)[];
  /** The fields that this step may change. A model step without it changes none, a code step any. */
  readonly writes?: readonly (keyof F & string)[];
  readonly instructions?: string;
  /** The tools that this step may call. */
  readonly tools?: readonly (keyof T & string)[];
  /** The calls that a person has to approve here. Where the tool itself demands one too, the stricter wins. */
  readonly approve?: Approvals<F, T>;
  /** Plans its calls first, and runs them in the order that their references demand. The model has to conclude in the end. */
  readonly plan?: PlanRule<keyof F & string>;
  /** A free loop: the model calls tools until it concludes, at most so many rounds; then it has to say what is known and what is open. */
  readonly react?: ReactRule<keyof F & string>;
  /** Code in place of the model: one tool or workflow for each item of a list, several at once, joined in order. */
  readonly map?: MapRule<F, N, T>;
  /** Checks of what the model of this step has decided, by code, before it counts. */
  readonly guards?: readonly OutputGuard<F, N>[];
  /** How long this step's questions and approvals stay open, and where the task goes then. */
  readonly deadline?: { readonly afterMs: number; readonly to: N };
  /** The model of this step, where it differs from the workflow's. */
  readonly model?: BaseChatModel;
  /** The most decisions that this step may make in one task, over all its visits; 25 unless set. */
  readonly maxDecisions?: number;
  /** Code in place of the model. It gets a frozen state and returns a decision. */
  readonly run?: (state: StateOf<F>, context: StepContext) => StepResult<F, N> | Promise<StepResult<F, N>>;
  /** With `run` or `map`: its author vouches for the calls that it makes, even after the task has taken in text from outside. */
  readonly trusted?: true;
  /** Another workflow in place of the model, run as a task of its own. */
  readonly workflow?: AnyWorkflow;
  /** The child workflow's inputs, from this workflow's state. */
  readonly input?: (state: StateOf<F>) => Readonly<Record<string, unknown>>;
  /** What to take over from the finished child, and where to go. */
  readonly output?: (child: ChildResult) => StepResult<F, N>;
  /** The task ends here. */
  readonly final?: true;
}

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
  readonly state: F;
  /** Fields that a caller may set when the task starts. */
  readonly input?: readonly I[];
  /** Rules over several fields, by name; each returns the reason where the state breaks it. */
  readonly checks?: Readonly<Record<string, CrossFieldCheck<StateOf<F>>>>;
  /** What steps may call, by name. */
  readonly tools?: T;
  /** True where messages and answers come from strangers: then they count as text from outside, as tool results do. */
  readonly untrustedMessages?: boolean;
  /** Checks every call before it runs, whatever tool it is of and whatever the model says. */
  readonly intercept?: Interceptor | readonly Interceptor[];
  /**
   * What code keeps of a tool's result, by tool: a patch that commits with the result, also where other
   * calls failed. So the state does not depend on whether a model notes what it has found out.
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
  readonly state: F;
  readonly input: readonly I[];
  readonly checks: Readonly<Record<string, CrossFieldCheck>>;
  readonly tools: Tools;
  readonly untrustedMessages: boolean;
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

/** A step as the runtime handles it. */
export interface RuntimeStep extends Omit<
  Step,
  "run" | "to" | "output" | "input" | "tools" | "approve" | "map" | "guards"
> {
  readonly guards?: readonly ((output: never, state: never, wasSentBack: boolean) => unknown)[];
  readonly map?: RuntimeMap;
  readonly tools?: readonly string[];
  readonly approve?: readonly string[] | Readonly<Record<string, Approval | undefined>>;
  readonly to?: readonly (string | { to: string; when: (state: never) => boolean; because: string })[];
  readonly run?: (state: never, context: StepContext) => unknown;
  readonly input?: (state: never) => Readonly<Record<string, unknown>>;
  readonly output?: (child: ChildResult) => unknown;
}

/** A map step's rule as the runtime handles it. */
export interface RuntimeMap {
  readonly over: (state: never) => readonly unknown[];
  readonly tool?: string;
  readonly workflow?: AnyWorkflow;
  readonly input: (item: never, index: number, state: never) => Readonly<Record<string, unknown>>;
  readonly parallel?: number;
  readonly output: (results: readonly MapResult[], state: never) => unknown;
}

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
    state: definition.state,
    input: definition.input ?? [],
    checks: (definition.checks ?? {}) as Readonly<Record<string, CrossFieldCheck>>,
    tools: definition.tools ?? {},
    untrustedMessages: definition.untrustedMessages ?? false,
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
  const faults = findFaults(anyWorkflow(workflow));
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
}
