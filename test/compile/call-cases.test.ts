import { Command, INTERRUPT } from "@langchain/langgraph";
import type { AnyWorkflow, TaskStore } from "statecard";
import { onFaultPoint, scriptedModel, type FaultPoint, type ScriptedAnswer } from "statecard/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import { compileAny } from "../../src/compile/compile.ts";
import { onBothDialects } from "../support/stores.ts";
import { ref, work, Workshop } from "../support/workshop.ts";

// Faults that users of such systems reported, with several calls in one decision. Whoever answers has a
// store of its own on the same database, as another process would.

afterEach(() => onFaultPoint(null));

const isDear = ({ name }: { name: string }) => name.startsWith("dear");
const started = (shop: Workshop) => shop.log.filter((line) => line.startsWith("+")).toSorted();

onBothDialects((dialect) => {
  let tasks = 0;
  /** A task that other processes can run and answer. */
  function task(workflow: AnyWorkflow) {
    const config = { configurable: { thread_id: `t${++tasks}` } };
    const runIn = (store: TaskStore, input: unknown, script: readonly ScriptedAnswer[]) =>
      compileAny(workflow, { model: scriptedModel(script), store }).invoke(input as never, config);
    return {
      id: config.configurable.thread_id,
      run: (input: unknown, ...script: readonly ScriptedAnswer[]) => runIn(dialect.open(), input, script),
      say: (id: string, reply: unknown, ...script: readonly ScriptedAnswer[]) =>
        runIn(dialect.open(), new Command({ resume: { [id]: reply } }), script),
    };
  }
  const openIn = (result: object) =>
    ((result as { [INTERRUPT]?: { value: { requests: { id: string }[] } }[] })[INTERRUPT] ?? []).flatMap(({ value }) =>
      value.requests.map(({ id }) => id),
    );

  test("K2: an effect beside a call that waits for approval happens once", async () => {
    const shop = new Workshop({ approve: isDear });
    const { run, say } = task(shop.workflow);
    const paused = await run({ message: "go" }, { calls: [work("mail"), work("dear")], next: "done" });
    expect(openIn(paused)).toEqual(["a1.1.0"]);
    expect(started(shop)).toEqual(["+mail"]);
    // Looking again, as somebody does who opens the task, does nothing either.
    expect(openIn(await run(null))).toEqual(["a1.1.0"]);
    const ended = await say("a1.1.0", "approve");
    expect(ended.execution.status).toBe("completed");
    expect(started(shop)).toEqual(["+dear", "+mail"]);
  });

  test.each([
    ["a1.0.0", "a1.1.0"],
    ["a1.1.0", "a1.0.0"],
  ])(
    "K3: two calls that both need approval are answered alone, %s first, by different processes",
    async (one, other) => {
      const shop = new Workshop({ approve: isDear });
      const { run, say } = task(shop.workflow);
      const paused = await run({ message: "go" }, { calls: [work("dear a"), work("dear b")], next: "done" });
      expect(openIn(paused)).toEqual(["a1.0.0", "a1.1.0"]);
      expect(openIn(await say(one, "approve"))).toEqual([other]);
      expect(started(shop)).toHaveLength(1);
      const ended = await say(other, "approve");
      expect(ended.execution.status).toBe("completed");
      expect(started(shop)).toEqual(["+dear a", "+dear b"]);
    },
  );

  test("K4: of two calls one is approved and one rejected: one runs, and the model learns of both", async () => {
    const shop = new Workshop({ approve: isDear });
    const { run, say } = task(shop.workflow);
    await run({ message: "go" }, { calls: [work("dear a"), work("dear b")], next: "done" });
    await say("a1.0.0", "approve");
    let seen = "";
    const ended = await say("a1.1.0", { type: "reject", message: "not this week" }, (prompt: string) => {
      seen = prompt;
      return { next: "done" };
    });
    expect(ended.execution.status).toBe("completed");
    expect(started(shop)).toEqual(["+dear a"]);
    expect(seen).toContain("1.0 work ok");
    expect(seen).toContain("1.1 work refused: not this week");
  });

  test("K7: two calls of one tool that pause, with the same arguments, are told apart", async () => {
    const shop = new Workshop({ approve: isDear });
    const { run, say } = task(shop.workflow);
    const paused = await run({ message: "go" }, { calls: [work("dear"), work("dear")] });
    expect(openIn(paused)).toEqual(["a1.0.0", "a1.1.0"]);
    await say("a1.1.0", "reject");
    const ended = await say("a1.0.0", "approve", { next: "done" });
    expect(started(shop)).toEqual(["+dear"]);
    expect(ended.execution.toolUse?.work).toMatchObject({ calls: 1 });
    expect(ended.execution.status).toBe("completed");
  });

  test("K8: calls that pause are answered one by one while another runs; what has finished stays finished", async () => {
    const shop = new Workshop({ approve: isDear });
    const slow = shop.hold("slow");
    const { id, run, say } = task(shop.workflow);
    const calls = [work("dear a"), work("dear b"), work("dear c"), work("slow"), work("uses a", { uses: ref("c1") })];
    const running = run({ message: "go" }, { calls, next: "done" });
    await slow.begun;
    const look = dialect.open();
    await vi.waitFor(async () => expect(await look.requests(id, 1, 0)).toHaveLength(3), { timeout: 60_000 });
    for (const [request, entry] of [
      ["a1.1.0", "-dear b"],
      ["a1.0.0", "-uses a"],
    ] as const) {
      // The answer is kept, and whoever runs the task finds it.
      await expect(say(request, "approve")).rejects.toMatchObject({ code: "TASK_BUSY" });
      await shop.until(entry);
    }
    slow.release();
    const paused = await running;
    expect(openIn(paused)).toEqual(["a1.2.0"]);
    const ended = await say("a1.2.0", "approve");
    expect(ended.execution.status).toBe("completed");
    expect(started(shop)).toEqual(["+dear a", "+dear b", "+dear c", "+slow", "+uses a"]);
    expect(ended.execution.observation).toMatchObject({ results: calls.map(() => ({ status: "ok" })) });
  });

  describe("a plan whose process ends in between", () => {
    class Killed extends Error {}
    const isFile = dialect.place.length === 1;
    const points: readonly FaultPoint[] = ["before-intent", "after-result", "before-commit"];
    test.each(points.flatMap((point) => (isFile ? [1, 2, 3] : [2]).map((nth) => ({ point, nth }))))(
      "goes on without repeating what has finished: killed at $point ($nth)",
      async ({ point, nth }) => {
        const shop = new Workshop({ plan: true });
        shop.gives.set("a", { list: ["x", "y"], large: "z".repeat(20_000) });
        const { run } = task(shop.workflow);
        const calls = [
          work("a", { id: "a" }),
          work("b", { id: "b", uses: ref("a.list[1]") }),
          work("c", { uses: [ref("b.uses"), ref("a.large")] }),
        ];
        let left = nth;
        onFaultPoint((reached) => {
          if (reached === point && --left === 0) throw new Killed(point);
        });
        const conclusion = { patch: { note: "known" }, next: "done" };
        const script = [{ calls }, conclusion];
        const first = await run({ message: "go" }, ...script).catch((error: unknown) => {
          if (error instanceof Killed) return null;
          throw error;
        });
        onFaultPoint(null);
        const ended = first ?? (await run(null, conclusion));
        expect(ended).toMatchObject({ note: "known", execution: { status: "completed", decisions: 2 } });
        expect(started(shop)).toEqual(["+a", "+b", "+c"]);
        expect(shop.given.get("b")?.uses).toBe("y");
        expect(shop.given.get("c")?.uses).toEqual(["y", "z".repeat(20_000)]);
        expect(ended.plan).toMatchObject({
          met: true,
          concluded: true,
          calls: [{ id: "a" }, { id: "b" }, { id: "c3" }],
        });
      },
    );
  });
});
