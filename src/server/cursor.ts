import type { OpenPlace } from "../compile/store.ts";
import { WorkflowError } from "../errors.ts";
import { expiryOf } from "../storage/open-requests.ts";
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
  if (updatedAt === undefined) throw noCursor();
  return { updatedAt: Number(updatedAt), taskId: idIn(caller, taskId) };
}

/** A place in the list of approvals, as clients get it. */
export function approvalCursor(caller: Caller, place: OpenPlace): string {
  return Buffer.from(`${expiryOf(place)} ${place.id} ${shownId(caller, place.taskId)}`).toString("base64url");
}

/** @throws INVALID_REQUEST. */
export function readApprovalCursor(caller: Caller, cursor: string): OpenPlace {
  const text = Buffer.from(cursor, "base64url").toString();
  const [, expiresAt, id, taskId = ""] = /^(-?\d{1,16}) ([\x21-\x7e]{1,200}) (.+)$/s.exec(text) ?? [];
  if (expiresAt === undefined || id === undefined) throw noCursor();
  return { id, taskId: idIn(caller, taskId), expiresAt: Number(expiresAt) };
}

/** @throws INVALID_REQUEST. */
function idIn(caller: Caller, taskId: string): string {
  const stored = storedIdFor(caller, taskId);
  // oxlint-disable-next-line no-control-regex
  if (stored === null || /\u0000/.test(stored)) throw noCursor();
  return stored;
}

function noCursor(): WorkflowError {
  return new WorkflowError("INVALID_REQUEST", "after is not the `next` of a page");
}
