import { describe, expect, test } from "vitest";
import { intercept } from "../../src/tools/intercept.ts";
import type { InterceptContext, Interceptor } from "../../src/workflow/tool.ts";

const context = { tool: "pay", taskId: "t", step: "work", state: { limit: 5, list: [1] } };
const call = { tool: "pay", args: { amount: 9, to: { name: "ada" } } };
const refuse = (reason: string) => () => ({ refuse: reason });
const ask = (tool: Interceptor | readonly Interceptor[] | undefined, workflow: readonly Interceptor[] = []) =>
  intercept({ intercept: workflow }, tool === undefined ? {} : { intercept: tool }, call, context);

describe("intercept", () => {
  test("nobody who checks means that nobody objects", () => {
    expect(ask(undefined)).toBeNull();
    expect(ask([() => null, () => undefined, () => {}])).toBeNull();
  });

  test("the tool's checks come first, then the workflow's; the first refusal decides", () => {
    expect(ask(refuse("tool"), [refuse("workflow")])).toBe("tool");
    expect(ask([() => null, refuse("second"), refuse("third")])).toBe("second");
    expect(ask(undefined, [refuse("workflow")])).toBe("workflow");
  });

  test("a check sees the arguments, the tool, the step and the state", () => {
    const check = (args: { amount: number }, seen: InterceptContext) =>
      args.amount > (seen.state.limit as number) ? { refuse: `${seen.tool} of ${args.amount} in ${seen.step}` } : null;
    expect(ask(check as Interceptor)).toBe("pay of 9 in work");
  });

  test.each<readonly [string, () => unknown, string]>([
    [
      "throws",
      () => {
        throw new Error("no table");
      },
      "its check failed: no table",
    ],
    ["promises an answer", async () => null, "its check failed: it gave no clear answer at once"],
    ["promises and fails", () => Promise.reject(new Error("later")), "its check failed"],
    ["says true", () => true, "its check failed"],
    ["says false", () => false, "its check failed"],
    ["gives a text", () => "no", "its check failed"],
    ["gives a list", () => [], "its check failed"],
    ["gives a refusal without a reason", () => ({ refuse: "" }), "it is not allowed"],
    ["gives a refusal that is no text", () => ({ refuse: true }), "its check failed"],
  ])("one that %s refuses", (_name, check, reason) => {
    expect(ask(check as Interceptor)).toContain(reason);
  });

  test("a check cannot change what will run or what the next one sees", () => {
    const meddle = (args: { amount: number; to: { name: string } }) => {
      args.to.name = "eve";
    };
    expect(ask(meddle as Interceptor)).toContain("its check failed");
    const meddleWithState = (_args: unknown, seen: InterceptContext) => {
      (seen.state.list as number[]).push(2);
    };
    expect(ask(meddleWithState as Interceptor)).toContain("its check failed");
    expect(call.args.to.name).toBe("ada");
    expect(context.state.list).toEqual([1]);
  });

  test("a reason is cut and has no secrets", () => {
    expect(ask(refuse(`sk-${"a".repeat(40)}`))).toBe("[redacted]");
    expect(ask(refuse("x".repeat(9000)))?.length).toBeLessThan(2100);
  });
});
