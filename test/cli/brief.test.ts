import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { compile, defineWorkflow, sqliteStore } from "statecard";
import { expect, onTestFinished, test } from "vitest";
import { thisProcess } from "../../src/storage/owner.ts";
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

test.each([
  ["names a task that hangs, who runs it, and since when", false],
  ["leaves one alone whose workflow within has just committed something", true],
])("doctor %s", async (_name, isRecent) => {
  const database = join(await projectFolder({}), "tasks.db");
  const began = Date.now() - 11 * 60_000;
  const time = { now: began };
  const clock = { now: () => time.now };
  const store = sqliteStore(database, { clock });
  // By this clock a renewal would set back what is set below.
  store.renew = () => Promise.resolve();
  const stop = new AbortController();
  const hanging = new Promise<void>((hangs) => {
    const packing = () => {
      if (isRecent) time.now = Date.now();
      return { next: "sending" } as const;
    };
    const sending = () => (hangs(), new Promise<never>(() => {}));
    const end = { final: true } as const;
    const parcel = defineWorkflow({
      name: "parcel",
      version: 1,
      state: {},
      initial: "packing",
      steps: { packing: { to: ["sending"], run: packing }, sending: { to: ["sent"], run: sending }, sent: end },
    });
    const order = defineWorkflow({
      name: "order",
      version: 1,
      state: {},
      initial: "posting",
      steps: { posting: { to: ["done"], workflow: parcel, output: () => ({ next: "done" }) }, done: end },
    });
    const config = { configurable: { thread_id: "o" }, signal: stop.signal };
    compile(order, { store, clock })
      .invoke({}, config)
      .catch(() => {});
  });
  onTestFinished(() => {
    stop.abort();
    return store.close();
  });
  await hanging;
  const leases = new Database(database);
  // As renewed by a process that lives.
  leases.prepare("update statecard_leases set expires = ?").run(Date.now() + 30_000);
  leases.close();
  const { stdout } = await statecard(["doctor", "o", "--db", database, "--json"]);
  const { troubles } = JSON.parse(stdout) as { troubles: { code: string; evidence: string }[] };
  const evidence = `process ${process.pid} on ${thisProcess.host} runs posting, and has committed nothing since ${new Date(began).toISOString()} (11 min)`;
  expect(troubles).toMatchObject(isRecent ? [] : [{ code: "STUCK", evidence }]);
});
