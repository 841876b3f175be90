import { expect, test } from "vitest";
import { projectFolder, shareOneProcess, statecard } from "../support/cli.ts";

shareOneProcess();

/** Steps with models of their own elsewhere; the graph's model is on this machine. */
const GRAPH = `
import { compile, defineTool, defineWorkflow, field, openStore, planField } from "statecard";
import { scriptedModel } from "statecard/testing";
import { z } from "zod";
const at = (host) =>
  Object.assign(scriptedModel([]), { isLocal: false, model: "large", clientConfig: { baseURL: "https://" + host } });
const planning = defineWorkflow({
  name: "planning", version: 1, initial: "starting",
  tools: { look: defineTool({ description: "Looks.", effect: "read", parameters: z.object({}), run: () => 1 }) },
  state: { email: field(z.string()).sensitive("personal data"), plan: planField() },
  input: ["email"],
  steps: {
    starting: { to: ["writing"], run: () => ({ next: "writing" }) },
    writing: { tools: ["look"], model: at("steps.example"), plan: { into: "plan", planner: at("planner.example") }, to: ["done"] },
    done: { final: true },
  },
});
const talking = defineWorkflow({
  name: "talking", version: 1, initial: "talking",
  state: { email: field(z.string()).sensitive("personal data") },
  input: ["email"],
  steps: { talking: { model: at("steps.example"), to: ["done"] }, done: { final: true } },
});
const options = { model: scriptedModel([]), store: openStore() };
export const plans = compile(planning, options);
export const talks = compile(talking, options);
`;

test("a preview asks about the model that makes the next decision", async () => {
  const folder = await projectFolder({ "graph.mjs": GRAPH });
  const run = (...words: string[]) => statecard(words, { folder });
  const preview = async (name: string) => {
    const shown = await run("preview", name, "--show");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    return /asks first: May this go to ([^:,]*)/.exec(shown.stdout)?.[1];
  };
  expect(await preview("graph.mjs:talks")).toBe("large at steps.example");
  // Its first step is code, which shows nothing to anybody.
  expect(await preview("graph.mjs:plans")).toBeUndefined();
  const asked = await run("run", "graph.mjs:plans", "--task", "a", "--set", "email=ada@example.net");
  expect(asked).toMatchObject({ code: 10, stderr: "" });
  expect(await preview("a")).toBe("large at planner.example");
});
