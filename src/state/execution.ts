import { z } from "zod";

const callSchema = z.object({ tool: z.string(), args: z.record(z.string(), z.unknown()) });
/** A tool call as it was decided: the arguments are checked and complete. */
export type Call = z.infer<typeof callSchema>;

const callResultSchema = z.object({
  /** Decision number and position: `12.0` is the first call of decision 12. */
  id: z.string(),
  tool: z.string(),
  status: z.enum(["ok", "error", "timeout", "cancelled", "refused"]),
  value: z.unknown().optional(),
  /** What went wrong and what to do, where the status is not ok. */
  error: z.string().optional(),
  /** The arguments that it ran with, where a person changed them. */
  args: z.record(z.string(), z.unknown()).optional(),
});
/** What a tool call came to. */
export type CallResult = z.infer<typeof callResultSchema>;

/** What came back last: the user's message, an answer to a question, results of calls, or a child workflow's end. */
const observationSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("message"), text: z.string() }),
  z.object({ kind: z.literal("answer"), question: z.string(), text: z.string() }),
  z.object({ kind: z.literal("results"), results: z.array(callResultSchema), note: z.string().optional() }),
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
  kind: z.enum(["decision", "result", "failure", "retry"]),
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
  }),
]);
export type Pending = z.infer<typeof pendingSchema>;

const TASK_STATUSES = ["created", "running", "waiting_user", "completed", "failed"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

const taskErrorSchema = z.object({ code: z.string(), message: z.string(), step: z.string() });
export type TaskError = z.infer<typeof taskErrorSchema>;

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
