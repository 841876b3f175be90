import { z } from "zod";

export const EXPECTATION_KINDS = ["present", "not empty", "equal to", "at least", "at most", "containing"] as const;

/** What a call's result has to be like, checked by code. */
export const expectationSchema = z.object({
  /** A path into the result, as in references: `periods.0.revenue`; the whole result where it is missing. */
  path: z.string().optional(),
  is: z.enum(EXPECTATION_KINDS),
  value: z.union([z.string(), z.number(), z.boolean()]).optional(),
});
export type Expectation = z.infer<typeof expectationSchema>;

const callSchema = z.object({
  tool: z.string(),
  args: z.record(z.string(), z.unknown()),
  /** Its name in the decision, for references; `c1`, `c2`, … by position unless given. */
  id: z.string().optional(),
  expect: z.array(expectationSchema).optional(),
});
/** A tool call as it was decided: the arguments are checked and, apart from references to other calls, complete. */
export type Call = z.infer<typeof callSchema>;

const callResultSchema = z.object({
  /** Decision number and position: `12.0` is the first call of decision 12. */
  id: z.string(),
  tool: z.string(),
  status: z.enum(["ok", "error", "timeout", "cancelled", "refused"]),
  value: z.unknown().optional(),
  /** What went wrong and what to do, where the status is not ok. */
  error: z.string().optional(),
  /** The kind of error: the exception's name, or a code of ours. */
  errorType: z.string().optional(),
  /** What the tool advises after this error. */
  hint: z.string().optional(),
  /** The arguments that it ran with, where they are not those that were decided: a person changed them, or references were resolved. */
  args: z.record(z.string(), z.unknown()).optional(),
  /** Its name in the decision, where the decision gave it one. */
  name: z.string().optional(),
  /** Where the whole value is, if it was too large to be shown as it is. */
  artifact: z.string().optional(),
  /** How often its body was started, where that was more than once. */
  tries: z.number().optional(),
  /** What was expected of it and did not come true. */
  unmet: z.string().optional(),
});
/** What a tool call came to. */
export type CallResult = z.infer<typeof callResultSchema>;

/** What came back last: the user's message, an answer to a question, results of calls, or a child workflow's end. */
const observationSchema = z.discriminatedUnion("kind", [
  // `at`: when it came, in milliseconds since 1970. `facts`: what code tells the model about it, a line each.
  z.object({
    kind: z.literal("message"),
    text: z.string(),
    at: z.number().optional(),
    facts: z.array(z.string()).optional(),
  }),
  z.object({
    kind: z.literal("answer"),
    question: z.string(),
    text: z.string(),
    at: z.number().optional(),
    facts: z.array(z.string()).optional(),
    // True where an agent outside may have answered.
    untrusted: z.literal(true).optional(),
  }),
  z.object({
    kind: z.literal("results"),
    results: z.array(callResultSchema),
    note: z.string().optional(),
    at: z.number().optional(),
    facts: z.array(z.string()).optional(),
  }),
  z.object({ kind: z.literal("expired"), what: z.string() }),
  z.object({ kind: z.literal("workflow"), workflow: z.string(), status: z.string() }),
]);
export type Observation = z.infer<typeof observationSchema>;

/** Model cost of one decision or of a whole task. Tokens as the provider reports them; 0 where it does not. */
const usageSchema = z.object({
  calls: z.number(),
  inputTokens: z.number(),
  cachedTokens: z.number(),
  outputTokens: z.number(),
});
export type Usage = z.infer<typeof usageSchema>;
export const NO_USAGE: Usage = { calls: 0, inputTokens: 0, cachedTokens: 0, outputTokens: 0 };

/** Adds two usages. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    calls: a.calls + b.calls,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
  };
}

const measuresSchema = z.object({
  /** Milliseconds from the request to the whole answer, over all attempts. */
  latencyMs: z.number(),
  /** Milliseconds to the first piece of the first answer; equals the latency where nothing streams. */
  firstTokenMs: z.number(),
  /** Bytes (UTF-8) of the view that was sent. Tokens are counted when somebody looks: that is slow. */
  viewBytes: z.number(),
});
export type Measures = z.infer<typeof measuresSchema>;

/** What the latest committed update did; the event log keeps every one of them. */
const lastUpdateSchema = z.object({
  kind: z.enum(["decision", "result", "failure", "retry", "consent"]),
  step: z.string(),
  decision: z.record(z.string(), z.unknown()).nullable(),
  /** Fields whose value in the decision's patch was added to what there was. */
  appended: z.array(z.string()).optional(),
  observation: observationSchema.nullable(),
  usage: usageSchema,
  measures: measuresSchema.nullable(),
});
export type LastUpdate = z.infer<typeof lastUpdateSchema>;

