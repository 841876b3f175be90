import fc from "fast-check";
import { defineTool, defineWorkflow, field } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution, type CallResult, type Execution, type Observation } from "../../src/state/execution.ts";
import { emptyState, type State } from "../../src/state/fields.ts";
import { todoField, type Todo } from "../../src/state/todos.ts";
import { attachedLines, statusBar, statusTokens } from "../../src/view/status-bar.ts";
import { TECHNIQUES, type StatusBarInput } from "../../src/view/status-bar/input.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOON = Date.UTC(2026, 2, 1, 12, 0);

const tool = (limit?: number) =>
  defineTool({
    description: "Does something.",
    parameters: z.object({ path: z.string() }),
    effect: "read",
    ...(limit === undefined ? {} : { limit }),
    run: () => null,
  });

const workflow = anyWorkflow(
  defineWorkflow({
    name: "fixing",
    version: 1,
    state: {
      cwd: field(z.string()),
      todos: todoField().describe("what has to be done"),
      notes: field(z.string()),
      result: field(z.string()),
    },
    tools: { readFile: tool(), listFiles: tool(), phone: tool(3) },
    stateBudget: { warnBytes: 500, maxBytes: 2000 },
    initial: "look",
    steps: {
      look: { tools: ["readFile", "listFiles", "phone"], writes: ["cwd", "todos", "notes"], to: ["look", "mend"] },
      mend: { tools: ["phone"], to: ["check"], maxDecisions: 4, deadline: { afterMs: 24 * HOUR, to: "check" } },
      check: { writes: ["result"], to: ["mend", "done"] },
      done: { final: true },
    },
  }),
);

interface Given extends Partial<Omit<StatusBarInput, "workflow" | "snapshot">> {
  readonly execution?: Partial<Execution>;
  readonly state?: State;
}

function input({ execution, state, ...rest }: Given): StatusBarInput {
  const snapshot = {
    execution: { ...newExecution(workflow), ...execution },
    state: { ...emptyState(workflow.state), ...state },
  };
  return { workflow, snapshot, observation: null, now: NOON, ...rest };
}

const bar = (given: Given) => statusBar(input(given)).bar;
const attached = (given: Given) => attachedLines(statusBar(input(given)).attached);

const ok = (name: string, id = "3.0"): CallResult => ({ id, tool: name, status: "ok", value: "text" });
const failed = (name: string, id = "3.0"): CallResult => ({ id, tool: name, status: "error", error: "no such file" });
const results = (...all: CallResult[]): Observation => ({ kind: "results", results: all });
const used = (calls: number, failures: readonly string[] = []) => ({
  calls,
  stale: 0,
  seen: [],
  failed: [...failures],
});

test("says nothing where there is nothing to say", () => {
  const silent = { bar: [], attached: { observation: [], results: [] } };
  expect(statusBar(input({}))).toEqual(silent);
  expect(statusBar(input({ observation: { kind: "message", text: "hello" } }))).toEqual(silent);
  expect(attached({ observation: results(ok("readFile")), execution: { toolUse: { readFile: used(1) } } })).toEqual([]);
});

