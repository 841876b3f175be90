import { MemorySaver } from "@langchain/langgraph";
import { compile, defineTool, defineWorkflow, field } from "statecard";
import { runWorkflow, scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ViewOptions } from "../../src/view/options.ts";

const START = Date.UTC(2026, 2, 1, 10, 0);
const HOUR = 3_600_000;

const reading = defineWorkflow({
  name: "reading",
  version: 1,
  state: { result: field(z.string()), cwd: field(z.string()).runtimeOnly() },
  tools: {
    readFile: defineTool({
      description: "Reads a file.",
      parameters: z.object({ path: z.string() }),
      effect: "read",
      run({ path }) {
        if (path !== "b.txt") throw new Error("no such file");
        return "what it says";
      },
    }),
    cd: defineTool({
      description: "Changes the working directory.",
      parameters: z.object({ to: z.string() }),
      effect: "none",
      run: ({ to }) => ({ directory: to }),
      onResult: ({ status, value }) =>
        status === "ok" ? { cwd: z.object({ directory: z.string() }).parse(value).directory } : {},
    }),
  },
  initial: "look",
  steps: {
    look: { tools: ["readFile", "cd"], writes: ["result"], to: ["look", "tell"] },
    tell: { writes: ["result"], to: ["tell", "done"] },
    done: { final: true },
  },
});

const read = (path: string) => ({ calls: [{ tool: "readFile", args: { path } }] });
const cd = (to: string) => ({ calls: [{ tool: "cd", args: { to } }] });

/** Runs a script in which each decision may take its time. */
async function prompts(
  view: Partial<ViewOptions>,
  script: readonly (readonly [ScriptedAnswer, number?])[],
  answers: readonly string[] = [],
) {
  const time = { now: START };
  const model = scriptedModel(
    script.map(([decision, ms = 0]) => () => {
      time.now += ms;
      return decision as object;
    }),
  );
  await runWorkflow(reading, { model, message: "go", answers, clock: { now: () => time.now }, view });
  return model.prompts;
}

const HISTORY = { policy: "history" } as const;
const END = [{ next: "tell" }, { next: "done" }].map((decision) => [decision] as const);

test("facts stay with their observation, byte for byte, in every later prompt", async () => {
  const all = await prompts(HISTORY, [[read("a")], [read("a.txt")], [read("b.txt")], ...END]);
  const told = "call 2 of readFile; failed 2 times in a row: use only names and values that you have seen";
  expect(all[1]).not.toContain(told);
  const shown = all.slice(2).map((prompt) => /<facts>\ncall 2[\s\S]*?<\/facts>/.exec(prompt)?.[0]);
  expect(shown[0]).toContain(told);
  expect(new Set(shown)).toEqual(new Set([shown[0]]));
  expect(all[3]).toContain("call 3 of readFile");
});

describe("under a simulated clock", () => {
  const rule = "what was true before may have changed, check it before you rely on it";

  test("a long gap is told with its rule, a short one is not", async () => {
    const all = await prompts(HISTORY, [[read("b.txt"), 3 * HOUR], [read("b.txt"), 60_000], ...END]);
    expect(all[0]).not.toContain("<facts>");
    expect(all[1]).toContain(`came 2026-03-01 13:00 UTC, 3 h after what came before: ${rule}`);
    expect(all[2]).not.toContain("13:01");
  });

  test("every time is told where that is asked for, and none where it is switched off", async () => {
    const script = [[read("b.txt"), 3 * HOUR] as const, ...END];
    const always = await prompts({ ...HISTORY, statusBar: { timestamps: true } }, script);
    expect(always[0]).toContain("<facts>\ncame 2026-03-01 10:00 UTC\n</facts>");
    const never = await prompts({ ...HISTORY, statusBar: { timestamps: false } }, script);
    expect(never.join("\n")).not.toContain("UTC");
  });
});

test("the working directory follows the state", async () => {
  const statusBar = { system: { directory: "cwd" } };
  const all = await prompts({ ...HISTORY, statusBar }, [[cd("/srv")], [cd("/srv/app")], ...END]);
  expect(all.map((prompt) => /directory: “.*”/.exec(prompt.slice(prompt.lastIndexOf("<status>")))?.[0])).toEqual([
    undefined,
    "directory: “/srv”",
    "directory: “/srv/app”",
    "directory: “/srv/app”",
  ]);
});

test("the bar is the last block of the prompt, and not there at all when all is switched off", async () => {
  const [, second = ""] = await prompts(HISTORY, END);
  expect(second).toMatch(
    /<status>\nprogress: step 2 of 2 [^\n]*\n<\/status>\n<answer-schema>\n[^\n]*\n<\/answer-schema>$/,
  );
  const off = { timestamps: false, counters: false, todo: false, errors: false, system: false };
  const silent = await prompts({ ...HISTORY, statusBar: off }, [[read("a")], [read("a")], ...END]);
  expect(silent.join("\n")).not.toMatch(/<(?:status|facts)>/);
});

describe("a bar that is kept", () => {
  const kept = { ...HISTORY, statusBar: { mode: "append" } } as const;
  const bars = (prompt = "") => [...prompt.matchAll(/^progress: .*$/gm)].map(([line]) => line);
  const script = [[{ next: "tell" }], [{ ask: "Well?" }], [{ ask: "And?" }], [{ next: "done" }]] as const;

  test("stays with each observation, and is not repeated at the end", async () => {
    const all = await prompts(kept, script, ["yes", "no"]);
    expect(bars(all[2])).toHaveLength(1);
    expect(bars(all[3])).toHaveLength(2);
    expect(all[3]).not.toContain("<status>");
    const until = (prompt = "") => prompt.slice(0, prompt.lastIndexOf("progress: "));
    expect(all[3]?.startsWith(until(all[2]))).toBe(true);
  });

  test("is said at the end where no observation has come since it changed", async () => {
    const all = await prompts(kept, script, ["yes", "no"]);
    expect(all[1]).toMatch(/<status>\nprogress: /);
  });

  test("is replaced unless that is asked for", async () => {
    const all = await prompts(HISTORY, script, ["yes", "no"]);
    expect(all.map((prompt) => bars(prompt).length)).toEqual([0, 1, 1, 1]);
  });
});

test("options that are none are refused", () => {
  const open = (statusBar: object) => compile(reading, { checkpointer: new MemorySaver(), view: { statusBar } });
  expect(() => open({ mode: "keep" })).toThrow("view.statusBar.mode must be one of auto, replace, append");
  expect(() => open({ todos: false })).toThrow("there is no view.statusBar.todos; there are: timestamps, counters");
});
