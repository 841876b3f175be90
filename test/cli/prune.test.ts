import { expect, test } from "vitest";
import {
  expectRefusal,
  jsonOf,
  ownDatabase,
  projectFolder,
  rowsOf,
  shareOneProcess,
  statecard,
} from "../support/cli.ts";

shareOneProcess();

/** A graph that has the id of a workflow that is gone. */
const OWN = `
import { compile, defineWorkflow } from "statecard";
const end = { final: true };
export const graph = compile(
  defineWorkflow({ name: "own", version: 1, state: {}, initial: "begun", steps: { begun: { to: ["end"] }, end } }),
);`;

test("tasks that have ended are counted, removed, and no others", async () => {
  const place = await ownDatabase();
  const run = (...args: string[]) => statecard(args, place);
  await run("run", "ticket", "--task", "waits", "--message", "network unstable");
  await run("run", "ticket", "--task", "ended", "--message", "network unstable");
  await run("cancel", "ended");
  const prune = ["prune", "--graphs", "ticket", "--days"];
  expect((await run(...prune, "1", "--dry-run")).stdout).toMatch(/^There are 0 tasks that ended before .*nothing/);
  expect((await run(...prune, "0", "--dry-run")).stdout).toMatch(/^There is 1 task that ended before /);
  expect(jsonOf(await run(...prune, "0", "--dry-run", "--json"))).toMatchObject({ ended: 1 });
  expect((await run(...prune, "0")).stdout).toMatch(/^Removed 1 task that ended before \d{4}-/);
  expect(rowsOf(await run("tasks", "--json"))).toMatchObject([{ taskId: "waits" }]);
});

test("tasks of workflows that are not here are told of, and removed by their workflow's name", async () => {
  const place = await ownDatabase();
  const run = (...args: string[]) => statecard(args, place);
  for (const graph of ["ticket", "refund", "service-desk"]) {
    await run("run", graph, "--task", graph, "--message", "network unstable");
    if (graph !== "service-desk") await run("cancel", graph);
  }
  const folder = await projectFolder({
    "langgraph.json": JSON.stringify({ graphs: { refund: "./own.ts:graph" } }),
    "own.ts": OWN,
  });
  const elsewhere = (...args: string[]) => statecard([...args, "--db", place.database], { folder });
  expect((await elsewhere("prune", "--days", "0")).stdout).toMatch(
    /^Removed 0 tasks .*\n2 more are of workflows that are not in langgraph\.json here: statecard prune --days 0 --workflow refund,ticket$/m,
  );
  const prune = (...args: string[]) => elsewhere("prune", "--days", "0", "--json", ...args);
  const before = expect.any(String) as string;
  expect(jsonOf(await prune())).toEqual({ before, removed: 0, left: 2 });
  expect(jsonOf(await prune("--graphs", "refund"))).toEqual({ before, removed: 0 });
  expect(jsonOf(await prune("--workflow", "refund"))).toEqual({ before, removed: 1 });
  expect(
    rowsOf(await run("tasks", "--json"))
      .map(({ taskId }) => taskId)
      .toSorted(),
  ).toEqual(["service-desk", "ticket"]);
  expect(jsonOf(await prune("--workflow", "service-desk,ticket", "--dry-run"))).toEqual({ before, ended: 1 });
  expect(jsonOf(await prune("--workflow", "service-desk", "--workflow", "ticket"))).toEqual({ before, removed: 1 });
});

test("workflows are named as tasks bear them, and not along with graphs", async () => {
  const place = await ownDatabase();
  await statecard(["run", "ticket", "--message", "network unstable"], place);
  const prune = ["prune", "--days", "0", "--workflow"];
  const unknown = {
    code: "USAGE",
    exit: 2,
    says: /no task here is of a workflow "tickets"; there are tasks of: ticket$/m,
  };
  await expectRefusal([...prune, "tickets"], unknown, place);
  const both = { code: "USAGE", exit: 2, says: /choose one/ };
  await expectRefusal([...prune, "ticket", "--graphs", "ticket"], both, place);
});

test("how long they are kept has to be said", async () => {
  await expectRefusal(["prune"], { code: "USAGE", exit: 2, says: /--days 90/ }, await ownDatabase());
  await expectRefusal(["prune", "--days", "-1"], { code: "USAGE", exit: 2, says: /whole number/ }, await ownDatabase());
});
