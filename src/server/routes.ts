import { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import {
  approvalList,
  cancellation,
  decision,
  eventsQuery,
  health,
  idempotencyKey,
  listQuery,
  newTask,
  pageQuery,
  reply,
  task,
  taskList,
  waitQuery,
} from "./shapes.ts";

/** One answer that a route gives where all goes well. */
export interface Answer {
  readonly description: string;
  /** None where the body is a stream of events, or this very document. */
  readonly schema?: z.ZodType;
  readonly type?: string;
}

/** A route as it is checked, documented and tested. */
export interface Route<Query extends z.ZodType = z.ZodType, Body extends z.ZodType = z.ZodType> {
  readonly id: string;
  readonly method: "get" | "post";
  /** With `{id}` in place of an id. */
  readonly path: string;
  readonly summary: string;
  readonly query: Query;
  /** Null where the request has none. */
  readonly body: Body | null;
  /** True where an empty body stands for `{}`. */
  readonly mayBeEmpty?: boolean;
  readonly headers?: Readonly<Record<string, { readonly schema: z.ZodType; readonly description: string }>>;
  readonly answers: Readonly<Record<number, Answer>>;
  readonly problems: readonly ErrorCode[];
  /** True where nobody has to sign in. */
  readonly isOpen?: boolean;
}

const nothing = z.strictObject({});
const TASK = { description: "The task, which has paused or ended.", schema: task };
const ACCEPTED = { description: "The task, which goes on in the background.", schema: task };
const wait = {
  prefer: { schema: z.string(), description: "`wait=10` does the same as the query's wait (RFC 7240)." },
};
/** What may happen to whatever has to be signed in and to be read. */
const ALWAYS: readonly ErrorCode[] = [
  "INVALID_TOKEN",
  "FORBIDDEN",
  "RATE_LIMITED",
  "INVALID_REQUEST",
  "SERVER_STOPPING",
];
const BODY: readonly ErrorCode[] = [...ALWAYS, "UNSUPPORTED_MEDIA_TYPE", "REQUEST_TOO_LARGE", "INVALID_INPUT"];
const REPLY: readonly ErrorCode[] = [
  "UNKNOWN_TASK",
  "UNKNOWN_REQUEST",
  "UNKNOWN_GRAPH",
  "TASK_NOT_WAITING",
  "TASK_WAITING",
  "TASK_FINISHED",
  "TASK_CANCELLED",
  "TASK_BUSY",
  "TASK_QUARANTINED",
  "STALE_RESUME",
  "AMBIGUOUS_REPLY",
  "INVALID_REPLY",
  "APPROVAL_EXPIRED",
  "APPROVAL_USED",
  "APPROVAL_CHANGED",
  "APPROVER_UNKNOWN",
  "ALREADY_APPROVED",
];

/** Keeps the types of a route's schemas. */
function route<Query extends z.ZodType, Body extends z.ZodType>(given: Route<Query, Body>): Route<Query, Body> {
  return given;
}

/** Every route of the API. */
export const ROUTES = {
  createTask: route({
    id: "createTask",
    method: "post",
    path: "/tasks",
    summary: "Start a task.",
    query: waitQuery,
    body: newTask,
    headers: {
      ...wait,
      "idempotency-key": {
        schema: idempotencyKey,
        description: "The same key with the same body gives the same task, for seven days.",
      },
    },
    answers: { 200: TASK, 202: ACCEPTED },
    problems: [...BODY, "UNKNOWN_GRAPH", "TASK_EXISTS", "IDEMPOTENCY_CONFLICT", "MESSAGE_TOO_LARGE", "INVALID_MESSAGE"],
  }),
  listTasks: route({
    id: "listTasks",
    method: "get",
    path: "/tasks",
    summary: "The tasks, the latest changed first.",
    query: listQuery,
    body: null,
    answers: { 200: { description: "A page of them.", schema: taskList } },
    problems: [...ALWAYS, "UNKNOWN_GRAPH"],
  }),
  readTask: route({
    id: "readTask",
    method: "get",
    path: "/tasks/{id}",
    summary: "Where a task stands.",
    query: nothing,
    body: null,
    answers: { 200: { description: "The task.", schema: task } },
    problems: [...ALWAYS, "UNKNOWN_TASK"],
  }),
  resumeTask: route({
    id: "resumeTask",
    method: "post",
    path: "/tasks/{id}/resume",
    summary: "Answer what a task asks, or let it go on after a stop or failure.",
    query: waitQuery,
    body: reply,
    mayBeEmpty: true,
    headers: wait,
    answers: { 200: TASK, 202: ACCEPTED },
    problems: [...BODY, ...REPLY, "MESSAGE_TOO_LARGE", "INVALID_MESSAGE"],
  }),
  cancelTask: route({
    id: "cancelTask",
    method: "post",
    path: "/tasks/{id}/cancel",
    summary: "End a task for good, whoever runs it. What was done stays done.",
    query: nothing,
    body: cancellation,
    mayBeEmpty: true,
    answers: { 200: { description: "The task, which is cancelled.", schema: task } },
    problems: [...BODY, "UNKNOWN_TASK", "TASK_FINISHED", "TASK_CANCELLED", "TASK_QUARANTINED", "UNKNOWN_GRAPH"],
  }),
  followTask: route({
    id: "followTask",
    method: "get",
    path: "/tasks/{id}/events",
    summary: "What happens to a task, as server-sent events, until it has ended.",
    query: eventsQuery,
    body: null,
    headers: {
      "last-event-id": { schema: z.coerce.number().int().min(0), description: "Begin behind this entry of the log." },
    },
    answers: {
      200: {
        description:
          "`log`: an entry of the task's log, with its number as id. `task`: where the task stands now. `end`: it has ended, and so has the stream.",
        type: "text/event-stream",
      },
      204: { description: "The task has ended, and there is nothing behind Last-Event-ID." },
    },
    problems: [...ALWAYS, "UNKNOWN_TASK"],
  }),
  listApprovals: route({
    id: "listApprovals",
    method: "get",
    path: "/approvals",
    summary: "The approvals that are open; what expires first comes first.",
    query: pageQuery,
    body: null,
    answers: { 200: { description: "A page of them.", schema: approvalList } },
    problems: ALWAYS,
  }),
  decideApproval: route({
    id: "decideApproval",
    method: "post",
    path: "/approvals/{id}",
    summary: "Decide about exactly what an approval shows.",
    query: waitQuery,
    body: decision,
    headers: wait,
    answers: { 200: TASK, 202: ACCEPTED },
    problems: [...BODY, ...REPLY, "MESSAGE_TOO_LARGE", "INVALID_MESSAGE"],
  }),
  health: route({
    id: "health",
    method: "get",
    path: "/healthz",
    summary: "Whether the server takes requests.",
    query: z.object({}),
    body: null,
    answers: { 200: { description: "It does.", schema: health } },
    problems: ["SERVER_STOPPING", "DATABASE_UNAVAILABLE"],
    isOpen: true,
  }),
  openApi: route({
    id: "openApi",
    method: "get",
    path: "/openapi.json",
    summary: "This document.",
    query: z.object({}),
    body: null,
    answers: { 200: { description: "OpenAPI 3.1.", type: "application/json" } },
    problems: [],
    isOpen: true,
  }),
};
