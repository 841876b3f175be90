import type { ErrorCode } from "../errors.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import type { TaskStatus } from "../state/execution.ts";

/** What the command ends with; documented in the README. */
export const EXIT = { ok: 0, failed: 1, usage: 2, refused: 3, waiting: 10, interrupted: 130 } as const;

const REFUSED: ReadonlySet<ErrorCode> = new Set([
  "UNKNOWN_TASK",
  "UNKNOWN_REQUEST",
  "TASK_BUSY",
  "TASK_STARTED",
  "TASK_WAITING",
  "TASK_NOT_WAITING",
  "TASK_UNFINISHED",
  "TASK_FINISHED",
  "TASK_CANCELLED",
  "TASK_STOPPED",
  "STALE_RESUME",
  "STALE_WRITE",
  "WRONG_WORKFLOW",
  "AMBIGUOUS_REPLY",
  "INVALID_REPLY",
  "DATABASE_LOCKED",
  "ILLEGAL_COMMAND",
  "ILLEGAL_ENTRY",
  "ILLEGAL_STATE",
  "NO_LEASE",
  "APPROVAL_EXPIRED",
  "APPROVAL_USED",
  "APPROVAL_CHANGED",
  "APPROVER_UNKNOWN",
  "ALREADY_APPROVED",
  "INVALID_TOKEN",
  "TASK_QUARANTINED",
  "INVALID_EXPORT",
  "TASK_EXISTS",
]);
const FAILED: ReadonlySet<ErrorCode> = new Set([
  "MODEL_FAILED",
  "MODEL_TIMEOUT",
  "MODEL_REFUSED",
  "STEP_FAILED",
  "STEP_LIMIT",
  "TASK_LIMIT",
  "TASK_TIMEOUT",
  "MISSING_MODEL",
  "CONSENT_WITHHELD",
]);

/** The exit code of an error. */
export function exitCodeOf(error: unknown): number {
  if (!isWorkflowError(error)) return EXIT.failed;
  if (REFUSED.has(error.code)) return EXIT.refused;
  return FAILED.has(error.code) ? EXIT.failed : EXIT.usage;
}

/** The exit code of a task that was run as far as it goes. */
export function exitCodeOfStatus(status: TaskStatus): number {
  if (status === "waiting_user") return EXIT.waiting;
  return status === "completed" ? EXIT.ok : EXIT.failed;
}

/** Ends the process when what it said is written, though something may still be at work in it that heeds no signal. */
export function exitWith(code: number): number {
  process.stdout.write("", () => process.exit(code));
  return code;
}

/** A wrong command line. */
export function usage(message: string): WorkflowError {
  return new WorkflowError("USAGE", message);
}
