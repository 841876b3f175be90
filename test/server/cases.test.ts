import { join } from "node:path";
import Database from "better-sqlite3";
import { compile, defineWorkflow, field, sqliteStore } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { temporaryFolder } from "../support/cli.ts";
import { Gate, TestApi } from "../support/http-api.ts";

// Faults that users of such systems reported, over HTTP. K26, two tenants, is in tenants.test.ts.

const SOON = { timeout: 60_000, interval: 20 };

test("K1: of approvals of one call at once, at two servers, one counts, and it is paid once", async () => {
  const file = join(await temporaryFolder(), "tasks.db");
  const servers = [new TestApi({ store: sqliteStore(file) }), new TestApi({ store: sqliteStore(file) })];
  const message = "refund 490 for order 77, arrived broken";
  await servers[0]?.post("/tasks?wait=10", { graph: "refund", message, taskId: "r" });
  const [approval] = (await servers[0]?.get("/approvals"))?.json.approvals ?? [];
  const answers = await Promise.all(
    [...servers, ...servers].map((http) => http.post(`/approvals/${approval.id}?wait=10`, { approve: true })),
  );
  expect(answers.filter(({ status }) => status < 300)).toHaveLength(1);
  for (const { status, json } of answers.filter((each) => each.status >= 300)) {
    expect([status, json.code]).toEqual([409, expect.stringMatching(/^(?:STALE_RESUME|APPROVAL_USED|TASK_FINISHED)$/)]);
  }
  await expect.poll(async () => (await servers[0]?.get("/tasks/r"))?.json.status, SOON).toBe("completed");
  expect(servers.flatMap(({ payments }) => payments.all)).toMatchObject([{ order: "77", amount: 490 }]);
});

test("K14: questions in a row, each answered at a new server, store a bounded amount each", async () => {
  const asking = defineWorkflow({
    name: "asking",
    version: 1,
    state: { count: field(z.number()) },
    initial: "asking",
    steps: {
      asking: {
        maxDecisions: 100,
        to: ["asking", "done"],
        run({ count }) {
          const number = (count ?? 0) + 1;
          return number > 99 ? { next: "done" } : { patch: { count: number }, ask: `Question ${number}?` };
        },
      },
      done: { final: true },
    },
  });
  const file = join(await temporaryFolder(), "tasks.db");
  const sizes: number[] = [];
  for (let answered = 0; answered <= 20; answered++) {
    const store = sqliteStore(file);
    const http = new TestApi({ store, graphs: { asking: compile(asking, { store }) } });
    const { json } =
      answered === 0
        ? await http.post("/tasks?wait=10", { graph: "asking", taskId: "t" })
        : await http.post("/tasks/t/resume?wait=10", { answer: `answer ${answered}` });
    expect(json.waiting).toMatchObject([{ question: `Question ${answered + 1}?` }]);
    await http.api.stop(0);
    await store.close();
    if (answered % 20 === 0) sizes.push(bytesOf(file));
  }
  const [begun = 0, end = 0] = sizes;
  expect((end - begun) / 20).toBeLessThan(8192);
});

test("K27: of four tasks one hangs, one throws and one waits: the fourth ends, and each is told apart", async () => {
  const http = new TestApi({ concurrency: 2 });
  const hung = new Gate();
  http.errands = {
    step(taskId, step) {
      if (step !== "buying") return;
      if (taskId === "hangs") return hung.passed;
      if (taskId === "throws") throw new Error("the shop is closed");
    },
  };
  await http.post("/tasks", { graph: "errand", taskId: "hangs" });
  await http.post("/tasks", { graph: "errand", taskId: "throws" });
  await http.post("/tasks", { graph: "ticket", message: "network unstable", taskId: "waits" });
  const ended = await http.post("/tasks?wait=10", { graph: "errand", taskId: "ends" });
  expect(ended.json.status).toBe("completed");
  const listed = async () =>
    Object.fromEntries(
      (await http.get("/tasks")).json.tasks.map(({ taskId, status, lastError }: any) => [
        taskId,
        [status, lastError?.code],
      ]),
    );
  await expect.poll(listed, SOON).toEqual({
    hangs: ["running", undefined],
    throws: ["failed", "STEP_FAILED"],
    waits: ["waiting_user", undefined],
    ends: ["completed", undefined],
  });
  // Each goes its own way from here.
  expect((await http.post("/tasks/waits/resume?wait=10", { answer: "P1" })).json.state).toMatchObject({
    priority: "P1",
  });
  expect((await http.post("/tasks/hangs/cancel", { reason: "it hangs" })).json.status).toBe("cancelled");
  http.errands = { step() {} };
  expect((await http.post("/tasks/throws/resume?wait=10", {})).json.status).toBe("completed");
});

/** What is stored, without what was freed. */
function bytesOf(file: string): number {
  const database = new Database(file);
  database.exec("vacuum");
  const pages = database.pragma("page_count", { simple: true }) as number;
  database.close();
  return pages * 4096;
}
