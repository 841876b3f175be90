import { compile, defineWorkflow, field, sqliteStore, type OutputGuard } from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const state = { report: field(z.string()), note: field(z.string()) };
type Guard = OutputGuard<typeof state, string>;

function reporting(...guards: Guard[]) {
  return defineWorkflow({
    name: "reporting",
    version: 1,
    state,
    initial: "writing",
    steps: { writing: { writes: ["report", "note"], to: ["done"], guards }, done: { final: true } },
  });
}

const needsEvidence: Guard = ({ patch }) =>
  /L\d+/.test(patch.report ?? "") ? null : { sendBack: "say which line shows it, as L12" };
const marks: Guard = ({ patch, reply }) => ({ mend: { patch: { report: `${patch.report}?` }, reply: `${reply}!` } });

const plain = { patch: { report: "it failed" }, reply: "done", next: "done" };
const cited = { patch: { report: "it failed, L12" }, reply: "done", next: "done" };

describe("an output guard", () => {
  test("lets a decision pass", async () => {
    const run = await runWorkflow(reporting(needsEvidence), { model: scriptedModel([cited]), message: "go" });
    expect(run.refused).toEqual([]);
    expect(run.state.report).toBe("it failed, L12");
  });

  test("sends a decision back once, with its reason", async () => {
    const run = await runWorkflow(reporting(needsEvidence), { model: scriptedModel([plain, cited]), message: "go" });
    expect(run.refused).toMatchObject([{ code: "OUTPUT_GUARD", reason: "say which line shows it, as L12" }]);
    expect(run.state.report).toBe("it failed, L12");
  });

  test("what it doubts a second time passes, and the log tells the doubt", async () => {
    const store = sqliteStore(":memory:");
    const graph = compile(reporting(needsEvidence), { model: scriptedModel([plain, plain]), store });
    const result = await graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
    expect(result).toMatchObject({ report: "it failed", execution: { status: "completed", refused: 1 } });
    const doubts = (await store.events("t")).filter(({ kind }) => kind === "doubted");
    expect(doubts).toMatchObject([{ data: { step: "writing", reason: "say which line shows it, as L12" } }]);
  });

  test("cannot send back what the model is not asked to mend any more", async () => {
    const doubting =
      (doubt: string): Guard =>
      () => ({ sendBack: doubt });
    const store = sqliteStore(":memory:");
    const graph = compile(reporting(doubting("one"), doubting("two"), doubting("three")), {
      model: scriptedModel([cited, cited, cited]),
      store,
    });
    const result = await graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
    expect(result.execution).toMatchObject({ status: "completed", refused: 2 });
    const doubts = (await store.events("t")).filter(({ kind }) => kind === "doubted");
    expect(doubts.map(({ data }) => data.reason)).toEqual(["one", "two", "three"]);
    const mends: Guard = (output, known, isLast) => (isLast ? marks(output, known, isLast) : null);
    const model = scriptedModel(["nothing", "nothing", cited]);
    const mended = await runWorkflow(reporting(mends), { model, message: "go" });
    expect(mended.state.report).toBe("it failed, L12?");
  });

  test("is asked before anything of a reply streams", async () => {
    const holds: Guard = ({ reply }) => (reply?.includes("plan") ? { mend: { reply: "held back" } } : null);
    const graph = compile(reporting(holds), {
      model: scriptedModel([{ ...cited, reply: "the plan" }]),
      store: sqliteStore(":memory:"),
    });
    const thread = { configurable: { thread_id: "t" } };
    const told: unknown[] = [];
    const stream = await graph.stream({ message: "go" }, { ...thread, streamMode: ["custom", "messages"] });
    for await (const piece of stream) told.push(piece);
    expect(JSON.stringify(told)).not.toContain("plan");
    expect(told).toContainEqual(["custom", { type: "reply", delta: "held back" }]);
  });

  test("may send back first and mend then", async () => {
    const guard: Guard = (output, known, wasSentBack) =>
      wasSentBack ? marks(output, known, wasSentBack) : needsEvidence(output, known, wasSentBack);
    const run = await runWorkflow(reporting(guard), { model: scriptedModel([plain, plain]), message: "go" });
    expect(run.state.report).toBe("it failed?");
  });

  test("mends what is checked like anything else", async () => {
    const run = await runWorkflow(reporting(marks), { model: scriptedModel([cited]), message: "go" });
    expect(run.state.report).toBe("it failed, L12?");
    expect(run.events.findLast(({ kind }) => kind === "decision")?.data.decision).toMatchObject({ reply: "done!" });
    const illegal: Guard = () => ({ mend: { patch: { report: 7 as never } } });
    const refused = await runWorkflow(reporting(illegal), {
      model: scriptedModel([cited, cited, cited]),
      message: "go",
    });
    expect(refused.refused[0]).toMatchObject({ code: "INVALID_FIELD", field: "report" });
  });

  test("several guards are asked in order, each sees what the one before has mended", async () => {
    const seen: unknown[] = [];
    const looks: Guard = ({ patch }) => void seen.push(patch.report);
    await runWorkflow(reporting(marks, looks), { model: scriptedModel([cited]), message: "go" });
    expect(seen).toEqual(["it failed, L12?"]);
  });

  test.each([
    ["throws", () => JSON.parse("{") as never, /a guard of step writing threw/],
    ["gives no clear answer", () => true as never, /no clear answer/],
  ])("one that %s stops the step, not the task", async (_, guard, message) => {
    const graph = compile(reporting(guard), { model: scriptedModel([cited]) });
    const run = graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
    await expect(run).rejects.toMatchObject({ code: "STEP_FAILED", message: expect.stringMatching(message) });
  });

  test("belongs to a step in which a model decides", () => {
    const define = () =>
      defineWorkflow({
        name: "code",
        version: 1,
        state: { note: field(z.string()) },
        initial: "writing",
        steps: {
          writing: { run: () => ({ next: "done" }), guards: [() => null], to: ["done"] },
          done: { final: true },
        },
      });
    expect(define).toThrow(/no model decides here/);
  });
});
