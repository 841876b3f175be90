import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answer, compile, defineTool, defineWorkflow, field, planField, sqliteStore } from "statecard";
import { scriptedModel, type ScriptedAnswer, type ScriptedModel } from "statecard/testing";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { readExport, writeExport } from "../../src/storage/export/folder.ts";
import { verifyExport } from "../../src/storage/export/verify.ts";

const config = { configurable: { thread_id: "t" } };

/** A small market: companies with codes, and figures by code. */
function research({
  again,
  ...options
}: { maxReplans?: number; maxRounds?: number; planner?: ScriptedModel; again?: true } = {}) {
  const called: string[] = [];
  const search = defineTool({
    description: "Finds a company.",
    parameters: z.object({ name: z.string() }),
    effect: "read",
    result: z.object({ code: z.string() }),
    run: ({ name }) => {
      called.push(`search ${name}`);
      if (name === "unknown") throw new Error("no such company");
      return { code: name === "alpha" ? "000001" : "000002" };
    },
  });
  const figures = defineTool({
    description: "Gives the revenue of three periods.",
    parameters: z.object({ code: z.string() }),
    effect: "read",
    run: ({ code }) => {
      called.push(`figures ${code}`);
      return { code, revenue: code === "000001" ? [12.3, 14.1, 15.6] : [] };
    },
  });
  const workflow = defineWorkflow({
    name: "research",
    version: 1,
    state: { plan: planField(), answer: field(z.string()) },
    tools: { search, figures },
    initial: "looking",
    steps: {
      looking: {
        plan: { into: "plan", ...options },
        tools: ["search", "figures"],
        writes: ["answer"],
        to: again ? ["looking", "done"] : ["done"],
      },
      done: { requires: ["answer"], final: true },
    },
  });
  return { workflow, called };
}

const look = (name: string, id: string) => ({ id, tool: "search", args: { name } });
const figuresOf = (call: string, id: string, expect?: object[]) => ({
  id,
  tool: "figures",
  args: { code: { $ref: `${call}.code` } },
  ...(expect ? { expect } : {}),
});

