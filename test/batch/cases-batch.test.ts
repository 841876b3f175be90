import { compile, defineWorkflow, field, sqliteStore } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { runBatch } from "../../src/batch/batch.ts";
import { readRow } from "../../src/batch/rows.ts";

test("K27: of four tasks one hangs, one throws and one waits: the fourth ends, and the report tells each apart", async () => {
  let isMended = false;
  const work = defineWorkflow({
    name: "work",
    version: 1,
    state: { does: field(z.string()) },
    input: ["does"],
    initial: "working",
    steps: {
      working: {
        to: ["working", "ended"],
        async run({ does }, { observation }) {
          if (does === "hangs" && !isMended) await new Promise(() => {});
          if (does === "throws" && !isMended) throw new Error("out of order");
          if (does === "waits" && observation?.kind !== "answer") return { ask: "Now?" };
          return { next: "ended" };
        },
      },
      ended: { final: true },
    },
  });
  const graph = compile(work, { store: sqliteStore(":memory:") });
  const names = ["hangs", "throws", "waits", "ends"];
  const tasks = names.map((does) => ({ taskId: does, input: { does } }));
  const run = () => runBatch(graph, { tasks, workers: 2, attempts: 1, backoffMs: 1, limits: { stepMs: 1000 } });
  const rows = () =>
    Promise.all(
      names.map(async (id) => {
        const line = { line: 1, id, input: {} };
        const row = await readRow(graph, { line, taskId: id, policy: null, refused: null, maxAttempts: 1 });
        return [id, row.status, row.error?.code, row.question, row.maxAttempts];
      }),
    );
  await run();
  expect(await rows()).toEqual([
    ["hangs", "failed", "TASK_TIMEOUT", null, 1],
    ["throws", "failed", "STEP_FAILED", null, 1],
    ["waits", "waiting", undefined, "Now?", 1],
    ["ends", "completed", undefined, null, 1],
  ]);
  // The one that waits is answered whenever somebody comes, and what failed goes on where it stood.
  await graph.invoke({ message: "yes" }, { configurable: { thread_id: "waits" } });
  isMended = true;
  await run();
  expect((await rows()).map(([, status]) => status)).toEqual(names.map(() => "completed"));
});