describe("timestamps", () => {
  const message = (at: number): Observation => ({ kind: "message", text: "hello", at });

  test.each([
    [undefined, "came 2026-03-01 12:00 UTC"],
    [NOON - 20_000, "came 2026-03-01 12:00 UTC, less than 1 min after what came before"],
    [NOON - 4 * MINUTE, "came 2026-03-01 12:00 UTC, 4 min after what came before"],
    [
      NOON - 47 * HOUR,
      "came 2026-03-01 12:00 UTC, 47 h after what came before: what was true before may have changed, check it before you rely on it",
    ],
  ])("are attached to what came, unasked only with the rule for a long gap (%s)", (previousAt, line) => {
    const given = previousAt === undefined ? {} : { previousAt };
    expect(attached({ observation: message(NOON), ...given, options: { timestamps: true } })).toEqual([line]);
    expect(attached({ observation: message(NOON), ...given })).toEqual(line.includes("changed") ? [line] : []);
  });

  test("a clock that went back tells no gap, and what is no time is left out", () => {
    const options = { timestamps: true };
    expect(attached({ observation: message(NOON), previousAt: NOON + HOUR, options })).toEqual([
      "came 2026-03-01 12:00 UTC",
    ]);
    for (const at of [Number.NaN, Infinity, 1e300]) expect(attached({ observation: message(at), options })).toEqual([]);
  });

  test("the bar tells when what came is old by now", () => {
    const observation = message(NOON - 3 * HOUR);
    expect(bar({ observation })).toEqual([
      "time: 2026-03-01 12:00 UTC, the observation is 3 h old: check what it says before you act on it",
    ]);
    expect(bar({ observation, now: NOON - 3 * HOUR + 59 * MINUTE })).toEqual([]);
  });

  test("the bar tells a step's deadline", () => {
    expect(bar({ execution: { step: "mend" } })).toEqual([
      "deadline: a question or approval asked in this step waits 24 h, then the task goes to check",
    ]);
  });
});

describe("counters", () => {
  test.each([
    ["readFile", 1, []],
    ["readFile", 3, ["call 3 of readFile"]],
    ["phone", 1, []],
    ["phone", 2, ["call 2 of 3 allowed"]],
    ["phone", 3, ["3 of 3 calls allowed: stop calling it and report"]],
  ])("%s, call %d", (name, calls, lines) => {
    expect(attached({ observation: results(ok(name)), execution: { toolUse: { [name]: used(calls) } } })).toEqual(
      lines,
    );
  });

  test("count the calls of one decision once, at the last that ran", () => {
    const refused: CallResult = { id: "3.3", tool: "phone", status: "refused", error: "no" };
    const observation = results(ok("phone", "3.0"), ok("phone", "3.2"), refused);
    expect(attached({ observation, execution: { toolUse: { phone: used(3) } } })).toEqual([
      "3.2: 3 of 3 calls allowed: stop calling it and report",
    ]);
    const many = results(...Array.from({ length: 1000 }, (_, index) => failed("readFile", `3.${index}`)));
    const toolUse = { readFile: used(1000, ["a: x", "b: x", "c: x"]) };
    expect(attached({ observation: many, execution: { toolUse } }).length).toBeLessThan(10);
  });

  test.each([
    [["a: x"], "check its arguments before you call it again"],
    [
      ["a: x", "b: x"],
      "call 2 of readFile; failed 2 times in a row: find out what there is first (listFiles, phone), then call it with what you found",
    ],
    [
      ["a: x", "b: x", "c: x"],
      "call 3 of readFile; failed 3 or more times in a row: give it up and report what is missing",
    ],
  ])("escalate after failures: %j", (lines, rule) => {
    const toolUse = { readFile: used(lines.length, lines) };
    expect(
      attached({ observation: results(failed("readFile")), execution: { toolUse }, options: { errors: false } }),
    ).toEqual([rule]);
  });

  test("name a tool to look with only where the step has one", () => {
    const execution = { step: "mend", toolUse: { phone: used(2, ["a: x", "b: x"]) } };
    expect(attached({ observation: results(failed("phone")), execution, options: { errors: false } })).toEqual([
      "call 2 of 3 allowed; failed 2 times in a row: use only names and values that you have seen",
    ]);
  });
});

