import { defineWorkflow, field } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  executionSchema,
  newExecution,
  NO_USAGE,
  type Execution,
  type Observation,
} from "../../src/state/execution.ts";
import { emptyState, type State } from "../../src/state/fields.ts";
import { admitDecision, applyDecision, reachedLimit, startChild } from "../../src/workflow/advance.ts";
import { settle } from "../../src/workflow/settle.ts";
import { fail, FREE, retry, type Decision, type DecisionCost } from "../../src/workflow/record.ts";
import type { Snapshot } from "../../src/workflow/define.ts";

const trip = defineWorkflow({
  name: "trip",
  version: 2,
  state: {
    city: field(z.string()),
    budget: field(z.number()).writeOnce(),
    notes: field(z.array(z.string())).appendOnly(),
    visits: field(z.number()).runtimeOnly(),
  },
  initial: "plan",
  maxDecisions: 6,
  steps: {
    plan: { writes: ["city", "budget", "notes"], to: ["plan", "book", "check"], maxDecisions: 3 },
    check: {
      writes: ["notes"],
      to: ["plan", { to: "book", when: (state) => state.city !== null, because: "no city" }],
    },
    book: { requires: ["city"], run: () => ({}), to: ["done"] },
    done: { final: true },
  },
});

const message: Observation = { kind: "message", text: "to Rome" };
const COST: DecisionCost = {
  usage: { calls: 2, inputTokens: 100, cachedTokens: 50, outputTokens: 10 },
  measures: { latencyMs: 5, firstTokenMs: 2, viewBytes: 400 },
  refused: 1,
};

function at(step: string, state: State = {}, execution: Partial<Execution> = {}): Snapshot {
  return {
    state: { ...emptyState(trip.state), ...state },
    execution: { ...newExecution(trip), status: "running", step, ...execution },
  };
}

function applied(
  snapshot: Snapshot,
  decision: Decision,
  observation: Observation | null = null,
  cost = FREE,
): Execution {
  return update(snapshot, decision, observation, cost).execution;
}

function update(snapshot: Snapshot, decision: Decision, observation: Observation | null = null, cost = FREE) {
  const number = snapshot.execution.decisions + 1;
  const result = applyDecision(trip, snapshot, decision, { number, observation, cost });
  if (!result.ok) throw new Error(`refused: ${result.refusal.reason}`);
  return result.update;
}

function refusal(snapshot: Snapshot, decision: Decision) {
  const result = applyDecision(trip, snapshot, decision, {
    number: snapshot.execution.decisions + 1,
    observation: null,
  });
  if (result.ok) throw new Error("was not refused");
  expect(admitDecision(trip, snapshot, decision)).toEqual(result);
  return result.refusal;
}

