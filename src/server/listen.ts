import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { WorkflowError, type ErrorCode } from "../errors.ts";
import { HttpApi, type ApiOptions } from "./api.ts";
import { isLoopback } from "./caller.ts";
import { problemBody } from "./problem.ts";

/** Where and how a server listens. Times in milliseconds. */
export interface ListenOptions extends ApiOptions {
  /** 8123 unless set; 0 for any that is free. */
  readonly port?: number;
  /** 127.0.0.1 unless set. Any other address needs tokens. */
  readonly host?: string;
  /** How long the headers of a request may take; 10,000 unless set. */
  readonly headersTimeoutMs?: number;
  /** How long a whole request may take to come; 30,000 unless set. */
  readonly requestTimeoutMs?: number;
}

/** A server that listens. */
export interface Listening {
  readonly api: HttpApi;
  readonly url: string;
  /** Stops it as `HttpApi.stop` says, and lets go of the port and the database. */
  stop(graceMs?: number): Promise<void>;
}

const MAX_HEADER_BYTES = 16 * 1024;
const CHECK_EVERY_MS = 1000;
const LAST_WORDS_MS = 1000;

/**
 * Serves the HTTP API.
 *
 * @throws USAGE where an address that others can reach has no tokens, or the address cannot be had.
 * @example
 * const server = await listen({ graphs: { ticket }, port: 8123 });
 * process.once("SIGTERM", () => void server.stop());
 */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { port = 8123, host = "127.0.0.1", headersTimeoutMs = 10_000, requestTimeoutMs = 30_000 } = options;
  const api = new HttpApi(options);
  try {
    await requireTokens(api, host);
    const server = createAdaptorServer({
      fetch: api.fetch,
      serverOptions: {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, headersTimeoutMs),
        keepAliveTimeout: 5000,
      },
    }) as Server;
    server.on("clientError", answerBroken);
    await bind(server, port, host);
    const { port: bound } = server.address() as AddressInfo;
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${bound}`;
    return { api, url, stop: (graceMs) => stop(server, api, graceMs) };
  } catch (error) {
    await api.stop(0);
    throw error;
  }
}

async function requireTokens(api: HttpApi, host: string): Promise<void> {
  if (isLoopback(host) || (await api.store.tokens.hasAny())) return;
  throw new WorkflowError(
    "USAGE",
    `${host} can be reached from elsewhere, and nobody has a token; make one first: npx statecard token create NAME`,
  );
}

async function bind(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const why = { EADDRINUSE: "something else listens there; choose another with --port", EACCES: "this user may not" }[
      code
    ];
    throw new WorkflowError("USAGE", `cannot listen at ${host}:${port}: ${why ?? code}`, { cause: error });
  }
}

/** New connections end first, then what runs; whoever is left then is cut off. */
async function stop(server: Server, api: HttpApi, graceMs?: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  await api.stop(graceMs);
  // What has been answered is on its way; a client that does not read it must not hold the process.
  const idle = setInterval(() => server.closeIdleConnections(), LAST_WORDS_MS / 50);
  const late = setTimeout(() => server.closeAllConnections(), LAST_WORDS_MS);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
  await api.store.close();
}

const BROKEN: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "HEADERS_TOO_LARGE",
  ERR_HTTP_REQUEST_TIMEOUT: "REQUEST_TIMEOUT",
};

/** Answers what is no HTTP, too large or too slow, in the same form as everything else. */
function answerBroken(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const code = BROKEN[error.code ?? ""] ?? "INVALID_REQUEST";
  const message = {
    HEADERS_TOO_LARGE: `the headers have at most ${MAX_HEADER_BYTES} bytes`,
    REQUEST_TIMEOUT: "the request took too long to come",
  }[code as string];
  const problem = new WorkflowError(code, message ?? "this is no HTTP request");
  const body = problemBody(problem);
  const lines = [
    `HTTP/1.1 ${problem.status} ${code}`,
    "content-type: application/problem+json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