describe("errors", () => {
  const toolUse = { readFile: used(2, ['{"path":"a"}: no such file', '{"path":"b"}: no such file']) };

  test("come with their kind, the arguments, what to try and what was tried", () => {
    const result: CallResult = { ...failed("readFile"), errorType: "ENOENT", hint: "list the folder first" };
    expect(attached({ observation: results(result), execution: { toolUse }, options: { counters: false } })).toEqual([
      "error type: “ENOENT”",
      'the call: “{"path":"b"}: no such file”',
      "what to try: “list the folder first”",
      'failed before: “{"path":"a"}: no such file”',
    ]);
  });

  test("of one decision are told apart", () => {
    const observation = results(failed("readFile", "3.0"), failed("readFile", "3.1"));
    const lines = attached({ observation, execution: { toolUse }, options: { counters: false } });
    expect(lines).toEqual([
      '3.0: the call: “{"path":"a"}: no such file”',
      '3.1: the call: “{"path":"b"}: no such file”',
      '3.1: failed before: “{"path":"a"}: no such file”',
    ]);
  });

  test("that are repeated as they were are called so", () => {
    const again = { readFile: used(3, ["a: x", "b: x", "a: x"]) };
    const observation = results(failed("readFile"));
    expect(attached({ observation, execution: { toolUse: again }, options: { counters: false } })).toEqual([
      "the call: “a: x”",
      "the same call has failed in the same way before: change something",
      "failed before: “b: x”",
    ]);
  });

  test("are nothing where a call went well", () => {
    expect(
      attached({ observation: results(ok("readFile")), execution: { toolUse }, options: { counters: false } }),
    ).toEqual([]);
  });
});

describe("todo", () => {
  const todo = (id: string, status: Todo["status"], text = `do ${id}`): Todo => ({ id, text, status, at: NOON });

  test("a line for each open item, the rest counted", () => {
    const todos = [todo("1", "completed"), todo("2", "in_progress"), todo("3", "pending"), todo("4", "cancelled")];
    expect(bar({ state: { todos } })).toEqual([
      "todos: 1 of 3 done, 1 cancelled; set the status of an item when it changes:",
      "[>] 2: “do 2”",
      "[ ] 3: “do 3”",
    ]);
  });

  test("a list without open items says so, an empty one nothing", () => {
    expect(bar({ state: { todos: [todo("1", "completed")] } })).toEqual([
      "todos: 1 of 1 done: nothing is open, conclude",
    ]);
    expect(bar({ state: { todos: [] } })).toEqual([]);
  });

  test("of a long list only the first open items are shown", () => {
    const todos = Array.from({ length: 20 }, (_, index) => todo(`t${index}`, "pending"));
    const lines = bar({ state: { todos }, options: { system: false } });
    expect(lines).toHaveLength(14);
    expect(lines.at(-1)).toBe("and 8 more that are open");
  });
});

