import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { z } from "zod";
import type { Clock } from "../internal/clock.ts";
import type { CallResult, Observation } from "../state/execution.ts";
import type { Fields, PatchOf, State, StateOf } from "../state/fields.ts";
import type { AnyWorkflow } from "./define.ts";
import type { Approval, Tool, Tools } from "./tool.ts";

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
  /** Why it failed. */
  readonly error: string | null;
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
 * fields, which are then checked like any other; `sendBack` to have the model mend it: that works once, and not
 * after the last correction; then the decision passes and the log tells the doubt.
 *
 * @param wasSentBack true where it cannot be sent back any more: mend it now, if it must be.
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
  readonly planner?: BaseChatModel | null | undefined;
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
  /**
   * Entry condition: this step is not offered, and refused, until these fields have values. At the first step they are
   * inputs, and a task without them does not start.
   */
  readonly requires?: readonly (keyof F & string)[];
  /** The fields that this step may change. A model step without it changes none, a code step any. */
  readonly writes?: readonly (keyof F & string)[];
  readonly instructions?: string;
  /** Whether the style of the workflow's role is shown here; unless set, where the step may lead to a final one. */
  readonly writesAnswer?: boolean;
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
  readonly model?: BaseChatModel | null | undefined;
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
