import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  errorOf,
  expectRefusal,
  jsonOf,
  ownDatabase,
  projectFolder,
  shareOneProcess,
  statecard,
  taskOf,
} from "../support/cli.ts";

shareOneProcess();

let folder = "";
let count = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "statecard-export-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A ticket that waits for its priority, exported to a folder of its own. */
async function exportedTicket(environment: Readonly<Record<string, string>> = {}) {
  const options = await ownDatabase();
  const with_ = { ...options, environment: { ...options.environment, ...environment } };
  const started = await statecard(["run", "ticket", "--task", "t-1", "--message", "network unstable", "--json"], with_);
  expect(started.code).toBe(10);
  const at = join(folder, `export-${++count}`);
  const { code, stdout } = await statecard(["export", "t-1", at], with_);
  expect(code).toBe(0);
  return { at, options: with_, stdout };
}

test("a task is exported, verified, imported elsewhere and brought to its end there", async () => {
  const { at, options, stdout } = await exportedTicket();
  expect(stdout).toContain(`Exported t-1 to ${at}: ticket v1, waiting_user at gathering_info`);
  expect(stdout).toContain("not signed (set STATECARD_EXPORT_KEY to sign)");
  const verified = await statecard(["verify", at]);
  expect(verified).toMatchObject({ code: 0, stderr: "" });
  expect(verified.stdout).toContain("the chain is whole");
  expect(verified.stdout).toContain("not signed: this shows accidents");
  expect(verified.stdout).toContain("state.json is what the log leads to");
  const elsewhere = await ownDatabase();
  const imported = await statecard(["import", at], elsewhere);
  expect(imported).toMatchObject({ code: 0, stderr: "" });
  expect(imported.stdout).toContain("Imported as t-1: waiting_user at gathering_info");
  expect(imported.stdout).toMatch(/npx statecard resume t-1 --answer "(?:…|\.{3})"/);
  for (const answer of ["P1", "yes, go"]) {
    await statecard(["resume", "t-1", "--answer", answer], options);
    await statecard(["resume", "t-1", "--answer", answer], elsewhere);
  }
  const [here, there] = await Promise.all(
    [options, elsewhere].map((each) => statecard(["show", "t-1", "--json"], each)),
  );
  expect(taskOf(here as never)).toMatchObject({ status: "completed" });
  expect(taskOf(there as never)).toEqual(taskOf(here as never));
  expect((await statecard(["history", "t-1"], elsewhere)).stdout).toContain("imported");
});

test("a task that waits for an approval is told as everywhere else", async () => {
  const options = await ownDatabase();
  const message = "refund 400 for order 77, arrived broken";
  const started = await statecard(["run", "refund", "--task", "r", "--message", message], options);
  expect(started.code).toBe(10);
  const at = join(folder, "approval");
  const exported = await statecard(["export", "r", at], options);
  expect(exported.stdout).toMatch(/^Exported r to .*: refund v1, waiting_user at paying$/m);
  expect((await statecard(["verify", at])).stdout).toMatch(/refund v1, waiting_user at paying$/m);
  expect(jsonOf(await statecard(["verify", at, "--json"]))).toMatchObject({ status: "waiting_user" });
  const { stdout } = await statecard(["brief", "r"], options);
  expect(stdout).toMatch(/^ {2}\S+ \(approval, until \S+\): pay_back \{[^}]*\}$/m);
});

test("a task whose latest run failed is told as it was exported, by export and verify alike", async () => {
  const project = await projectFolder({
    "fails.ts": `
import { compile, defineWorkflow } from "statecard";
const run = () => { throw new Error("down"); };
export const graph = compile(defineWorkflow({
  name: "fails", version: 1, state: {}, initial: "calling", steps: { calling: { to: ["end"], run }, end: { final: true } },
}));`,
  });
  const options = { folder: project };
  await statecard(["run", "fails.ts", "--task", "f"], options);
  expect(taskOf(await statecard(["show", "f", "--json"], options))).toMatchObject({ status: "failed" });
  const exported = await statecard(["export", "f", "out"], options);
  const stands = /fails v1, (\w+) at calling$/m;
  expect(exported.stdout).toMatch(stands);
  const verified = await statecard(["verify", "out"], options);
  expect(stands.exec(verified.stdout)?.[1]).toBe(stands.exec(exported.stdout)?.[1]);
});

test("as JSON", async () => {
  const { at, options } = await exportedTicket();
  const again = jsonOf(await statecard(["export", "t-1", at, "--json"], options));
  expect(again).toMatchObject({ taskId: "t-1", folder: at, signed: false, entries: expect.any(Number) });
  const verified = jsonOf(await statecard(["verify", at, "--json"]));
  expect(verified).toMatchObject({
    ok: true,
    taskId: "t-1",
    workflow: "ticket",
    status: "waiting_user",
    signature: "not signed",
    from: "state.json",
    difference: null,
    replayed: true,
  });
  const imported = jsonOf(await statecard(["import", at, "--as-task", "t-2", "--json"], options));
  expect(imported).toMatchObject({ taskId: "t-2", status: "waiting_user", from: "state.json" });
  expect(taskOf(await statecard(["show", "t-2", "--json"], options))).toMatchObject({ taskId: "t-2" });
});

