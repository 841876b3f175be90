import { sqliteStore } from "statecard";
import { describe, expect, test, vi } from "vitest";
import { expectProblem, Gate, TestApi } from "../support/http-api.ts";

const NETWORK = { graph: "ticket", message: "network unstable" };
const APPROVE = { graph: "refund", message: "refund 490 for order 77, arrived broken" };

describe("a task", () => {
  test("is created, answered and finished", async () => {
    const http = new TestApi();
    const created = await http.post("/tasks", { ...NETWORK, taskId: "t-1" });
    expect(created).toMatchObject({ status: 202, json: { taskId: "t-1", status: "created", step: "init" } });
    expect(created.headers.get("location")).toBe("/tasks/t-1");
    await expect.poll(async () => (await http.get("/tasks/t-1")).json.status).toBe("waiting_user");
    const asked = await http.post("/tasks/t-1/resume?wait=10", { answer: "P1" });
    expect(asked.json.waiting).toMatchObject([{ id: "q4.0", kind: "question" }]);
    const done = await http.post("/tasks/t-1/resume?wait=10", { answer: "yes", requestId: "q4.0" });
    expect(done).toMatchObject({ status: 200, json: { status: "completed", state: { priority: "P1" } } });
    expectProblem(await http.post("/tasks/t-1/resume", { answer: "P2" }), 409, "TASK_FINISHED", /start a new one/);
    expectProblem(await http.post("/tasks/t-1/resume"), 409, "TASK_FINISHED");
  });

  test("answers at once, and with `wait` or Prefer when it has paused", async () => {
    const http = new TestApi();
    const gate = new Gate();
    http.errands = { step: () => gate.passed };
    const created = await http.post("/tasks", { graph: "errand" });
    expect(created).toMatchObject({ status: 202, json: { status: "created" } });
    const path = `/tasks/${created.json.taskId}`;
    const short = await http.post(`${path}/resume?wait=0.01`);
    expect(short.status).toBe(202);
    gate.open();
    const waited = await http.post("/tasks", { graph: "ticket" }, { prefer: "respond-async, wait=10" });
    expect(waited).toMatchObject({ status: 200, json: { status: "waiting_user" } });
    expect(waited.headers.get("preference-applied")).toBe("wait=10");
  });

  test("takes a goal as its input field, else as what is said first", async () => {
    const http = new TestApi();
    const errand = await http.post("/tasks?wait=10", { graph: "errand", goal: "milk" });
    expect(errand.json.state).toEqual({ goal: "milk", bought: 1 });
    const said = await http.post("/tasks?wait=10", { graph: "ticket", goal: "printer is jammed" });
    expect(said.json.state.ticketType).toBe("printer is jammed");
    const both = { graph: "ticket", goal: "a", message: "b" };
    expectProblem(await http.post("/tasks", both), 422, "INVALID_INPUT", /no input field "goal".*one of them/);
    const twice = { graph: "errand", goal: "a", input: { goal: "b" } };
    expectProblem(await http.post("/tasks", twice), 422, "INVALID_INPUT", /twice/);
  });

  test("keeps to its own limit of decisions, also after a restart", async () => {
    const store = sqliteStore(":memory:");
    const http = new TestApi({ store });
    const given = { graph: "errand", taskId: "short", maxDecisions: 2 };
    const stopped = await http.post("/tasks?wait=10", given);
    expect(stopped.json).toMatchObject({ status: "failed", step: "returning", lastError: { code: "TASK_LIMIT" } });
    expect((await store.head("short"))?.execution.maxDecisions).toBe(2);
    const again = await http.post("/tasks/short/resume?wait=10", { reason: "once more" });
    expect(again.json).toMatchObject({ status: "failed", lastError: { code: "TASK_LIMIT" } });
    // Nothing raises it, so that is not what it says.
    expect(again.json.lastError.message).toMatch(/has made 2 decisions, .*which stays; .*start a new task/);
    expectProblem(await http.post("/tasks/short/resume", { answer: "x" }), 409, "TASK_NOT_WAITING", /\(TASK_LIMIT\)/);
    const more = await http.post("/tasks?wait=10", { graph: "errand", maxDecisions: 1_000_000 });
    expect(more.json.status).toBe("completed");
  });

  test("that fails reports its last error and goes on in place, with the reason in its log", async () => {
    const http = new TestApi();
    let isOpen = false;
    http.errands = {
      step(_task, step) {
        if (step === "buying" && !isOpen) throw new Error("the shop is closed");
      },
    };
    const failed = await http.post("/tasks?wait=10", { graph: "errand", taskId: "e" });
    expect(failed).toMatchObject({
      status: 200,
      json: { status: "failed", step: "buying", lastError: { code: "STEP_FAILED", step: "buying" } },
    });
    expect(failed.json.lastError.message).toContain("the shop is closed");
    expect((await http.get("/tasks?status=failed")).json.tasks).toMatchObject([{ taskId: "e", status: "failed" }]);
    expectProblem(
      await http.post("/tasks/e/resume", { answer: "x" }),
      409,
      "TASK_NOT_WAITING",
      /failed \(STEP_FAILED\)/,
    );
    isOpen = true;
    const done = await http.post("/tasks/e/resume?wait=10", { reason: "it opens at nine" });
    expect(done.json).toMatchObject({ status: "completed", completedSteps: ["going", "buying", "returning"] });
    const kinds = (await http.store.events("e")).map(({ kind, data }) => [kind, data.reason]);
    expect(kinds).toContainEqual(["resumed", "it opens at nine"]);
  });

  test("whose error the runtime does not log reports it all the same", async () => {
    const http = new TestApi();
    http.errands = {
      step(taskId) {
        // As a bug in a step would: what is thrown is no error of a step.
        void http.store.deleteTask(taskId);
      },
    };
    const created = await http.post("/tasks?wait=10", { graph: "errand", taskId: "gone" });
    expectProblem(created, 404, "UNKNOWN_TASK");
  });
});

