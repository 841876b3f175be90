import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  eventsOf,
  ISO_TIME,
  filledIn,
  followHint,
  jsonOf,
  ownDatabase,
  projectFolder,
  rowsOf,
  shareOneProcess,
  shell,
  statecard,
  taskOf,
} from "../support/cli.ts";

shareOneProcess();

describe("a whole conversation over processes", () => {
  test("goes in English from the first question to the closed ticket", async () => {
    const own = { ...(await ownDatabase()), ownProcess: true };
    const started = await statecard(["run", "ticket", "--task", "t-1", "--json"], own);
    expect(started).toMatchObject({ code: 10, stderr: "" });
    expect(taskOf(started)).toMatchObject({
      taskId: "t-1",
      workflow: "ticket",
      version: 1,
      status: "waiting_user",
      step: "gathering_info",
      completedSteps: ["init"],
      waiting: [{ id: expect.any(String), kind: "question", question: "What is broken?" }],
      usage: {
        calls: 2,
        inputTokens: expect.any(Number),
        cachedTokens: expect.any(Number),
        outputTokens: expect.any(Number),
      },
    });

    const told = await statecard(["resume", "t-1", "--answer", "network unstable", "--json"], own);
    expect(told.code).toBe(10);
    expect(taskOf(told)).toMatchObject({ state: { ticketType: "network unstable", priority: null } });

    const urgent = await statecard(["resume", "t-1", "--answer", "P1", "--json"], own);
    expect(urgent.code).toBe(10);
    expect(taskOf(urgent)).toMatchObject({
      step: "deciding",
      completedSteps: ["init", "gathering_info"],
      state: { ticketType: "network unstable", priority: "P1", solution: expect.stringContaining("router") },
    });

    const agreed = await statecard(["resume", "t-1", "--answer", "go ahead", "--json"], own);
    expect(agreed.code).toBe(0);
    const done = taskOf(agreed);
    expect(done).toMatchObject({
      status: "completed",
      step: "done",
      completedSteps: ["init", "gathering_info", "deciding", "resolving"],
      retryCount: expect.any(Number),
      state: { priority: "P1", result: "closed, user told" },
    });
    expect(done.waiting).toBeUndefined();
    expect(done.lastError).toBeUndefined();

    const shown = await statecard(["show", "t-1", "--json"], own);
    expect(shown.code).toBe(0);
    expect(taskOf(shown)).toEqual(done);
  });

  test("goes in Chinese from the first question to the closed ticket", async () => {
    const own = { ...(await ownDatabase()), ownProcess: true };
    const started = taskOf(await statecard(["run", "ticket", "--message", "你好", "--json"], own));
    const { taskId } = started;
    expect(started.waiting?.[0]?.question).toMatch(/\p{Script=Han}/u);
    const told = taskOf(await statecard(["resume", taskId, "--answer", "网络连接不稳定", "--json"], own));
    expect(told).toMatchObject({ status: "waiting_user", state: { ticketType: "网络连接不稳定", priority: null } });
    expect(told.waiting?.[0]?.question).toMatch(/P1.*P2.*P3/);
    expect(told.waiting?.[0]?.question).toMatch(/\p{Script=Han}/u);
    const urgent = taskOf(await statecard(["resume", taskId, "--answer", "优先级是 P1", "--json"], own));
    expect(urgent).toMatchObject({ step: "deciding", state: { ticketType: "网络连接不稳定", priority: "P1" } });
    const agreed = await statecard(["resume", taskId, "--answer", "开始处理", "--json"], own);
    expect(agreed.code).toBe(0);
    expect(taskOf(agreed)).toMatchObject({ status: "completed", state: { result: "已关闭,已告知用户" } });
  });

  test("can be followed from outside by tasks, history and preview", async () => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--task", "t-1", "--message", "the printer jams"], own);
    await statecard(["run", "ticket", "--task", "t-2", "--set", "priority=P2", "--set", "ticketType=printer"], own);

    const listed = await statecard(["tasks", "--json"], own);
    expect(listed.code).toBe(0);
    expect(rowsOf(listed)).toMatchObject([
      { taskId: "t-2", workflow: "ticket", status: "waiting_user", step: "deciding" },
      { taskId: "t-1", workflow: "ticket", status: "waiting_user", step: "gathering_info" },
    ]);
    const plain = await statecard(["tasks"], own);
    expect(plain.stdout).toMatch(/t-1.*waiting for you: How urgent is it/);

    const history = await statecard(["history", "t-1", "--json"], own);
    const events = eventsOf(history);
    expect(events[1]).toMatchObject({
      kind: "started",
      at: expect.stringMatching(ISO_TIME),
      data: { input: { message: "the printer jams" } },
    });
    expect(events.filter((event) => event.kind === "decision").length).toBe(2);
    expect((await statecard(["history", "t-1"], own)).stdout).toContain("the printer jams");

    const preview = await statecard(["preview", "t-1", "--message", "quite urgent", "--show", "--json"], own);
    expect(preview.code).toBe(0);
    const { previews } = jsonOf(preview) as { previews: { policy: string; tokens: number; messages: unknown }[] };
    expect(previews.map((each) => each.policy)).toEqual(expect.arrayContaining(["state", "history"]));
    for (const each of previews) {
      expect(each.tokens).toBeGreaterThan(0);
      expect(JSON.stringify(each.messages)).toContain("quite urgent");
    }
    const shown = taskOf(await statecard(["show", "t-1", "--json"], own));
    expect(shown.state.priority).toBeNull();
  });

  test("keeps its tasks in .statecard/tasks.db of the folder unless told otherwise", async () => {
    const folder = await projectFolder({
      "ask.ts": `
        import { compile, defineWorkflow, field } from "statecard";
        import { z } from "zod";
        export const graph = compile(defineWorkflow({
          name: "ask", version: 1, state: { colour: field(z.string()) }, initial: "ask",
          steps: {
            ask: { writes: ["colour"], to: ["done"], run: (_state, { observation }) => observation?.kind === "answer"
              ? { patch: { colour: observation.text }, next: "done" } : { ask: "Which colour?" } },
            done: { final: true },
          },
        }));`,
    });
    expect((await statecard(["run", "ask.ts", "--task", "a"], { folder })).code).toBe(10);
    expect(existsSync(join(folder, ".statecard/tasks.db"))).toBe(true);
    expect((await statecard(["run", "ask.ts", "--task", "b", "--db", "other/mine.db"], { folder })).code).toBe(10);
    expect(existsSync(join(folder, "other/mine.db"))).toBe(true);
    const resumed = await statecard(["resume", "a", "--answer", "green", "--json"], { folder });
    expect(resumed.code).toBe(0);
    expect(taskOf(resumed).state).toEqual({ colour: "green" });
  });
});

