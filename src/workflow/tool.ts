import type { z } from "zod";
import type { Clock } from "../internal/clock.ts";
import type { CallResult } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { ArtifactReader } from "./artifact.ts";
import type { Memorable } from "./memorable.ts";

/** What a tool's body gets beside its arguments. */
export interface ToolContext {
  readonly taskId: string;
  readonly step: string;
  /**
   * The same for every attempt at this one call, and for no other call: give it to the system behind
   * the tool, so that it can tell a repetition.
   */
  readonly idempotencyKey: string;
  /** What the caller of `compile` passed as `clients`. */
  readonly clients: Readonly<Record<string, unknown>>;
  readonly clock: Clock;
  /** Aborted at the time limit and when the run is cancelled. */
  readonly signal: AbortSignal;
  /** Big results of this task, kept whole. */
  readonly artifacts: ArtifactReader;
  /** The state when the call was decided. */
  readonly state: State;
}

/** What an interceptor sees beside the arguments. */
export interface InterceptContext {
  readonly tool: string;
  readonly taskId: string;
  readonly step: string;
  readonly state: State;
}

/**
 * Looks at a call before it runs, whatever the model says, and may refuse it with a reason that the model
 * is told. One that throws refuses too.
 */
export type Interceptor<Args = never> = (
  args: Args,
  context: InterceptContext,
) => { readonly refuse: string } | null | undefined | void;

/** When a failed body is started again within the call's time limit. */
export interface RetryRule {
  /** How often the body is started at most, the first time included. */
  readonly tries: number;
  /** The errors that are worth another try: by name or code, or by a function. Nothing else is tried again. */
  readonly on: readonly string[] | ((error: unknown) => boolean);
  /** The wait before the second try, in milliseconds, doubled before each further one and jittered; 200 unless set. */
  readonly delayMs?: number;
}

/** Who has to agree to a call, how many of them, and for how long the request stands. */
export interface ApprovalRule {
  /** Names of the people who may approve; anybody unless set. */
  readonly approvers?: readonly string[];
  /** How many different people have to approve; 1 unless set. */
  readonly count?: number;
  /** After so many milliseconds the request can no longer be approved. */
  readonly expiresAfterMs?: number;
}

/** An approval as it is declared: always, by a rule, or by a function of the arguments and the state. */
export type Approval<Args = never, S = never> =
  | true
  | ApprovalRule
  | ((args: Args, state: S) => boolean | ApprovalRule);

/** A kind of data, or which of several kinds the results of a call hold: null for none, undefined for any of them. */
export type Sensitive<Args = never> =
  | string
  | { readonly kinds: readonly string[]; readonly of: (args: Args) => string | null | undefined };

/**
 * What a tool's body did the last time, as `reconcile` finds out after a crash. Where it happened, `value` is what
 * `run` would have returned, `undefined` where that is nothing.
 */
export type Reconciled = { readonly happened: true; readonly value: unknown } | { readonly happened: false } | null;

/** What `defineTool` takes. */
export interface ToolDefinition<S extends z.ZodType> {
  /** One or two sentences: what it does and when to use it. The model reads them. */
  readonly description: string;
  /** A zod object: the arguments. They are checked before anything runs. */
  readonly parameters: S;
  /** What a call does to the world: nothing, reads it, or changes it. */
  readonly effect: "none" | "read" | "write";
  /** True where running the same call again, with the same key, does no harm. */
  readonly idempotent?: boolean;
  /** The longest that one call may take, in milliseconds; 30,000 unless set. */
  readonly timeoutMs?: number;
  /** Tries again after declared errors; without it a body is started once. */
  readonly retry?: RetryRule;
  /** How many calls one task may make; a further one is refused with the advice to stop and report. */
  readonly limit?: number;
  /** Calls of one decision that share a key run in order, one at a time; for instance the file that they write. */
  readonly conflicts?: (args: z.infer<S>) => string | readonly string[] | null;
  /** Checks by code before anything runs. */
  readonly intercept?: Interceptor<z.infer<S>> | readonly Interceptor<z.infer<S>>[];
  /** True where text from outside must not reach its arguments without a person's approval. */
  readonly privileged?: boolean;
  /** True where its results are our own data, not text that somebody else may have written. */
  readonly trusted?: boolean;
  /**
   * What kind of data its results hold, such as "code": a person is asked before any of that kind goes to a model that
   * is not on this machine. A function of the arguments where that depends on them, with all kinds that it may name.
   */
  readonly sensitive?: Sensitive<z.infer<S>>;
  /** True where its argument `id` names an artifact and it gives back pieces of it: then they are of that artifact's kind of data. */
  readonly readsArtifacts?: boolean;
  /** True where its results show what is remembered across tasks: then they are of the workflow's kind for memories. */
  readonly readsMemories?: boolean;
  /** The shape of its result, for checking references to it before anything runs. */
  readonly result?: z.ZodType;
  /**
   * What code keeps of a result in the state: a patch that commits with the result, whatever became of
   * other calls. For tools that belong to a field, as the todo tools do; else use the workflow's `onResult`.
   */
  readonly onResult?: (result: CallResult, state: State) => Readonly<Record<string, unknown>>;
  /**
   * What of a result that is ok is worth remembering across tasks. Where the graph has memories, it is written into
   * the task's, from the result as it was recorded: once, whatever crashes. The model is told in its next view.
   */
  readonly remembers?: (result: CallResult) => readonly Memorable[];
  /** Calls that a person has to approve in every step. */
  readonly approve?: Approval<z.infer<S>, State>;
  /**
   * Finds out, after a crash, whether a call with this key happened. Null where that cannot be known:
   * then a person is asked.
   */
  readonly reconcile?: (args: z.infer<S>, context: ToolContext) => Promise<Reconciled> | Reconciled;
  readonly run: (args: z.infer<S>, context: ToolContext) => unknown;
}

/** A checked tool. */
export interface Tool<S extends z.ZodType = z.ZodType> extends Omit<ToolDefinition<S>, "idempotent" | "timeoutMs"> {
  /** True where a call may be run again when it is not known how the first one ended. */
  readonly repeatable: boolean;
  readonly timeoutMs: number;
}

/** A tool whose argument types are not known to the type checker, as the runtime handles it. */
export interface AnyTool extends Omit<Tool, "approve" | "reconcile" | "run" | "conflicts" | "intercept" | "sensitive"> {
  readonly sensitive?: Sensitive;
  readonly conflicts?: (args: never) => string | readonly string[] | null;
  readonly intercept?: Interceptor | readonly Interceptor[];
  readonly approve?: Approval;
  readonly reconcile?: (args: never, context: ToolContext) => Promise<Reconciled> | Reconciled;
  readonly run: (args: never, context: ToolContext) => unknown;
}

/** Tools by name. */
export type Tools = Readonly<Record<string, AnyTool>>;

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Declares a tool: a function that the model may call where a step lists it. Every call is written
 * down before and after it runs, so that after a crash it is not run twice.
 *
 * @example
 * const refund = defineTool({
 *   description: "Pays money back for an order.", effect: "write",
 *   parameters: z.object({ orderId: z.string(), amount: z.number().positive() }),
 *   approve: ({ amount }) => amount > 100,
 *   run: ({ orderId, amount }, { idempotencyKey }) => bank.refund(orderId, amount, idempotencyKey),
 * });
 */
export function defineTool<S extends z.ZodType>(definition: ToolDefinition<S>): Tool<S> {
  const { idempotent, timeoutMs, ...rest } = definition;
  return {
    ...rest,
    repeatable: idempotent === true || definition.effect !== "write",
    timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS,
  };
}
