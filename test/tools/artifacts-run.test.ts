import { compile, defineTool, defineWorkflow, field } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import type { CallResult } from "../../src/state/execution.ts";
import { artifactTools, type Preview } from "../../src/tools/artifacts.ts";
import { onBothDialects } from "../support/stores.ts";

const COUNT = 10_000;
const FOUND = 777;
const LINES = Array.from({ length: COUNT }, (_, index) =>
  (index === FOUND - 1 ? "ERROR: the disk is full" : `line ${index + 1}`).padEnd(69, "."),
);
const LOG = `${LINES.join("\n")}\n`;

const readLog = defineTool({
  description: "Reads the log.",
  parameters: z.object({}),
  effect: "read",
  run: () => LOG,
});
const workflow = defineWorkflow({
  name: "log-reading",
  version: 1,
  state: { cause: field(z.string()) },
  tools: { readLog, ...artifactTools },
  initial: "looking",
  steps: {
    looking: { tools: ["readLog", "searchArtifact", "readArtifact"], writes: ["cause"], to: ["looking", "done"] },
    done: { final: true },
  },
});

onBothDialects((dialect) => {
  test("a large result is shown as a preview, searched, and read where it matters", async () => {
    // What the model knows of it, it knows from its prompt.
    let id = "";
    const call = (tool: string, args: object) => ({ calls: [{ tool, args }], next: "looking" });
    const model = scriptedModel([
      call("readLog", {}),
      (prompt) => {
        [id = ""] = /1\.0-[0-9a-f]{8}/.exec(prompt) ?? [];
        return call("searchArtifact", { id, text: "ERROR" });
      },
      (prompt) => {
        const [, from] = /L(\d+): ERROR: the disk is full/.exec(prompt) ?? [];
        return call("readArtifact", { id, from: Number(from), lines: 2 });
      },
      (prompt) => {
        expect(prompt).toContain(`L${FOUND + 1}: ${LINES[FOUND]}`);
        return { patch: { cause: "the disk is full" }, next: "done" };
      },
    ]);
    const store = dialect.open();
    const done = await compile(workflow, { model, store }).invoke(
      { message: "Why did it stop?" },
      { configurable: { thread_id: "t" } },
    );
    expect(done).toMatchObject({ cause: "the disk is full", execution: { status: "completed" } });
    const returned = (await store.events("t")).filter(({ kind }) => kind === "returned");
    const [log, found, read] = returned.map(({ data }) => (data.result as CallResult).value);
    expect(log).toMatchObject({ artifact: id, bytes: LOG.length, lines: COUNT });
    expect((log as Preview).preview.length).toBeLessThan(2100);
    expect(found).toContain(`1 place\nL${FOUND}: ERROR: the disk is full`);
    expect(read).toContain(`lines ${FOUND}–${FOUND + 1} of`);
    expect((await store.artifact("t", id))?.text).toBe(LOG);
    // What was read and found was not set aside itself.
    expect(await store.artifacts("t")).toMatchObject([{ id, tool: "readLog", bytes: LOG.length }]);
    for (const prompt of model.prompts) expect(prompt.length).toBeLessThan(20_000);
  });
});