describe("the same request twice", () => {
  test("makes one task with an Idempotency-Key, and is refused with another body", async () => {
    const http = new TestApi();
    const headers = { "idempotency-key": "k-1" };
    const first = await http.post("/tasks?wait=10", NETWORK, headers);
    const second = await http.post("/tasks", { message: "network unstable", graph: "ticket" }, headers);
    expect(second.json.taskId).toBe(first.json.taskId);
    expect(second.headers.get("idempotency-replayed")).toBe("true");
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    const other = await http.post("/tasks", { ...NETWORK, message: "printer" }, headers);
    expectProblem(other, 422, "IDEMPOTENCY_CONFLICT", /another body/);
    expect((await http.get("/tasks")).json.tasks).toHaveLength(1);
    expectProblem(await http.post("/tasks", NETWORK, { "idempotency-key": "x".repeat(256) }), 400, "INVALID_REQUEST");
  });

  test("makes one task when it comes many times at once", async () => {
    const http = new TestApi();
    const headers = { "idempotency-key": "k-2" };
    const answers = await Promise.all(Array.from({ length: 20 }, () => http.post("/tasks", NETWORK, headers)));
    expect(new Set(answers.map(({ json }) => json.taskId)).size).toBe(1);
    expect(answers.map(({ status }) => status).every((status) => status === 202 || status === 200)).toBe(true);
    expect(await http.store.tasks()).toHaveLength(1);
  });

  test("has the task run that was made right before a crash", async () => {
    const http = new TestApi({ sweep: false });
    const headers = { "idempotency-key": "k-4" };
    vi.spyOn(http.store, "addWake").mockRejectedValueOnce(new Error("the process is gone"));
    expect((await http.post("/tasks", NETWORK, headers)).status).toBe(500);
    const again = await http.post("/tasks?wait=10", NETWORK, headers);
    expect(again).toMatchObject({ status: 200, json: { status: "waiting_user" } });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await http.store.tasks()).toHaveLength(1);
  });

  test("may come again, mended, where it was refused", async () => {
    const http = new TestApi();
    const headers = { "idempotency-key": "k-3" };
    await http.post("/tasks", { ...NETWORK, taskId: "taken" });
    expectProblem(await http.post("/tasks", { ...NETWORK, taskId: "taken" }, headers), 409, "TASK_EXISTS");
    expect((await http.post("/tasks", { ...NETWORK, taskId: "free" }, headers)).status).toBe(202);
  });

  test("of any number of starts with one id, one wins; a start never becomes an answer", async () => {
    const http = new TestApi();
    const starts = Array.from({ length: 20 }, (_, index) => ({
      graph: "ticket",
      taskId: "one",
      message: `broken ${index}`,
    }));
    const answers = await Promise.all(starts.map((start) => http.post("/tasks?wait=10", start)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { json } of answers.filter(({ status }) => status !== 200)) {
      expect(json.code).toBe("TASK_EXISTS");
    }
    expect((await http.store.events("one")).filter(({ kind }) => kind === "answered")).toEqual([]);
    const late = await http.post("/tasks", { graph: "ticket", taskId: "one", message: "P1" });
    expectProblem(late, 409, "TASK_EXISTS", /answer it where it waits/);
    expect((await http.get("/tasks/one")).json.state.priority).toBeNull();
  });

  test("of any number of answers one counts", async () => {
    const http = new TestApi();
    await http.post("/tasks?wait=10", { ...NETWORK, taskId: "t" });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => http.post("/tasks/t/resume?wait=10", { answer: "P1", requestId: "q2.0" })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { status, json } of answers.filter((each) => each.status !== 200)) {
      expect({ status, code: json.code }).toEqual({ status: 409, code: "STALE_RESUME" });
    }
    const log = await http.store.events("t");
    expect(log.filter(({ kind }) => kind === "answered")).toHaveLength(1);
  });
});

