import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution, type Call, type CallResult, type Execution, type Pending } from "../../src/state/execution.ts";
import { emptyState, field, type State } from "../../src/state/fields.ts";
import { anyWorkflow, defineWorkflow } from "../../src/workflow/define.ts";
import { isFromOutside, takeIn } from "../../src/workflow/take-in.ts";
import { defineTool, type ToolDefinition } from "../../src/workflow/tool.ts";
import { usedNow } from "../../src/workflow/tool-use.ts";

type CallsPending = Extract<Pending, { kind: "calls" }>;

const parameters = z.object({});
const tool = (rest: Partial<ToolDefinition<typeof parameters>> = {}) =>
  defineTool({ description: "works", effect: "read", parameters, run: () => null, ...rest });
const valueOf = ({ status, value }: CallResult) => (status === "ok" ? String(value) : status);

const workflow = anyWorkflow(
  defineWorkflow({
    name: "keeping",
    version: 1,
    state: {
      facts: field(z.array(z.string())).appendOnly(),
      count: field(z.number().max(2)).runtimeOnly(),
      big: field(z.string()).maxBytes(100_000),
    },
    tools: {
      // What the tool keeps comes before what the workflow keeps of it.
      find: tool({ onResult: (result) => ({ facts: [`tool: ${valueOf(result)}`] }) }),
      count: tool({ effect: "none" }),
      throws: tool({ trusted: true }),
      wrong: tool({ effect: "write" }),
      big: tool(),
    },
    onResult: {
      find: (result, { facts }) => ({ facts: [`workflow after ${facts?.length}: ${valueOf(result)}`] }),
      count: (_result, { count }) => ({ count: (count ?? 0) + 1 }),
      throws: () => {
        throw new Error("its keeper is broken");
      },
      wrong: () => "no object" as never,
      big: ({ value }) => ({ big: "x".repeat(Number(value)) }),
    },
    initial: "work",
    steps: {
      work: { tools: ["find", "count", "throws", "wrong", "big"], writes: ["big"], to: ["done"] },
      done: { final: true },
    },
  }),
);

const ok = (name: string, value: unknown = null): CallResult => ({ id: "1.0", tool: name, status: "ok", value });
const failed = (name: string): CallResult => ({ id: "1.1", tool: name, status: "error", error: "no" });

function take(results: readonly CallResult[], execution: Partial<Execution> = {}, state: State = {}) {
  const pending: CallsPending = {
    kind: "calls",
    decision: 1,
    calls: results.map((result): Call => ({ tool: result.tool, args: {} })),
    patch: null,
    clear: null,
    next: null,
  };
  const snapshot = {
    execution: { ...newExecution(workflow), ...execution },
    state: { ...emptyState(workflow.state), ...state },
  };
  return takeIn(workflow, snapshot, pending, results);
}

describe("what code keeps of results", () => {
  test("of the tool and of the workflow, each after what was kept before", () => {
    const taken = take([ok("find", "a"), ok("find", "b")]);
    expect(taken.changes).toEqual({
      facts: ["tool: a", "workflow after 1: a", "tool: b", "workflow after 3: b"],
    });
    expect(taken).toMatchObject({ state: taken.changes, notes: [] });
  });

  test("whatever became of the other calls; a failed one is told to its keeper too", () => {
    expect(take([failed("big"), ok("find", "a"), failed("find")]).changes).toMatchObject({
      facts: ["tool: a", "workflow after 1: a", "tool: error", "workflow after 3: error"],
    });
  });

  test("what a keeper may write is more than what the model may", () => {
    expect(take([ok("count")]).changes).toEqual({ count: 1 });
  });

  test("a patch that is refused gives a note, and loses nothing else", () => {
    const taken = take([ok("count"), ok("find", "a"), ok("count")], {}, { count: 1 });
    expect(taken.changes).toMatchObject({ count: 2, facts: ["tool: a", "workflow after 1: a"] });
    expect(taken.notes).toEqual([expect.stringMatching(/^what code keeps of 1\.0 was not kept: .*count/)]);
  });

  test("one that throws gives a note, and loses nothing else", () => {
    const taken = take([ok("throws"), ok("find", "a")]);
    expect(taken.notes).toEqual(["what code keeps of 1.0 was not kept: it threw: its keeper is broken"]);
    expect(taken.changes).toHaveProperty("facts");
  });

  test("one that gives no object gives a note", () => {
    expect(take([ok("wrong")]).notes).toEqual(["what code keeps of 1.0 was not kept: it is no object"]);
  });

  test("a state that would grow too large gives a note with the field's name", () => {
    const taken = take([ok("big", 40_000), ok("find", "a")]);
    expect(taken.notes).toEqual([
      expect.stringMatching(/was not kept: the state would have \d+ bytes, at most 32768 are allowed; "big" has 40002/),
    ]);
    expect(taken.changes).toEqual({ facts: ["tool: a", "workflow after 1: a"] });
  });

  test("a keeper can change neither the result nor the state that it is shown", () => {
    const hostile = anyWorkflow(
      defineWorkflow({
        name: "hostile",
        version: 1,
        state: { facts: field(z.array(z.string())) },
        tools: {
          find: tool({
            onResult: (result, state) => {
              expect(Object.isFrozen(result) && Object.isFrozen(state)).toBe(true);
              return { facts: ["kept"] };
            },
          }),
        },
        initial: "work",
        steps: { work: { tools: ["find"], writes: ["facts"], to: ["done"] }, done: { final: true } },
      }),
    );
    const pending: CallsPending = {
      kind: "calls",
      decision: 1,
      calls: [{ tool: "find", args: {} }],
      patch: null,
      clear: null,
      next: null,
    };
    const snapshot = { execution: newExecution(hostile), state: { facts: null } };
    expect(takeIn(hostile, snapshot, pending, [ok("find", { deep: ["x"] })])).toMatchObject({
      notes: [],
      changes: { facts: ["kept"] },
    });
  });
});

