import type { Context } from "hono";
import type { z } from "zod";
import { WorkflowError } from "../errors.ts";
import { notJson } from "../internal/json.ts";
import { authenticate, isLoopback, revealing, type Caller } from "./caller.ts";
import { invalid, problemOf } from "./problem.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { Route } from "./routes.ts";
import type { SqlStore } from "../storage/sql-store.ts";

/** A request that fits its route. */
export interface Handled<Query, Body> {
  readonly caller: Caller;
  readonly query: Query;
  readonly body: Body;
  /** The id in the path; empty where there is none. */
  readonly id: string;
  readonly header: (name: string) => string | undefined;
  /** Cuts the connection. */
  readonly cut: () => void;
}

/** What every route needs of the server. */
export interface Doorway {
  readonly store: SqlStore;
  readonly limit: RateLimit;
  readonly maxBodyBytes: number;
  /** The operating system's user. */
  readonly localUser: string;
  readonly log: (message: string) => void;
  readonly isStopping: () => boolean;
}

type Handler<Query extends z.ZodType, Body extends z.ZodType> = (
  request: Handled<z.output<Query>, z.output<Body>>,
) => Promise<Response>;

/** The parts of Node's request and response that the Node adapter passes on; other servers may pass none. */
interface NodeBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  readonly outgoing?: { readonly destroy?: () => void };
}

const NOBODY: Caller = { who: "", tenant: "" };

/**
 * A route's whole way: who it is, how often, whether the request fits the route's schemas, then the handler.
 * Whatever is thrown becomes a problem.
 */
export function handle<Query extends z.ZodType, Body extends z.ZodType>(
  door: Doorway,
  route: Route<Query, Body>,
  handler: Handler<Query, Body>,
): (context: Context) => Promise<Response> {
  return async (context) => {
    let caller = NOBODY;
    try {
      if (door.isStopping() && !route.isOpen) {
        throw new WorkflowError("SERVER_STOPPING", "the server is about to stop; try again in a moment", {
          retryable: true,
        });
      }
      const node = (context.env ?? {}) as NodeBindings;
      if (!route.isOpen) caller = await callerOf(door, context, node);
      const response = await handler({
        caller,
        query: readQuery(route, context),
        body: (await readBody(door, route, context)) as z.output<Body>,
        id: context.req.param("id") ?? "",
        header: (name) => context.req.header(name),
        cut: () => node.outgoing?.destroy?.(),
      });
      if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
      return response;
    } catch (error) {
      return problemOf(error, revealing(caller), door.log);
    }
  };
}

async function callerOf(door: Doorway, { req }: Context, node: NodeBindings): Promise<Caller> {
  const remote = node.incoming?.socket?.remoteAddress ?? null;
  try {
    const credentials = {
      remote,
      authorization: req.header("authorization") ?? null,
      host: req.header("host") ?? null,
      origin: req.header("origin") ?? null,
      isForwarded: req.header("forwarded") !== undefined || req.header("x-forwarded-for") !== undefined,
    };
    const caller = await authenticate(door.store, credentials, door.localUser);
    door.limit.take(`${caller.tenant}/${caller.who}`);
    return caller;
  } catch (error) {
    // Whoever tries tokens is slowed down by where they come from.
    if (error instanceof WorkflowError && error.code === "INVALID_TOKEN") {
      door.limit.take(remote === null || isLoopback(remote) ? "?local" : `?${remote}`);
    }
    throw error;
  }
}

function readQuery<Query extends z.ZodType>({ query }: Route<Query>, { req }: Context): z.output<Query> {
  const given: Record<string, string> = {};
  for (const [name, values] of Object.entries(req.queries())) {
    if (values.length > 1) throw new WorkflowError("INVALID_REQUEST", `the query names ${name} more than once`);
    given[name] = values[0] ?? "";
  }
  const checked = query.safeParse(given);
  if (checked.success) return checked.data;
  throw invalid("INVALID_REQUEST", "query", checked.error);
}

async function readBody(door: Doorway, { body, mayBeEmpty }: Route, { req }: Context): Promise<unknown> {
  if (!body) return undefined;
  const text = await readText(req.raw, door.maxBodyBytes);
  if (text === "" && mayBeEmpty) return body.parse({});
  const type = req.header("content-type") ?? "";
  if (!/^application\/(?:[\w.-]+\+)?json *(?:;|$)/i.test(type)) {
    const message = "the body is JSON: send it with the header Content-Type: application/json";
    throw new WorkflowError("UNSUPPORTED_MEDIA_TYPE", message);
  }
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new WorkflowError("INVALID_REQUEST", `the body is not valid JSON: ${said.slice(0, 200)}`);
  }
  const fault = notJson(given);
  if (fault) throw new WorkflowError("INVALID_INPUT", `the body cannot be kept: ${fault}`);
  const checked = body.safeParse(given);
  if (checked.success) return checked.data;
  throw invalid("INVALID_INPUT", "body", checked.error);
}

/** @throws REQUEST_TOO_LARGE, before more than that is held; INVALID_REQUEST for what is no UTF-8. */
async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () =>
    new WorkflowError("REQUEST_TOO_LARGE", `a request has at most ${maxBytes} bytes`, { details: { maxBytes } });
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  try {
    const bytes = request.headers.has("content-length")
      ? new Uint8Array(await request.arrayBuffer())
      : await collect(request, maxBytes, tooLarge);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof WorkflowError) throw error;
    throw new WorkflowError("INVALID_REQUEST", "the body ended early or is no UTF-8", { cause: error });
  }
}

/** A body whose length is only known at its end. */
async function collect(request: Request, maxBytes: number, tooLarge: () => WorkflowError): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
