import { WorkflowError } from "../errors.ts";
import { shownId, storedIdFor, type Caller } from "./caller.ts";

/** A place in the list of tasks. */
export interface Cursor {
  readonly updatedAt: number;
  /** As it is stored. */
  readonly taskId: string;
}

/** A place as clients get it. */
export function cursorOf(caller: Caller, { updatedAt, taskId }: Cursor): string {
  return Buffer.from(`${updatedAt} ${shownId(caller, taskId)}`).toString("base64url");
}

/** @throws INVALID_REQUEST. */
export function readCursor(caller: Caller, cursor: string): Cursor {
  const [, updatedAt, taskId = ""] = /^(\d{1,15}) (.+)$/s.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  const stored = updatedAt === undefined ? null : storedIdFor(caller, taskId);
  // oxlint-disable-next-line no-control-regex
  if (stored !== null && !/\u0000/.test(stored)) return { updatedAt: Number(updatedAt), taskId: stored };
  throw new WorkflowError("INVALID_REQUEST", "after is not the `next` of a page");
}
