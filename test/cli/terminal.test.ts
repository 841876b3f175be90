import { describe, expect, test } from "vitest";
import {
  atTerminal,
  COMMAND,
  expectNoStackTrace,
  followHint,
  hasPython,
  ownDatabase,
  projectFolder,
  shell,
  statecard,
  taskOf,
} from "../support/cli.ts";

// oxlint-disable-next-line no-control-regex
const COLOUR = /\u001b\[\d*(?:;\d+)*m/;
// oxlint-disable-next-line no-control-regex
const ESCAPE = /\u001b/;
const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const START = ["run", "ticket", "--chat", "--task", "t-1"];

// Typed once the prompt is there. A later step waits for its question, not for the echo.
const network = ["What is broken\\?", "network unstable\r"] as const;

describe.skipIf(!hasPython)("at a terminal (a pseudo-terminal opened by python3, which has to be there)", () => {
  test("the ticket conversation goes to its end", async () => {
    const own = await ownDatabase();
    const steps = [network, ["How urgent is it", "P1\r"], ["Shall I start\\?", "yes\r"]] as const;
    const chat = await atTerminal(START, steps, own);
    expect(chat).toMatchObject({ code: 0, left: 0 });
    expect(chat.output).toMatch(COLOUR);
    expect(chat.output.replaceAll(new RegExp(COLOUR, "g"), "")).toContain("✔ resolving → ● done");
    expect(taskOf(await statecard(["show", "t-1", "--json"], own)).status).toBe("completed");
  });

  test.each([
    ["Ctrl-C", CTRL_C],
    ["Ctrl-D", CTRL_D],
  ])("%s at a question leaves a paused task, and the command that it prints goes on with it", async (_name, key) => {
    const own = await ownDatabase();
    const chat = await atTerminal(START, [network, ["How urgent is it", key]], own);
    expect(chat).toMatchObject({ code: 10, left: 0 });
    expect(chat.output).toContain("Paused, nothing lost.");
    const next = await followHint(chat.output.replaceAll("\r", ""), "P1", own);
    expect(next.code).toBe(10);
    expect(next.stdout).toContain("Shall I start?");
  });

  test("Ctrl-C while a step works stops it, and the command that is printed goes on with it", async () => {
    const folder = await projectFolder({
      "endless.ts": `
        import { existsSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        import { compile, defineWorkflow, field } from "statecard";
        import { z } from "zod";
        export const graph = compile(defineWorkflow({
          name: "endless", version: 1, state: { word: field(z.string()) }, initial: "ask",
          steps: {
            ask: { writes: ["word"], to: ["work"], run: (_state, { observation }) => observation?.kind === "answer"
              ? { patch: { word: observation.text }, next: "work" } : { ask: "Which word?" } },
            work: { to: ["done"], run: async (_state, { signal }) => {
              if (process.stdout.isTTY) { console.log("at work"); await sleep(1e8, undefined, { signal }); }
              return { next: "done" };
            } },
            done: { final: true },
          },
        }));`,
    });
    const steps = [
      ["Which word\\?", "hello\r"],
      ["at work", CTRL_C],
    ] as const;
    const chat = await atTerminal(["run", "endless.ts", "--chat", "--task", "e-1"], steps, { folder });
    expect(chat).toMatchObject({ left: 0 });
    expect(chat.code).not.toBeNull();
    const next = await followHint(chat.output.replaceAll("\r", ""), "anything", { folder });
    expect(next).toMatchObject({ code: 0, stderr: "" });
  });

  test.each([
    ["NO_COLOR", { NO_COLOR: "1" }],
    ["a dumb terminal", { TERM: "dumb" }],
  ])("%s means no colours", async (_name, added) => {
    const own = await ownDatabase();
    const environment = { ...own.environment, ...added };
    const chat = await atTerminal(START, [network, ["How urgent is it", CTRL_C]], { environment });
    expect(chat).toMatchObject({ code: 10, left: 0 });
    expect(chat.output).not.toMatch(COLOUR);
    const listed = await atTerminal(["show", "t-1"], [], { environment });
    expect(listed.code).toBe(0);
    expect(listed.output).not.toMatch(ESCAPE);
  });

  test("a terminal without UTF-8 gets plain ASCII", async () => {
    const own = await ownDatabase();
    const environment = { ...own.environment, LC_ALL: "C" };
    const chat = await atTerminal(START, [network, ["How urgent is it", CTRL_C]], { environment });
    expect(chat.code).toBe(10);
    // oxlint-disable-next-line no-control-regex
    expect(chat.output.match(/[^\u0000-\u007f]/g)).toBeNull();
  });
});

describe("without a terminal", () => {
  const environments: readonly Record<string, string>[] = [{}, { TERM: "xterm-256color", COLORTERM: "truecolor" }];
  test.each(environments)("the output of an English task is plain ASCII without escapes: %o", async (added) => {
    const own = await ownDatabase();
    const options = { environment: { ...own.environment, ...added } };
    const outputs = [
      await statecard(["run", "ticket", "--task", "t-1", "--message", "network unstable"], options),
      await statecard(["show", "t-1"], options),
      await statecard(["resume", "t-1", "--chat"], { ...options, input: "P1\n" }),
    ];
    for (const { stdout, stderr } of outputs) {
      expect(stderr).toBe("");
      expect(stdout).not.toMatch(ESCAPE);
      // oxlint-disable-next-line no-control-regex
      expect(stdout.match(/[^\u0000-\u007f]/g)).toBeNull();
    }
  });

  test("a reader that closes early gives no stack trace, and the task is not harmed", async () => {
    const own = await ownDatabase();
    const command = `"${process.execPath}" "${COMMAND}"`;
    const read = await shell(`${command} run ticket --task t-1 --json | head -n 1`, own);
    expect(read).toMatchObject({ stdout: "{\n", stderr: "" });
    const chatted = await shell(`printf 'network\\nP1\\nyes\\n' | ${command} resume t-1 --chat | head -n 1`, own);
    expect(chatted.stderr).toBe("");
    for (const args of ["history t-1", "--help", "tasks --json", "preview ticket --show"]) {
      const closed = await shell(`${command} ${args} | true`, own);
      expect(closed.stderr).toBe("");
    }
    const closedErrors = await shell(`${command} show nobody 2>&1 >/dev/null | true`, own);
    expectNoStackTrace(closedErrors);
    const shown = await statecard(["show", "t-1", "--json"], own);
    expect(shown.code).toBe(0);
    expect(["waiting_user", "running", "completed"]).toContain(taskOf(shown).status);
  });
});