describe("a chat on a pipe", () => {
  test("takes one line for each question and ends with the task", async () => {
    const own = await ownDatabase();
    const input = "网络连接不稳定\n优先级是 P1\n开始处理\n";
    const chat = await statecard(["run", "ticket", "--task", "t-1", "--chat"], { ...own, input });
    expect(chat).toMatchObject({ code: 0, stderr: "" });
    expect(chat.stdout).toContain("已关闭,已告知用户");
    const shown = taskOf(await statecard(["show", "t-1", "--json"], own));
    expect(shown).toMatchObject({ status: "completed", state: { ticketType: "网络连接不稳定", priority: "P1" } });
  });

  test("leaves a paused task at the end of the input and says how to go on", async () => {
    const own = await ownDatabase();
    const chat = await statecard(["run", "ticket", "--chat"], { ...own, input: "network unstable\n" });
    expect(chat).toMatchObject({ code: 10, stderr: "" });
    const next = await followHint(chat.stdout, "P1", own);
    expect(next.code).toBe(10);
    expect(next.stdout).toContain("Shall I start?");
  });

  test("takes a last line that has no line end", async () => {
    const own = await ownDatabase();
    const chat = await statecard(["run", "ticket", "--task", "t-1", "--chat"], { ...own, input: "network\nP1" });
    expect(chat.code).toBe(10);
    expect(taskOf(await statecard(["show", "t-1", "--json"], own)).state).toMatchObject({ priority: "P1" });
  });

  test("asks again where a line is no answer, and changes nothing by it", async () => {
    const own = await ownDatabase();
    const chat = await statecard(["run", "ticket", "--task", "t-1", "--chat"], { ...own, input: "\n   \nnetwork\n" });
    expect(chat.code).toBe(10);
    expect(chat.stdout.match(/INVALID_MESSAGE/g)).toHaveLength(2);
    const shown = taskOf(await statecard(["show", "t-1", "--json"], own));
    expect(shown).toMatchObject({ state: { ticketType: "network" }, usage: { calls: 3 } });
  });

  test("goes on with a task that waits, by resume --chat", async () => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--task", "t-1", "--message", "network unstable"], own);
    const chat = await statecard(["resume", "t-1", "--chat"], { ...own, input: "P2\nyes\n" });
    expect(chat.code).toBe(0);
    expect(taskOf(await statecard(["show", "t-1", "--json"], own)).status).toBe("completed");
  });
});

describe("the command that an output offers to go on with", () => {
  test("works literally, npx included, with an answer filled in", async () => {
    const own = await ownDatabase();
    const chat = await statecard(["run", "ticket", "--chat"], { ...own, input: "" });
    const next = await shell(`npx statecard ${filledIn(chat.stdout, "network unstable")}`, own);
    expect(next.stderr).not.toContain("statecard");
    expect(next.code).toBe(10);
    expect(next.stdout).toContain("network unstable");
  });

  test("names the database where --db chose it", async () => {
    const { database } = await ownDatabase();
    const chat = await statecard(["run", "ticket", "--db", database, "--chat"], { input: "" });
    const afterChat = await followHint(chat.stdout, "network unstable", {});
    expect(afterChat).toMatchObject({ code: 10, stderr: "" });
    const afterResume = await followHint(afterChat.stdout, "P1", {});
    expect(afterResume).toMatchObject({ code: 10, stderr: "" });
    expect(afterResume.stdout).toContain("Shall I start?");
  });

  test.each([`it's "two" $HOME \`id\` \\`, "--odd", "票 🎫/a;b|c&d"])("works for the task id %j", async (taskId) => {
    const own = await ownDatabase();
    const started = await statecard(["run", "ticket", `--task=${taskId}`], own);
    expect(started.code).toBe(10);
    const next = await followHint(started.stdout, "network unstable", own);
    expect(next).toMatchObject({ code: 10, stderr: "" });
    expect(next.stdout).toContain("How urgent is it");
  });
});
