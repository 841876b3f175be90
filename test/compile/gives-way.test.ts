import { compile, defineWorkflow, field, sqliteStore } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";

test("a task whose steps wait for nothing lets the rest of the process have its turn", async () => {
  const busy = defineWorkflow({
    name: "busy",
    version: 1,
    state: { count: field(z.number()) },
    initial: "work",
    maxDecisions: 100,
    steps: {
      work: {
        to: ["work", "done"],
        maxDecisions: 100,
        run: ({ count }) => {
          // Long enough that others are due.
          const until = performance.now() + 12;
          while (performance.now() < until);
          const next = (count ?? 0) + 1;
          return { patch: { count: next }, next: next === 8 ? "done" : "work" };
        },
      },
      done: { final: true },
    },
  });
  const graph = compile(busy, { store: sqliteStore(":memory:") });
  let isOver = false;
  let turns = 0;
  const others = () => {
    if (isOver) return;
    turns++;
    setImmediate(others);
  };
  setImmediate(others);
  await graph.invoke({}, { configurable: { thread_id: "t" } });
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(8);
});
