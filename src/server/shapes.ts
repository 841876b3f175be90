import { z } from "zod";
import { CLIENT_TASK_ID, CLIENT_TASK_ID_RULE } from "../compile/task-id.ts";
import { TASK_STATUSES } from "../state/execution.ts";
import { ERROR_CODES } from "../errors.ts";

const MAX_TEXT = 65_536;
const object = z.record(z.string(), z.unknown());
const text = z.string().max(MAX_TEXT);

const reason = text.describe("why; it is logged");

export const newTask = z
  .strictObject({
    graph: z.string().min(1).max(100).describe("which of the graphs that this server has"),
    taskId: z
      .string()
      .regex(CLIENT_TASK_ID, CLIENT_TASK_ID_RULE)
      .optional()
      .describe("its id; one is made up otherwise"),
    goal: text
      .min(1)
      .optional()
      .describe(
        "what this task is to achieve: the workflow's input field `goal` where it has one, else its opening message",
      ),
    message: text.min(1).optional().describe("what the user says first; without it the task asks"),
    input: object.optional().describe("values for the workflow's input fields"),
    maxDecisions: z
      .int()
      .min(1)
      .max(1_000_000)
      .optional()
      .describe("at most so many decisions; never more than the workflow's own limit"),
  })
  .meta({ id: "NewTask" });

const verdict = {
  approve: z.literal(true).optional().describe("let the call run that is shown"),
  reject: z
    .union([z.literal(true), text.min(1)])
    .optional()
    .describe("do not let it run: why, or true beside a reason"),
  edit: object.optional().describe("arguments to change; the call is checked again"),
};

/** What is wrong with a reply; null where nothing is. The document says the same in words. */
function replyFault(
  given: { readonly [verb: string]: unknown },
  verbs: readonly string[],
  isRequired: boolean,
): string | null {
  const said = verbs.filter((verb) => given[verb] !== undefined);
  if (said.length > 1) return `choose one of ${said.join(" and ")}`;
  if (isRequired && said.length === 0) return `say one of ${verbs.join(", ")}`;
  if (given.reject === true && given.reason === undefined) return "a rejection needs a reason: the model is told it";
  return null;
}

const requestId = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/)
  .optional()
  .describe("which request, where several are open");

export const reply = z
  .strictObject({
    answer: text.optional().describe("the answer to its question"),
    ...verdict,
    reason: reason.optional(),
    requestId,
  })
  .superRefine((given, context) => {
    const fault = replyFault(given, ["answer", "approve", "reject", "edit"], false);
    if (fault) context.addIssue({ code: "custom", message: fault });
  })
  .meta({
    id: "Reply",
    description:
      "One of answer, approve, reject and edit; without any, the task goes on after a stop or failure, and the reason is logged.",
  });

export const decision = z
  .strictObject({ ...verdict, reason: reason.optional() })
  .superRefine((given, context) => {
    const fault = replyFault(given, ["approve", "reject", "edit"], true);
    if (fault) context.addIssue({ code: "custom", message: fault });
  })
  .meta({ id: "Decision", description: "Exactly one of approve, reject and edit." });

export const cancellation = z.strictObject({ reason: reason.optional() }).meta({ id: "Cancellation" });

const status = z.enum(TASK_STATUSES);
const lastError = z.object({ code: z.string(), message: z.string(), step: z.string() });
const request = {
  kind: z.enum(["question", "approval", "unknown"]),
  question: z.string(),
  tool: z.string().optional(),
  args: object.optional(),
  approvers: z.array(z.string()).optional(),
  count: z.number().optional(),
  expiresAt: z.iso.datetime().optional(),
  approvedBy: z.array(z.string()).optional(),
};
const waiting = z.array(z.object({ id: z.string(), ...request })).optional();

export const task = z
  .object({
    taskId: z.string(),
    workflow: z.string(),
    version: z.number(),
    status,
    step: z.string(),
    completedSteps: z.array(z.string()),
    revision: z.number(),
    retryCount: z.number(),
    state: object,
    waiting,
    lastError: lastError.optional(),
    quarantine: z.string().optional(),
    usage: z.object({
      calls: z.number(),
      inputTokens: z.number(),
      cachedTokens: z.number(),
      outputTokens: z.number(),
    }),
  })
  .meta({ id: "Task" });

const row = z
  .object({
    taskId: z.string(),
    workflow: z.string(),
    version: z.number(),
    status,
    step: z.string(),
    updatedAt: z.iso.datetime(),
    waiting,
    lastError: lastError.optional(),
  })
  .meta({ id: "TaskRow" });

const next = z.string().optional().describe("where the next page begins: pass it as `after`");

export const taskList = z
  .object({
    tasks: z.array(row),
    next,
  })
  .meta({ id: "TaskList" });

const approval = z
  .object({ id: z.string(), taskId: z.string(), workflow: z.string(), requestId: z.string(), ...request })
  .meta({ id: "Approval" });

export const approvalList = z.object({ approvals: z.array(approval), next }).meta({ id: "ApprovalList" });

export const problem = z
  .object({
    title: z.enum(ERROR_CODES),
    status: z.int(),
    detail: z.string(),
    code: z.enum(ERROR_CODES),
    details: object,
  })
  .meta({
    id: "Problem",
    description: "RFC 9457. The code is for programs; detail says what happened and what to do.",
  });

export const health = z.object({ status: z.literal("ok") }).meta({ id: "Health" });

/** How long a request may wait for its task, in seconds. */
export const MAX_WAIT = 60;

export const waitQuery = z.strictObject({
  wait: z.coerce
    .number()
    .min(0)
    .max(MAX_WAIT)
    .optional()
    .describe("answer only when the task pauses or ends, at most so many seconds later"),
});

/** The most that a page of a list has. */
const MAX_PAGE = 100;

const page = {
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).optional().describe("how many at most; 50 unless set"),
  after: z.string().min(1).max(4096).optional().describe("`next` of the page before"),
};

export const listQuery = z.strictObject({
  status: status.optional(),
  graph: z.string().min(1).max(100).optional(),
  ...page,
});

export const pageQuery = z.strictObject(page);

export const eventsQuery = z.strictObject({
  after: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe("begin behind this entry of the log, as the header Last-Event-ID does"),
});

export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/);
