import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { compile, sqliteStore } from "statecard";
import { listen, type ListenOptions, type Listening } from "statecard/server";
import { expect, onTestFinished, test } from "vitest";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { EventReader } from "../support/http-api.ts";

async function start(options: Partial<ListenOptions> = {}): Promise<Listening> {
  const store = options.store ?? sqliteStore(":memory:");
  const graphs = { ticket: compile(ticket, { model: ticketRules(), store }) };
  const server = await listen({ graphs, store, port: 0, log: () => {}, ...options });
  onTestFinished(() => server.stop(0));
  return server;
}

/** What a server says to bytes that a client sends, until it ends the connection. */
async function raw(server: Listening, ...pieces: readonly string[]): Promise<string> {
  const socket = await connected(server);
  let said = "";
  socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
  for (const piece of pieces) socket.write(piece);
  await once(socket, "close");
  return said;
}

async function connected(server: Listening): Promise<Socket> {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

const problemIn = (said: string) =>
  JSON.parse(said.slice(said.indexOf("\r\n\r\n"))) as { code: string; detail: string };

test("what is no request, or too large a one, is answered in the form of everything else", async () => {
  const server = await start();
  const overflow = await raw(server, `GET /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
  expect(overflow).toMatch(/^HTTP\/1\.1 431 /);
  expect(overflow).toContain("content-type: application/problem+json");
  expect(problemIn(overflow)).toMatchObject({
    code: "HEADERS_TOO_LARGE",
    detail: "the headers have at most 16384 bytes",
  });
  expect(problemIn(await raw(server, "hello\r\n\r\n"))).toMatchObject({ code: "INVALID_REQUEST" });
});

test("a body without a length is cut off where it is too large, and taken where it is not", async () => {
  const server = await start({ maxBodyBytes: 100 });
  const head =
    "POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const large = await raw(server, head, chunk("x".repeat(60)), chunk("x".repeat(60)));
  expect(large).toMatch(/^HTTP\/1\.1 413 /);
  const told = await fetch(`${server.url}/tasks`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "x".repeat(101),
  });
  expect(told.status).toBe(413);
  const small = await raw(server, head, chunk('{"graph":'), chunk('"ticket"}'), "0\r\n\r\n");
  expect(small).toMatch(/^HTTP\/1\.1 202 /);
});

test("a slow request is told so and ended, in its headers and in its body", async () => {
  const server = await start({ headersTimeoutMs: 30, requestTimeoutMs: 60 });
  const head = "POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const said = await Promise.all([
    raw(server, head),
    raw(server, `${head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"graph"`),
  ]);
  for (const each of said) {
    expect(each).toMatch(/^HTTP\/1\.1 408 /);
    expect(problemIn(each).code).toBe("REQUEST_TIMEOUT");
  }
});

test("a client that hangs up halfway leaves nothing behind", async () => {
  const server = await start();
  const socket = await connected(server);
  socket.resume();
  socket.end(
    "POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
  );
  await once(socket, "close");
  const cut = await connected(server);
  cut.write(
    "POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
  );
  cut.destroy();
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  expect(await server.api.store.tasks()).toEqual([]);
});

test("a client that is gone no longer follows, whether it said goodbye or not", async () => {
  const server = await start({ pollMs: 5, heartbeatMs: 5 });
  await fetch(`${server.url}/tasks?wait=10`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ graph: "ticket", message: "network unstable", taskId: "t" }),
  });
  const polite = new EventReader(await fetch(`${server.url}/tasks/t/events`));
  const rude = await connected(server);
  rude.write("GET /tasks/t/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await once(rude, "data");
  await polite.next();
  expect(server.api.feeds.size).toEqual({ clients: 2, tasks: 1 });
  rude.destroy();
  await polite.close();
  await expect.poll(() => server.api.feeds.size).toEqual({ clients: 0, tasks: 0 });
});

test("nobody else on the network is served without tokens, and nothing is left listening", async () => {
  await expect(start({ host: "0.0.0.0" })).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining("token create"),
  });
  const store = sqliteStore(":memory:");
  const { token } = await store.tokens.create("ada");
  const server = await start({ host: "0.0.0.0", store });
  const url = server.url.replace("0.0.0.0", "127.0.0.1");
  expect((await fetch(`${url}/tasks`)).status).toBe(401);
  expect((await fetch(`${url}/tasks`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
});

test("a port that is taken is said", async () => {
  const server = await start();
  const port = Number(new URL(server.url).port);
  await expect(start({ port })).rejects.toMatchObject({ code: "USAGE", message: expect.stringContaining("--port") });
});

test("stopping ends streams and idle connections, and lets go of the port", async () => {
  const server = await start({ pollMs: 5 });
  await fetch(`${server.url}/tasks?wait=10`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ graph: "ticket", message: "network unstable", taskId: "t" }),
  });
  const stream = new EventReader(await fetch(`${server.url}/tasks/t/events`));
  await stream.until(({ event }) => event === "task");
  const idle = await connected(server);
  const [ended] = await Promise.all([stream.all(), once(idle, "close"), server.stop()]);
  expect(ended.at(-1)).toMatchObject({ event: "stopping" });
  await expect(fetch(`${server.url}/healthz`)).rejects.toThrow(/fetch failed/);
});
