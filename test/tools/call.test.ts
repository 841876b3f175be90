import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { reconcileCall, runCall } from "../../src/tools/call.ts";
import { ToolError } from "../../src/tools/tool-error.ts";
import { defineTool, type ToolDefinition } from "../../src/workflow/tool.ts";
import { callContext, run } from "../support/calls.ts";

const parameters = z.object({});
type Definition = ToolDefinition<typeof parameters>;
const declare = (body: Definition["run"], rest: Partial<Definition> = {}) =>
  defineTool({ description: "works", effect: "read", parameters, run: body, ...rest });

/** A body that throws the given errors one after the other, and then returns. */
function failing(...errors: readonly unknown[]) {
  const left = [...errors];
  return () => {
    if (left.length > 0) throw left.shift();
    return "done";
  };
}

const coded = (code: string) => Object.assign(new Error("refused"), { code });

describe("what a result says about an error", () => {
  test.each<readonly [string, unknown, object]>([
    [
      "an error for the model",
      new ToolError("no such file", { type: "NOT_FOUND", hint: "list the directory first" }),
      { errorType: "NOT_FOUND", error: "no such file", hint: "list the directory first" },
    ],
    ["a code of the system", coded("ENOENT"), { errorType: "ENOENT", error: "refused" }],
    ["a code that is a number", Object.assign(new Error("no"), { code: 7 }), { errorType: "Error", error: "no" }],
    ["a name", new TypeError("is no number"), { errorType: "TypeError", error: "is no number" }],
    ["a message that is empty", new RangeError(""), { errorType: "RangeError", error: "no reason was given" }],
    ["no error at all", "broken", { error: "broken" }],
    ["an object without a text", Object.create(null), { error: "[Object: null prototype] {}" }],
    ["nothing", undefined, { error: "undefined" }],
  ])("%s", async (_name, error, told) => {
    expect(await run(declare(failing(error)))).toEqual({ id: "1.0", tool: "work", status: "error", ...told });
  });

  test("secrets are taken out of all of it, and what is long is cut", async () => {
    const key = `sk-${"a".repeat(40)}`;
    const error = new ToolError(`${key} ${"x".repeat(5000)}`, { type: key, hint: `not ${key}` });
    const result = await run(declare(failing(error)));
    expect(JSON.stringify(result)).not.toContain(key);
    expect(result.error?.length).toBeLessThan(2100);
    expect(result.hint).toBe("not [redacted]");
  });

  test("an object whose own parts throw is told too", async () => {
    const hostile = Object.defineProperty(new Error("x"), "message", {
      get: () => {
        throw new Error("gotcha");
      },
    });
    expect(await run(declare(failing(hostile)))).toMatchObject({
      status: "error",
      error: "what it threw cannot be shown",
    });
  });

  test("an error that is a promise of another kind, or a rejected one, is told the same way", async () => {
    const body = async () => {
      throw coded("ECONNRESET");
    };
    expect(await run(declare(body))).toMatchObject({ status: "error", errorType: "ECONNRESET" });
  });
});

