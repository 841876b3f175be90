import { expect, test } from "vitest";
import { checkTenant, storedTaskId } from "../../src/storage/tenants.ts";
import { EventReader, expectProblem, TestApi, type Answer } from "../support/http-api.ts";
import { onBothDialects } from "../support/stores.ts";

const NETWORK = { graph: "ticket", message: "network unstable" };
const PAY = { graph: "refund", message: "refund 490 for order 77, arrived broken" };

onBothDialects((dialect) => {
  test("K26: a tenant reads nothing of another, and cannot tell it from what does not exist", async () => {
    const http = new TestApi({ store: dialect.open() });
    const bearer = async (name: string, tenant?: string) => ({
      authorization: `Bearer ${(await http.store.tokens.create(name, tenant)).token}`,
    });
    const [acme, zeta, nobody] = [await bearer("ada", "acme"), await bearer("zoe", "zeta"), await bearer("root-1")];
    const ask = async (headers: Record<string, string>): Promise<readonly Answer[]> => [
      await http.get("/tasks/secret", headers),
      await http.post("/tasks/secret/resume", { answer: "P1" }, headers),
      await http.post("/tasks/secret/resume", {}, headers),
      await http.post("/tasks/secret/resume", { approve: true, requestId: "q2.0" }, headers),
      await http.post("/tasks/secret/cancel", { reason: "x" }, headers),
      await http.get("/tasks/secret/events", { ...headers, "last-event-id": "1" }),
      await http.get("/tasks/secret/events", headers),
      await http.get("/tasks", headers),
      await http.get("/tasks?status=waiting_user&limit=1", headers),
      await http.get("/approvals", headers),
      await http.get("/tasks/%40acme%2Fsecret", headers),
      await http.get("/tasks/%40acme%2Fsecret/events", headers),
      await http.post("/tasks/%40acme%2Fsecret/cancel", {}, headers),
    ];
    const told = (answers: readonly Answer[]) => answers.map(({ status, text }) => [status, text]);
    const before = [told(await ask(zeta)), told(await ask(nobody))];

    const made = await http.post(
      "/tasks?wait=10",
      { ...NETWORK, taskId: "secret" },
      { ...acme, "idempotency-key": "k" },
    );
    expect(made.json).toMatchObject({ taskId: "secret", status: "waiting_user" });
    await http.post("/tasks?wait=10", { ...PAY, taskId: "payment" }, acme);
    const [approval] = (await http.get("/approvals", acme)).json.approvals;
    expect(approval).toMatchObject({ taskId: "payment" });

    expect([told(await ask(zeta)), told(await ask(nobody))]).toEqual(before);
    for (const headers of [zeta, nobody]) {
      const path = `/approvals/${approval.id}`;
      const missing = `/approvals/${Buffer.from("a9.0 abc nope").toString("base64url")}`;
      const [here, nowhere] = [
        await http.post(path, { approve: true }, headers),
        await http.post(missing, { approve: true }, headers),
      ];
      expectProblem(here, 404, "UNKNOWN_REQUEST");
      expect(here.text).toBe(nowhere.text.replaceAll(missing.slice(11), path.slice(11)));
    }
    expect(http.payments.all).toEqual([]);

    // The same id and the same key are another task, in every tenant; the answers tell nothing of the first.
    for (const [headers, store] of [
      [zeta, "@zeta/secret"],
      [nobody, "secret"],
    ] as const) {
      const own = await http.post(
        "/tasks?wait=10",
        { ...NETWORK, taskId: "secret" },
        { ...headers, "idempotency-key": "k" },
      );
      expect([own.status, own.text]).toEqual([made.status, made.text]);
      expect(own.headers.get("idempotency-replayed")).toBeNull();
      expect(await http.store.look(store)).not.toBeNull();
      expect((await http.get("/tasks", headers)).json.tasks).toMatchObject([{ taskId: "secret" }]);
      await http.post("/tasks/secret/cancel", {}, headers);
    }
    expect((await http.get("/tasks/secret", acme)).json.status).toBe("waiting_user");
    expect((await http.get("/tasks", acme)).json.tasks).toHaveLength(2);
  });

  test("the stored id is never shown: not in tasks, errors, events, lists or headers", async () => {
    const http = new TestApi({ store: dialect.open() });
    const headers = { authorization: `Bearer ${(await http.store.tokens.create("eve", "initech")).token}` };
    const answers = [
      await http.post("/tasks?wait=10", { ...PAY, taskId: "p" }, headers),
      await http.post("/tasks", { ...PAY, taskId: "p" }, headers),
      await http.post("/tasks/p/resume", { answer: "x" }, headers),
      await http.post("/tasks/p/resume", { approve: true, requestId: "a1.0" }, headers),
      await http.get("/approvals", headers),
      await http.post("/tasks/p/resume?wait=10", { approve: true }, headers),
      await http.post("/tasks/p/resume", { approve: true }, headers),
      await http.post("/tasks/p/cancel", {}, headers),
      await http.get("/tasks", headers),
      await http.get("/tasks/nope", headers),
    ];
    expect(await http.store.look("@initech/p")).toMatchObject({ execution: { status: "completed" } });
    for (const { text, headers: sent } of answers) expect(text + JSON.stringify([...sent])).not.toContain("initech");
    const stream = new EventReader(await http.send("GET", "/tasks/p/events", undefined, headers));
    const events = await stream.all();
    expect(events.at(-1)).toMatchObject({ event: "end" });
    expect(JSON.stringify(events)).not.toContain("initech");
    expect(events.some(({ data }) => data.data?.record?.taskId === "p")).toBe(true);
  });
});

test("an id of no tenant cannot be mistaken for a tenant's", () => {
  expect(storedTaskId("", "@acme/t")).toBeNull();
  expect(storedTaskId("acme", "t")).toBe("@acme/t");
  expect(storedTaskId("acme", "@zeta/t")).toBe("@acme/@zeta/t");
  for (const name of ["", "Acme", "a/b", "@a", "a b", "x".repeat(65)])
    expect(() => checkTenant(name)).toThrow(/tenant/);
});