describe("a refused decision", () => {
  test("INVALID_DECISION where it both asks and replies", () => {
    expect(refusal(at("plan"), { ask: "Where to?", reply: "Hello." })).toEqual({
      code: "INVALID_DECISION",
      reason: "choose one of ask and reply; a question can carry the text",
    });
  });

  test("INVALID_DECISION where it goes nowhere and the step may not repeat itself", () => {
    const { code, reason } = refusal(at("check"), { patch: { notes: ["x"] } });
    expect(code).toBe("INVALID_DECISION");
    expect(reason).toContain("next is missing, and step check may not repeat itself without a question");
  });

  test("ILLEGAL_TRANSITION, REQUIRES and GUARD name the step where it would have led", () => {
    expect(refusal(at("plan"), { next: "done" })).toMatchObject({ code: "ILLEGAL_TRANSITION", to: "done" });
    expect(refusal(at("plan"), { next: "book" })).toMatchObject({ code: "REQUIRES", to: "book", fields: ["city"] });
    expect(refusal(at("plan"), { next: "toString" })).toMatchObject({ code: "ILLEGAL_TRANSITION" });
    const guarded = defineWorkflow({
      name: "guarded",
      version: 1,
      state: { ready: field(z.boolean()) },
      initial: "wait",
      steps: {
        wait: {
          writes: ["ready"],
          to: ["wait", { to: "end", when: (state) => state.ready === true, because: "it is not ready" }],
        },
        end: { final: true },
      },
    });
    const snapshot = { execution: newExecution(guarded), state: { ready: null } };
    expect(admitDecision(guarded, snapshot, { next: "end" })).toMatchObject({
      ok: false,
      refusal: {
        code: "GUARD",
        to: "end",
        reason: "end is closed: it is not ready; open now: wait (end is closed: it is not ready)",
      },
    });
    expect(admitDecision(guarded, snapshot, { next: "end", patch: { ready: true } })).toMatchObject({
      ok: true,
      step: "end",
    });
  });

  test("a question with an illegal next is refused too", () => {
    expect(refusal(at("plan"), { ask: "Where to?", next: "done" })).toMatchObject({ code: "ILLEGAL_TRANSITION" });
  });

  test("K25: a patch that overwrites or deletes a confirmed value, or writes what the step may not, names the field", () => {
    const confirmed = at("plan", { budget: 500, city: "Rome" });
    expect(refusal(confirmed, { patch: { budget: 5000 }, next: "book" })).toMatchObject({
      code: "WRITE_ONCE",
      field: "budget",
    });
    expect(refusal(confirmed, { clear: ["budget"], next: "book" })).toMatchObject({
      code: "NOT_CLEARABLE",
      field: "budget",
    });
    expect(refusal(confirmed, { patch: { visits: 1 } })).toMatchObject({ code: "RUNTIME_ONLY", field: "visits" });
    const foreign = refusal(at("check", { city: "Rome" }), { patch: { city: "Oslo" }, next: "book" });
    expect(foreign).toMatchObject({ code: "FIELD_NOT_WRITABLE", field: "city" });
    expect(foreign.reason).toBe('this step may not write "city"; it may write: notes');
    const nulls = update(confirmed, { patch: { budget: null, city: null }, next: "book" });
    expect(nulls.changes).toEqual({});
  });

  test("a step of a model that declares no fields writes none; code without a declaration writes any", () => {
    const silent = { ...trip, steps: { ...trip.steps, plan: { to: ["plan" as const] } } };
    expect(admitDecision(silent, at("plan"), { patch: { city: "Rome" } })).toMatchObject({
      refusal: { code: "FIELD_NOT_WRITABLE", field: "city" },
    });
    expect(update(at("book", { city: "Rome" }), { patch: { visits: 3, city: "Oslo" }, next: "done" }).changes).toEqual({
      visits: 3,
      city: "Oslo",
    });
  });
});

describe("an admitted decision", () => {
  test("moves, counts, and keeps what it cost", () => {
    const record = applied(
      at("plan"),
      { patch: { city: "Rome" }, next: "book", because: "it is known" },
      message,
      COST,
    );
    expect(record).toMatchObject({
      step: "book",
      status: "running",
      revision: 1,
      decisions: 1,
      decisionsByStep: { plan: 1 },
      completedSteps: ["plan"],
      retryCount: 0,
      refused: 1,
      observation: message,
      usage: COST.usage,
      last: { kind: "decision", step: "plan", observation: message, measures: COST.measures },
    });
    expect(record.last?.decision).toEqual({ patch: { city: "Rome" }, next: "book", because: "it is known" });
    expect(executionSchema.parse(record)).toEqual(record);
  });

  test("completes the task in a final step", () => {
    expect(applied(at("book", { city: "Rome" }), { next: "done" })).toMatchObject({
      step: "done",
      status: "completed",
    });
  });

  test("a question never moves; its patch is kept and the task waits", () => {
    const made = update(at("plan"), { patch: { city: "Rome" }, ask: "How much?", next: "book" });
    expect(made.changes).toEqual({ city: "Rome" });
    expect(made.execution).toMatchObject({
      step: "plan",
      status: "waiting_user",
      completedSteps: [],
      pending: { kind: "question", decision: 1, question: "How much?" },
    });
    // It is progress, not another try.
    expect(made.execution.retryCount).toBe(0);
  });

  test("without next it stays where the table lets the step repeat, and counts as another try", () => {
    expect(applied(at("plan", {}, { retryCount: 2 }), { reply: "One moment." })).toMatchObject({
      step: "plan",
      retryCount: 3,
    });
  });

  test("a step that is left twice is completed once, and retries start at 0 in every step", () => {
    const back = applied(at("check", {}, { completedSteps: ["plan", "check"], retryCount: 4 }), { next: "plan" });
    expect(back).toMatchObject({ completedSteps: ["plan", "check"], retryCount: 0 });
  });

  test("without a newer one the observation stays the latest", () => {
    expect(applied(at("plan", {}, { observation: message }), { reply: "Yes." }).observation).toEqual(message);
  });

  test("a decision that was applied already changes nothing, append-only fields included", () => {
    const decision = { patch: { notes: ["sunny"] } };
    const first = update(at("plan"), decision, message, COST);
    const after: Snapshot = { execution: first.execution, state: { ...at("plan").state, ...first.changes } };
    const again = applyDecision(trip, after, decision, { number: 1, observation: message, cost: COST });
    expect(again).toEqual({ ok: true, update: { changes: {}, execution: first.execution } });
    const next = applyDecision(trip, after, { patch: { notes: ["rain"] } }, { number: 2, observation: null });
    expect(next).toMatchObject({ ok: true, update: { changes: { notes: ["sunny", "rain"] } } });
  });
});

