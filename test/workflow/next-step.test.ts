import fc from "fast-check";
import { defineWorkflow, field, moves, nextStep, openMoves, type AnyWorkflow } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution, type Execution } from "../../src/state/execution.ts";
import type { RuntimeStep } from "../../src/workflow/step.ts";
import { ACT, dueNode, END_OF_TASK, isFinished } from "../../src/workflow/next-step.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";

const order = defineWorkflow({
  name: "order",
  version: 1,
  state: { amount: field(z.number()), address: field(z.string()) },
  initial: "take",
  steps: {
    take: {
      writes: ["amount", "address"],
      to: [
        "take",
        { to: "approve", when: (state) => (state.amount ?? 0) > 100, because: "only amounts above 100 are approved" },
        "send",
      ],
    },
    approve: { to: ["send"] },
    send: { requires: ["amount", "address"], to: ["done"] },
    done: { final: true },
  },
});
const nothing = { amount: null, address: null };

describe("the ticket's table", () => {
  const complete = { ticketType: "network", priority: "P1", analysis: "a", solution: "s", result: null };
  const allowed: Readonly<Record<string, readonly string[]>> = {
    init: ["gathering_info", "deciding"],
    gathering_info: ["gathering_info", "deciding"],
    deciding: ["resolving", "done"],
    resolving: ["done"],
    done: [],
  };

  test("allows exactly its moves; every other pair of steps is refused as ILLEGAL_TRANSITION", () => {
    for (const [from, targets] of Object.entries(allowed)) {
      for (const to of [...Object.keys(allowed), "nowhere", "act", "__end__", "constructor"]) {
        const result = nextStep(ticket, from, complete, to);
        if (targets.includes(to)) expect(result).toEqual({ ok: true, step: to });
        else expect(result).toMatchObject({ ok: false, refusal: { code: "ILLEGAL_TRANSITION", to } });
      }
    }
  });
});

describe("nextStep", () => {
  test("ILLEGAL_TRANSITION says from where, to where and what is open", () => {
    expect(nextStep(order, "take", nothing, "done")).toEqual({
      ok: false,
      refusal: {
        code: "ILLEGAL_TRANSITION",
        to: "done",
        reason:
          'step take cannot be followed by "done"; open now: take (approve is closed: only amounts above 100 are approved; send needs amount, address)',
      },
    });
    expect(nextStep(order, "done", nothing, "take")).toMatchObject({
      refusal: { reason: 'step done cannot be followed by "take"; open now: nothing' },
    });
  });

  test("REQUIRES names the fields that are missing, and only those", () => {
    const refused = nextStep(order, "take", { ...nothing, amount: 5 }, "send");
    expect(refused).toMatchObject({ ok: false, refusal: { code: "REQUIRES", to: "send", fields: ["address"] } });
    expect(!refused.ok && refused.refusal.reason).toMatch(/^send needs address; open now: take/);
    expect(nextStep(order, "take", { amount: 0, address: "" }, "send")).toEqual({ ok: true, step: "send" });
  });

  test("GUARD tells the guard's own reason", () => {
    const refused = nextStep(order, "take", { ...nothing, amount: 100 }, "approve");
    expect(refused).toMatchObject({ ok: false, refusal: { code: "GUARD", to: "approve" } });
    expect(!refused.ok && refused.refusal.reason).toMatch(
      /^approve is closed: only amounts above 100 are approved; open/,
    );
    expect(nextStep(order, "take", { ...nothing, amount: 101 }, "approve")).toEqual({ ok: true, step: "approve" });
  });

  test("a refusal stays short, however long the step's name that it is about", () => {
    const refused = nextStep(order, "take", nothing, "x".repeat(1_000_000));
    expect(JSON.stringify(refused).length).toBeLessThan(5000);
  });
});

describe("moves", () => {
  test("lists every transition of the table with what closes it", () => {
    expect(moves(order, "take", { ...nothing, amount: 200 })).toEqual([
      { to: "take", closed: null },
      { to: "approve", closed: null },
      { to: "send", closed: { code: "REQUIRES", to: "send", fields: ["address"], reason: "send needs address" } },
    ]);
    expect(moves(order, "done", nothing)).toEqual([]);
    expect(moves(order, "nowhere", nothing)).toEqual([]);
    expect(openMoves(order, "take", nothing)).toEqual(["take"]);
  });

  test("nextStep allows exactly what openMoves lists, for any table and state", () => {
    const names = ["one", "two", "three", "toString"];
    const move = fc.oneof(
      fc.constantFrom(...names),
      fc.record({ to: fc.constantFrom(...names), open: fc.boolean() }).map(({ to, open }) => ({
        to,
        when: () => open,
        because: "the guard says so",
      })),
    );
    const step: fc.Arbitrary<RuntimeStep> = fc.record({
      to: fc.array(move, { maxLength: 5 }),
      requires: fc.subarray(["amount", "address"]),
    });
    const state = fc.record({ amount: fc.constantFrom(null, 0, 5), address: fc.constantFrom(null, "", "here") });
    fc.assert(
      fc.property(fc.tuple(step, step, step, step), state, (steps, state) => {
        const table = Object.fromEntries(steps.map((step, index) => [names[index] ?? "", step]));
        const workflow: AnyWorkflow = { ...(order as unknown as AnyWorkflow), steps: table };
        for (const from of names) {
          const open = openMoves(workflow, from, state);
          for (const to of [...names, "nowhere"]) {
            expect(nextStep(workflow, from, state, to).ok).toBe(open.includes(to));
          }
        }
      }),
    );
  });
});

describe("dueNode", () => {
  const record = (changes: Partial<Execution>): Execution => ({ ...newExecution(order), ...changes });
  const question = { kind: "question", decision: 1, question: "Where?" } as const;

  test("is the record's step, the action node while an action is pending, and the end when it is over", () => {
    expect(dueNode(order, record({}))).toBe("take");
    expect(dueNode(order, record({ step: "send", status: "running" }))).toBe("send");
    expect(dueNode(order, record({ pending: question, status: "waiting_user" }))).toBe(ACT);
    expect(dueNode(order, record({ step: "done", status: "completed" }))).toBe(END_OF_TASK);
    expect(dueNode(order, record({ status: "failed" }))).toBe(END_OF_TASK);
    expect(dueNode(order, record({ status: "failed", pending: question }))).toBe(END_OF_TASK);
  });

  test("a task is finished exactly when its end is due", () => {
    expect(isFinished(order, record({ step: "done" }))).toBe(true);
    expect(isFinished(order, record({ status: "failed" }))).toBe(true);
    expect(isFinished(order, record({ pending: question }))).toBe(false);
    expect(isFinished(order, record({}))).toBe(false);
  });
});
