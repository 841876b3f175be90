import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Call, CallResult, Pending } from "../../src/state/execution.ts";
import { field } from "../../src/state/fields.ts";
import { anyWorkflow, defineWorkflow } from "../../src/workflow/define.ts";
import { phaseFault, phaseOf, planAfter, planField, planFieldOf, type Plan } from "../../src/workflow/plan.ts";
import { defineTool } from "../../src/workflow/tool.ts";

type CallsPending = Extract<Pending, { kind: "calls" }>;

const look = defineTool({
  description: "Looks.",
  parameters: z.object({ what: z.unknown() }),
  effect: "read",
  run: () => null,
});
const workflow = anyWorkflow(
  defineWorkflow({
    name: "phases",
    version: 1,
    state: { plan: planField(), note: field(z.string()) },
    tools: { look },
    initial: "planning",
    steps: {
      planning: {
        plan: { into: "plan", maxReplans: 1, maxRounds: 2, maxCalls: 7 },
        tools: ["look"],
        writes: ["note"],
        to: ["looping"],
      },
      looping: { react: { into: "plan", maxRounds: 3 }, tools: ["look"], to: ["bare"] },
      bare: { plan: { into: "plan" }, tools: ["look"], to: ["done"] },
      done: { final: true },
    },
  }),
);

const plan = (changes: Partial<Plan> = {}): Plan => ({
  mode: "plan",
  calls: [],
  met: true,
  replans: 0,
  rounds: 0,
  concluded: false,
  ...changes,
});
const at = (step: string, kept: Plan | null) => phaseOf(workflow, step, { plan: kept, note: null });
const failed = { id: "a", tool: "look", args: {}, status: "error" as const, result: null, problem: "no" };

describe("the phase of a step", () => {
  test.each<readonly [string, Plan | null, object]>([
    ["planning", null, { kind: "plan", number: 1, of: 2, maxCalls: 7, open: [] }],
    ["planning", plan(), { kind: "conclude" }],
    ["planning", plan({ met: false, calls: [failed] }), { kind: "plan", number: 2, of: 2, open: [{ id: "a" }] }],
    ["planning", plan({ met: false, replans: 1 }), { kind: "act", number: 1, of: 2 }],
    ["planning", plan({ mode: "free", replans: 1, rounds: 1, met: false }), { kind: "act", number: 2, of: 2 }],
    ["planning", plan({ mode: "free", replans: 1, rounds: 1, met: true }), { kind: "act", number: 2, of: 2 }],
    ["planning", plan({ mode: "free", rounds: 2 }), { kind: "close", number: 2, of: 2 }],
    ["planning", plan({ concluded: true, met: false, replans: 1 }), { kind: "plan", number: 1, open: [] }],
    ["looping", null, { kind: "act", number: 1, of: 3 }],
    ["looping", plan({ mode: "free", rounds: 2 }), { kind: "act", number: 3 }],
    ["looping", plan({ mode: "free", rounds: 3 }), { kind: "close", number: 3 }],
    ["looping", plan({ mode: "free", rounds: 3, concluded: true }), { kind: "act", number: 1 }],
    ["bare", null, { kind: "plan", number: 1, of: 3, maxCalls: 50 }],
  ])("in %s after %j", (step, kept, phase) => {
    expect(at(step, kept)).toMatchObject(phase);
  });

  test("there is none where a step neither plans nor loops, or is not there", () => {
    expect(at("done", null)).toBeNull();
    expect(at("nowhere", null)).toBeNull();
    expect(planFieldOf(undefined)).toBeNull();
  });
});

describe("what a decision may be in its phase", () => {
  const [CALLS, MOVE, BOTH, ASK, NOTHING] = [
    { calls: 2, moves: false, asks: false },
    { calls: 0, moves: true, asks: false },
    { calls: 2, moves: true, asks: false },
    { calls: 0, moves: false, asks: true },
    { calls: 0, moves: false, asks: false },
  ];
  const phases = {
    none: null,
    plan: at("planning", null),
    act: at("looping", null),
    conclude: at("planning", plan()),
    close: at("looping", plan({ mode: "free", rounds: 3 })),
  };
  test.each<readonly [keyof typeof phases, typeof CALLS, RegExp | null]>([
    ["none", BOTH, null],
    ["plan", CALLS, null],
    ["plan", MOVE, /^first the plan: answer with calls/],
    ["plan", NOTHING, /^first the plan: answer with calls/],
    ["plan", BOTH, /^first the plan: calls only/],
    ["plan", ASK, null],
    ["act", CALLS, null],
    ["act", BOTH, null],
    ["act", MOVE, null],
    ["conclude", MOVE, null],
    ["conclude", ASK, null],
    ["conclude", CALLS, /conclude now, without further calls/],
    ["conclude", BOTH, /conclude now, without further calls/],
    ["close", MOVE, null],
    ["close", ASK, null],
    ["close", CALLS, /the limit of 3 rounds is reached: no more calls; say what is known and what is open/],
  ])("%s: %j", (phase, decision, says) => {
    const fault = phaseFault(phases[phase], decision);
    if (says === null) expect(fault).toBeNull();
    else expect(fault).toMatch(says);
  });
});