describe("an approval", () => {
  const waiting = async (http: TestApi) => {
    const { json } = await http.post("/tasks?wait=10", { ...APPROVE, taskId: "r" });
    expect(json.status).toBe("waiting_user");
    return (await http.get("/approvals")).json.approvals;
  };

  test("is listed and decided about by its own id", async () => {
    const http = new TestApi();
    const [approval, ...others] = await waiting(http);
    expect(others).toEqual([]);
    expect(approval).toMatchObject({
      taskId: "r",
      workflow: "refund",
      kind: "approval",
      tool: "pay_back",
      args: { order: "77", amount: 490 },
    });
    const done = await http.post(`/approvals/${approval.id}?wait=10`, { approve: true });
    expect(done.json).toMatchObject({ taskId: "r", status: "completed" });
    expect(http.payments.all).toMatchObject([{ order: "77", amount: 490 }]);
    expect((await http.get("/approvals")).json).toEqual({ approvals: [] });
    const again = await http.post(`/approvals/${approval.id}`, { approve: true });
    expectProblem(again, 409, "TASK_FINISHED");
  });

  test("is rejected with a reason, and changed within the tool's rules", async () => {
    const http = new TestApi();
    const [approval] = await waiting(http);
    const path = `/approvals/${approval.id}`;
    expectProblem(await http.post(path, { reject: true }), 422, "INVALID_INPUT", /needs a reason/);
    expectProblem(await http.post(path, {}), 422, "INVALID_INPUT", /one of approve, reject, edit/);
    expectProblem(await http.post(path, { approve: true, reject: "no" }), 422, "INVALID_INPUT", /choose one/);
    expectProblem(await http.post(path, { edit: { amount: -1 } }), 400, "INVALID_REPLY", /amount/);
    expectProblem(await http.post("/tasks/r/resume", { answer: "ok" }), 400, "INVALID_REPLY", /"approve" or "reject"/);
    expectProblem(await http.post("/tasks/r/resume"), 409, "TASK_WAITING", /send an answer/);
    const done = await http.post(`${path}?wait=10`, { reject: true, reason: "no receipt" });
    expect(done.json).toMatchObject({ status: "completed", state: { outcome: expect.stringContaining("no receipt") } });
    expect(http.payments.all).toEqual([]);
  });

  test("is listed in pages, what expires first first", async () => {
    const time = { now: Date.UTC(2030, 0, 1) };
    const clock = { now: () => time.now };
    const http = new TestApi({ clock, store: sqliteStore(":memory:", { clock }) });
    for (const taskId of ["r-3", "r-1", "r-2"]) {
      await http.post("/tasks?wait=10", { ...APPROVE, taskId });
      time.now += 1000;
    }
    const ids = ({ approvals }: { approvals: readonly { taskId: string }[] }) => approvals.map(({ taskId }) => taskId);
    const first = (await http.get("/approvals?limit=2")).json;
    expect(ids(first)).toEqual(["r-3", "r-1"]);
    // What is decided in between moves nothing.
    await http.post(`/approvals/${first.approvals[0].id}?wait=10`, { approve: true });
    const second = (await http.get(`/approvals?limit=2&after=${first.next}`)).json;
    expect([ids(second), second.next]).toEqual([["r-2"], undefined]);
    expect(ids((await http.get("/approvals")).json)).toEqual(["r-1", "r-2"]);
    const tasks = (await http.get("/tasks?limit=1")).json.next;
    for (const query of ["limit=0", "limit=101", "after=%21", `after=${tasks}`, "status=failed"]) {
      expectProblem(await http.get(`/approvals?${query}`), 400, "INVALID_REQUEST");
    }
  });

  test("holds for what was shown: an id of something else decides nothing", async () => {
    const http = new TestApi();
    const [approval] = await waiting(http);
    const [requestId, , taskId] = Buffer.from(approval.id, "base64url").toString().split(" ");
    const other = Buffer.from(`${requestId} ${"x".repeat(22)} ${taskId}`).toString("base64url");
    expectProblem(await http.post(`/approvals/${other}`, { approve: true }), 409, "APPROVAL_CHANGED");
    for (const id of ["nonsense", Buffer.from("a1.0 abc nobody").toString("base64url"), "%00", "~"]) {
      expectProblem(await http.post(`/approvals/${id}`, { approve: true }), 404, "UNKNOWN_REQUEST");
    }
    expect(http.payments.all).toEqual([]);
  });

  test("and every other answer is logged with the reason that came beside it", async () => {
    const http = new TestApi();
    const reasons = async (taskId: string) =>
      (await http.store.events(taskId)).flatMap(({ kind, data }) => (kind === "answered" ? [data.reason ?? null] : []));
    const [approval] = await waiting(http);
    const path = `/approvals/${approval.id}?wait=10`;
    expectProblem(await http.post(path, { approve: true, reason: "\u0007" }), 422, "INVALID_MESSAGE");
    await http.post(path, { approve: true, reason: "seen the photo, see sk-123456789" });
    expect(await reasons("r")).toEqual(["seen the photo, see [redacted]"]);
    await http.post("/tasks?wait=10", { ...APPROVE, taskId: "edited" });
    await http.post("/tasks/edited/resume?wait=10", { edit: { amount: 20 }, reason: "a part only" });
    await http.post("/tasks?wait=10", { ...APPROVE, taskId: "rejected" });
    await http.post("/tasks/rejected/resume?wait=10", { reject: "no receipt", reason: "rule 7" });
    await http.post("/tasks?wait=10", { ...NETWORK, taskId: "asked" });
    await http.post("/tasks/asked/resume?wait=10", { answer: "P1", reason: "the whole floor is down" });
    await http.post("/tasks/asked/resume?wait=10", { answer: "yes" });
    const all = await Promise.all(["edited", "rejected", "asked"].map(reasons));
    expect(all).toEqual([["a part only"], ["rule 7"], ["the whole floor is down", null]]);
  });

  test("of two people is not given by one", async () => {
    const http = new TestApi();
    await http.post("/tasks?wait=10", {
      graph: "refund",
      message: "refund 4900 for order 77, arrived broken",
      taskId: "r",
    });
    const tokens = [await http.store.tokens.create("ada"), await http.store.tokens.create("bob")];
    const [ada, bob] = tokens.map(({ token }) => ({ authorization: `Bearer ${token}` }));
    const once = await http.post("/tasks/r/resume?wait=10", { approve: true }, ada);
    expect(once.json.waiting).toMatchObject([{ count: 2, approvedBy: ["ada"] }]);
    expectProblem(await http.post("/tasks/r/resume", { approve: true }, ada), 409, "ALREADY_APPROVED");
    expect(http.payments.all).toEqual([]);
    await http.post("/tasks/r/resume?wait=10", { approve: true }, bob);
    expect(http.payments.all).toMatchObject([{ amount: 4900 }]);
  });
});

