import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonOf, projectFolder, shareOneProcess, statecard, taskOf } from "../support/cli.ts";
import { bundled } from "../support/refactor.ts";

shareOneProcess();

test("brief and doctor of a coding task, from its first question to changed files", async () => {
  const project = bundled("shop");
  const database = join(await projectFolder({}), "tasks.db");
  const environment = { REFACTOR_FOLDERS: project.folder };
  const run = (...args: string[]) => statecard([...args, "--db", database], { environment });
  const { taskId } = taskOf(await run("run", "refactor", "--message", project.message, "--json"));

  const brief = await run("brief", taskId);
  expect(brief.code).toBe(0);
  expect(brief.stdout).toMatch(new RegExp(`^Task ${taskId}, refactor v1, waiting_user, as of `));
  expect(brief.stdout).toContain("The state below wins over any older conversation");
  expect(brief.stdout).toContain("goal: Move formatPrice from src/cart.js");
  expect(brief.stdout).toContain("open requests:\n");
  expect(jsonOf(await run("brief", taskId, "--json"))).toMatchObject({
    taskId,
    step: "confirming",
    nextAction: expect.stringMatching(/^answer request/),
  });

  expect(await run("doctor", taskId)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Nothing is wrong with it."),
  });
  appendFileSync(join(project.folder, "src/cart.js"), "// theirs\n");
  const doctor = await run("doctor", taskId);
  expect(doctor).toMatchObject({
    code: 3,
    stdout: expect.stringContaining("FILES_CHANGED: files changed outside: src/cart.js"),
  });
  expect(jsonOf(await run("doctor", taskId, "--json"))).toMatchObject({
    taskId,
    step: "confirming",
    troubles: [{ code: "FILES_CHANGED" }],
  });

  // A check-up and a brief change nothing, and need no graph.
  rmSync(join(project.folder, "src"), { recursive: true });
  const elsewhere = { folder: await projectFolder({}) };
  expect((await statecard(["brief", taskId, "--db", database], elsewhere)).stdout).toContain(
    "functionName: formatPrice",
  );
  expect((await statecard(["doctor", taskId, "--db", database], elsewhere)).code).toBe(0);
  expect(taskOf(await run("show", taskId, "--json")).status).toBe("waiting_user");
});

test("doctor of a workflow with a checkFiles of its own takes the paths that it gives, and nothing else", async () => {
  const folder = await projectFolder({
    "own.ts": `
import { compile, defineTool, defineWorkflow } from "statecard";
import { z } from "zod";
const checkFiles = defineTool({
  description: "Checks.", effect: "read", parameters: z.object({}), run: () => ({ changed: 5, gone: [7, "a.js"] }),
});
export const graph = compile(defineWorkflow({
  name: "own", version: 1, state: {}, tools: { checkFiles }, initial: "asking",
  steps: { asking: { tools: ["checkFiles"], to: ["done"], run: () => ({ ask: "Which?" }) }, done: { final: true } },
}));`,
    "langgraph.json": JSON.stringify({ graphs: { own: "./own.ts:graph" } }),
  });
  const database = join(folder, "tasks.db");
  const { taskId } = taskOf(await statecard(["run", "own", "--db", database, "--message", "go", "--json"], { folder }));
  const doctor = await statecard(["doctor", taskId, "--db", database, "--json"], { folder });
  expect(jsonOf(doctor)).toMatchObject({
    troubles: [{ code: "FILES_CHANGED", evidence: "files changed outside: a.js" }],
  });
});

test.each(["brief", "doctor"])("%s of a task that is not there", async (command) => {
  const database = join(await projectFolder({}), "tasks.db");
  const result = await statecard([command, "nobody", "--db", database, "--json"]);
  expect(result.code).toBe(3);
  expect(jsonOf(result)).toMatchObject({ error: { code: "UNKNOWN_TASK" } });
});
