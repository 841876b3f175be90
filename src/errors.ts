/**
 * Every error that statecard raises on purpose. The code is stable and meant for programs; the
 * message says what happened, where, and what to do. The HTTP status is what a server answers.
 */
const STATUS = {
  // definition and setting up
  INVALID_WORKFLOW: 500,
  INVALID_OPTIONS: 500,
  INVALID_ENVIRONMENT: 500,
  INVALID_ROLE: 500,
  MISSING_MODEL: 500,
  MISSING_CHECKPOINTER: 500,
  UNKNOWN_GRAPH: 404,
  INVALID_GRAPH: 422,
  // what a person or program passes in
  MISSING_TASK_ID: 400,
  INVALID_TASK_ID: 400,
  INVALID_INPUT: 422,
  INVALID_MESSAGE: 422,
  MESSAGE_TOO_LARGE: 413,
  AMBIGUOUS_REPLY: 400,
  INVALID_REPLY: 400,
  USAGE: 400,
  // what comes over HTTP
  INVALID_REQUEST: 400,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  REQUEST_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  IDEMPOTENCY_CONFLICT: 422,
  RATE_LIMITED: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  SERVER_STOPPING: 503,
  // the task is not in the right situation
  UNKNOWN_TASK: 404,
  UNKNOWN_REQUEST: 404,
  UNKNOWN_CHECKPOINT: 404,
  TASK_BUSY: 409,
  TASK_STARTED: 409,
  TASK_WAITING: 409,
  TASK_NOT_WAITING: 409,
  TASK_UNFINISHED: 409,
  TASK_FINISHED: 409,
  TASK_CANCELLED: 409,
  TASK_STOPPED: 409,
  STALE_RESUME: 409,
  WRONG_WORKFLOW: 409,
  FORK_TAKES_NO_INPUT: 400,
  // an approval that does not hold
  APPROVAL_EXPIRED: 410,
  APPROVAL_USED: 409,
  APPROVAL_CHANGED: 409,
  APPROVER_UNKNOWN: 403,
  ALREADY_APPROVED: 409,
  INVALID_TOKEN: 401,
  // a release that the task does not fit
  TASK_QUARANTINED: 409,
  // data that nobody has allowed to leave
  CONSENT_WITHHELD: 403,
  // an exported task that cannot be trusted or taken in
  INVALID_EXPORT: 422,
  TASK_EXISTS: 409,
  // a way around the table
  ILLEGAL_COMMAND: 400,
  ILLEGAL_ENTRY: 409,
  ILLEGAL_STATE: 409,
  INVALID_UPDATE: 422,
  NO_LEASE: 409,
  OVERRIDE_REFUSED: 403,
  STALE_WRITE: 409,
  // a refused decision
  INVALID_DECISION: 422,
  ILLEGAL_TRANSITION: 409,
  REQUIRES: 409,
  GUARD: 409,
  UNKNOWN_FIELD: 422,
  FIELD_NOT_WRITABLE: 422,
  RUNTIME_ONLY: 422,
  WRITE_ONCE: 409,
  NOT_CLEARABLE: 422,
  INVALID_FIELD: 422,
  FIELD_TOO_LARGE: 413,
  CHECK_FAILED: 422,
  UNKNOWN_TOOL: 422,
  INVALID_ARGUMENTS: 422,
  INVALID_REFERENCE: 422,
  TOOL_LIMIT: 409,
  OUTPUT_GUARD: 422,
  STATE_TOO_LARGE: 413,
  // a step that could not go on
  MODEL_FAILED: 502,
  MODEL_TIMEOUT: 504,
  MODEL_REFUSED: 502,
  STEP_FAILED: 500,
  CONTEXT_TOO_SMALL: 422,
  STEP_LIMIT: 409,
  TASK_LIMIT: 409,
  TASK_TIMEOUT: 504,
  // the database file
  DATABASE_LOCKED: 503,
  DATABASE_READ_ONLY: 500,
  DATABASE_TOO_NEW: 500,
  DATABASE_INVALID: 500,
  DATABASE_UNAVAILABLE: 500,
} as const;

/** A literal code; see the table above for the HTTP status of each. */
export type ErrorCode = keyof typeof STATUS;

/** Every code. */
export const ERROR_CODES = Object.keys(STATUS) as readonly ErrorCode[];

export interface ErrorOptions {
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
  /** True when the same call may succeed later without any change. */
  readonly retryable?: boolean;
}

/**
 * The one error class of statecard. `name` equals `code`, since the LangGraph server passes on only
 * the name and message of a run's error.
 *
 * @example
 * try { await graph.invoke({ message: "hello" }, config); }
 * catch (error) { if (isWorkflowError(error, "TASK_FINISHED")) startAnother(); else throw error; }
 */
export class WorkflowError extends Error {
  readonly code: ErrorCode;
  details: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = code;
    this.code = code;
    this.details = options.details ?? {};
    this.retryable = options.retryable ?? false;
  }

  /** Adds details that are known further out, such as the task; what is there already stays. */
  addDetails(details: Readonly<Record<string, unknown>>): this {
    this.details = { ...details, ...this.details };
    return this;
  }

  /** Takes secrets out of the message and the details. */
  redacted(clean: <T>(value: T) => T): this {
    this.message = clean(this.message);
    this.details = clean(this.details);
    return this;
  }

  /** The HTTP status that fits the code. */
  get status(): number {
    return STATUS[this.code];
  }

  /** The clean answer of an HTTP server (RFC 9457); the LangGraph server calls this by name. */
  getResponse(): Response {
    const body = { title: this.code, status: this.status, detail: this.message, ...this.toJSON() };
    return new Response(JSON.stringify(body), {
      status: this.status,
      headers: { "content-type": "application/problem+json" },
    });
  }

  toJSON(): { code: ErrorCode; message: string; details: Readonly<Record<string, unknown>> } {
    return { code: this.code, message: this.message, details: this.details };
  }
}

/**
 * Tells whether a value is a WorkflowError, with one of the codes where some are given. Works across
 * two copies of the package, where `instanceof` does not.
 */
export function isWorkflowError(value: unknown, ...codes: ErrorCode[]): value is WorkflowError {
  if (!(value instanceof Error) || !("code" in value) || !("getResponse" in value)) return false;
  if (typeof value.code !== "string" || !(value.code in STATUS)) return false;
  return codes.length === 0 || codes.includes(value.code as ErrorCode);
}
