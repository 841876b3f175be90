import { sqliteStore } from "statecard";
import { expect, test, vi } from "vitest";
import { EventReader, expectProblem, Gate, TestApi, type ServerSentEvent } from "../support/http-api.ts";

const NETWORK = { graph: "ticket", message: "network unstable", taskId: "t" };
const FAST = { pollMs: 5, heartbeatMs: 60_000 };

const follow = async (http: TestApi, path = "/tasks/t/events", headers: Record<string, string> = {}) => {
  const response = await http.send("GET", path, undefined, headers);
  expect(response).toMatchObject({ status: 200 });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  return new EventReader(response);
};
const ids = (events: readonly ServerSentEvent[]) => events.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
const standsAt = (status: string) => (event: ServerSentEvent) => event.event === "task" && event.data.status === status;

test("a client sees the whole log, where the task stands, and its end", async () => {
  const http = new TestApi(FAST);
  await http.post("/tasks?wait=10", NETWORK);
  const stream = await follow(http);
  const first = await stream.until(standsAt("waiting_user"));
  expect(first.filter(({ event }) => event === "log").map(({ data }) => data.kind)).toEqual([
    "started",
    "decision",
    "decision",
    "asked",
  ]);
  expect(first.at(-1)?.data.waiting).toMatchObject([{ id: "q2.0" }]);
  await http.post("/tasks/t/resume?wait=10", { answer: "P1" });
  await http.post("/tasks/t/resume?wait=10", { answer: "yes" });
  const rest = await stream.all();
  expect(rest.at(-1)).toMatchObject({ event: "end", data: { status: "completed" } });
  const log = await http.store.events("t");
  expect(ids([...first, ...rest])).toEqual(log.map(({ sequence }) => sequence));
  expect(first[0]?.data.at).toBe(new Date(log[0]?.at ?? 0).toISOString());
  expect(stream.others[0]).toBe("retry: 1000");
});

test("a client that comes back gets what it has missed, and no more once there is nothing", async () => {
  const http = new TestApi(FAST);
  await http.post("/tasks?wait=10", { graph: "errand", goal: "milk", taskId: "t" });
  const last = (await http.store.events("t")).length;
  expect(ids(await (await follow(http, "/tasks/t/events", { "last-event-id": "2" })).all())[0]).toBe(3);
  expect(ids(await (await follow(http, "/tasks/t/events?after=2")).all())[0]).toBe(3);
  const nothing = await http.send("GET", "/tasks/t/events", undefined, { "last-event-id": String(last) });
  expect([nothing.status, await nothing.text()]).toEqual([204, ""]);
  expectProblem(await http.get("/tasks/t/events", { "last-event-id": "x" }), 400, "INVALID_REQUEST");
  expectProblem(await http.get("/tasks/t/events?after=-1"), 400, "INVALID_REQUEST");
  expectProblem(await http.get("/tasks/nope/events"), 404, "UNKNOWN_TASK");
});

test("a failing task's stream stays open, and goes on when the task does", async () => {
  const http = new TestApi(FAST);
  let isOpen = false;
  http.errands = {
    step() {
      if (!isOpen) throw new Error("closed");
    },
  };
  await http.post("/tasks?wait=10", { graph: "errand", taskId: "t" });
  const stream = await follow(http);
  const failed = await stream.until(standsAt("failed"));
  expect(failed.at(-1)?.data.lastError.message).toContain("closed");
  isOpen = true;
  await http.post("/tasks/t/resume?wait=10");
  expect((await stream.all()).at(-1)).toMatchObject({ event: "end", data: { status: "completed" } });
});

test("many clients of a task cost one read of its log; each gets everything once, in order", async () => {
  const store = sqliteStore(":memory:");
  const http = new TestApi({ ...FAST, store });
  await http.post("/tasks?wait=10", NETWORK);
  const { length } = await store.events("t");
  const streams = await Promise.all(Array.from({ length: 50 }, () => follow(http)));
  await Promise.all(streams.map((stream) => stream.until(standsAt("waiting_user"))));
  expect(http.api.feeds.size).toEqual({ clients: 50, tasks: 1 });
  const reads = vi.spyOn(store, "eventsAfter");
  const looks = vi.spyOn(store, "look");
  await http.post("/tasks/t/resume?wait=10", { answer: "P1" });
  await Promise.all(streams.map((stream) => stream.until(standsAt("waiting_user"))));
  const [read, looked] = [reads.mock.calls.length, looks.mock.calls.length];
  reads.mockRestore();
  looks.mockRestore();
  // Polls, not clients: what is new was read a few times, not fifty.
  expect(read).toBeLessThan(50);
  expect(looked).toBeLessThan(25);
  await http.post("/tasks/t/resume?wait=10", { answer: "yes" });
  const ends = await Promise.all(streams.map((stream) => stream.all()));
  for (const events of ends) expect(ids(events)).toEqual(ids(ends[0] ?? []));
  expect(ids(ends[0] ?? []).at(-1)).toBe((await store.events("t")).length);
  expect(length).toBeLessThan(ids(ends[0] ?? [])[0] ?? 0);
  expect(http.api.feeds.size).toEqual({ clients: 0, tasks: 0 });
});

