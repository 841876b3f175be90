import { expect, test } from "vitest";
import { expectRefusal, jsonOf, ownDatabase, rowsOf, shareOneProcess, statecard } from "../support/cli.ts";

shareOneProcess();

test("tasks that have ended are counted, removed, and no others", async () => {
  const place = await ownDatabase();
  const run = (...args: string[]) => statecard(args, place);
  await run("run", "ticket", "--task", "waits", "--message", "network unstable");
  await run("run", "ticket", "--task", "ended", "--message", "network unstable");
  await run("cancel", "ended");
  const prune = ["prune", "--graphs", "ticket", "--days"];
  expect((await run(...prune, "1", "--dry-run")).stdout).toMatch(/^There are 0 tasks that ended before .*nothing/);
  expect(jsonOf(await run(...prune, "0", "--dry-run", "--json"))).toMatchObject({ ended: 1 });
  expect((await run(...prune, "0")).stdout).toMatch(/^Removed 1 task that ended before \d{4}-/);
  expect(rowsOf(await run("tasks", "--json"))).toMatchObject([{ taskId: "waits" }]);
});

test("how long they are kept has to be said", async () => {
  await expectRefusal(["prune"], { code: "USAGE", exit: 2, says: /--days 90/ }, await ownDatabase());
  await expectRefusal(["prune", "--days", "-1"], { code: "USAGE", exit: 2, says: /whole number/ }, await ownDatabase());
});
