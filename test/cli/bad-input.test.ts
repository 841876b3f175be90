import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  expectNoStackTrace,
  expectRefusal,
  jsonOf,
  ownDatabase,
  projectFolder,
  rowsOf,
  shareOneProcess,
  statecard,
  taskOf,
} from "../support/cli.ts";

shareOneProcess();

/** Its one code step fails until there is a file "mended". */
const FRAGILE = `
  import { existsSync } from "node:fs";
  import { compile, defineWorkflow } from "statecard";
  export const graph = compile(defineWorkflow({
    name: "fragile", version: 1, state: {}, initial: "work",
    steps: {
      work: { to: ["done"], run: () => {
        if (!existsSync("mended")) throw new Error("the belt has slipped");
        return { next: "done" };
      } },
      done: { final: true },
    },
  }));`;

async function finishedTask() {
  const own = await ownDatabase();
  const set = ["--set", "ticketType=printer", "--set", "priority=P1"];
  await statecard(["run", "ticket", "--task", "t-1", ...set], own);
  const done = await statecard(["resume", "t-1", "--answer", "go ahead"], own);
  expect(done.code).toBe(0);
  return own;
}

describe("a graph or task that is not there", () => {
  test.each([
    ["run", "tickets"],
    ["preview", "tickets"],
    ["graph", "src"],
    ["run", "no/such.ts"],
  ])("%s %s is refused with the graphs there are", async (command, graph) => {
    const own = await ownDatabase();
    const says = new RegExp(`"${graph}".*langgraph\\.json here has: ticket`);
    await expectRefusal([command, graph], { code: "UNKNOWN_GRAPH", exit: 2, says }, own);
  });

  test.each(["resume", "show", "history"])("%s of an unknown task says how to see those there are", async (command) => {
    const own = await ownDatabase();
    const says = /no task nobody.*list the tasks/;
    await expectRefusal([command, "nobody"], { code: "UNKNOWN_TASK", exit: 3, says }, own);
  });

  test("an answer to an unknown task makes no task", async () => {
    const own = await ownDatabase();
    const expected = { code: "UNKNOWN_TASK", exit: 3, says: /no task nobody/ };
    await expectRefusal(["resume", "nobody", "--answer", "P1"], expected, own);
    expect(jsonOf(await statecard(["tasks", "--json"], own))).toEqual({ tasks: [] });
  });
});

describe("a task that takes no answer", () => {
  test("a finished one refuses answers, wake-ups and new input, and stays as it is", async () => {
    const own = await finishedTask();
    const before = taskOf(await statecard(["show", "t-1", "--json"], own));
    const refused = { code: "TASK_FINISHED", exit: 3, says: /t-1 was completed.*start a new one/ };
    await expectRefusal(["resume", "t-1", "--answer", "P2"], refused, own);
    await expectRefusal(["resume", "t-1"], refused, own);
    await expectRefusal(["run", "ticket", "--task", "t-1", "--message", "again"], refused, own);
    expect(taskOf(await statecard(["show", "t-1", "--json"], own))).toEqual(before);
  });

  test("one that failed refuses an answer, says that it can be resumed, and then can", async () => {
    const folder = await projectFolder({ "fragile.ts": FRAGILE });
    const failed = await statecard(["run", "fragile.ts", "--task", "f-1", "--json"], { folder });
    expect(failed.code).toBe(1);
    expect(failed.stdout).toContain("the belt has slipped");
    expectNoStackTrace(failed);

    const shown = taskOf(await statecard(["show", "f-1", "--json"], { folder }));
    expect(shown).toMatchObject({ status: "failed", step: "work", lastError: { code: "STEP_FAILED" } });
    expect(shown.lastError?.message).toContain("the belt has slipped");

    const says = /nothing waits|asks nothing/;
    await expectRefusal(["resume", "f-1", "--answer", "x"], { code: "TASK_NOT_WAITING", exit: 3, says }, { folder });
    const again = await statecard(["resume", "f-1"], { folder });
    expect(again.code).toBe(1);
    expectNoStackTrace(again);
    await writeFile(join(folder, "mended"), "");
    const resumed = await statecard(["resume", "f-1", "--json"], { folder });
    expect(resumed.code).toBe(0);
    expect(taskOf(resumed)).toMatchObject({ status: "completed", completedSteps: ["work"] });
  });

  test("a failed run tells which task failed and how to try again", async () => {
    const folder = await projectFolder({ "fragile.ts": FRAGILE });
    const failed = await statecard(["run", "fragile.ts"], { folder });
    expect(failed.code).toBe(1);
    expect(failed.stderr + failed.stdout).toMatch(/STEP_FAILED.*the belt has slipped/);
    const tasks = rowsOf(await statecard(["tasks", "--json"], { folder }));
    expect(failed.stderr + failed.stdout).toContain(`statecard resume ${tasks[0]?.taskId}`);
    expect(tasks[0]).toMatchObject({ status: "failed" });
  });

  test("an answer to a question that is not the open one is refused as stale", async () => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--task", "t-1"], own);
    const [request] = taskOf(await statecard(["resume", "t-1", "--answer", "network", "--json"], own)).waiting ?? [];
    const says = new RegExp(`q2\\.0.*not open.*open now: ${request?.id}`);
    const args = ["resume", "t-1", "--request", "q2.0", "--answer", "P1"];
    await expectRefusal(args, { code: "STALE_RESUME", exit: 3, says }, own);
    const named = await statecard(["resume", "t-1", "--request", request?.id ?? "", "--answer", "P1", "--json"], own);
    expect(taskOf(named).state).toMatchObject({ priority: "P1" });
  });
});

