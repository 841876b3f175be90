import { z } from "zod";
import type { Request } from "../people/requests.ts";
import { shownRequest } from "../compile/iso-times.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";

const BUSY = "it is being run; wait until it pauses or ends";
const SOON_SECONDS = 1;

/**
 * The answer for whatever was thrown, as problem+json. What concerns the server alone (its files, hosts and
 * processes, stack traces) goes to the log and not to the client.
 *
 * @param reveal puts a task's own id in place of the stored one.
 */
export function problemOf(
  error: unknown,
  reveal: (text: string) => string = (text) => text,
  log: (message: string) => void = () => {},
): Response {
  const told = tell(error, log);
  const { retryAfter } = told.details;
  const headers = new Headers({ "content-type": "application/problem+json", "cache-control": "no-store" });
  if (told.status === 401) headers.set("www-authenticate", 'Bearer realm="statecard"');
  if (told.status === 429 || told.status === 503) headers.set("retry-after", String(retryAfter ?? SOON_SECONDS));
  const { allow } = told.details;
  if (typeof allow === "string") headers.set("allow", allow);
  return new Response(reveal(problemBody(told)), { status: told.status, headers });
}

/** The body of a problem. The code is for programs, the detail for people. */
export function problemBody({ code, status, message, details }: WorkflowError): string {
  return JSON.stringify(redactDeep({ title: code, status, detail: message, code, details }));
}

function tell(error: unknown, log: (message: string) => void): WorkflowError {
  if (!isWorkflowError(error)) {
    log(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return new WorkflowError("INTERNAL_ERROR", "something went wrong in the server; its log has more");
  }
  if (error.code === "TASK_BUSY") {
    const { taskId, recorded } = error.details;
    return new WorkflowError("TASK_BUSY", recorded ? error.message : `task ${String(taskId)} is busy: ${BUSY}`, {
      details: { taskId, ...(recorded ? { recorded } : {}) },
    });
  }
  if (error.status < 500 || error.code === "SERVER_STOPPING") return withoutDigests(error);
  log(`${error.code}: ${error.message}`);
  return new WorkflowError(error.code, "the server cannot do this now; its log has more");
}

/** What binds an answer to a request is the server's; everything else about open requests is shown. */
function withoutDigests(error: WorkflowError): WorkflowError {
  const { open, ...details } = error.details;
  if (!Array.isArray(open)) return error;
  const shown = open.map(({ digest: _digest, ...request }: Request) => shownRequest(request));
  return new WorkflowError(error.code, error.message, { details: { ...details, open: shown } });
}

/** The refusal of a request that does not fit its schema, with each place that does not. */
export function invalid(code: "INVALID_INPUT" | "INVALID_REQUEST", where: string, error: z.ZodError): WorkflowError {
  const issues = error.issues.slice(0, 20).map(({ path, message }) => ({ path: path.join("."), message }));
  const [first] = issues;
  const at = first?.path ? `${where} ${first.path}` : where;
  const others = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more, in details)` : "";
  return new WorkflowError(code, `${at}: ${shorten(first?.message ?? "does not fit", 300)}${others}`, {
    details: { issues },
  });
}