describe("limits", () => {
  test("a step's limit counts the decisions of all its visits", () => {
    expect(reachedLimit(trip, at("plan", {}, { decisionsByStep: { plan: 2, check: 9 } }).execution)).toBeNull();
    const error = reachedLimit(trip, at("plan", {}, { decisionsByStep: { plan: 3 } }).execution);
    expect(error).toMatchObject({ code: "STEP_LIMIT", step: "plan" });
    expect(error?.message).toContain("step plan has made 3 decisions");
    expect(error?.message).toContain("steps.plan.maxDecisions");
  });

  test("a step has 25 decisions unless it says otherwise", () => {
    expect(reachedLimit(trip, at("check", {}, { decisionsByStep: { check: 24 } }).execution)).toBeNull();
    expect(reachedLimit(trip, at("check", {}, { decisionsByStep: { check: 25 } }).execution)?.code).toBe("STEP_LIMIT");
  });

  test("a task's limit counts the decisions of all steps", () => {
    expect(reachedLimit(trip, at("check", {}, { decisions: 5 }).execution)).toBeNull();
    const error = reachedLimit(trip, at("check", {}, { decisions: 6 }).execution);
    expect(error).toMatchObject({ code: "TASK_LIMIT", step: "check" });
    expect(error?.message).toMatch(
      /has made 6 decisions, the limit of its workflow; .*raise maxDecisions .*and resume$/,
    );
    const own = reachedLimit(trip, at("check", {}, { decisions: 1, maxDecisions: 1 }).execution);
    expect(own?.message).toMatch(/has made 1 decision, the limit that it was started with, .*start a new task/);
  });

  test("neither a failure, nor a retry, nor an answer, nor a move gives decisions back", () => {
    let snapshot = at("plan");
    const step = (execution: Execution) => {
      snapshot = { ...snapshot, execution };
    };
    step(applied(snapshot, { reply: "a" }));
    step(applied(snapshot, { ask: "b?" }));
    const answer: Observation = { kind: "answer", question: "b?", text: "yes" };
    const settled = settle(trip, snapshot, { observation: answer, result: null, usage: NO_USAGE });
    if (settled.ok) step(settled.update.execution);
    step(fail(snapshot.execution, { code: "STEP_FAILED", message: "m", step: "plan" }, FREE, null));
    step(retry(snapshot.execution));
    step(applied(snapshot, { next: "check" }));
    step(applied(snapshot, { next: "plan" }));
    expect(snapshot.execution).toMatchObject({ decisions: 4, decisionsByStep: { plan: 3, check: 1 }, revision: 7 });
    expect(reachedLimit(trip, snapshot.execution)?.code).toBe("STEP_LIMIT");
  });
});