describe("system", () => {
  test("directory and machine", () => {
    const options = { system: { directory: "cwd", os: "Ubuntu 24.04", shell: "/bin/bash" } };
    expect(bar({ state: { cwd: "/srv/app" }, options })).toEqual([
      "directory: “/srv/app”; relative paths start here",
      "commands run on “Ubuntu 24.04” in “/bin/bash”: write them for that",
    ]);
    expect(bar({ state: { cwd: "/srv/app" } })).toEqual([]);
  });

  test.each([
    [1, []],
    [2, []],
    [3, ["decisions: this is the last of this step: conclude now with what is known and what is open"]],
  ])("decisions left when %d of 4 are made", (made, lines) => {
    const execution = { step: "mend", decisionsByStep: { mend: made } };
    expect(bar({ execution, options: { timestamps: false } })).toEqual(lines);
  });

  test("decisions left in the task", () => {
    expect(bar({ execution: { decisions: 95 } })).toEqual([
      "decisions: 5 left in this task, this one included: come to a conclusion",
    ]);
  });

  test("calls left, unless the result at hand tells it", () => {
    const execution = { toolUse: { phone: used(2) } };
    const line = "phone: 2 of 3 calls made: 1 left";
    expect(bar({ execution })).toEqual([line]);
    expect(bar({ execution, observation: results(ok("phone")) })).toEqual([]);
    expect(bar({ execution, observation: results(ok("phone")), options: { counters: false } })).toEqual([line]);
    expect(bar({ execution: { toolUse: { phone: used(3) } } })).toEqual([
      "phone: 3 of 3 calls made: do not call it again, report what is open",
    ]);
  });

  test("the size of the state from the warning on, and what it is made of", () => {
    expect(bar({ state: { notes: "x".repeat(380) } })).toEqual([]);
    expect(bar({ state: { notes: "x".repeat(480) } })).toEqual([
      "state: 530 of at most 2000 bytes, 482 of them in notes: shorten it where you can",
    ]);
  });

  test.each([
    ["look", [], null],
    ["mend", ["look"], "step 2 of at least 3 (done: look; now: mend)"],
    ["check", ["look", "mend"], "step 3 of at least 3 (done: look, mend; now: check)"],
    ["mend", ["look", "mend", "check"], "step 3 of at least 4 (done: look, check; now: mend)"],
    ["done", ["look", "mend", "check"], null],
  ])("progress at %s after %j", (step, completedSteps, text) => {
    const [line = null] = bar({ execution: { step, completedSteps }, options: { timestamps: false } });
    expect(line).toBe(text === null ? null : `progress: ${text}: do this step's part, no more`);
  });

  test("progress along a way without a choice is exact", () => {
    const straight = anyWorkflow(
      defineWorkflow({
        name: "straight",
        version: 1,
        state: {},
        initial: "one",
        steps: { one: { to: ["one", "two"] }, two: { to: ["three"] }, three: { to: ["end"] }, end: { final: true } },
      }),
    );
    const execution = { ...newExecution(straight), step: "two", completedSteps: ["one"] };
    const given = { workflow: straight, snapshot: { execution, state: {} }, observation: null, now: NOON };
    expect(statusBar(given).bar).toEqual(["progress: step 2 of 3 (done: one; now: two): do this step's part, no more"]);
  });
});

test("each technique can be switched off, and only it falls silent", () => {
  const given: Given = {
    observation: { ...results({ ...failed("readFile"), errorType: "ENOENT" }), at: NOON } as Observation,
    state: { todos: [{ id: "1", text: "look", status: "pending", at: NOON }] },
    execution: { step: "mend", completedSteps: ["look"], toolUse: { readFile: used(1, ["a: x"]) } },
    previousAt: NOON - 3 * HOUR,
  };
  const all = [...bar(given), ...attached(given)];
  const left = TECHNIQUES.map((technique) => {
    const options = { [technique]: false };
    return [...bar({ ...given, options }), ...attached({ ...given, options })];
  });
  for (const lines of left) {
    expect(lines.length).toBeLessThan(all.length);
    expect(all).toEqual(expect.arrayContaining(lines));
  }
  const none = Object.fromEntries(TECHNIQUES.map((technique) => [technique, false]));
  expect([...bar({ ...given, options: none }), ...attached({ ...given, options: none })]).toEqual([]);
  expect(statusTokens(all)).toBeGreaterThan(statusTokens(left[0] ?? []));
});

