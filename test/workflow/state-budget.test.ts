import { expect, describe, test } from "vitest";
import { z } from "zod";
import { field } from "../../src/state/fields.ts";
import { anyWorkflow, defineWorkflow } from "../../src/workflow/define.ts";
import { stateFault, stateSize } from "../../src/workflow/state-budget.ts";

const text = field(z.string()).maxBytes(100_000);
const workflowWith = (stateBudget?: object) =>
  anyWorkflow(
    defineWorkflow({
      name: "budget",
      version: 1,
      state: { a: text, b: text },
      ...(stateBudget ? { stateBudget } : {}),
      initial: "work",
      steps: { work: { writes: ["a", "b"], to: ["done"] }, done: { final: true } },
    } as never),
  );
const changed = (state: Record<string, unknown>) => ({ state, changes: state });

describe("the size of a state", () => {
  test("is counted in bytes of its JSON, and its largest field is named", () => {
    expect(stateSize({ a: "汉", b: null })).toEqual({ bytes: 20, largest: "a", of: 5 });
    expect(stateSize({})).toEqual({ bytes: 2, largest: "", of: 0 });
  });

  test("is refused above 32 KB, with the field that is largest", () => {
    const half = "x".repeat(16_000);
    expect(stateFault(workflowWith(), changed({ a: half, b: half }))).toBeNull();
    expect(stateFault(workflowWith(), changed({ a: half, b: `${half}${"y".repeat(900)}` }))).toEqual({
      code: "STATE_TOO_LARGE",
      field: "b",
      reason: expect.stringMatching(
        /^the state would have 329\d\d bytes, at most 32768 are allowed; "b" has 16902: shorten it/,
      ),
    });
  });

  test("may be just as large as its limit, not a byte more", () => {
    const exact = (bytes: number) => changed({ a: "x".repeat(bytes - stateSize({ a: "", b: null }).bytes), b: null });
    const limited = workflowWith({ warnBytes: 10, maxBytes: 1000 });
    expect(stateFault(limited, exact(1000))).toBeNull();
    expect(stateFault(limited, exact(1001))).toMatchObject({ field: "a" });
  });

  test("does not matter to an update that changes nothing, so that a task whose limit was lowered can still move", () => {
    const limited = workflowWith({ warnBytes: 10, maxBytes: 100 });
    expect(stateFault(limited, { state: { a: "x".repeat(5000), b: null }, changes: {} })).toBeNull();
  });
});
