import { randomUUID } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "@langchain/langgraph";
import type { ThreadState } from "@langchain/langgraph-sdk";
import { compile, sqliteStore, type Execution, type PauseValue, type Request } from "statecard";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { LangGraphServer } from "../support/langgraph-server.ts";
import { pauses, RAN_FILE, type PauseCall } from "../support/pauses-graph.ts";
import { BUNDLED } from "../support/refactor.ts";

type Values = { readonly execution: Execution } & Readonly<Record<string, unknown>>;
type Result = Values & { readonly __interrupt__?: readonly { readonly id: string; readonly value: PauseValue }[] };

const SOON = { timeout: 60_000, interval: 20 };

/** The kinds of pauses that the examples alone do not come to, as the SDK sees and answers them. */
export function describeEveryPause(server: () => LangGraphServer): void {
  const wait = (thread: string, sent: object, graph = "pauses"): Promise<Result> =>
    server().client.runs.wait(thread, graph, sent) as unknown as Promise<Result>;
  const say = (thread: string, reply: object) => wait(thread, { command: { resume: reply } });
  const newThread = async () => (await server().client.threads.create()).thread_id;
  const input = (...calls: readonly PauseCall[]) => ({ input: calls.length > 0 ? { calls } : {} });
  const requestsIn = ({ __interrupt__: shown = [] }: Result): readonly Request[] =>
    shown.flatMap(({ value }) => value.requests);
  const idsIn = (result: Result) => requestsIn(result).map(({ id }) => id);
  const ran = () => readFileSync(join(server().folder, RAN_FILE), "utf8").split("\n");
  const timesRan = (...names: readonly string[]) =>
    names.map((name) => ran().filter((each) => each === name).length).join(" ");

  describe("every kind of pause", () => {
    it("K3 and K8: three calls wait, are answered alone, one while another call runs, and are forked", async () => {
      const [thread, slow] = [await newThread(), randomUUID()];
      const [a, b, c] = [`a ${slow}`, `b ${slow}`, `c ${slow}`];
      const asks = [a, b, c].map((name) => ({ name, how: "asks" as const }));
      const { run_id: run } = await server().client.runs.create(
        thread,
        "pauses",
        input(...asks, { name: slow, how: "waits" }),
      );
      // Another process on the same database, as somebody with another client has it.
      const store = sqliteStore(server().database);
      onTestFinished(() => store.close());
      await vi.waitFor(async () => expect(await store.requests(thread, 1, 0)).toHaveLength(3), SOON);
      const early = compile(pauses, { store }).invoke(new Command({ resume: { "a1.1.0": "approve" } }), {
        configurable: { thread_id: thread },
      });
      // It is kept, and the run that goes on finds it.
      await expect(early).rejects.toMatchObject({ code: "TASK_BUSY" });
      await vi.waitFor(() => expect(timesRan(b)).toBe("1"), SOON);
      writeFileSync(join(server().folder, slow), "");
      await server().client.runs.join(thread, run);

      const { tasks } = await server().client.threads.getState<Values>(thread);
      const value = tasks[0]?.interrupts[0]?.value as PauseValue;
      expect(value.requests.map(({ id, kind }) => [id, kind])).toEqual([
        ["a1.0.0", "approval"],
        ["a1.2.0", "approval"],
      ]);
      expect(value.action_requests.map(({ name, args }) => [name, args])).toEqual([
        ["work", asks[0]],
        ["work", asks[2]],
      ]);
      await expect(say(thread, { decisions: [{ type: "approve" }] })).rejects.toThrow("AMBIGUOUS_REPLY");
      expect(idsIn(await say(thread, { "a1.2.0": "approve" }))).toEqual(["a1.0.0"]);
      expect(timesRan(a, b, c, slow)).toBe("0 1 1 1");

      // The fork asks anew for what has not run, and for nothing that has.
      const history: readonly ThreadState<Values>[] = await server().client.threads.getHistory<Values>(thread);
      const before = history.find(({ next }) => next[0] === "working");
      const forked = await wait(thread, { input: null, checkpointId: before?.checkpoint.checkpoint_id });
      expect(idsIn(forked)).toEqual(["a1.0.1"]);
      await expect(say(thread, { "a1.0.0": "approve" })).rejects.toThrow("STALE_RESUME");
      const done = await say(thread, { "a1.0.1": "approve" });
      expect(done).toMatchObject({ outcomes: ["ok", "ok", "ok", "ok"], execution: { status: "completed" } });
      expect(timesRan(a, b, c, slow)).toBe("1 1 1 1");
    });

    it("a call that its process died of is asked about: it has happened, or it runs once more", async () => {
      const verdicts = ["approve", "reject"] as const;
      const killed = await Promise.all(
        verdicts.map(async (verdict) => {
          const task = randomUUID();
          const calls = [{ name: task, how: "kills" as const }];
          const options = ["--task", task, "--set", `calls=${JSON.stringify(calls)}`, "--db", server().database];
          expect((await server().command("run", server().graphFile, ...options)).code).toBe(-1);
          return { task, verdict, request: "" };
        }),
      );
      for (const { task, verdict } of killed) {
        await server().client.threads.create({ threadId: task, graphId: "pauses", ifExists: "do_nothing" });
        const paused = await wait(task, { input: null });
        expect(requestsIn(paused)).toMatchObject([{ kind: "unknown", tool: "work", args: { name: task } }]);
        const [shown] = paused.__interrupt__ ?? [];
        expect(shown?.value).toMatchObject({
          review_configs: [{ allowed_decisions: ["approve", "reject"] }],
          config: { allow_respond: false, allow_edit: false, allow_accept: true },
        });
        const done = await say(task, { [shown?.id ?? ""]: { decisions: [{ type: verdict }] } });
        expect(done).toMatchObject({ outcomes: ["ok"], execution: { status: "completed" } });
        expect(timesRan(task)).toBe(verdict === "approve" ? "1" : "2");
      }
    });

    it("what nobody answered in time takes no answer any more, and goes on without one", async () => {
      const [approval, question, name] = [await newThread(), await newThread(), randomUUID()];
      const shown = [await wait(approval, input({ name, how: "expires" })), await wait(question, input())];
      expect(shown.flatMap(requestsIn).map(({ kind }) => kind)).toEqual(["approval", "question"]);
      const last = Math.max(...shown.flatMap(requestsIn).map(({ expiresAt }) => expiresAt ?? 0));
      while (Date.now() < last) await sleep(20);
      await expect(say(approval, { decisions: [{ type: "approve" }] })).rejects.toThrow("APPROVAL_EXPIRED");
      await expect(say(question, { decisions: [{ type: "respond", message: "yes" }] })).rejects.toThrow(
        "APPROVAL_EXPIRED",
      );
      expect(await wait(approval, { input: null })).toMatchObject({
        outcomes: ["refused"],
        execution: { status: "completed" },
      });
      expect(timesRan(name)).toBe("0");
      expect((await wait(question, { input: null })).execution).toMatchObject({ status: "completed", step: "late" });
    });

    it("the example refactor is told yes, and moves the function in a copy of a project", async () => {
      const project = join(server().folder, "shop");
      cpSync(join(server().folder, "graphs/refactor/projects/shop"), project, { recursive: true });
      const thread = await newThread();
      const asked = await wait(thread, { input: { message: BUNDLED.shop, project } }, "refactor");
      expect(requestsIn(asked)).toMatchObject([{ kind: "question" }]);
      const done = await wait(thread, { command: { resume: "yes" } }, "refactor");
      expect(done).toMatchObject({ tests: "passed", execution: { status: "completed", step: "done" } });
      expect(readFileSync(join(project, "src/money.js"), "utf8")).toContain("export function formatPrice(");
      expect(readFileSync(join(project, "src/cart.js"), "utf8")).toContain('from "./money.js"');
    });
  });
}