test("with a key it is signed, and has to be", async () => {
  const environment = { STATECARD_EXPORT_KEY: "a key of twelve and more" };
  const { at, options, stdout } = await exportedTicket(environment);
  expect(stdout).toContain("signed");
  expect((await statecard(["verify", at], { environment })).stdout).toContain("signed: every mac fits");
  expect((await statecard(["verify", at])).stdout).toContain("signed, but no key given");
  expect(readFileSync(join(at, "events.log"), "utf8")).not.toContain(environment.STATECARD_EXPORT_KEY);
  const wrong = { environment: { STATECARD_EXPORT_KEY: "another key, as long" } };
  await expectRefusal(["verify", at], { code: "INVALID_EXPORT", exit: 3, says: /not the key/ }, wrong);
  const { at: plain } = await exportedTicket();
  const says = /not signed, although STATECARD_EXPORT_KEY is set/;
  await expectRefusal(["verify", plain], { code: "INVALID_EXPORT", exit: 3, says }, { environment });
  await expectRefusal(["import", plain, "--as-task", "x"], { code: "INVALID_EXPORT", exit: 3, says }, options);
});

describe("what was tampered with ends with 3 and says what it is", () => {
  test("an edited state.json: verify refuses it, import takes the log", async () => {
    const { at } = await exportedTicket();
    const path = join(at, "state.json");
    writeFileSync(path, readFileSync(path, "utf8").replace("network unstable", "all is well"));
    const says =
      /state.json says .* is .*all is well.*, the log says .*network unstable.*statecard import would restore/;
    await expectRefusal(["verify", at], { code: "INVALID_EXPORT", exit: 3, says });
    const elsewhere = await ownDatabase();
    const { code, stdout } = await statecard(["import", at], elsewhere);
    expect(code).toBe(0);
    expect(stdout).toContain("restored from events.log alone, since state.json says");
    const shown = taskOf(await statecard(["show", "t-1", "--json"], elsewhere));
    expect(shown.state.ticketType).toBe("network unstable");
  });

  test("a missing state.json: import takes the log, and says what it cannot tell", async () => {
    const { at } = await exportedTicket();
    rmSync(join(at, "state.json"));
    await expectRefusal(["verify", at], { code: "INVALID_EXPORT", exit: 3, says: /state.json is missing/ });
    const { code, stdout } = await statecard(["import", at], await ownDatabase());
    expect(code).toBe(0);
    expect(stdout).toContain("whether the log was cut off at its end cannot be told");
  });

  test("an edited log: nothing is imported", async () => {
    const { at } = await exportedTicket();
    const path = join(at, "events.log");
    writeFileSync(path, readFileSync(path, "utf8").replace("network unstable", "network unstaple"));
    const elsewhere = await ownDatabase();
    const says = /entry \d+ of events.log was changed/;
    for (const command of ["verify", "import"]) {
      await expectRefusal([command, at], { code: "INVALID_EXPORT", exit: 3, says }, elsewhere);
    }
    expect(existsSync(elsewhere.database)).toBe(false);
  });

  test("a cut-off log", async () => {
    const { at } = await exportedTicket();
    const path = join(at, "events.log");
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    writeFileSync(path, `${lines.slice(0, -1).join("\n")}\n`);
    await expectRefusal(["verify", at], { code: "INVALID_EXPORT", exit: 3, says: /events.log was cut off/ });
  });
});

test("what cannot be done is refused, with what to do", async () => {
  const { at, options } = await exportedTicket();
  await expectRefusal(
    ["export", "nobody", join(folder, "x")],
    { code: "UNKNOWN_TASK", exit: 3, says: /no task nobody/ },
    options,
  );
  await expectRefusal(["export", "t-1", folder], { code: "USAGE", exit: 2, says: /not empty and no export/ }, options);
  await expectRefusal(["import", at], { code: "TASK_EXISTS", exit: 3, says: /--as-task/ }, options);
  await expectRefusal(["verify", join(folder, "nowhere")], { code: "INVALID_EXPORT", exit: 3, says: /no such folder/ });
  await expectRefusal(
    ["import", at, "--as-task", "a\u0001b"],
    { code: "INVALID_TASK_ID", exit: 2, says: /control characters/ },
    options,
  );
  const elsewhere = { ...(await ownDatabase()), folder };
  await expectRefusal(["import", at], { code: "UNKNOWN_GRAPH", exit: 2, says: /name it with --graph/ }, elsewhere);
  expect(errorOf(await statecard(["import", folder, "--json"], options))).toMatchObject({ code: "INVALID_EXPORT" });
});