describe("retry", () => {
  test("a body is started once where nothing else is declared", async () => {
    expect(await run(declare(failing(coded("EAGAIN"))))).not.toHaveProperty("tries");
  });

  test.each<readonly [string, unknown, NonNullable<Definition["retry"]>["on"]]>([
    ["a code", coded("EAGAIN"), ["EAGAIN"]],
    ["a name", new RangeError("no"), ["RangeError"]],
    ["a kind", new ToolError("busy", { type: "BUSY" }), ["BUSY"]],
    ["a function", new Error("try later"), (error) => String(error).includes("later")],
    ["what the error itself says", new ToolError("busy", { type: "BUSY", retryable: true }), []],
  ])("is tried again by %s", async (_name, error, on) => {
    const tool = declare(failing(error, error), { retry: { tries: 3, on, delayMs: 1 } });
    expect(await run(tool)).toEqual({ id: "1.0", tool: "work", status: "ok", value: "done", tries: 3 });
  });

  test.each<readonly [string, unknown, NonNullable<Definition["retry"]>["on"]]>([
    ["another code", coded("EACCES"), ["EAGAIN"]],
    ["a thrown text", "EAGAIN", ["EAGAIN"]],
    ["a function that says no", new Error("no"), () => false],
    ["a function that says nothing clear", new Error("no"), (() => "yes") as never],
    [
      "a function that throws",
      new Error("no"),
      () => {
        throw new Error("oops");
      },
    ],
    ["an error that says so itself", new ToolError("no", { type: "BUSY", retryable: false }), ["BUSY"]],
  ])("is not tried again by %s", async (_name, error, on) => {
    const result = await run(declare(failing(error), { retry: { tries: 3, on, delayMs: 1 } }));
    expect(result.status).toBe("error");
    expect(result).not.toHaveProperty("tries");
  });

  test("ends after the last try with the last error and their number", async () => {
    const tool = declare(failing(coded("EAGAIN"), coded("EAGAIN"), new ToolError("gone", { type: "EAGAIN" })), {
      retry: { tries: 3, on: ["EAGAIN"], delayMs: 1 },
    });
    expect(await run(tool)).toMatchObject({ status: "error", error: "gone", tries: 3 });
  });

  test("each try has the same key and arguments of its own", async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      description: "works",
      effect: "read",
      parameters: z.object({ list: z.array(z.number()) }),
      retry: { tries: 2, on: ["Error"], delayMs: 1 },
      run: ({ list }, { idempotencyKey }) => {
        seen.push([idempotencyKey, [...list]]);
        list.push(99);
        if (seen.length === 1) throw new Error("first");
        return list;
      },
    });
    await run(tool, { list: [1] });
    expect(seen).toEqual([
      ["t/1.0/abcdef", [1]],
      ["t/1.0/abcdef", [1]],
    ]);
  });

  test("a wait that does not fit into the time limit ends it with the error", async () => {
    let starts = 0;
    const body = () => {
      starts += 1;
      throw coded("EAGAIN");
    };
    const delayMs = Number.MAX_SAFE_INTEGER;
    const tool = declare(body, { timeoutMs: 1000, retry: { tries: 9, on: ["EAGAIN"], delayMs } });
    expect(await run(tool)).toMatchObject({ status: "error", errorType: "EAGAIN" });
    expect(starts).toBe(1);
  });

  test("all tries share one time limit, and a timeout is not tried again", async () => {
    let starts = 0;
    const body = async () => {
      starts += 1;
      if (starts === 1) throw coded("EAGAIN");
      await new Promise(() => undefined);
    };
    const retry = { tries: 9, on: () => true, delayMs: 0 };
    const result = await run(declare(body, { timeoutMs: 30, retry }));
    expect(result).toMatchObject({ status: "timeout", errorType: "TIMEOUT", tries: 2 });
    expect(starts).toBe(2);
  });

  test("a wait ends at once when the run is cancelled, and no further try begins", async () => {
    const controller = new AbortController();
    let starts = 0;
    const body = () => {
      starts += 1;
      setImmediate(() => controller.abort());
      throw coded("EAGAIN");
    };
    // Without the abort it would wait for days; half of a jittered wait as short as this test is no danger.
    const retry = { tries: 2, on: ["EAGAIN"], delayMs: 1e9 };
    const result = await run(declare(body, { timeoutMs: 1e10, retry }), {}, controller.signal);
    expect(result).toMatchObject({ status: "error", errorType: "EAGAIN" });
    expect(starts).toBe(1);
  });
});