describe("cancelling", () => {
  test("ends a waiting task, and says who did and why", async () => {
    const http = new TestApi();
    await http.post("/tasks?wait=10", { ...NETWORK, taskId: "t" });
    const cancelled = await http.post("/tasks/t/cancel", { reason: "asked twice" });
    expect(cancelled).toMatchObject({ status: 200, json: { status: "cancelled", step: "gathering_info" } });
    expect(cancelled.json.lastError.message).toMatch(/^cancelled by .+: asked twice$/);
    expect(cancelled.json.waiting).toBeUndefined();
    expectProblem(await http.post("/tasks/t/resume", { answer: "P1" }), 409, "TASK_CANCELLED", /asked twice/);
    expectProblem(await http.post("/tasks/t/resume"), 409, "TASK_CANCELLED");
    expectProblem(await http.post("/tasks/t/cancel"), 409, "TASK_CANCELLED");
    expect((await http.get("/tasks?status=cancelled")).json.tasks).toMatchObject([{ taskId: "t" }]);
  });

  test("stops a task in the middle of a step: what the step would have done is not committed", async () => {
    const http = new TestApi();
    const gate = new Gate();
    const begun = new Gate();
    http.errands = {
      async step(_task, step) {
        if (step !== "buying") return;
        begun.open();
        await gate.passed;
      },
    };
    await http.post("/tasks", { graph: "errand", taskId: "e" });
    await begun.passed;
    expect((await http.post("/tasks/e/cancel")).json).toMatchObject({ status: "cancelled", step: "buying" });
    gate.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await http.get("/tasks/e")).json).toMatchObject({
      status: "cancelled",
      step: "buying",
      state: { bought: null },
    });
    expect(await http.store.wakes()).toEqual([]);
  });

  test("before it has begun, right after it was made", async () => {
    const http = new TestApi();
    for (let index = 0; index < 20; index++) {
      const taskId = `t-${index}`;
      await http.post("/tasks", { ...NETWORK, taskId });
      expect((await http.post(`/tasks/${taskId}/cancel`)).json).toMatchObject({ status: "cancelled" });
    }
    const { tasks } = (await http.get("/tasks")).json;
    expect(tasks.map(({ status }: { status: string }) => status)).toEqual(Array(20).fill("cancelled"));
  });
});

