import {
  defineTool,
  defineWorkflow,
  field,
  isWorkflowError,
  planField,
  renderView,
  type Policy,
  type Role,
} from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { emptyState } from "../../src/state/fields.ts";
import { renderPrefix } from "../../src/view/prefix.ts";
import { stepLines } from "../../src/view/state-block.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const ROLE: Role = {
  identity: "You are IDENTITY.",
  advice: "ADVICE one.\nADVICE two.",
  style: "STYLE.",
  safety: "SAFETY.",
};
const look = defineTool({ description: "Looks.", effect: "read", parameters: z.object({}), run: () => "seen" });

const clerk = (role: Role | undefined) =>
  defineWorkflow({
    name: "clerk",
    version: 1,
    instructions: "INSTRUCTIONS.",
    ...(role ? { role } : {}),
    state: { name: field(z.string()), answer: field(z.string()), search: planField() },
    tools: { look },
    initial: "asking",
    steps: {
      asking: { writes: ["name"], to: ["asking", "looking"] },
      looking: { tools: ["look"], react: { into: "search" }, to: ["filing"] },
      filing: { to: ["talking"] },
      talking: { writesAnswer: true, to: ["working"] },
      working: { run: () => ({ next: "writing" }), to: ["writing"] },
      writing: { writes: ["answer"], to: ["done"] },
      done: { final: true },
    },
  });
const workflow = anyWorkflow(clerk(ROLE));

function promptAt(step: string, policy: Policy) {
  const execution = { ...newExecution(workflow), step };
  const snapshot = { execution, state: emptyState(workflow.state) };
  return renderView({ workflow, snapshot, observation: null, turns: [], options: { policy, rawMessages: 0 } });
}

describe("a role", () => {
  test("stands before everything else with identity and safety, the same bytes in every step", () => {
    const prefix = renderPrefix(workflow);
    expect(prefix.startsWith("You are IDENTITY.\n\nSafety:\nSAFETY.\n\nYou carry out one step")).toBe(true);
    expect(prefix.indexOf("SAFETY.")).toBeLessThan(prefix.indexOf("INSTRUCTIONS."));
    expect(prefix).not.toMatch(/ADVICE|STYLE/);
    const first = Object.keys(workflow.steps).map((step) => promptAt(step, "state").messages[0]?.content);
    expect(new Set(first)).toEqual(new Set([prefix]));
  });

  test.each([
    ["asking", "more than one way on", ["advice"]],
    ["looking", "tools", ["advice"]],
    ["filing", "one way on", []],
    ["talking", "a step that says so", ["style"]],
    ["writing", "a final step next", ["style"]],
    ["working", "no model", []],
    ["done", "no model", []],
  ])("shows in %s (%s): %j", (step, _why, parts) => {
    for (const policy of ["state", "adaptive"] as const) {
      const prompt = promptAt(step, policy)
        .messages.map(({ content }) => content)
        .join("\n");
      expect(prompt.includes("working advice:\nADVICE one.\nADVICE two."), policy).toBe(parts.includes("advice"));
      expect(prompt.includes("output style: STYLE."), policy).toBe(parts.includes("style"));
    }
  });

  test("is told once in a conversation that has several steps", async () => {
    const model = scriptedModel([
      { patch: { name: "Ada" }, next: "looking" },
      { next: "filing" },
      { next: "talking" },
      { next: "working" },
      { patch: { answer: "ok" }, next: "done" },
    ]);
    await runWorkflow(clerk(ROLE), { model, view: { policy: "adaptive" } });
    const counts = model.prompts.map((prompt) => [
      prompt.split("ADVICE one").length - 1,
      prompt.split("STYLE.").length - 1,
    ]);
    for (const [advice, style] of counts) expect(Math.max(advice ?? 0, style ?? 0)).toBeLessThanOrEqual(1);
    expect(stepLines(workflow, "looking", { steps: ["asking"] })).toContain("working advice: as above");
    expect(stepLines(workflow, "looking", { steps: ["filing"] }).join("\n")).toContain("ADVICE one.");
  });

  test("changes nothing where there is none", () => {
    const bare = anyWorkflow(clerk(undefined));
    expect(renderPrefix(bare).startsWith("You carry out one step")).toBe(true);
    expect(stepLines(bare, "asking").join("\n")).not.toMatch(/advice|style/);
  });

  test("is a copy that nobody can change later", () => {
    const given = { ...ROLE };
    const made = clerk(given);
    given.identity = "You are somebody else.";
    expect(made.role?.identity).toBe(ROLE.identity);
    expect(Object.isFrozen(made.role)).toBe(true);
  });
});

describe("a role in a definition", () => {
  function faults(role: unknown) {
    try {
      clerk(role as Role);
    } catch (error) {
      if (!isWorkflowError(error, "INVALID_WORKFLOW")) throw error;
      return (error.details.faults as { path: string; code: string }[]).map(({ path, code }) => `${path} ${code}`);
    }
    return [];
  }

  test.each([
    ["no identity", { safety: "x" }, ["role.identity INVALID_ROLE"]],
    ["an empty identity", { identity: " " }, ["role.identity INVALID_ROLE"]],
    ["another part", { identity: "x", hobbies: "chess" }, ["role.hobbies INVALID_ROLE"]],
    ["no text", { identity: "x", style: 3 }, ["role.style INVALID_ROLE"]],
    ["too much", { identity: "x".repeat(16_001) }, ["role INVALID_ROLE"]],
  ])("with %s is a fault", (_what, role, expected) => {
    expect(faults(role)).toEqual(expected);
  });

  test("writesAnswer belongs to a step in which a model decides", () => {
    const define = () =>
      defineWorkflow({
        name: "w",
        version: 1,
        state: {},
        initial: "a",
        steps: { a: { run: () => ({ next: "b" }), writesAnswer: true, to: ["b"] }, b: { final: true } },
      });
    expect(define).toThrow("steps.a.writesAnswer: is about what a model writes, and none does here (INVALID_STEP)");
  });
});
