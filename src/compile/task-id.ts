import { randomInt } from "node:crypto";
import { WorkflowError } from "../errors.ts";

const MAX_TASK_ID = 2048;

/** A tenant's tasks bear its name behind this mark, before their own id: `@acme/ticket-1`. */
export const TENANT_MARK = "@";

/**
 * The tenant that a stored id names; empty where it has none. An id that has the mark and no name behind it is
 * nobody's: it gives the mark, which no tenant is called. Pure.
 */
export function tenantOf(taskId: string): string {
  if (!taskId.startsWith(TENANT_MARK)) return "";
  return /^@([^/]+)\//.exec(taskId)?.[1] ?? TENANT_MARK;
}

/** An id that a client may give: no slash, since the tasks of child workflows are named by their parents', and no tenant. */
export const CLIENT_TASK_ID = /^[A-Za-z0-9][\w.:-]{0,127}$/;
export const CLIENT_TASK_ID_RULE =
  "begins with a letter or digit, then has letters, digits and . _ : - only; 128 characters at most";

/**
 * Checks what is to be a task's id.
 *
 * @param hint what to do about a wrong one, where there is more to say.
 * @throws INVALID_TASK_ID.
 */
export function checkTaskId(taskId: string, hint = ""): string {
  // oxlint-disable-next-line no-control-regex
  if (taskId !== "" && taskId.length <= MAX_TASK_ID && !/[\u0000-\u001f\u007f]/.test(taskId)) return taskId;
  const rule = `a task id is a text of at most ${MAX_TASK_ID} characters without control characters`;
  throw new WorkflowError("INVALID_TASK_ID", `${rule}${hint && `; ${hint}`}`);
}

/** A readable id that is not taken: the workflow's name and 36^6 possibilities. */
export function newTaskId(workflow: string): string {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  return `${workflow}-${Array.from({ length: 6 }, () => letters[randomInt(letters.length)]).join("")}`;
}