describe("the list", () => {
  test("comes in pages, the latest changed first, by status and graph", async () => {
    const http = new TestApi();
    for (let index = 0; index < 5; index++) await http.post("/tasks?wait=10", { ...NETWORK, taskId: `t-${index}` });
    await http.post("/tasks?wait=10", { graph: "errand", taskId: "e" });
    const seen: string[] = [];
    for (let after = ""; ;) {
      const { json } = await http.get(`/tasks?limit=2${after}`);
      seen.push(...json.tasks.map(({ taskId }: { taskId: string }) => taskId));
      if (json.next === undefined) break;
      after = `&after=${json.next}`;
    }
    expect(seen).toEqual(["e", "t-4", "t-3", "t-2", "t-1", "t-0"]);
    const ids = async (query: string) =>
      (await http.get(`/tasks?${query}`)).json.tasks.map(({ taskId }: { taskId: string }) => taskId);
    expect(await ids("graph=errand")).toEqual(["e"]);
    expect(await ids("status=completed")).toEqual(["e"]);
    expect(await ids("status=waiting_user&limit=3")).toEqual(["t-4", "t-3", "t-2"]);
    expectProblem(await http.get("/tasks?graph=nope"), 404, "UNKNOWN_GRAPH", /ticket, refund, errand/);
    for (const query of ["limit=0", "limit=101", "limit=x", "status=nope", "after=%21", "lmit=3", "limit=1&limit=2"]) {
      expectProblem(await http.get(`/tasks?${query}`), 400, "INVALID_REQUEST");
    }
  });
});

