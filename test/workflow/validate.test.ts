import { defineTool, defineWorkflow, field, isWorkflowError, planField, type AnyWorkflow, type Fault } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";

/** A definition as JavaScript or JSON would hand it over, past the type checker. */
type Loose = Readonly<Record<string, unknown>>;

const text = field(z.string());
const child = defineWorkflow({
  name: "child",
  version: 1,
  state: {},
  initial: "only",
  steps: { only: { to: ["end"] }, end: { final: true } },
});
const good: Loose = {
  name: "good",
  version: 1,
  state: { note: text },
  initial: "work",
  steps: { work: { writes: ["note"], to: ["work", "done"] }, done: { final: true, requires: ["note"] } },
};

function define(definition: Loose): AnyWorkflow {
  return defineWorkflow(definition as never);
}

function faultsOf(changes: Loose): readonly Fault[] {
  try {
    define({ ...good, ...changes });
  } catch (error) {
    if (isWorkflowError(error, "INVALID_WORKFLOW")) return error.details.faults as readonly Fault[];
    throw error;
  }
  return [];
}

/** Each fault as `path code`. */
const told = (changes: Loose) => faultsOf(changes).map(({ path, code }) => `${path} ${code}`);
const steps = (work: Loose, more: Loose = {}): Loose => ({
  steps: { work: { writes: ["note"], to: ["done"], ...work }, done: { final: true }, ...more },
});

