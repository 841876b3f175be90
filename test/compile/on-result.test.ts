import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, defineTool, defineWorkflow, field, sqliteStore } from "statecard";
import { onFaultPoint, scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { readExport, writeExport } from "../../src/storage/export/folder.ts";
import { verifyExport } from "../../src/storage/export/verify.ts";
import { onBothDialects } from "../support/stores.ts";

const folder = mkdtempSync(join(tmpdir(), "statecard-kept-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => onFaultPoint(null));

const config = { configurable: { thread_id: "t" } };

/** Reads files; the tool keeps which ones, the workflow keeps which ones were not there. */
function reading() {
  const read = defineTool({
    description: "Reads a file.",
    parameters: z.object({ path: z.string() }),
    effect: "read",
    onResult: ({ status, value }) => (status === "ok" ? { files: [(value as { path: string }).path] } : {}),
    run: ({ path }) => {
      if (path.startsWith("missing")) throw new Error(`there is no ${path}`);
      return { path, text: path === "large" ? "x".repeat(30_000) : "text" };
    },
  });
  return defineWorkflow({
    name: "reading",
    version: 1,
    state: {
      files: field(z.array(z.string())).appendOnly().runtimeOnly(),
      missing: field(z.array(z.string().max(20))).appendOnly(),
      total: field(z.number()).runtimeOnly(),
      note: field(z.string()).maxBytes(100_000),
      more: field(z.string()).maxBytes(100_000),
    },
    tools: { read },
    onResult: {
      read: ({ status, error }, { total }) => {
        if (error?.includes("missing-broken")) throw new Error("the keeper broke");
        return { total: (total ?? 0) + 1, ...(status === "ok" ? {} : { missing: [`${error}`.slice(12)] }) };
      },
    },
    initial: "working",
    steps: {
      working: { tools: ["read"], writes: ["note", "more"], to: ["working", "coding", "done"] },
      coding: { to: ["done"], run: () => ({ patch: { note: "y".repeat(40_000) }, next: "done" }) },
      done: { final: true },
    },
  });
}

const read = (path: string) => ({ tool: "read", args: { path } });

async function run(...script: readonly ScriptedAnswer[]) {
  const model = scriptedModel(script);
  const store = sqliteStore(":memory:");
  const result = await compile(reading(), { model, store }).invoke({ message: "go" }, config);
  model.assertConsumed();
  return { result, prompts: model.prompts, store };
}

describe("what code keeps of results", () => {
  test("is kept by the tool and by the workflow, also where another call fails and the patch is dropped", async () => {
    const { result, prompts } = await run(
      { calls: [read("a"), read("missing-x"), read("b")], patch: { note: "dropped" }, next: "done" },
      { next: "done" },
    );
    expect(result).toMatchObject({ files: ["a", "b"], missing: ["missing-x"], total: 3, note: null });
    expect(prompts[1]).toMatch(/files: .*a, b/);
  });

  test("commits together with the model's own patch", async () => {
    const { result } = await run({ calls: [read("a")], patch: { note: "kept" }, next: "done" });
    expect(result).toMatchObject({ files: ["a"], total: 1, note: "kept", execution: { status: "completed" } });
  });

  test("one that is refused or throws gives a note, and loses neither results nor what others keep", async () => {
    const { result, prompts } = await run(
      { calls: [read(`missing-${"long".repeat(9)}`), read("missing-broken"), read("b")] },
      { next: "done" },
    );
    expect(result).toMatchObject({ files: ["b"], missing: null, total: 1, execution: { status: "completed" } });
    expect(prompts[1]).toMatch(/what code keeps of 1\.0 was not kept: .*missing/);
    expect(prompts[1]).toContain("what code keeps of 1.1 was not kept: it threw: the keeper broke");
    expect(prompts[1]).toContain("1.2 read ok");
  });

  test("of calls that were refused nothing of the tool is kept", async () => {
    const { result } = await run({ calls: [{ tool: "read", args: {} }] }, { next: "done" });
    expect(result).toMatchObject({ files: null, total: null });
  });

  test("is told by the log alone, what was added to a list too", async () => {
    const { store, result } = await run(
      { calls: [read("a"), read("missing-x")], patch: { note: "n" } },
      { calls: [read("b"), read("c")], patch: { note: "m" }, next: "done" },
    );
    const at = join(folder, "kept");
    writeExport(at, await store.exportTask("t"), undefined);
    rmSync(join(at, "state.json"));
    const { files, missing, total, note } = result;
    expect(verifyExport(readExport(at), undefined)).toMatchObject({
      from: "events.log",
      task: { state: { files, missing, total, note } },
    });
    expect(files).toEqual(["a", "b", "c"]);
  });

  onBothDialects((dialect) => {
    test.each(["after-result", "before-commit", "inside-put"] as const)(
      "is kept once, whatever was repeated after an end at %s",
      async (point) => {
        const thread = { configurable: { thread_id: `kept-${point}` } };
        const script = [{ calls: [read("a"), read("b")], patch: { note: "n" } }, { next: "done" }];
        let left = point === "inside-put" ? 4 : 1;
        onFaultPoint((reached) => {
          if (reached === point && --left === 0) throw new Error("killed");
        });
        const model = scriptedModel(script);
        const graph = () => compile(reading(), { model, store: dialect.open() });
        await expect(graph().invoke({ message: "go" }, thread)).rejects.toThrow("killed");
        onFaultPoint(null);
        expect(await graph().invoke(null, thread)).toMatchObject({
          files: ["a", "b"],
          total: 2,
          execution: { status: "completed", decisions: 2 },
        });
      },
    );
  });
});

describe("the state's budget", () => {
  const half = "x".repeat(20_000);

  test("a model's patch that would make the state too large is sent back with the field that is largest", async () => {
    const { result, prompts } = await run(
      { patch: { note: half }, next: "working" },
      { patch: { more: "z".repeat(15_000) }, next: "working" },
      { patch: { more: "short" }, next: "done" },
    );
    expect(result).toMatchObject({ more: "short", execution: { status: "completed", refused: 1 } });
    expect(prompts[2]).toMatch(/STATE_TOO_LARGE/);
    expect(prompts[2]).toMatch(/the state would have \d+ bytes, at most 32768 are allowed; "note" has 20002/);
  });

  test("a patch that fitted when it was decided, and no more with what code kept, is dropped; the results stay", async () => {
    const before = { files: null, missing: null, total: null, note: half, more: "" };
    const more = "z".repeat(32_768 - JSON.stringify(before).length);
    const { result, prompts } = await run(
      { patch: { note: half }, next: "working" },
      { calls: [read("a-long-path")], patch: { more }, next: "done" },
      { next: "done" },
    );
    expect(prompts[2]).toContain("the patch and the move were dropped: the state would have");
    expect(result).toMatchObject({ files: ["a-long-path"], more: null, execution: { refused: 0 } });
  });

  test("code that makes it too large fails with the field named, and the task stays", async () => {
    const { result } = await run({ next: "coding" });
    expect(result.execution).toMatchObject({
      status: "failed",
      step: "coding",
      lastError: { code: "STATE_TOO_LARGE", message: expect.stringContaining('"note" has 40002') },
    });
    expect(result.note).toBeNull();
  });
});
