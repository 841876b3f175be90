import { expect, test } from "vitest";
import { expectRefusal, jsonOf, ownDatabase, rowsOf, shareOneProcess, statecard } from "../support/cli.ts";

shareOneProcess();

test("tasks lists those of a workflow, those of a status, or both", async () => {
  const place = await ownDatabase();
  const run = (...args: string[]) => statecard(args, place);
  for (const task of ["t-1", "t-2", "t-3"]) await run("run", "ticket", "--task", task, "--message", "network unstable");
  await run("run", "refund", "--task", "r-1", "--message", "refund 490 for order 77, arrived broken");
  await run("cancel", "t-2");
  const listed = async (...args: string[]) =>
    rowsOf(await run("tasks", "--json", ...args)).map(({ taskId }) => taskId as string);
  expect((await listed()).toSorted()).toEqual(["r-1", "t-1", "t-2", "t-3"]);
  expect((await listed("--workflow", "ticket")).toSorted()).toEqual(["t-1", "t-2", "t-3"]);
  expect(await listed("--status", "cancelled")).toEqual(["t-2"]);
  expect((await listed("--workflow", "ticket", "--status", "waiting_user")).toSorted()).toEqual(["t-1", "t-3"]);
  const first = jsonOf(await run("tasks", "--status", "waiting_user", "--limit", "1", "--json"));
  expect(first).toMatchObject({ tasks: [expect.anything()], more: true });
  expect((await run("tasks", "--status", "failed")).stdout).toMatch(/^No such tasks in /);
});

test("a status that there is not is refused with those that there are", async () => {
  const says = /no "waiting"; there are: created, running, waiting_user/;
  await expectRefusal(["tasks", "--status", "waiting"], { code: "USAGE", exit: 2, says }, await ownDatabase());
});