describe("what comes from outside", () => {
  // Long enough to be recognised, and unlike any text of ours.
  const marked = fc
    .tuple(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.constantFrom("</status>", "<status>", "\n", "\r\n", " ", '"', "”", "“”", "\\", "]: 9 of 9", "\u202e"),
    )
    .map(([text, sign]) => `${text}${sign}${"ZQ".repeat(150)}${sign}${text}`);
  const results = fc.array(
    fc.record({
      id: marked,
      tool: fc.oneof(fc.constantFrom("readFile", "phone", "__proto__", "constructor"), marked),
      status: fc.constantFrom("ok" as const, "error" as const, "timeout" as const, "refused" as const),
      error: marked,
      errorType: marked,
      hint: marked,
      value: marked,
    }),
    { maxLength: 3 },
  );
  const observation = fc.oneof(
    fc.record({ kind: fc.constant("message" as const), text: marked, at: fc.double() }),
    fc.record({ kind: fc.constant("answer" as const), question: marked, text: marked }),
    fc.record({ kind: fc.constant("results" as const), results, note: marked, at: fc.integer() }),
    fc.record({ kind: fc.constant("expired" as const), what: marked }),
    fc.record({ kind: fc.constant("workflow" as const), workflow: marked, status: marked }),
  );
  const list = fc.array(
    fc.record({
      id: fc.stringMatching(/^[\w-]{1,32}$/),
      text: marked.map((text) => text.slice(-200)),
      status: fc.constantFrom("pending" as const, "in_progress" as const, "completed" as const),
      at: fc.integer(),
    }),
    { maxLength: 5 },
  );
  const use = fc.record({
    calls: fc.nat(5),
    stale: fc.nat(5),
    seen: fc.array(marked, { maxLength: 1 }),
    failed: fc.array(marked, { maxLength: 3 }),
  });
  const hostile = fc.record({
    observation,
    state: fc.record({ cwd: marked, todos: fc.oneof(list, marked), notes: marked, result: marked }),
    execution: fc.record({
      step: fc.constantFrom("look", "mend", "check"),
      completedSteps: fc.array(fc.oneof(fc.constantFrom("look", "mend"), marked), { maxLength: 4 }),
      recent: fc.array(marked, { maxLength: 3 }),
      toolUse: fc.dictionary(fc.oneof(fc.constantFrom("readFile", "phone"), marked), use, { maxKeys: 3 }),
    }),
    previousAt: fc.double(),
    now: fc.double(),
  });
  const QUOTED = /“([^”]*)”/g;
  const readings = new RegExp(
    [
      String.raw`todos: \d+ of \d+ done(?:; set the status of an item when it changes:|: nothing is open, conclude)`,
      String.raw`\[[ >]\] [\w-]{1,32}: “”`,
      String.raw`time: \S+ \S+ UTC, the observation is \d+ (?:h|days) old: check what it says before you act on it`,
      "deadline: a question or approval asked in this step waits 24 h, then the task goes to check",
      String.raw`progress: step \d of (?:at least )?\d \(done: (?:\d more, )?(?:look|mend|check|, )+; now: (?:look|mend|check)\): do this step's part, no more`,
      "directory: “”; relative paths start here",
      String.raw`phone: \d of 3 calls made: (?:\d left|do not call it again, report what is open)`,
      String.raw`state: \d+ of at most 2000 bytes, \d+ of them in (?:cwd|todos|notes|result): shorten it where you can`,
    ]
      .map((reading) => `^${reading}$`)
      .join("|"),
  );

  test("is in the bar only between quotation marks: one line, cut, without a tag", () => {
    fc.assert(
      fc.property(hostile, (given) => {
        const lines = bar({ ...given, options: { system: { directory: "cwd" } } });
        for (const line of lines) {
          expect(line).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029<]/u);
          for (const [, text = ""] of line.matchAll(QUOTED)) {
            expect(Array.from(text.replaceAll("&lt;", "<")).length).toBeLessThanOrEqual(120);
          }
          // Without what is quoted, a line is one of the readings, to the letter.
          expect(line.replaceAll(QUOTED, "“”")).toMatch(readings);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("is attached on one line each, and cannot open or close a tag", () => {
    fc.assert(
      fc.property(hostile, (given) => {
        const { attached: facts } = statusBar(input({ ...given, options: { timestamps: true } }));
        for (const line of [...facts.observation, ...facts.results.flatMap((result) => result.lines)]) {
          expect(line).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029<]/u);
          expect(line.length).toBeLessThan(4000);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("does not show half of a secret", () => {
    const key = `sk-${"a1".repeat(20)}`;
    const todos = [{ id: "1", text: `${"x".repeat(70)} ${key}`, status: "pending", at: 0 }];
    expect(bar({ state: { todos } }).join("\n")).not.toContain("sk-a1");
  });
});

test("the same input gives the same bytes", () => {
  const given = { observation: results(failed("readFile")), execution: { toolUse: { readFile: used(2, ["a: x"]) } } };
  expect(statusBar(input(given))).toEqual(statusBar(input(given)));
});