test("tasks shows as many as it is asked for, and says that there are more", async () => {
  const own = await ownDatabase();
  for (const task of ["t-1", "t-2", "t-3"]) await statecard(["run", "ticket", "--task", task], own);
  const some = await statecard(["tasks", "--limit", "2"], own);
  expect(some.stdout).toMatch(/^t-3 .*\nt-2 .*\nThere are more; show them with --limit 20\.\n$/);
  const json = jsonOf(await statecard(["tasks", "--limit", "1", "--json"], own));
  expect(json).toMatchObject({ tasks: [{ taskId: "t-3" }], more: true });
  expect(rowsOf(await statecard(["tasks", "--json"], own))).toHaveLength(3);
  await expectRefusal(["tasks", "--limit", "0"], { code: "USAGE", exit: 2, says: /--limit is a whole number/ }, own);
});

describe("a start with wrong fields is refused with those that can be set", () => {
  const cases: readonly (readonly [setting: string, code: string, says: RegExp])[] = [
    ["priority=P9", "INVALID_INPUT", /"priority".*P1.*P2.*P3/],
    ["solution=x", "INVALID_INPUT", /"solution".*ticketType, priority/],
    ["colour=red", "INVALID_INPUT", /no field "colour".*ticketType, priority/],
    ["__proto__=1", "INVALID_INPUT", /"__proto__".*ticketType, priority/],
    ["priority", "USAGE", /field=value/],
    ["=P1", "USAGE", /field=value/],
  ];
  test.each(cases)("--set %j", async (setting, code, says) => {
    const own = await ownDatabase();
    await expectRefusal(["run", "ticket", "--set", setting], { code, exit: 2, says }, own);
  });

  test("and makes no task", async () => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--set", "priority=P9"], own);
    expect(jsonOf(await statecard(["tasks", "--json"], own))).toEqual({ tasks: [] });
  });

  test("a value may hold equals signs and further lines", async () => {
    const own = await ownDatabase();
    const started = await statecard(["run", "ticket", "--set", "ticketType=a=b\nc==", "--json"], own);
    expect(taskOf(started).state).toMatchObject({ ticketType: "a=b\nc==" });
  });
});