describe("defineWorkflow", () => {
  test("takes a sound definition and fills in what it leaves out", () => {
    expect(faultsOf({})).toEqual([]);
    expect(define(good)).toMatchObject({ goal: "", instructions: "", input: [], checks: {}, maxDecisions: 100 });
  });

  test.each<readonly [string, Loose, readonly string[]]>([
    ["a name with a blank", { name: "my flow" }, ["name INVALID_NAME"]],
    ["an empty name", { name: "" }, ["name INVALID_NAME"]],
    ["a name of 65 letters", { name: "a".repeat(65) }, ["name INVALID_NAME"]],
    ["a version below 1", { version: 0 }, ["version INVALID_VERSION"]],
    ["a broken version", { version: 1.5 }, ["version INVALID_VERSION"]],
    ["a version that is text", { version: "1" }, ["version INVALID_VERSION"]],
    ["a task limit of 0", { maxDecisions: 0 }, ["maxDecisions INVALID_LIMIT"]],
    ["a task limit that is no number", { maxDecisions: Number.NaN }, ["maxDecisions INVALID_LIMIT"]],
    ["a step limit of a half", steps({ maxDecisions: 0.5 }), ["steps.work.maxDecisions INVALID_LIMIT"]],
    ["a byte limit of 0", { state: { note: text.maxBytes(0) } }, ["state.note INVALID_LIMIT"]],
    ["a byte limit that is no number", { state: { note: text.maxBytes(Number.NaN) } }, ["state.note INVALID_LIMIT"]],
    ["run beside final", steps({}, { done: { final: true, run: () => ({}) } }), ["steps.done INVALID_STEP"]],
    ["run beside workflow", steps({ run: () => ({}), workflow: child }), ["steps.work INVALID_STEP"]],
    ["a final step that leads on", steps({}, { done: { final: true, to: ["work"] } }), ["steps.done INVALID_STEP"]],
    ["a final step that writes", steps({}, { done: { final: true, writes: ["note"] } }), ["steps.done INVALID_STEP"]],
    ["input without a workflow", steps({ input: () => ({}) }), ["steps.work INVALID_STEP"]],
    ["output without a workflow", steps({ output: () => ({}) }), ["steps.work INVALID_STEP"]],
    [
      "a first step that is final",
      { ...steps({}), initial: "done" },
      ["initial INVALID_STEP", "steps.work UNREACHABLE"],
    ],
    ["an unknown first step", { initial: "start" }, ["initial UNKNOWN_STEP"]],
    ["a first step that every object inherits", { initial: "constructor" }, ["initial UNKNOWN_STEP"]],
    ["a move to an unknown step", steps({ to: ["done", "nowhere"] }), ["steps.work.to UNKNOWN_STEP"]],
    [
      "a guarded move to an unknown step",
      steps({ to: ["done", { to: "toString", when: () => true, because: "x" }] }),
      ["steps.work.to UNKNOWN_STEP"],
    ],
    ["an unknown field in writes", steps({ writes: ["note", "prio"] }), ["steps.work.writes UNKNOWN_FIELD"]],
    [
      "an unknown field in requires",
      steps({}, { done: { final: true, requires: ["valueOf"] } }),
      ["steps.done.requires UNKNOWN_FIELD"],
    ],
    ["an unknown field in input", { input: ["prio"] }, ["input UNKNOWN_FIELD"]],
    ["a step that nothing leads to", steps({}, { island: { to: ["done"] } }), ["steps.island UNREACHABLE"]],
    ["a step without a way out", steps({ to: ["done", "trap"] }, { trap: {} }), ["steps.trap DEAD_END"]],
    [
      "a loop without a way out",
      steps({ to: ["done", "trap"] }, { trap: { to: ["pit"] }, pit: { to: ["trap"] } }),
      ["steps.trap DEAD_END", "steps.pit DEAD_END"],
    ],
    [
      "a loop that nothing limits",
      { maxDecisions: Infinity, ...steps({ maxDecisions: Infinity, to: ["work", "done"] }) },
      ["steps.work UNLIMITED_LOOP"],
    ],
    ["a slip in a step's key", steps({ write: ["note"] }), ["steps.work.write UNKNOWN_KEY"]],
    [
      "a slip in a final step's key",
      steps({}, { done: { final: true, require: [] } }),
      ["steps.done.require UNKNOWN_KEY"],
    ],
    ["a key of the prototype", steps({ toString: 1 }), ["steps.work.toString UNKNOWN_KEY"]],
    ["a slip in the definition's key", { inputs: ["note"] }, ["inputs UNKNOWN_KEY"]],
    ["what code keeps of a tool that is not there", { onResult: { pya: () => ({}) } }, ["onResult.pya UNKNOWN_TOOL"]],
    ["what code keeps of a prototype's key", { onResult: { valueOf: () => ({}) } }, ["onResult.valueOf UNKNOWN_TOOL"]],
    ["a field that nothing writes", { state: { note: text, lost: text } }, ["state.lost UNWRITTEN_FIELD"]],
    [
      "a model step that writes what the runtime keeps",
      { state: { note: text.runtimeOnly() } },
      ["steps.work.writes RUNTIME_ONLY"],
    ],
    [
      "a first step that requires what is no input",
      { input: ["other"], state: { note: text, other: text }, ...steps({ requires: ["note", "other"] }) },
      ["steps.work.requires CONTRADICTION"],
    ],
    ["null as a value", { state: { note: field(z.string().nullable()) } }, ["state.note CONTRADICTION"]],
    ["anything as a value", { state: { note: field(z.unknown()) } }, ["state.note CONTRADICTION"]],
    [
      "an append-only list that may not be empty",
      { state: { note: field(z.array(z.string()).min(1)).appendOnly() } },
      ["state.note CONTRADICTION"],
    ],
    [
      "append-only beside write-once",
      { state: { note: field(z.array(z.string())).appendOnly().writeOnce() } },
      ["state.note CONTRADICTION"],
    ],
    [
      "clearable beside write-once, which would let it be filled anew",
      { state: { note: text.writeOnce().clearable() } },
      ["state.note CONTRADICTION"],
    ],
    [
      "clearable beside append-only, which would let it be filled anew",
      { state: { note: field(z.array(z.string())).appendOnly().clearable() } },
      ["state.note CONTRADICTION"],
    ],
  ])("refuses %s", (_name, changes, expected) => {
    expect(told(changes)).toEqual(expected);
  });

  test("a key without a value counts as absent, whatever it is called", () => {
    expect(told({ inputs: undefined, ...steps({ require: undefined }) })).toEqual([]);
  });

  test.each<readonly [string, z.ZodType]>([
    ["dates", z.date()],
    ["maps", z.map(z.string(), z.string())],
    ["sets", z.set(z.string())],
    ["big integers", z.bigint()],
    ["transforms", z.string().transform((value) => value.length)],
    ["functions", z.instanceof(Function)],
    ["dates in a list in an object", z.object({ a: z.array(z.date()) })],
  ])("refuses %s in a field, since a checkpoint would not give them back", (_name, schema) => {
    expect(told({ state: { note: field(schema) } })).toContain("state.note UNSERIALIZABLE_FIELD");
  });

  test.each(["act", "__start__", "__end__", "__input__", "__copy__"])(
    "refuses a step named %s, which the graph needs",
    (name) => {
      const to = { to: ["done"] };
      expect(told(steps({ to: ["done", name] }, { [name]: to }))).toEqual([`steps.${name} INVALID_NAME`]);
    },
  );

  test.each(["execution", "message", "__interrupt__", "__proto__", "constructor", "toString"])(
    "refuses a field named %s, which belongs to the runtime",
    (name) => {
      const state = { note: text, [name]: text };
      expect(told({ state, ...steps({ writes: ["note", name] }) })).toEqual([`state.${name} INVALID_NAME`]);
    },
  );

  test("refuses a step and a field of one name", () => {
    const state = { note: text, work: text };
    expect(told({ state, ...steps({ writes: ["note", "work"] }) })).toEqual(["state.work INVALID_NAME"]);
  });

  test.each(["constructor", "toString", "__proto__", "hasOwnProperty"])(
    "a step named %s is refused or counted like any other",
    async (name) => {
      const changes = steps({ to: [name] }, { [name]: { to: ["done"] } });
      if (faultsOf(changes).length > 0) return;
      const { applyDecision, reachedLimit } = await import("../../src/workflow/advance.ts");
      const { newExecution } = await import("../../src/state/execution.ts");
      const workflow = define({ ...good, ...changes });
      const execution = { ...newExecution(workflow), step: name };
      const snapshot = { execution, state: { note: null } };
      const applied = applyDecision(workflow, snapshot, { ask: "Well?" }, { number: 1, observation: null });
      if (!applied.ok) throw new Error(applied.refusal.reason);
      expect(Object.entries(applied.update.execution.decisionsByStep)).toEqual([[name, 1]]);
      expect(reachedLimit(workflow, applied.update.execution)).toBeNull();
    },
  );

  test("names may be of any script", () => {
    const changes = {
      name: "工单",
      state: { 类型: text },
      initial: "收集",
      steps: { 收集: { writes: ["类型"], to: ["完成"] }, 完成: { final: true } },
    };
    expect(faultsOf(changes)).toEqual([]);
  });

  test("a code step without writes may write every field, so none of them lacks a writer", () => {
    expect(faultsOf(steps({ writes: undefined, run: () => ({}) }))).toEqual([]);
    expect(faultsOf({ state: { note: text.runtimeOnly() }, ...steps({ run: () => ({}) }) })).toEqual([]);
  });

  test("an unlimited task is fine where each step of a loop has its limit", () => {
    expect(faultsOf({ maxDecisions: Infinity })).toEqual([]);
    expect(faultsOf(steps({ maxDecisions: Infinity, to: ["work", "done"] }))).toEqual([]);
  });

  test("reports all faults at once, each with path and code, in the message and in the details", () => {
    const changes: Loose = {
      name: "two words",
      version: -1,
      maxDecisions: 0,
      input: ["unknown"],
      state: { when: field(z.date()), lost: text, maybe: field(z.string().nullish()), kept: text.runtimeOnly() },
      initial: "work",
      steps: {
        work: { to: ["nowhere", "trap", "done"], writes: ["when", "kept", "gone"], maxDecisions: 0 },
        trap: {},
        done: { final: true, instructions: "x" },
        act: { to: ["done"] },
      },
    };
    const expected = [
      "name INVALID_NAME",
      "steps.act INVALID_NAME",
      "version INVALID_VERSION",
      "state.when UNSERIALIZABLE_FIELD",
      "state.maybe CONTRADICTION",
      "steps.work.to UNKNOWN_STEP",
      "steps.work.writes UNKNOWN_FIELD",
      "steps.work.maxDecisions INVALID_LIMIT",
      "steps.work.writes RUNTIME_ONLY",
      "steps.done INVALID_STEP",
      "maxDecisions INVALID_LIMIT",
      "steps.trap DEAD_END",
      "steps.act UNREACHABLE",
      "input UNKNOWN_FIELD",
      "state.lost UNWRITTEN_FIELD",
      "state.maybe UNWRITTEN_FIELD",
    ];
    expect(told(changes).toSorted()).toEqual(expected.toSorted());
    let message = "";
    try {
      define({ ...good, ...changes });
    } catch (error) {
      message = error instanceof Error ? error.message : "";
    }
    expect(message).toContain('workflow "two words" has 16 faults');
    for (const { path, code, message: reason } of faultsOf(changes)) {
      expect(message).toContain(`${path}: ${reason} (${code})`);
    }
  });
});