test("a plan runs in the order of its references, is kept in the state, and is concluded", async () => {
  const { workflow, called } = research();
  const model = scriptedModel([
    { calls: [look("alpha", "a"), figuresOf("a", "f", [{ path: "revenue.2", is: "equal to", value: 15.6 }])] },
    { patch: { answer: "15.6" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(called).toEqual(["search alpha", "figures 000001"]);
  expect(result.answer).toBe("15.6");
  expect(result.plan).toMatchObject({
    mode: "plan",
    met: true,
    concluded: true,
    calls: [
      { id: "a", status: "ok", result: { code: "000001" } },
      { id: "f", args: { code: { $ref: "a.code" } }, status: "ok", result: { revenue: [12.3, 14.1, 15.6] } },
    ],
  });
});

test("an unmet expectation leads to another plan, then to a free loop, then to a truthful end", async () => {
  const { workflow } = research({ maxReplans: 1, maxRounds: 2 });
  const unmet = [look("beta", "a"), figuresOf("a", "f", [{ path: "revenue", is: "not empty" }])];
  const model = scriptedModel([
    { calls: unmet },
    { calls: unmet },
    { calls: [{ tool: "search", args: { name: "unknown" } }] },
    { calls: [{ tool: "search", args: { name: "unknown" } }] },
    { patch: { answer: "no figures of beta are known" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(result.execution.status).toBe("completed");
  expect(result.plan).toMatchObject({ mode: "free", replans: 1, rounds: 2, met: false });
  expect(result.execution.toolUse?.search).toMatchObject({ calls: 4 });
});

const found = (id: string) => ({ calls: [look("alpha", id)] });
const concluded = { patch: { answer: "it is 000001" }, next: "done" };

async function played(options: Parameters<typeof research>[0], ...script: readonly ScriptedAnswer[]) {
  const { workflow, called } = research(options);
  const model = scriptedModel(script);
  const store = sqliteStore(":memory:");
  const result = await compile(workflow, { model, store }).invoke({ message: "go" }, config);
  model.assertConsumed();
  return { result, called, prompts: model.prompts, store };
}

describe("the phases of a plan", () => {
  test("a patch or a move is refused before the plan, calls after it", async () => {
    const { result, called, prompts } = await played(
      {},
      concluded,
      { ...found("a"), patch: { answer: "guessed" } },
      found("a"),
      { calls: [look("beta", "b")] },
      concluded,
    );
    expect(result).toMatchObject({ answer: "it is 000001", execution: { status: "completed", refused: 3 } });
    expect(called).toEqual(["search alpha"]);
    expect(prompts[1]).toContain("first the plan: answer with calls");
    expect(prompts[2]).toContain("first the plan: calls only; patch and next come when their results are there");
    expect(prompts[4]).toContain("conclude now, without further calls");
  });

  test("what a strict output mode writes for nothing is nothing", async () => {
    const empty = { patch: { answer: null }, clear: [], next: null, ask: null, because: null };
    const { result } = await played({}, { ...found("a"), ...empty }, concluded);
    expect(result.execution).toMatchObject({ status: "completed", refused: 0 });
  });

  test("a question before the plan that runs out of time leads where the deadline says", async () => {
    const clock = { time: 1_000_000, now: () => clock.time };
    const workflow = defineWorkflow({
      name: "asking",
      version: 1,
      state: { plan: planField() },
      tools: {
        search: defineTool({ description: "Finds.", parameters: z.object({}), effect: "read", run: () => null }),
      },
      initial: "looking",
      steps: {
        looking: {
          plan: { into: "plan" },
          tools: ["search"],
          deadline: { afterMs: 10, to: "given_up" },
          to: ["done", "given_up"],
        },
        given_up: { final: true },
        done: { final: true },
      },
    });
    const model = scriptedModel([{ ask: "Which company?" }]);
    const graph = compile(workflow, { model, clock, store: sqliteStore(":memory:", { clock }) });
    await graph.invoke({ message: "go" }, config);
    clock.time += 10;
    const { execution } = await graph.invoke(null, config);
    expect(execution).toMatchObject({ status: "completed", step: "given_up", lastError: null });
  });

  test("a question may come before the plan, and what was said is there for it", async () => {
    const { workflow, called } = research();
    const model = scriptedModel([{ ask: "Which company?" }, found("a"), concluded]);
    const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
    const paused = await graph.invoke({ message: "go" }, config);
    const ended = await graph.invoke(answer(paused, "alpha, please"), config);
    expect(ended).toMatchObject({ plan: { replans: 0, met: true }, execution: { status: "completed", refused: 0 } });
    expect(model.prompts[1]).toContain("alpha, please");
    expect(model.prompts[1]).toContain("Plan: answer with calls only, at most 50");
    expect(called).toEqual(["search alpha"]);
  });

  test("the planner plans and plans again, the step's model rounds and concludes", async () => {
    const unmet = { calls: [{ ...look("alpha", "a"), expect: [{ path: "code", is: "equal to", value: "9" }] }] };
    const models = () => ({
      planner: scriptedModel([unmet, unmet]),
      model: scriptedModel([{ calls: [look("beta", "b")] }, concluded]),
    });
    const [ofCompile, ofStep] = [models(), models()];
    const store = () => sqliteStore(":memory:");
    const first = research({ maxReplans: 1 }).workflow;
    await compile(first, { ...ofCompile, store: store() }).invoke({ message: "go" }, config);
    // One of the step comes before one of the whole graph.
    const second = research({ maxReplans: 1, planner: ofStep.planner }).workflow;
    const idle = scriptedModel([]);
    await compile(second, { model: ofStep.model, planner: idle, store: store() }).invoke({ message: "go" }, config);
    for (const { planner, model } of [ofCompile, ofStep]) {
      planner.assertConsumed();
      model.assertConsumed();
      expect(planner.prompts[0]).toContain("Plan: answer with calls only");
      expect(planner.prompts[1]).toContain("The plan did not come true: a (search: not as expected).");
      expect(model.prompts[0]).toContain("Round 1 of 10");
      expect(model.prompts[1]).toContain("Round 2 of 10");
    }
    expect(idle.prompts).toEqual([]);
  });

  test("K23: a field that a tool's declared result does not have is refused before anything runs", async () => {
    const wrong = { tool: "figures", args: { code: { $ref: "a.coda" } } };
    const { called, prompts } = await played({}, { calls: [look("alpha", "a"), wrong] }, found("a"), concluded);
    expect(prompts[1]).toContain('reference "a.coda": the result of a (search) has no field "coda"; it has code');
    expect(called).toEqual(["search alpha"]);
  });

  test("a reference to an earlier plan is refused, and says so", async () => {
    const unmet = { calls: [{ ...look("beta", "first"), expect: [{ path: "code", is: "equal to", value: "9" }] }] };
    const { called, prompts } = await played({}, unmet, { calls: [figuresOf("first", "f")] }, found("a"), concluded);
    expect(prompts[1]).toContain("results of the earlier plan cannot be referred to");
    expect(prompts[2]).toContain("Results of earlier decisions cannot be referred to: write the value");
    expect(called).toEqual(["search beta", "search alpha"]);
  });

  test("K24: a plan around which there is prose is read; one of a wrong shape is sent back, and nothing is lost by it", async () => {
    const text = JSON.stringify(found("a")).replace(/}$/, ",}");
    const { result, called, prompts } = await played(
      {},
      { calls: [{ ...look("alpha", "a"), expect: [{ path: "code", is: "nice" }] }] },
      { calls: [{ tool: "search", args: "alpha" }] },
      `Here is my plan:\n\`\`\`json\n${text}\n\`\`\`\nThat is all.`,
      { patch: { answer: ["it is 000001"] }, next: "done" },
      concluded,
    );
    expect(result).toMatchObject({ answer: "it is 000001", execution: { status: "completed", refused: 3 } });
    expect(prompts[1]).toMatch(/calls\.0\.expect\.0\.is/);
    expect(prompts[2]).toContain("calls.0.args: expected an object");
    expect(prompts[4]).toContain("INVALID_FIELD");
    expect(called).toEqual(["search alpha"]);
  });
});

describe("a plan in the state", () => {
  test("of 50 calls with large results stays under the field's limit", async () => {
    const large = defineTool({
      description: "Gives much.",
      parameters: z.object({ part: z.number(), text: z.string() }),
      effect: "read",
      run: ({ part }) => ({ part, text: "汉字 ".repeat(2000) }),
    });
    const workflow = defineWorkflow({
      name: "large",
      version: 1,
      state: { plan: planField() },
      tools: { large },
      initial: "looking",
      steps: { looking: { plan: { into: "plan" }, tools: ["large"], to: ["done"] }, done: { final: true } },
    });
    const calls = Array.from({ length: 50 }, (_, part) => ({ tool: "large", args: { part, text: "汉".repeat(500) } }));
    const model = scriptedModel([{ calls: [...calls, calls[0]] }, { calls }, { next: "done" }]);
    const store = sqliteStore(":memory:");
    const result = await compile(workflow, { model, store }).invoke({ message: "go" }, config);
    expect(model.prompts[1]).toContain("51 calls in one decision; at most 50 are taken");
    expect(result.execution.status).toBe("completed");
    expect(result.plan).toMatchObject({ met: true, concluded: true });
    expect(result.plan?.calls).toHaveLength(50);
    expect(Buffer.byteLength(JSON.stringify(result.plan))).toBeLessThan(16_384);
    expect(result.execution.observation).not.toHaveProperty("note");
  }, 240_000);

  const folder = mkdtempSync(join(tmpdir(), "statecard-plan-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("is told by the log alone as it is in the state: an export of it is verified", async () => {
    const expect14 = [{ path: "revenue.1", is: "at least", value: 14 }];
    const { store, result } = await played(
      { maxReplans: 1, maxRounds: 1 },
      { calls: [look("alpha", "a"), figuresOf("a", "f", [{ path: "revenue", is: "containing", value: 1 }])] },
      { calls: [look("unknown", "b"), figuresOf("b", "g")] },
      { calls: [look("alpha", "a"), figuresOf("a", "f", expect14)] },
      concluded,
    );
    expect(result.plan).toMatchObject({ mode: "free", concluded: true, met: true });
    const task = await store.exportTask("t");
    writeExport(join(folder, "with-plan"), task, undefined);
    const verified = verifyExport(readExport(join(folder, "with-plan")), undefined);
    expect(verified).toMatchObject({ difference: null, task: { state: { plan: result.plan } } });
    rmSync(join(folder, "with-plan", "state.json"));
    const fromLog = verifyExport(readExport(join(folder, "with-plan")), undefined);
    expect(fromLog).toMatchObject({ from: "events.log", task: { state: { plan: result.plan } } });
    expect(fromLog.task.execution).toEqual(task.task.execution);
  });
});

describe("a free loop", () => {
  function looping(script: readonly ScriptedAnswer[], maxRounds = 2) {
    const { workflow: base, called } = research();
    const workflow = defineWorkflow({
      name: "looping",
      version: 1,
      state: { plan: planField(), answer: field(z.string()) },
      tools: base.tools as ReturnType<typeof research>["workflow"]["tools"],
      initial: "looking",
      steps: {
        looking: {
          react: { into: "plan", maxRounds },
          tools: ["search", "figures"],
          writes: ["answer"],
          to: ["checking"],
        },
        checking: { writes: ["answer"], to: ["looking", "done"] },
        done: { final: true },
      },
    } as never);
    const model = scriptedModel(script);
    const graph = compile(workflow, { model, store: sqliteStore(":memory:") });
    return { model, called, run: () => graph.invoke({ message: "go" } as never, config) };
  }
  const round = (name: string) => ({ calls: [look(name, name)] });

  test("ends at its limit with what is open, and takes no calls beyond it", async () => {
    const { model, called, run } = looping([
      round("unknown"),
      round("alpha"),
      round("beta"),
      { patch: { answer: "alpha is 000001; the other is not known" }, next: "checking" },
      { next: "done" },
    ]);
    const result = await run();
    expect(result).toMatchObject({
      answer: "alpha is 000001; the other is not known",
      execution: { status: "completed", refused: 1 },
      plan: { mode: "free", rounds: 2, concluded: true },
    });
    expect(called).toEqual(["search unknown", "search alpha"]);
    expect(model.prompts[0]).toContain("Round 1 of 2: call what you still need, or conclude");
    expect(model.prompts[1]).toContain("Not come true so far: r1.unknown (search: error).");
    expect(model.prompts[2]).toContain("The limit of 2 rounds is reached; no more calls.");
    expect(model.prompts[2]).toContain("What stays open: r1.unknown (search: error).");
    expect(model.prompts[3]).toContain("the limit of 2 rounds is reached: no more calls");
  });

  test("begins anew when its step is entered again", async () => {
    const { model, run } = looping([
      round("unknown"),
      round("alpha"),
      { patch: { answer: "first" }, next: "checking" },
      { next: "looking" },
      round("beta"),
      { patch: { answer: "second" }, next: "checking" },
      { next: "done" },
    ]);
    const result = await run();
    expect(model.prompts[4]).toContain("Round 1 of 2");
    expect(model.prompts[4]).not.toContain("Not come true so far");
    expect(result).toMatchObject({
      answer: "second",
      plan: { rounds: 1, concluded: true, calls: [{ id: "r1.beta", status: "ok" }] },
      execution: { status: "completed", refused: 0 },
    });
  });

  test("may conclude in its first round", async () => {
    const { run } = looping([{ patch: { answer: "known already" }, next: "checking" }, { next: "done" }]);
    expect(await run()).toMatchObject({ answer: "known already", plan: null });
  });
});

test("what uses a result that is not as expected does not run", async () => {
  const { workflow, called } = research({ maxReplans: 0, maxRounds: 1 });
  const never = { ...look("beta", "a"), expect: [{ path: "code", is: "equal to", value: "000009" }] };
  const model = scriptedModel([
    { calls: [never, figuresOf("a", "f")] },
    { patch: { answer: "unknown" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(called).toEqual(["search beta"]);
  expect(result.plan?.calls).toMatchObject([
    { id: "a", status: "ok" },
    { id: "f", status: "cancelled" },
  ]);
});

test("a planning step that may follow itself plans anew where its model says so", async () => {
  const { workflow, called } = research({ again: true });
  const model = scriptedModel([
    { calls: [look("alpha", "a")] },
    { next: "looking" },
    { calls: [look("beta", "b")] },
    { patch: { answer: "two codes" }, next: "done" },
  ]);
  const result = await compile(workflow, { model, store: sqliteStore(":memory:") }).invoke({ message: "go" }, config);
  expect(called).toEqual(["search alpha", "search beta"]);
  expect(result.plan).toMatchObject({ replans: 0, met: true, concluded: true, calls: [{ id: "b" }] });
});