describe("updates of the record that are no decisions", () => {
  const used: Partial<Execution> = {
    revision: 7,
    decisions: 4,
    decisionsByStep: { plan: 2, check: 2 },
    completedSteps: ["plan"],
    retryCount: 1,
    refused: 2,
    observation: message,
    usage: COST.usage,
    recent: ["1. a", "2. b"],
  };
  const limits = {
    decisions: 4,
    decisionsByStep: { plan: 2, check: 2 },
    completedSteps: ["plan"],
    recent: ["1. a", "2. b"],
  };
  const error = { code: "MODEL_FAILED", message: "no answer", step: "check" };

  test("a failure keeps step and limits, says why, and counts what it cost", () => {
    const record = fail(at("check", {}, used).execution, error, COST, null);
    expect(record).toMatchObject({
      ...limits,
      step: "check",
      status: "failed",
      revision: 8,
      pending: null,
      lastError: error,
      retryCount: 2,
      refused: 3,
      observation: message,
      usage: { calls: 4, inputTokens: 200, cachedTokens: 100, outputTokens: 20 },
      last: { kind: "failure", step: "check", decision: null },
    });
    expect(executionSchema.parse(record)).toEqual(record);
  });

  test("a retry keeps step and limits, and takes the error away", () => {
    const record = retry(at("check", {}, { ...used, status: "failed", lastError: error }).execution);
    expect(record).toMatchObject({
      ...limits,
      step: "check",
      status: "running",
      revision: 8,
      lastError: null,
      retryCount: 2,
      refused: 2,
      usage: COST.usage,
      last: { kind: "retry", step: "check" },
    });
    expect(executionSchema.parse(record)).toEqual(record);
  });

  test("an answer settles a question: the step stays, the observation is the answer, no decision is counted", () => {
    const pending = { kind: "question", decision: 4, question: "b?" } as const;
    const answer: Observation = { kind: "answer", question: "b?", text: "yes" };
    const snapshot = at("check", { city: "Rome" }, { ...used, pending, status: "waiting_user" });
    const settled = settle(trip, snapshot, { observation: answer, result: null, usage: NO_USAGE });
    expect(settled).toMatchObject({
      ok: true,
      update: {
        changes: {},
        execution: { ...limits, step: "check", status: "running", revision: 8, pending: null, observation: answer },
      },
    });
  });

  test("a child's start is one decision that moves nothing and waits for nobody", () => {
    const started = startChild(
      at("check", { city: "Rome" }, used),
      { workflow: "hotel", input: { city: "Rome" } },
      null,
    );
    expect(started.changes).toEqual({});
    expect(started.execution).toMatchObject({
      step: "check",
      status: "running",
      revision: 8,
      decisions: 5,
      decisionsByStep: { plan: 2, check: 3 },
      completedSteps: ["plan"],
      retryCount: 1,
      pending: { kind: "workflow", decision: 5, workflow: "hotel", input: { city: "Rome" } },
    });
    expect(executionSchema.parse(started.execution)).toEqual(started.execution);
  });

  test("a child's end brings its patch and its move, by the same table and rules as any decision", () => {
    const pending = { kind: "workflow", decision: 4, workflow: "hotel", input: {} } as const;
    const ended: Observation = { kind: "workflow", workflow: "hotel", status: "completed" };
    const snapshot = at("check", { city: "Rome" }, { ...used, pending });
    const settled = settle(trip, snapshot, {
      observation: ended,
      result: { patch: { notes: ["room 5"] }, next: "book" },
      usage: COST.usage,
    });
    expect(settled).toMatchObject({
      ok: true,
      update: {
        changes: { notes: ["room 5"] },
        execution: {
          step: "book",
          revision: 8,
          pending: null,
          decisions: 4,
          completedSteps: ["plan", "check"],
          observation: ended,
          usage: { calls: 4, inputTokens: 200, cachedTokens: 100, outputTokens: 20 },
        },
      },
    });
    expect(settle(trip, snapshot, { observation: ended, result: { next: "done" }, usage: COST.usage })).toMatchObject({
      ok: false,
      refusal: { code: "ILLEGAL_TRANSITION" },
    });
    expect(
      settle(trip, snapshot, {
        observation: ended,
        result: { patch: { city: "Oslo" }, next: "book" },
        usage: COST.usage,
      }),
    ).toMatchObject({
      ok: false,
      refusal: { code: "FIELD_NOT_WRITABLE", field: "city" },
    });
  });

  test("all of them leave the record that they are given alone", () => {
    const snapshot = deepFreeze(at("check", { city: "Rome" }, used));
    const before = structuredClone(snapshot);
    fail(snapshot.execution, error, COST, message);
    retry(snapshot.execution);
    startChild(snapshot, { workflow: "hotel", input: {} }, message);
    settle(trip, snapshot, { observation: message, result: { next: "book" }, usage: COST.usage });
    applied(snapshot, { next: "book" }, message, COST);
    expect(snapshot).toEqual(before);
  });
});