describe("steps that plan, loop, or go through a list", () => {
  const tools = {
    look: defineTool({ description: "Looks.", parameters: z.object({}), effect: "read", run: () => null }),
  };
  const state = { note: text, plan: planField() };
  const planning = (work: Loose, more: Loose = {}): Loose => ({
    state,
    tools,
    ...steps({ tools: ["look"], ...work }),
    ...more,
  });
  const map = { over: () => [], tool: "look", input: () => ({}), output: () => ({}) };
  const mapping = (changes: Loose, work: Loose = {}): Loose => ({
    state: { note: text },
    tools,
    ...steps({ writes: undefined, map: { ...map, ...changes }, ...work }),
  });

  test.each<readonly [string, Loose]>([
    ["a plan", planning({ plan: { into: "plan" } })],
    ["a plan with limits", planning({ plan: { into: "plan", maxReplans: 0, maxRounds: 0, maxCalls: 1 } })],
    ["a loop", planning({ react: { into: "plan", maxRounds: 1 } })],
    ["a list with a tool", mapping({})],
    ["a list with a workflow", { ...mapping({ tool: undefined, workflow: child, parallel: 2 }), tools: {} }],
    ["code that is trusted", { ...steps({ run: () => ({}), trusted: true }) }],
    ["a list that is trusted", mapping({}, { trusted: true })],
    ["limits", { parallelCalls: 1, stateBudget: { warnBytes: 1, maxBytes: 1 } }],
    ["one limit of the state beside the usual other", { stateBudget: { maxBytes: 5000 } }],
  ])("%s is sound", (_name, changes) => {
    expect(faultsOf(changes)).toEqual([]);
  });

  test.each<readonly [string, Loose, readonly string[]]>([
    [
      "a plan into no field",
      planning({ plan: { into: "gone" } }, { state: { note: text } }),
      ["steps.work.plan.into UNKNOWN_FIELD"],
    ],
    [
      "a plan into what every object inherits",
      planning({ plan: { into: "constructor" } }, { state: { note: text } }),
      ["steps.work.plan.into UNKNOWN_FIELD"],
    ],
    [
      "a loop into a field that cannot hold it",
      planning({ react: { into: "note" } }, { state: { note: text } }),
      ["steps.work.react.into INVALID_STEP"],
    ],
    ["a plan without tools", { state, ...steps({ plan: { into: "plan" } }) }, ["steps.work INVALID_STEP"]],
    [
      "a loop that leads only to itself",
      planning({ react: { into: "plan" }, to: ["work"] }),
      ["steps.work DEAD_END", "steps.work.to INVALID_STEP", "steps.done UNREACHABLE"],
    ],
    [
      "a plan that is made again half a time",
      planning({ plan: { into: "plan", maxReplans: 0.5 } }),
      ["steps.work.plan.maxReplans INVALID_LIMIT"],
    ],
    [
      "a plan of no calls",
      planning({ plan: { into: "plan", maxCalls: 0 } }),
      ["steps.work.plan.maxCalls INVALID_LIMIT"],
    ],
    [
      "a loop without rounds",
      planning({ react: { into: "plan", maxRounds: 0 } }),
      ["steps.work.react.maxRounds INVALID_LIMIT"],
    ],
    [
      "a loop without an end",
      planning({ react: { into: "plan", maxRounds: Infinity } }),
      ["steps.work.react.maxRounds INVALID_LIMIT"],
    ],
    [
      "a plan and a loop in one",
      planning({ plan: { into: "plan" }, react: { into: "plan" } }),
      ["steps.work INVALID_STEP"],
    ],
    ["a plan in code", planning({ plan: { into: "plan" }, run: () => ({}) }), ["steps.work INVALID_STEP"]],
    ["a list of nothing", mapping({ tool: undefined }), ["steps.work.map INVALID_STEP", "tools.look UNUSED_TOOL"]],
    ["a list of both", mapping({ workflow: child }), ["steps.work.map INVALID_STEP"]],
    [
      "a list with an unknown tool",
      mapping({ tool: "toString" }),
      ["steps.work.map.tool UNKNOWN_TOOL", "tools.look UNUSED_TOOL"],
    ],
    [
      "what code keeps, and no function",
      { ...mapping({}), onResult: { look: "everything" } },
      ["onResult.look INVALID_TOOL"],
    ],
    ["a list with tools of its own", mapping({}, { tools: ["look"] }), ["steps.work.tools INVALID_STEP"]],
    ["a list of which none runs", mapping({ parallel: 0 }), ["steps.work.map.parallel INVALID_LIMIT"]],
    ["a model that is trusted", steps({ trusted: true }), ["steps.work INVALID_STEP"]],
    ["no calls at once", { parallelCalls: 0 }, ["parallelCalls INVALID_LIMIT"]],
    ["a state of no bytes", { stateBudget: { warnBytes: 0, maxBytes: 0 } }, ["stateBudget INVALID_LIMIT"]],
    ["a warning above the limit", { stateBudget: { warnBytes: 9, maxBytes: 8 } }, ["stateBudget INVALID_LIMIT"]],
    ["a limit below the usual warning", { stateBudget: { maxBytes: 100 } }, ["stateBudget INVALID_LIMIT"]],
  ])("%s is refused", (_name, changes, expected) => {
    expect(told(changes).toSorted()).toEqual([...expected].toSorted());
  });
});