describe("a request that does not fit", () => {
  test.each<[what: string, body: unknown, status: number, code: string, says: RegExp]>([
    ["no JSON", "{", 400, "INVALID_REQUEST", /not valid JSON/],
    ["a list", [], 422, "INVALID_INPUT", /expected object/],
    ["an unknown key", { ...NETWORK, mesage: "x" }, 422, "INVALID_INPUT", /mesage/],
    ["no graph", { message: "x" }, 422, "INVALID_INPUT", /graph/],
    ["an unknown graph", { graph: "__proto__" }, 404, "UNKNOWN_GRAPH", /ticket/],
    ["an id with a slash", { ...NETWORK, taskId: "a/b" }, 422, "INVALID_INPUT", /taskId/],
    ["an id like another tenant's", { ...NETWORK, taskId: "@acme/1" }, 422, "INVALID_INPUT", /taskId/],
    ["an unknown field", { graph: "ticket", input: { colour: 1 } }, 422, "INVALID_INPUT", /ticketType, priority/],
    ["a field's wrong value", { graph: "ticket", input: { priority: "P9" } }, 422, "INVALID_INPUT", /priority/],
    ["a message in the input", { graph: "ticket", input: { message: "x" } }, 422, "INVALID_INPUT", /into message/],
    ["a long message", { graph: "ticket", message: "x".repeat(65_537) }, 422, "INVALID_INPUT", /message/],
    [
      "deep nesting",
      `{"graph":"ticket","input":${'{"a":'.repeat(5000)}1${"}".repeat(5000)}}`,
      422,
      "INVALID_INPUT",
      /nested/,
    ],
    ["no decisions", { ...NETWORK, maxDecisions: 0 }, 422, "INVALID_INPUT", /maxDecisions/],
    ["a megabyte", { graph: "ticket", message: "x".repeat(1_100_000) }, 413, "REQUEST_TOO_LARGE", /1048576 bytes/],
  ])("%s is refused and leaves nothing behind", async (_what, body, status, code, says) => {
    const http = new TestApi();
    expectProblem(await http.post("/tasks", body), status, code, says);
    expect(await http.store.tasks()).toEqual([]);
    expect(await http.store.wakes()).toEqual([]);
    expect(http.logged).toEqual([]);
  });

  test("another method, media type or path says what there is", async () => {
    const http = new TestApi();
    const answer = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
      const response = await http.send(method, path, body, headers);
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
    };
    const put = await answer("PUT", "/tasks/t");
    expectProblem(put, 405, "METHOD_NOT_ALLOWED");
    expect(put.headers.get("allow")).toBe("GET, HEAD");
    expectProblem(await answer("DELETE", "/tasks"), 405, "METHOD_NOT_ALLOWED", /POST, GET, HEAD/);
    expectProblem(await answer("GET", "/taks"), 404, "NOT_FOUND", /\/tasks/);
    const xml = await answer("POST", "/tasks", "<graph/>", { "content-type": "application/xml" });
    expectProblem(xml, 415, "UNSUPPORTED_MEDIA_TYPE");
    for (const id of ["nope", "a%2Fb", "%00", "%E0%A4%A", "x".repeat(3000), "@acme%2Ft"]) {
      expectProblem(await http.get(`/tasks/${id}`), 404, "UNKNOWN_TASK");
    }
  });

  test("too many requests are told when to come again", async () => {
    const time = { now: 0 };
    const http = new TestApi({ rate: { perSecond: 2, burst: 3 }, clock: { now: () => time.now } });
    for (let index = 0; index < 3; index++) expect((await http.get("/tasks")).status).toBe(200);
    const refused = await http.get("/tasks");
    expectProblem(refused, 429, "RATE_LIMITED");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect((await http.get("/healthz")).status).toBe(200);
    time.now += 500;
    expect((await http.get("/tasks")).status).toBe(200);
    expect((await http.get("/tasks")).status).toBe(429);
  });
});

