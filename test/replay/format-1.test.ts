import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "@langchain/langgraph";
import Database from "better-sqlite3";
import { answer, compile, describeTask, sqliteStore } from "statecard";
import { expect, onTestFinished, test } from "vitest";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";

// A dump of a store that the first format really wrote: never changed, only added to by later formats.
const FORMAT_1 = readFileSync(new URL("format-1.sql", import.meta.url), "utf8");

/** The ticket graph of today on a copy of that store. */
function today() {
  const folder = mkdtempSync(join(tmpdir(), "statecard-test-"));
  const file = join(folder, "tasks.db");
  const database = new Database(file);
  database.exec(FORMAT_1);
  database.close();
  const store = sqliteStore(file);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return { store, graph: compile(ticket, { model: ticketRules(), store }) };
}

const config = (taskId: string) => ({ configurable: { thread_id: taskId } });

test("its tasks are shown as they are", async () => {
  const { store } = today();
  expect(await describeTask(store, "paused-1")).toMatchObject({
    status: "waiting_user",
    step: "gathering_info",
    state: { ticketType: "network unstable", priority: null },
    waiting: [{ id: "q2.0", kind: "question", question: "How urgent is it: P1, P2 or P3?" }],
  });
  expect(await describeTask(store, "asked-1")).toMatchObject({ waiting: [{ question: "What is broken?" }] });
  expect(await describeTask(store, "done-1")).toMatchObject({ status: "completed" });
  expect((await store.tasks()).some((row) => row.quarantine !== undefined)).toBe(false);
});

test("a task that was paused then is answered by the request's id and runs to its end", async () => {
  const { store, graph } = today();
  const asked = await graph.invoke(new Command({ resume: { "q2.0": "P1" } }), config("paused-1"));
  expect(asked).toMatchObject({ priority: "P1", execution: { step: "deciding", status: "waiting_user" } });
  const done = await graph.invoke(answer(asked, "yes, go"), config("paused-1"));
  expect(done.execution).toMatchObject({
    status: "completed",
    step: "done",
    completedSteps: ["init", "gathering_info", "deciding", "resolving"],
  });
  expect(done).toMatchObject({ ticketType: "network unstable", result: "closed, user told" });
  const kinds = (await store.events("paused-1")).map(({ kind }) => kind);
  expect(kinds).toContain("started");
  expect(kinds).not.toContain("migrated");
});

test("a text as new input answers the question of then", async () => {
  const { graph } = today();
  const asked = await graph.invoke({ message: "the printer jams" }, config("asked-1"));
  expect(asked).toMatchObject({ ticketType: "the printer jams", execution: { step: "gathering_info" } });
});

test("a task that had ended takes no more answers", async () => {
  const { graph } = today();
  await expect(graph.invoke({ message: "again" }, config("done-1"))).rejects.toMatchObject({ code: "TASK_FINISHED" });
});

test("an answer for an earlier question of then is stale", async () => {
  const { graph } = today();
  await graph.invoke(new Command({ resume: { "q2.0": "P1" } }), config("paused-1"));
  const late = graph.invoke(new Command({ resume: { "q2.0": "P2" } }), config("paused-1"));
  await expect(late).rejects.toMatchObject({ code: "STALE_RESUME" });
});