describe("text from outside", () => {
  test.each<readonly [string, CallResult, boolean]>([
    ["a result that anybody may have written", ok("find"), true],
    ["one of a tool that writes", ok("wrong"), true],
    ["an error, whose text is from outside too", failed("find"), true],
    ["a timeout", { ...failed("find"), status: "timeout" }, true],
    ["one of a tool that is trusted", ok("throws"), false],
    ["one of a tool that only computes", ok("count"), false],
    ["a call that was refused", { ...failed("find"), status: "refused" }, false],
    ["a call that was cancelled", { ...failed("find"), status: "cancelled" }, false],
    ["one of a tool that is gone", ok("gone"), true],
  ])("%s", (_name, result, isOutside) => {
    expect(isFromOutside(workflow, result)).toBe(isOutside);
    expect(take([result]).record.untrusted).toBe(isOutside ? true : undefined);
  });

  test("results of our own change nothing about it, so that once taken in it stays", () => {
    expect(take([ok("count")], { untrusted: true }).record).not.toHaveProperty("untrusted");
  });
});

describe("repetition", () => {
  const uses = (...results: readonly CallResult[]) => {
    let use: ReturnType<typeof usedNow> = {};
    for (const result of results) use = usedNow(use, [{ tool: result.tool, args: { q: 1 } }], [result]);
    return use.find;
  };

  test("counts the calls that brought nothing new, errors among them", () => {
    expect(uses(ok("find", "a"))).toMatchObject({ calls: 1, stale: 0 });
    expect(uses(ok("find", "a"), ok("find", "a"), ok("find", "a"))).toMatchObject({ calls: 3, stale: 2 });
    expect(uses(failed("find"), failed("find"))).toMatchObject({ stale: 1, failed: ['{"q":1}: no', '{"q":1}: no'] });
    expect(uses(ok("find", "a"), ok("find", "a"), ok("find", "b"))).toMatchObject({ stale: 0 });
  });

  test("going back and forth between two results brings nothing new either", () => {
    expect(uses(...["a", "b", "a", "b", "a"].map((value) => ok("find", value)))).toMatchObject({ calls: 5, stale: 3 });
  });

  test("two large results that look the same in short are told apart by the whole", () => {
    const large = (digest: string): CallResult => ({ ...ok("find", { preview: "x" }), artifact: `1.0-${digest}` });
    expect(uses(large("aaaaaaaa"), large("bbbbbbbb"))).toMatchObject({ stale: 0 });
    expect(uses(large("aaaaaaaa"), large("aaaaaaaa"))).toMatchObject({ stale: 1 });
  });

  test("what did not run does not count", () => {
    expect(uses({ ...failed("find"), status: "refused" }, { ...failed("find"), status: "cancelled" })).toBeUndefined();
  });

  test("what is remembered of it stays small", () => {
    const use = uses(
      ...Array.from({ length: 100 }, (_, index) => ({ ...failed("find"), error: `${index}`.repeat(99) })),
    );
    expect(JSON.stringify(use).length).toBeLessThan(1000);
  });

  test("is pointed out from the third stale call on, by tool", () => {
    const use = (stale: number) => ({ find: { calls: 9, stale, seen: [], failed: [] } });
    const again = usedNow({}, [{ tool: "find", args: {} }], [ok("find", "a")]).find?.seen ?? [];
    const noted = (stale: number) =>
      take([ok("find", "a")], { toolUse: { find: { ...use(stale).find, seen: again } } }).notes;
    expect(noted(1)).toEqual([]);
    expect(noted(2)).toEqual(["3 calls of find in a row brought nothing new: try something else, or conclude"]);
  });
});