describe("who asks", () => {
  test("without any token it is this machine's user, and no web page", async () => {
    const http = new TestApi();
    await http.post("/tasks?wait=10", { ...NETWORK, taskId: "t" });
    expect((await http.store.firstEvent("t", "started"))?.data.who).toBeTypeOf("string");
    const refused: readonly Record<string, string>[] = [
      { host: "evil.example" },
      { host: "127.0.0.1", origin: "https://evil.example" },
      { host: "127.0.0.1", origin: "null" },
    ];
    for (const headers of refused) expectProblem(await http.get("/tasks", headers), 403, "FORBIDDEN");
    expectProblem(await http.get("/tasks", { "x-forwarded-for": "10.0.0.1" }), 401, "INVALID_TOKEN");
    const unknownPeer = await http.api.fetch(new Request("http://127.0.0.1/tasks"));
    expect(unknownPeer.status).toBe(401);
  });

  test("with a token it is its owner; without one, or with a wrong one, nobody", async () => {
    const http = new TestApi();
    const { token } = await http.store.tokens.create("ada");
    const wrong: readonly Record<string, string>[] = [
      {},
      { authorization: "Bearer nope" },
      { authorization: "Basic eDp5" },
      { authorization: "" },
    ];
    for (const headers of wrong) {
      const answer = await http.get("/tasks", headers);
      expectProblem(answer, 401, "INVALID_TOKEN");
      expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="statecard"');
    }
    const headers = { authorization: `Bearer ${token}` };
    await http.post("/tasks?wait=10", { ...NETWORK, taskId: "t" }, headers);
    expect((await http.store.firstEvent("t", "started"))?.data.who).toBe("ada");
    await http.store.tokens.revoke("ada");
    await http.store.tokens.create("bob");
    expectProblem(await http.get("/tasks/t", headers), 401, "INVALID_TOKEN");
  });
});

test("an approval that nobody gave in time is noticed without anybody asking", async () => {
  const time = { now: Date.UTC(2030, 0, 1) };
  const clock = { now: () => time.now };
  const http = new TestApi({ clock, store: sqliteStore(":memory:", { clock }), wakeDueEveryMs: 5 });
  const made = await http.post("/tasks?wait=10", { ...APPROVE, taskId: "r" });
  const { tasks } = (await http.get("/tasks")).json;
  const { approvals } = (await http.get("/approvals")).json;
  const { open } = (await http.post("/tasks/r/resume")).json.details;
  const shown = [made.json.waiting[0], tasks[0].waiting[0], approvals[0], open[0]];
  expect(shown.map(({ expiresAt }) => expiresAt)).toEqual(Array(4).fill("2030-01-02T00:00:00.000Z"));
  time.now += 25 * 3_600_000;
  const asked = async () => (await http.get("/tasks/r")).json.waiting?.[0];
  await expect.poll(asked).toMatchObject({ kind: "question", question: expect.stringMatching(/ask again/) });
  expect(http.payments.all).toEqual([]);
});

test("so many tasks run at once as it says, the others wait their turn", async () => {
  const http = new TestApi({ concurrency: 2 });
  let [now, most] = [0, 0];
  http.errands = {
    async step() {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
    },
  };
  const answers = await Promise.all(Array.from({ length: 8 }, () => http.post("/tasks?wait=20", { graph: "errand" })));
  expect(answers.map(({ json }) => json.status)).toEqual(Array(8).fill("completed"));
  expect(most).toBe(2);
});

