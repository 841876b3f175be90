import { defineWorkflow, field } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { changesSince } from "../../src/view/changes.ts";

const anything = z.record(z.string(), z.unknown());
const workflow = defineWorkflow({
  name: "orders",
  version: 1,
  state: {
    priority: field(z.string()),
    summary: field(z.string()),
    said: field(z.array(z.string())),
    orders: field(anything),
  },
  initial: "work",
  steps: { work: { writes: ["priority", "summary", "said", "orders"], to: ["done"] }, done: { final: true } },
});
const long = "a summary that is long enough not to be restated as a matter of course ".repeat(4).trim();

test("nothing is said of what has not changed", () => {
  const state = { priority: "P1", orders: { a: { total: 12 } } };
  expect(changesSince(workflow, state, structuredClone(state), "")).toEqual({ restated: {}, inPart: [], gone: [] });
});

test("short fields are restated whenever they changed, also to nothing", () => {
  const { restated } = changesSince(
    workflow,
    { priority: "P1", summary: "x" },
    { priority: "P2", summary: null },
    "P2",
  );
  expect(restated).toEqual({ priority: "P2", summary: null });
});

test("a long text is restated unless it stands above, as it is or as JSON has it", () => {
  const after = { summary: `${long}\n"end"` };
  expect(changesSince(workflow, {}, after, "").restated).toEqual(after);
  expect(changesSince(workflow, {}, after, `before ${after.summary} after`).restated).toEqual({});
  expect(changesSince(workflow, {}, after, JSON.stringify({ patch: after })).restated).toEqual({});
});

test("of an object only what cannot be read above is restated", () => {
  const order = { id: "W123", status: "delivered", items: 2, seats: { front: 1, back: 3 } };
  const told = changesSince(workflow, {}, { orders: { first: order } }, "W123 … delivered … 2");
  expect(told.restated).toEqual({});
  const untold = changesSince(workflow, {}, { orders: { first: order, next: { id: "W999" } } }, "W123 delivered");
  expect(untold).toMatchObject({ restated: { orders: { next: { id: "W999" } } }, inPart: ["orders"] });
});

test("a short value that changed alone is restated: finding it above would prove nothing", () => {
  const before = { orders: { first: { id: "W123", items: 2 } } };
  const after = { orders: { first: { id: "W123", items: 3 } } };
  expect(changesSince(workflow, before, after, "W123 3").restated).toEqual({ orders: { first: { items: 3 } } });
});

test("what is gone is told: members, and the first items of a list", () => {
  const before = { said: ["one thing", "another thing"], orders: { a: { id: "W1234" }, b: { id: "W5678" } } };
  const after = { said: ["another thing", "a third thing"], orders: { b: { id: "W5678" } } };
  const changes = changesSince(workflow, before, after, "a third thing");
  expect(changes.restated).toEqual({});
  expect(changes.gone).toEqual(["said: the first 1 above are no longer in it", "orders.a is no longer there"]);
});

test("a list that changed in any other way is restated whole", () => {
  const before = { said: ["one thing", "another thing", "a third thing"] };
  const after = { said: ["one thing", "a third thing"] };
  expect(changesSince(workflow, before, after, "one thing, a third thing").restated).toEqual(after);
});
