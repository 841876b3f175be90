import type { Hono } from "hono";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import type { PersonsReply } from "../compile/reply-to.ts";
import type { ShownTask } from "../compile/iso-times.ts";
import { listApprovals, readApprovalId, unknownApproval } from "./approvals.ts";
import { shown } from "./caller.ts";
import type { Feeds } from "./feeds.ts";
import { handle, type Doorway, type Handled } from "./handle.ts";
import { openApiDocument } from "./openapi.ts";
import { problemOf } from "./problem.ts";
import { ROUTES, type Route } from "./routes.ts";
import { idempotencyKey, MAX_WAIT } from "./shapes.ts";
import type { Tasks } from "./tasks.ts";

/** What the routes work with. */
export interface Server {
  readonly door: Doorway;
  readonly tasks: Tasks;
  readonly feeds: Feeds;
  /** Aborted when the server is about to stop. */
  readonly stopping: AbortSignal;
  readonly version: string;
}

const PAGE = 50;

/** Adds every route to an app, and to each path an answer for other methods. */
export function mountRoutes(app: Hono, server: Server): void {
  const { door, tasks, feeds, version } = server;
  const on = <Q extends Route["query"], B extends NonNullable<Route["body"]>>(
    route: Route<Q, B>,
    handler: Parameters<typeof handle<Q, B>>[2],
  ) => app.on(route.method.toUpperCase(), honoPath(route), handle(door, route, handler));

  on(ROUTES.createTask, async (request) => {
    const key = keyIn(request);
    const { task, isReplayed } = await tasks.create(request.caller, request.body, key);
    const response = await settled(server, request, task);
    response.headers.set("location", `/tasks/${encodeURIComponent(task.taskId)}`);
    if (isReplayed) response.headers.set("idempotency-replayed", "true");
    return response;
  });
  on(ROUTES.listTasks, async ({ caller, query }) =>
    Response.json(await tasks.list(caller, { ...query, limit: query.limit ?? PAGE })),
  );
  on(ROUTES.readTask, async ({ caller, id }) => Response.json(await tasks.read(caller, id)));
  on(ROUTES.resumeTask, async (request) => {
    const { caller, id, body } = request;
    const reply = replyIn(body);
    const { requestId, reason } = body;
    return settled(server, request, await tasks.resume(caller, id, { reply, requestId, reason }));
  });
  on(ROUTES.cancelTask, async ({ caller, id, body }) => Response.json(await tasks.cancel(caller, id, body.reason)));
  on(ROUTES.followTask, async ({ caller, id, query, header, cut }) => {
    const taskId = tasks.idFor(caller, id);
    const task = await tasks.read(caller, id);
    const after = lastEventId(header("last-event-id")) ?? query.after ?? 0;
    if (header("last-event-id") !== undefined && (await hasEndedAt(server, taskId, task, after))) {
      return new Response(null, { status: 204 });
    }
    const stream = feeds.follow({
      taskId,
      cut,
      identity: `${caller.tenant}/${caller.who}`,
      after: Math.min(after, MAX_SEQUENCE),
      write: (value) => JSON.stringify(shown(caller, taskId, value)),
    });
    // Proxies must neither keep nor collect it.
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
    return new Response(stream, { headers });
  });
  on(ROUTES.listApprovals, async ({ caller, query }) =>
    Response.json(await listApprovals(door.store, caller, { ...query, limit: query.limit ?? PAGE })),
  );
  on(ROUTES.decideApproval, async (request) => {
    const { caller, id, body } = request;
    const { taskId, requestId, digest } = readApprovalId(id);
    try {
      const reply = replyIn(body);
      return await settled(
        server,
        request,
        await tasks.resume(caller, taskId, { reply, requestId, shownDigest: digest }),
      );
    } catch (error) {
      throw isWorkflowError(error, "UNKNOWN_TASK", "UNKNOWN_REQUEST") ? unknownApproval(id) : error;
    }
  });
  on(ROUTES.health, async () => {
    await door.store.tokens.hasAny();
    if (server.stopping.aborted) throw new WorkflowError("SERVER_STOPPING", "the server is about to stop");
    return Response.json({ status: "ok" });
  });
  const document = JSON.stringify(openApiDocument(version));
  on(ROUTES.openApi, async () => new Response(document, { headers: { "content-type": "application/json" } }));
  refuseOtherMethods(app);
}

function honoPath({ path }: Route): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

function refuseOtherMethods(app: Hono): void {
  const methods = new Map<string, string[]>();
  for (const route of Object.values(ROUTES) as readonly Route[]) {
    methods.set(honoPath(route), [...(methods.get(honoPath(route)) ?? []), route.method.toUpperCase()]);
  }
  for (const [path, known] of methods) {
    const allow = [...known, ...(known.includes("GET") ? ["HEAD"] : [])].join(", ");
    app.all(path, ({ req }) => {
      const message = `${req.method} is not possible here; there is: ${allow}`;
      return problemOf(new WorkflowError("METHOD_NOT_ALLOWED", message, { details: { allow } }));
    });
  }
}

/** The largest number of a log's entry in either database. */
const MAX_SEQUENCE = 2 ** 31 - 1;

/** @throws INVALID_REQUEST. */
function lastEventId(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new WorkflowError("INVALID_REQUEST", "Last-Event-ID is the number of an entry that came with an event");
}

/** A client that comes back to a task that has ended, and has everything, need not come again. */
async function hasEndedAt({ door }: Server, taskId: string, task: ShownTask, after: number): Promise<boolean> {
  if (task.status !== "completed" && task.status !== "cancelled") return false;
  const [latest] = await door.store.events(taskId, 1);
  return after >= (latest?.sequence ?? 0);
}

/** @throws INVALID_REQUEST. */
function keyIn({ header }: Pick<Handled<unknown, unknown>, "header">): string | undefined {
  const key = header("idempotency-key");
  if (key === undefined || idempotencyKey.safeParse(key).success) return key;
  throw new WorkflowError("INVALID_REQUEST", "Idempotency-Key has 1 to 255 visible ASCII characters");
}

interface GivenReply {
  readonly answer?: string | undefined;
  readonly approve?: true | undefined;
  readonly reject?: string | true | undefined;
  readonly edit?: Readonly<Record<string, unknown>> | undefined;
  readonly reason?: string | undefined;
}

function replyIn({ answer, approve, reject, edit, reason: note }: GivenReply): PersonsReply | null {
  if (answer !== undefined) return { verb: "answer", text: answer, note };
  if (approve) return { verb: "approve", note };
  if (reject === true) return { verb: "reject", reason: note ?? "" };
  if (reject !== undefined) return { verb: "reject", reason: reject, note };
  return edit === undefined ? null : { verb: "edit", args: edit, note };
}

/** The task: 200 where it has paused or ended, also while the client waits for that; 202 where it goes on. */
async function settled(
  { tasks, stopping }: Server,
  { caller, query, header }: Handled<{ wait?: number | undefined }, unknown>,
  task: ShownTask,
): Promise<Response> {
  const preferred = /(?:^|[,;\s])wait=(\d{1,9})(?:$|[,;\s])/.exec(header("prefer") ?? "")?.[1];
  const seconds = query.wait ?? (preferred === undefined ? 0 : Math.min(Number(preferred), MAX_WAIT));
  const now = seconds > 0 ? await tasks.settled(caller, task.taskId, seconds, stopping) : task;
  const response = Response.json(now, { status: tasks.goesOn(caller, now) ? 202 : 200 });
  if (preferred !== undefined) response.headers.set("preference-applied", `wait=${seconds}`);
  return response;
}