/** An action that was decided and recorded and has not been committed yet. */
const pendingSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("question"), decision: z.number(), question: z.string() }),
  z.object({
    kind: z.literal("consent"),
    /** Minus the revision at which it is asked: its request is none of any decision's, nor of one asked before. */
    decision: z.number(),
    /** Where the data would go, and by which name a person knows it. */
    destination: z.string(),
    model: z.string(),
    /** The kinds of data that nobody has decided about. */
    kinds: z.array(z.string()),
  }),
  z.object({
    kind: z.literal("workflow"),
    decision: z.number(),
    workflow: z.string(),
    input: z.record(z.string(), z.unknown()),
    /** The name that the step had when the child was started, where a release has renamed it since. */
    startedAt: z.string().optional(),
  }),
  z.object({
    kind: z.literal("calls"),
    decision: z.number(),
    calls: z.array(callSchema),
    /** What commits with the results, if every call is ok. */
    patch: z.record(z.string(), z.unknown()).nullable(),
    clear: z.array(z.string()).nullable(),
    next: z.string().nullable(),
    /** Where they were not decided by a model or code, but made from a list or a plan. */
    origin: z.enum(["map", "plan"]).optional(),
    /** True where whoever decided them had read text from outside. */
    untrusted: z.boolean().optional(),
  }),
  z.object({
    kind: z.literal("workflows"),
    decision: z.number(),
    workflow: z.string(),
    inputs: z.array(z.record(z.string(), z.unknown())),
    startedAt: z.string().optional(),
  }),
]);
export type Pending = z.infer<typeof pendingSchema>;

/** How a task can stand. */
export const TASK_STATUSES = ["created", "running", "waiting_user", "completed", "failed", "cancelled"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

const taskErrorSchema = z.object({ code: z.string(), message: z.string(), step: z.string() });
export type TaskError = z.infer<typeof taskErrorSchema>;

const toolUseSchema = z.object({
  /** Calls that ran, in the whole task. */
  calls: z.number(),
  /** How many of the latest in a row brought nothing that had not been seen before. */
  stale: z.number(),
  /** Digests of its latest different results. */
  seen: z.array(z.string()),
  /** Its latest failures, a line each: arguments and error. */
  failed: z.array(z.string()),
});
export type ToolUse = z.infer<typeof toolUseSchema>;

/**
 * The execution record: what the runtime knows about a task, kept in the channel `execution`. Only
 * the runtime writes it. Its size does not grow with the number of decisions.
 */
export const executionSchema = z.object({
  taskId: z.string(),
  workflow: z.string(),
  version: z.number(),
  status: z.enum(TASK_STATUSES),
  step: z.string(),
  completedSteps: z.array(z.string()),
  /** Committed updates so far. */
  revision: z.number(),
  /** Decisions so far; the task's limit counts them. */
  decisions: z.number(),
  /** Decisions so far by step; a step's limit counts them, over all its visits. */
  decisionsByStep: z.record(z.string(), z.number()),
  /** How often the current step was tried again since it was entered, refused answers included. */
  retryCount: z.number(),
  /** Refused answers so far. */
  refused: z.number(),
  pending: pendingSchema.nullable(),
  observation: observationSchema.nullable(),
  /** The latest three decisions, a line each. */
  recent: z.array(z.string()),
  lastError: taskErrorSchema.nullable(),
  usage: usageSchema,
  last: lastUpdateSchema.nullable(),
  /** What was called so far, by tool; absent before the first call. */
  toolUse: z.record(z.string(), toolUseSchema).optional(),
  /** True once the task has taken in text from outside that nobody vouches for; never taken back. */
  untrusted: z.boolean().optional(),
  /** The task's own limit of decisions, where it was started with a lower one than its workflow's. */
  maxDecisions: z.number().optional(),
});
export type Execution = z.infer<typeof executionSchema>;

/** The record of a task that has not made a decision yet. */
export function newExecution(workflow: { name: string; version: number; initial: string }): Execution {
  return {
    taskId: "",
    workflow: workflow.name,
    version: workflow.version,
    status: "created",
    step: workflow.initial,
    completedSteps: [],
    revision: 0,
    decisions: 0,
    decisionsByStep: {},
    retryCount: 0,
    refused: 0,
    pending: null,
    observation: null,
    recent: [],
    lastError: null,
    usage: NO_USAGE,
    last: null,
  };
}