test("a step that hangs is left behind at its time limit, and another task has its place", async () => {
  const http = new TestApi({ concurrency: 1, timeLimits: { stepMs: 1000 } });
  http.errands = { step: (taskId) => (taskId === "hangs" ? new Promise(() => {}) : undefined) };
  const [hangs, other] = await Promise.all(
    ["hangs", "other"].map((taskId) => http.post("/tasks?wait=20", { graph: "errand", taskId })),
  );
  expect(hangs?.json).toMatchObject({ status: "failed", step: "going", lastError: { code: "TASK_TIMEOUT" } });
  expect(other?.json.status).toBe("completed");
  http.errands = { step: () => {} };
  expect((await http.post("/tasks/hangs/resume?wait=20")).json.status).toBe("completed");
});

test("servers that share a database run each task once, and let the other's be", async () => {
  const store = sqliteStore(":memory:");
  const one = new TestApi({ store });
  const [gate, begun] = [new Gate(), new Gate()];
  const steps: string[] = [];
  one.errands = {
    async step(_task, step) {
      steps.push(step);
      begun.open();
      await gate.passed;
    },
  };
  await one.post("/tasks", { graph: "errand", taskId: "e" });
  await begun.passed;
  const [sweeps, tries] = [vi.spyOn(store, "wakes"), vi.spyOn(store, "acquire")];
  const two = new TestApi({ store, sweepEveryMs: 1 });
  two.errands = { step: (_task, step) => void steps.push(`${step} again`) };
  await expect.poll(() => sweeps.mock.calls.filter(([taskId]) => taskId === undefined).length).toBeGreaterThan(10);
  expect(tries.mock.calls.length).toBeLessThanOrEqual(sweeps.mock.calls.length);
  gate.open();
  await expect.poll(async () => (await two.get("/tasks/e")).json.status).toBe("completed");
  expect(steps).toEqual(["going", "buying", "returning"]);
});

test("stopping lets each step commit, and the next start goes on where it was", async () => {
  const store = sqliteStore(":memory:");
  const http = new TestApi({ store, concurrency: 1 });
  const [gate, begun] = [new Gate(), new Gate()];
  http.errands = {
    async step(_task, step) {
      if (step !== "buying") return;
      begun.open();
      await gate.passed;
    },
  };
  await http.post("/tasks", { graph: "errand", taskId: "running" });
  await http.post("/tasks", { graph: "errand", taskId: "queued" });
  await begun.passed;
  const stopped = http.api.stop();
  expectProblem(await http.get("/tasks"), 503, "SERVER_STOPPING");
  expect((await http.get("/healthz")).status).toBe(503);
  gate.open();
  await stopped;
  expect((await store.look("running"))?.execution).toMatchObject({ step: "returning", status: "running" });
  // Nobody holds it.
  await store.release(await store.acquire("running"));
  const next = new TestApi({ store });
  const done = async (taskId: string) => (await next.get(`/tasks/${taskId}`)).json.status === "completed";
  await expect.poll(() => done("running")).toBe(true);
  await expect.poll(() => done("queued")).toBe(true);
  expect(await store.wakes()).toEqual([]);
});

test("stopping does not wait for ever for a step that does not end", async () => {
  const store = sqliteStore(":memory:");
  const http = new TestApi({ store });
  const begun = new Gate();
  http.errands = {
    async step() {
      begun.open();
      await new Promise(() => {});
    },
  };
  await http.post("/tasks", { graph: "errand", taskId: "e" });
  await begun.passed;
  await http.api.stop(1);
  expect(await store.wakes()).toMatchObject([{ taskId: "e", count: 1 }]);
  await store.release(await store.acquire("e"));
});

test("stopping does not wait for a task that another process holds", async () => {
  const store = sqliteStore(":memory:");
  const http = new TestApi({ store });
  await http.post("/tasks?wait=10", { ...NETWORK, taskId: "t" });
  const lease = await store.acquire("t");
  await http.post("/tasks/t/resume", { answer: "P1" });
  const tries = vi.spyOn(store, "acquire");
  await expect.poll(() => tries.mock.calls.length).toBeGreaterThan(1);
  await http.api.stop();
  expect(await store.wakes()).toMatchObject([{ taskId: "t" }]);
  await store.release(lease);
});