describe("a message that is none", () => {
  const empty = { code: "INVALID_MESSAGE", exit: 2, says: /empty; write something/ };
  const junk = { code: "INVALID_MESSAGE", exit: 2, says: /not text.*send plain UTF-8/ };
  const large = { code: "MESSAGE_TOO_LARGE", exit: 2, says: /100000 bytes.*65536.*shorten/ };

  test.each([
    ["empty", "", empty],
    ["white space", " \t\n", empty],
    ["control characters", "a\u0001\u001b[2Jb", junk],
    ["too large", "x".repeat(100_000), large],
  ])("%s is refused as a message and as an answer, and changes nothing", async (_what, text, refusal) => {
    const own = await ownDatabase();
    await expectRefusal(["run", "ticket", "--task", "t-1", "--message", text], refusal, own);
    await statecard(["run", "ticket", "--task", "t-1"], own);
    await expectRefusal(["resume", "t-1", "--answer", text], refusal, own);
    expect(taskOf(await statecard(["show", "t-1", "--json"], own))).toMatchObject({ revision: 2 });
  });

  test("an empty preview message is refused", async () => {
    await expectRefusal(["preview", "ticket", "--message", ""], empty, await ownDatabase());
  });

  test("a message of 1 MB and broken UTF-8 through a pipe are refused and asked for again", async () => {
    const own = await ownDatabase();
    const input = Buffer.concat([
      Buffer.alloc(1_000_000, "x"),
      Buffer.from([0x0a, 0xff, 0xfe, 0x80, 0xc3, 0x28, 0xf5, 0x0a]),
      Buffer.from("a\u0000\u0007b\n"),
      Buffer.from("network unstable\n"),
    ]);
    const chat = await statecard(["run", "ticket", "--task", "t-1", "--chat"], { ...own, input });
    expect(chat.code).toBe(10);
    expect(chat.stdout.match(/^(?:MESSAGE_TOO_LARGE|INVALID_MESSAGE): /gm)).toEqual([
      "MESSAGE_TOO_LARGE: ",
      "INVALID_MESSAGE: ",
      "INVALID_MESSAGE: ",
    ]);
    expectNoStackTrace(chat);
    // What comes in broken must not steer the terminal on its way out.
    // oxlint-disable-next-line no-control-regex
    expect(chat.stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
    const shown = taskOf(await statecard(["show", "t-1", "--json"], own));
    expect(shown).toMatchObject({ state: { ticketType: "network unstable" }, usage: { calls: 3 } });
  });

  test("random bytes through a pipe never end in a stack trace", async () => {
    const own = await ownDatabase();
    const input = readFileSync(process.execPath).subarray(0, 4096);
    const chat = await statecard(["run", "ticket", "--task", "t-1", "--chat"], { ...own, input });
    expect([0, 10]).toContain(chat.code);
    expectNoStackTrace(chat);
  });
});

describe("task ids", () => {
  test.each([`../a'b" c\\\``, "任务 🎫🏽", "--leading", "a'; drop table checkpoints; --"])(
    "%j is an id like any other",
    async (taskId) => {
      const own = await ownDatabase();
      const started = await statecard(["run", "ticket", `--task=${taskId}`, "--json"], own);
      expect(started.code).toBe(10);
      expect(taskOf(started).taskId).toBe(taskId);
      const resumed = await statecard(["resume", "--answer", "network", "--json", "--", taskId], own);
      expect(taskOf(resumed)).toMatchObject({ taskId, state: { ticketType: "network" } });
    },
  );

  test("one of 1,500 characters works", async () => {
    const own = await ownDatabase();
    const taskId = "x".repeat(1500);
    expect(taskOf(await statecard(["run", "ticket", "--task", taskId, "--json"], own)).taskId).toBe(taskId);
    expect((await statecard(["resume", taskId, "--answer", "network"], own)).code).toBe(10);
    expect((await statecard(["tasks"], own)).code).toBe(0);
  });

  test("one of 3,000 characters is refused with the limit", async () => {
    const refusal = { code: "INVALID_TASK_ID", exit: 2, says: /at most 2048 characters/ };
    await expectRefusal(["run", "ticket", "--task", "x".repeat(3000)], refusal, await ownDatabase());
  });

  test("an empty one is refused in the words of the command line", async () => {
    const refusal = { code: "MISSING_TASK_ID", exit: 2, says: /--task/ };
    await expectRefusal(["run", "ticket", "--task", ""], refusal, await ownDatabase());
  });

  test("one with control characters does not steer the terminal", async () => {
    const own = await ownDatabase();
    const taskId = "\u001b[31mred\u0007";
    const started = await statecard(["run", "ticket", "--task", taskId], own);
    const shown = await statecard(["show", taskId], own);
    const listed = await statecard(["tasks"], own);
    const unknown = await statecard(["show", `${taskId}?`], own);
    for (const { stdout, stderr } of [started, shown, listed, unknown])
      // oxlint-disable-next-line no-control-regex
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
  });
});

describe("wrong environment variables", () => {
  const key = "sk-abcdefghijklmnop";
  const cases: readonly (readonly [what: string, environment: Record<string, string>, says: RegExp])[] = [
    ["a nonsense address", { OPENAI_API_KEY: key, OPENAI_BASE_URL: "nonsense" }, /OPENAI_BASE_URL.*example: http/],
    ["an address of no web server", { OPENAI_API_KEY: key, OPENAI_BASE_URL: "file:///x" }, /OPENAI_BASE_URL.*http/],
    ["a key with a space", { OPENAI_API_KEY: "sk-abcdefgh ijklmnop" }, /OPENAI_API_KEY.*white space.*unset/],
    ["a key with a line end", { OPENAI_API_KEY: `${key}\n` }, /OPENAI_API_KEY.*white space.*unset/],
  ];
  test.each(cases)(
    "%s is refused before anything is stored, without showing the key",
    async (_what, environment, says) => {
      const { database } = await ownDatabase();
      const options = { environment: { STATECARD_DB: database, ...environment } };
      const expected = { code: "INVALID_ENVIRONMENT", exit: 2, says };
      for (const { stdout, stderr } of await expectRefusal(["run", "ticket"], expected, options))
        expect(stdout + stderr).not.toContain("abcdefgh");
      const listed = await statecard(["tasks", "--json"], { environment: { STATECARD_DB: database } });
      expect(jsonOf(listed)).toEqual({ tasks: [] });
    },
  );

  test("an empty key counts as none", async () => {
    const { database } = await ownDatabase();
    const environment = { STATECARD_DB: database, OPENAI_API_KEY: "", OPENAI_BASE_URL: "" };
    const started = await statecard(["run", "ticket"], { environment });
    expect(started.code).toBe(10);
    expect(started.stdout).toContain("offline rules");
  });
});