test("another process's work is seen too", async () => {
  const http = new TestApi({ ...FAST, sweep: false });
  await http.post("/tasks?wait=10", NETWORK);
  const stream = await follow(http);
  await stream.until(standsAt("waiting_user"));
  await http.store.append("t", 2, "noted", { by: "somebody else" });
  const seen = await stream.until(({ data }) => data.kind === "noted");
  expect(seen.at(-1)?.data.data).toEqual({ by: "somebody else" });
});

test("what is read while a stream begins is told once", async () => {
  const http = new TestApi(FAST);
  const { store } = http;
  await http.post("/tasks?wait=10", NETWORK);
  const [begins, goesOn] = [new Gate(), new Gate()];
  const [latestOf, after] = [store.events.bind(store), store.eventsAfter.bind(store)];
  vi.spyOn(store, "events").mockImplementation(async (taskId, latest) => {
    if (latest === 1) await begins.passed;
    return latestOf(taskId, latest);
  });
  vi.spyOn(store, "eventsAfter").mockImplementationOnce(async (...asked) => {
    await goesOn.passed;
    return after(...asked);
  });
  const stream = await follow(http);
  const first = stream.until(standsAt("waiting_user"));
  const polls = () => new Promise((resolve) => setTimeout(resolve, 10 * FAST.pollMs));
  await polls();
  begins.open();
  await polls();
  goesOn.open();
  const seen = await first;
  await polls();
  await http.post("/tasks/t/cancel");
  const numbers = ids([...seen, ...(await stream.all())]);
  expect(numbers).toEqual((await latestOf("t")).map(({ sequence }) => sequence));
});

test("where a graph's file is, which the command line notes, is not told", async () => {
  const http = new TestApi(FAST);
  await http.store.append("t", 0, "source", { graph: "/home/ada/ticket.ts" });
  await http.post("/tasks?wait=10", NETWORK);
  const events = await (await follow(http)).until(standsAt("waiting_user"));
  expect(JSON.stringify(events)).not.toContain("/home/ada");
});

test("a silent stream shows that it is alive", async () => {
  const http = new TestApi({ pollMs: 60_000, heartbeatMs: 1 });
  await http.post("/tasks?wait=10", NETWORK);
  const stream = await follow(http);
  await stream.until(standsAt("waiting_user"));
  void stream.next().catch(() => {});
  await expect.poll(() => stream.others.filter((each) => each === ": still here").length).toBeGreaterThan(2);
});

test("a client that reads nothing any more is dropped; the others are not", async () => {
  const http = new TestApi({ ...FAST, stallMs: 30, heartbeatMs: 5 });
  await http.post("/tasks?wait=10", NETWORK);
  const reading = await follow(http);
  const request = new Request("http://127.0.0.1/tasks/t/events", { headers: { host: "127.0.0.1" } });
  const gate = new Gate();
  const socket = { socket: { remoteAddress: "127.0.0.1" } };
  const stalled = await http.api.fetch(request, { incoming: socket, outgoing: { destroy: gate.open } });
  const reader = stalled.body?.getReader();
  await reader?.read();
  await reading.until(standsAt("waiting_user"));
  const alive = (async () => {
    for (;;) if ((await reading.next()) === null) return;
  })();
  await gate.passed;
  expect(http.api.feeds.size).toEqual({ clients: 1, tasks: 1 });
  await reading.close();
  await alive;
  expect(http.api.feeds.size).toEqual({ clients: 0, tasks: 0 });
});

test("a client far behind reads the log in pages and is then with the others", async () => {
  const http = new TestApi({ ...FAST, sweep: false });
  await http.post("/tasks?wait=10", NETWORK);
  const slow = await follow(http);
  await slow.until(standsAt("waiting_user"));
  // More than is kept for all.
  for (let index = 0; index < 250; index++) await http.store.append("t", 2, "noted", { index, text: "x".repeat(3000) });
  const notes = (await slow.until(({ data }) => data.data?.index === 249)).filter(({ data }) => data.kind === "noted");
  expect(notes.map(({ data }) => data.data.index)).toEqual(Array.from({ length: 250 }, (_, index) => index));
  const late = await follow(http);
  expect(
    (await late.until(({ data }) => data.data?.index === 249)).filter(({ event }) => event === "log"),
  ).toHaveLength(254);
});

test("one identity cannot hold too many streams, and asking for a stream's head opens none", async () => {
  const http = new TestApi({ ...FAST, streamsPerIdentity: 1 });
  await http.post("/tasks?wait=10", NETWORK);
  expect((await http.send("HEAD", "/tasks/t/events")).status).toBe(200);
  const one = await follow(http);
  await one.until(standsAt("waiting_user"));
  expectProblem(await http.get("/tasks/t/events"), 429, "RATE_LIMITED", /streams are open/);
  await one.close();
  await (await follow(http)).close();
});

test("a server that stops ends its streams and has their clients come back", async () => {
  const http = new TestApi(FAST);
  await http.post("/tasks?wait=10", NETWORK);
  const stream = await follow(http);
  await stream.until(standsAt("waiting_user"));
  await http.api.stop();
  expect(await stream.all()).toMatchObject([{ retry: "3000", event: "stopping" }]);
});