describe("the context", () => {
  test("has the state and the artifacts, and a copy of it keeps them", async () => {
    const tool = declare((_args, context) => {
      const { artifacts, state, signal } = { ...context };
      return [typeof artifacts.read, state, signal instanceof AbortSignal];
    });
    const result = await runCall("1.0", { tool: "work", args: {} }, tool, callContext({ note: "x" }), undefined);
    expect(result.value).toEqual(["function", { note: "x" }, true]);
  });

  test("its signal fires at the time limit", async () => {
    let seen: AbortSignal | undefined;
    const tool = declare(
      async (_args, { signal }) => {
        seen = signal;
        await sleep(1e6, undefined, { signal });
      },
      { timeoutMs: 20 },
    );
    expect(await run(tool)).toMatchObject({ status: "timeout" });
    expect(seen?.aborted).toBe(true);
  });
});

describe("what a reconcile has found out", () => {
  const reconciled = (reconcile: unknown, rest: Partial<Definition> = {}) =>
    reconcileCall(
      "1.0",
      { tool: "work", args: {} },
      declare(() => null, { ...rest, reconcile } as never),
      callContext(),
    );
  const happened = (value: unknown) => ({
    kind: "happened",
    result: { id: "1.0", tool: "work", status: "ok", value },
  });
  const unknown = (why: unknown) => ({ kind: "unknown", why });

  test("one that hangs knows nothing", async () => {
    const hanging = () => new Promise(() => undefined);
    expect(await reconciled(hanging, { timeoutMs: 20 })).toEqual(unknown("did not end within 20 ms"));
  });

  test("one that throws knows nothing; of sensitive data, only the kind of error is told", async () => {
    const throwing = () => {
      throw new ToolError("Ada's account is closed", { type: "CLOSED" });
    };
    expect(await reconciled(throwing)).toEqual(unknown("threw: Ada's account is closed"));
    expect(await reconciled(throwing, { sensitive: "person" })).toEqual(unknown("threw CLOSED"));
  });

  test.each([
    ["a clear yes", { happened: true, value: 5 }, happened(5)],
    ["a yes whose value is nothing", { happened: true, value: undefined }, happened(null)],
    ["a clear no", { happened: false }, { kind: "did not happen" }],
    ["a no with an empty value", { happened: false, value: undefined }, { kind: "did not happen" }],
    ["that it cannot know", null, unknown(null)],
    ["nothing", undefined, unknown(null)],
    ["a yes without its value", { happened: true }, unknown(expect.stringMatching(/: value is missing$/))],
    [
      "a yes with its value elsewhere",
      { happened: true, result: { receipt: "r-7" } },
      unknown(expect.stringMatching(/: value is missing, it has "result"$/)),
    ],
    ["more than a yes", { happened: true, value: 5, at: 1 }, unknown(expect.stringContaining('it has "at"'))],
    ["more than a no", { happened: false, found: 3 }, unknown(expect.stringContaining('it has "found"'))],
    ["a no with a value", { happened: false, value: 5 }, unknown(expect.stringContaining("did not happen"))],
    ["an object that does not say it", { id: "payment-7" }, unknown(expect.stringContaining("neither true nor false"))],
    ["a slip in the name", { happend: true }, unknown(expect.stringContaining("neither true nor false"))],
    ["a word for yes", { happened: "yes", value: 5 }, unknown(expect.stringContaining("neither true nor false"))],
    ["a word", "sent", unknown(expect.stringContaining("no plain object"))],
    ["yes without an object", true, unknown(expect.stringContaining("no plain object"))],
  ])("%s", async (_what, answer, found) => {
    expect(await reconciled(() => answer)).toEqual(found);
  });

  test("a yes without its value is a compile error; one way to write yes and no is none", () => {
    const paid = (receipt: string | null) => ({ happened: receipt !== null, value: receipt ?? undefined });
    declare(() => null, { reconcile: () => paid("r-7") });
    // @ts-expect-error -- value is missing
    declare(() => null, { reconcile: () => ({ happened: true }) });
    // @ts-expect-error -- value is missing
    declare(() => null, { reconcile: () => ({ happened: true, result: "r-7" }) });
  });
});