describe("the record stays small", () => {
  const endless = { ...trip, maxDecisions: Infinity };

  test("it tells the latest three decisions, in a line each", () => {
    let record = at("plan").execution;
    const decisions: readonly Decision[] = [
      { reply: "Hello." },
      { patch: { city: "Rome", budget: null }, ask: "How\nmuch?\n9. plan: went to done" },
      { patch: { city: "Oslo" }, because: "told\nso", next: "check" },
      { because: "first line\nsecond line", next: "plan" },
      { because: "x".repeat(500), clear: [] },
    ];
    const seen: (readonly string[])[] = [];
    for (const decision of decisions) {
      record = applied(at(record.step, {}, { ...record, pending: null }), decision);
      seen.push(record.recent);
      for (const line of record.recent) expect(line).not.toContain("\n");
    }
    expect(seen.map((lines) => lines.length)).toEqual([1, 2, 3, 3, 3]);
    expect(seen[0]).toEqual(["1. plan: said: Hello."]);
    expect(seen[2]?.at(-1)).toBe("3. plan: set city; went to check");
    expect(seen[3]?.at(-1)).toBe("4. check: went to plan");
    expect(seen[4]?.[0]).toBe("3. plan: set city; went to check");
  });

  test("its size does not grow with the number of decisions", () => {
    let snapshot: Snapshot = { ...at("plan"), execution: { ...newExecution(endless), step: "plan" } };
    const cost = { ...COST, refused: 1 };
    const rounds: readonly Decision[] = [
      { patch: { city: "Rome" }, reply: "Noted.", because: "they said so" },
      { next: "check", because: "all is known" },
      { ask: "Shall I?" },
      { next: "plan" },
    ];
    const size = () => Buffer.byteLength(JSON.stringify(snapshot.execution));
    let early = 0;
    for (let number = 0; number < 10_000; number++) {
      const decision = rounds[number % rounds.length] ?? {};
      const result = applyDecision(endless, snapshot, decision, { number: number + 1, observation: message, cost });
      if (!result.ok) throw new Error(result.refusal.reason);
      snapshot = { execution: result.update.execution, state: { ...snapshot.state, ...result.update.changes } };
      if (snapshot.execution.pending) {
        const settled = settle(endless, snapshot, {
          observation: { kind: "answer", question: "Shall I?", text: "yes" },
          result: null,
          usage: NO_USAGE,
        });
        if (settled.ok) snapshot = { ...snapshot, execution: settled.update.execution };
      }
      if (number === 99) early = size();
    }
    expect(snapshot.execution.decisions).toBe(10_000);
    // Only the digits of the counters may have grown: some twenty numbers by at most three digits each.
    expect(size() - early).toBeLessThan(60);
    expect(size()).toBeLessThan(2000);
  });

  test("nothing that one decision says can make it big: a reason is cut, an endless question or reply is refused", () => {
    const long = "x".repeat(1_000_000);
    expect(JSON.stringify(applied(at("plan"), { because: long })).length).toBeLessThan(5000);
    for (const part of ["ask", "reply"] as const) {
      const { code, reason } = refusal(at("plan"), { [part]: long });
      expect(code).toBe("INVALID_DECISION");
      expect(reason).toContain(part);
      expect(reason.length).toBeLessThan(200);
      expect(JSON.stringify(applied(at("plan"), { [part]: "x".repeat(10_000) }).recent).length).toBeLessThan(1000);
    }
  });

  test("what the record keeps of a patch is what it changed, of an append-only list only the new items", () => {
    const snapshot = at("plan", { notes: ["a", "b"], city: "Rome" });
    const record = applied(snapshot, { patch: { notes: ["a", "b", "c"], city: "Rome", budget: null }, reply: "Yes." });
    expect(record.last?.decision).toMatchObject({ patch: { notes: ["c"] }, reply: "Yes." });
    expect(record.last?.decision?.patch).toEqual({ notes: ["c"] });
  });

  test("what a field's schema leaves out of a patch is not kept in the record either", () => {
    const workflow = defineWorkflow({
      name: "strips",
      version: 1,
      state: { person: field(z.object({ name: z.string() })).maxBytes(100) },
      initial: "work",
      steps: { work: { writes: ["person"], to: ["work", "done"] }, done: { final: true } },
    });
    const snapshot = { execution: newExecution(workflow), state: { person: null } };
    const decision = { patch: { person: { name: "Ann", unknown: "x".repeat(1_000_000) } } };
    const result = applyDecision(workflow, snapshot, decision, { number: 1, observation: null });
    expect(JSON.stringify(result).length).toBeLessThan(5000);
  });

  test("usage starts at nothing", () => {
    expect(at("plan").execution.usage).toEqual(NO_USAGE);
  });
});

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}