const pendingOf = (calls: readonly Call[], origin?: "plan"): CallsPending => ({
  kind: "calls",
  decision: 1,
  calls: [...calls],
  patch: null,
  clear: null,
  next: null,
  ...(origin ? { origin } : {}),
});
const call = (args: Record<string, unknown> = {}, id?: string): Call => ({ tool: "look", args, ...(id ? { id } : {}) });
const ok = (position: number, value: unknown): CallResult => ({
  id: `1.${position}`,
  tool: "look",
  status: "ok",
  value,
});

describe("the plan after its calls", () => {
  test("tells each call: as it was decided, what it brought, and what did not come true", () => {
    const calls = [call({ what: { $ref: "b.x" } }, "a"), call({}), call({}), call({})];
    const after = planAfter(null, pendingOf(calls, "plan"), [
      ok(0, { x: 1 }),
      { ...ok(1, "fine"), unmet: "the result is empty" },
      { id: "1.2", tool: "look", status: "refused", error: "a person rejected it" },
    ]);
    expect(after).toEqual({
      mode: "plan",
      met: false,
      replans: 0,
      rounds: 0,
      concluded: false,
      calls: [
        { id: "a", tool: "look", args: { what: { $ref: "b.x" } }, status: "ok", result: { x: 1 }, problem: null },
        { id: "c2", tool: "look", args: {}, status: "ok", result: "fine", problem: "the result is empty" },
        { id: "c3", tool: "look", args: {}, status: "refused", result: null, problem: "a person rejected it" },
        { id: "c4", tool: "look", args: {}, status: "cancelled", result: null, problem: "cancelled" },
      ],
    });
  });

  test("counts plans and rounds, and begins anew after a conclusion", () => {
    const results = [ok(0, 1)];
    const again = planAfter(plan({ met: false }), pendingOf([call()], "plan"), results);
    expect(again).toMatchObject({ mode: "plan", replans: 1, rounds: 0, met: true });
    const round = planAfter(again, pendingOf([call()]), results);
    expect(round).toMatchObject({ mode: "free", replans: 1, rounds: 1 });
    expect(round.calls.map(({ id }) => id)).toEqual(["c1", "r1.c1"]);
    const anew = planAfter({ ...round, concluded: true }, pendingOf([call()], "plan"), results);
    expect(anew).toMatchObject({ replans: 0, rounds: 0, concluded: false });
    expect(planAfter({ ...round, concluded: true }, pendingOf([call()]), results)).toMatchObject({ rounds: 1 });
  });

  const fits = (kept: Plan) => expect(planField().check(kept)).toMatchObject({ ok: true });

  test.each<readonly [string, string]>([
    ["letters", "x"],
    ["Chinese", "汉"],
    ["quotes, which double in JSON", '"\\'],
    ["emoji", "😀"],
  ])("50 calls with large arguments, results and complaints in %s fit into the field", (_name, piece) => {
    const long = piece.repeat(20_000);
    const calls = Array.from({ length: 50 }, (_, index) => call({ what: long }, `${index}${piece.repeat(100)}`));
    const good = calls.map((_call, position) => ok(position, { text: long }));
    const unmet = good.map((result) => ({
      ...result,
      unmet: `${piece.repeat(100)} is not equal to ${piece.repeat(100)}`,
    }));
    const bad = good.map(({ id, tool }): CallResult => ({ id, tool, status: "error", error: long }));
    for (const results of [good, unmet, bad]) {
      const kept = planAfter(null, pendingOf(calls, "plan"), results);
      fits(kept);
      expect(kept.calls).toHaveLength(50);
      expect(kept.met).toBe(results === good);
    }
  });

  test("of a plan of a thousand calls what failed is kept, and what fits of the others", () => {
    const calls = Array.from({ length: 1000 }, () => call({ what: "x".repeat(100) }));
    const results = calls.map((_call, position) =>
      position % 100 === 50 ? ({ id: "x", tool: "look", status: "error", error: "no" } as const) : ok(position, "y"),
    );
    const kept = planAfter(null, pendingOf(calls, "plan"), results);
    fits(kept);
    expect(kept.met).toBe(false);
    expect(kept.calls.filter(({ problem }) => problem !== null)).toHaveLength(10);
  });

  test("property: it fits into the field after any number of rounds", () => {
    const rounds = fc.array(
      fc.array(fc.tuple(fc.jsonValue(), fc.string({ maxLength: 3000, unit: "binary" }), fc.boolean()), {
        minLength: 1,
        maxLength: 16,
      }),
      { minLength: 1, maxLength: 8 },
    );
    fc.assert(
      fc.property(rounds, (drawn) => {
        let kept: Plan | null = null;
        for (const round of drawn) {
          const calls = round.map(([what]) => call({ what }));
          const results = round.map(([, text, fine], position): CallResult =>
            fine ? ok(position, { text }) : { id: "x", tool: "look", status: "error", error: text },
          );
          kept = planAfter(kept, pendingOf(calls), results);
          fits(kept);
        }
        expect(kept?.rounds).toBe(drawn.length);
      }),
      { numRuns: 50, examples: [[[[[JSON.parse('{"__proto__": null}') as null, "", false]]]]] },
    );
  });
});
