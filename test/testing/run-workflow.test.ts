import { defineWorkflow, field } from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";

test("a run's state has the workflow's fields and no others", async () => {
  const workflow = defineWorkflow({
    name: "payment",
    version: 1,
    state: { reference: field(z.string()), amount: field(z.number()) },
    initial: "paying",
    steps: { paying: { writes: ["reference"], to: ["paid"] }, paid: { final: true } },
    input: ["amount"],
  });
  const model = scriptedModel([{ patch: { reference: "r-7" }, next: "paid" }]);
  const run = await runWorkflow(workflow, { model, message: "go" });
  expectTypeOf(run.state).toEqualTypeOf<{ readonly reference: string | null; readonly amount: number | null }>();
  expect(run.state.reference).toBe("r-7");
  expect(run.state.amount).toBeNull();
  // @ts-expect-error -- a slip in a field's name
  expect(run.state.refrence).toBeUndefined();
});
