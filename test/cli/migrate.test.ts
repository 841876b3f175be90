import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sqliteStore } from "statecard";
import { describe, expect, test } from "vitest";
import {
  atTerminal,
  eventsOf,
  expectRefusal,
  hasPython,
  jsonOf,
  projectFolder,
  rowsOf,
  shareOneProcess,
  statecard,
  taskOf,
  type CommandOptions,
} from "../support/cli.ts";

interface Release {
  readonly version: number;
  readonly amount: "number" | "string";
  readonly review: string;
  readonly migrations?: string;
}

/** A workflow's file, as one release has it: asks for an amount, asks whether it is right, ends. */
const release = ({ version, amount, review, migrations = "" }: Release) => `
  import { compile, defineWorkflow, field } from "statecard";
  import { z } from "zod";
  export const graph = compile(defineWorkflow({
    name: "claim", version: ${version}, state: { amount: field(z.${amount}()) }, initial: "collect",
    migrations: { ${migrations} },
    steps: {
      collect: { to: ["collect", "${review}"], run: (_state, { observation }) => observation?.kind === "answer"
        ? { patch: { amount: ${amount === "number" ? "Number(observation.text)" : "observation.text"} }, next: "${review}" } : { ask: "How much?" } },
      ${review}: { to: ["${review}", "done"], run: (_state, { observation }) =>
        observation?.kind === "answer" && observation.question === "Right?" ? { next: "done" } : { ask: "Right?" } },
      done: { final: true },
    },
  }));`;

const FIRST: Release = { version: 1, amount: "number", review: "review" };
const SECOND: Release = {
  version: 2,
  amount: "string",
  review: "check",
  migrations: `2: { renameSteps: { review: "check" }, changeFields: { amount: (value) => value + " EUR" } }`,
};
const CHANGED: Release = { ...FIRST, amount: "string" };

/** A project with two tasks of version 1: one waits in its review, one is done. */
async function project(): Promise<
  CommandOptions & { readonly folder: string; readonly to: (next: Release) => Promise<void> }
> {
  const folder = await projectFolder({
    "claim.ts": release(FIRST),
    "langgraph.json": JSON.stringify({ graphs: { claim: "./claim.ts:graph" } }),
  });
  for (const task of ["waits", "ended"]) {
    await statecard(["run", "claim", "--task", task], { folder });
    await statecard(["resume", task, "--answer", "5"], { folder });
  }
  await statecard(["resume", "ended", "--answer", "yes"], { folder });
  return { folder, to: (next) => writeFile(join(folder, "claim.ts"), release(next)) };
}

const lineOf = (result: { stdout: string; stderr: string }, taskId: string) =>
  (jsonOf(result) as { tasks: { taskId: string }[] }).tasks.find((line) => line.taskId === taskId);

describe("statecard migrate", () => {
  shareOneProcess();

  test("says what a release means, writes it down, and the task goes on", async () => {
    const { to, ...options } = await project();
    await to(SECOND);
    const dry = await statecard(["migrate", "--dry-run"], options);
    expect(dry).toMatchObject({ code: 0, stderr: "" });
    expect(dry.stdout).toMatch(
      /^waits +claim +migrates 1 -> 2: step review is now check; field amount changed its form$/m,
    );
    expect(dry.stdout).toMatch(/^ended +claim +fine: it has ended$/m);
    expect(dry.stdout).toContain("2 tasks: ");
    expect(taskOf(await statecard(["show", "waits", "--json"], options))).toMatchObject({ version: 1, step: "review" });

    const written = await statecard(["migrate", "--json"], options);
    expect(written.code).toBe(0);
    expect(lineOf(written, "waits")).toEqual({
      taskId: "waits",
      workflow: "claim",
      from: 1,
      to: 2,
      verdict: "migrated",
      done: ["step review is now check", "field amount changed its form"],
    });
    expect(taskOf(await statecard(["show", "waits", "--json"], options))).toMatchObject({
      version: 2,
      step: "check",
      status: "waiting_user",
      state: { amount: "5 EUR" },
    });
    expect(eventsOf(await statecard(["history", "waits", "--json"], options)).at(-1)?.kind).toBe("migrated");
    expect(lineOf(await statecard(["migrate", "--json"], options), "waits")).toMatchObject({ verdict: "fine" });
    expect((await statecard(["resume", "waits", "--answer", "yes"], options)).code).toBe(0);
  });

  test("without it, a task is migrated when it goes on", async () => {
    const { to, ...options } = await project();
    await to(SECOND);
    const done = await statecard(["resume", "waits", "--answer", "yes", "--json"], options);
    expect(taskOf(done)).toMatchObject({ version: 2, status: "completed", state: { amount: "5 EUR" } });
  });

  test("a release without a word about a renamed step: refused, listed, and mended by a declaration", async () => {
    const { to, ...options } = await project();
    await to({ ...SECOND, migrations: "" });
    await expectRefusal(
      ["resume", "waits", "--answer", "yes"],
      { code: "TASK_QUARANTINED", exit: 3, says: /step "review" is not in version 2.*npx statecard migrate --dry-run/ },
      options,
    );
    const listed = await statecard(["migrate"], options);
    expect(listed.code).toBe(3);
    expect(listed.stdout).toMatch(/^waits +claim +quarantined: step "review" is not in version 2, whose steps are/m);
    expect(taskOf(await statecard(["show", "waits", "--json"], options))).toMatchObject({ version: 1, step: "review" });
    await to(SECOND);
    expect((await statecard(["resume", "waits", "--answer", "yes"], options)).code).toBe(0);
  });

  test("tasks of a workflow that no graph has are listed and left", async () => {
    const { folder } = await project();
    await writeFile(join(folder, "langgraph.json"), JSON.stringify({ graphs: {} }));
    const unknown = await statecard(["migrate"], { folder });
    expect(unknown.code).toBe(0);
    expect(unknown.stdout).toMatch(/^waits +claim +unknown workflow: /m);
    const named = await statecard(["migrate", "--graph", "claim.ts", "--json"], { folder });
    expect(lineOf(named, "waits")).toMatchObject({ verdict: "fine", to: 1 });
    await writeFile(join(folder, "langgraph.json"), JSON.stringify({ graphs: { claim: "./claim.ts" } }));
    await writeFile(join(folder, "claim.ts"), "export const graph = {");
    const broken = await statecard(["migrate", "--json"], { folder });
    expect(broken.code).toBe(3);
    expect(lineOf(broken, "waits")).toMatchObject({
      verdict: "not checked",
      reason: "graph claim cannot be loaded",
    });
    expect(jsonOf(broken)).toMatchObject({ broken: [{ graph: "claim", reason: expect.stringContaining("claim.ts") }] });
  });

  test("a release that is broken itself: its fault is said once, and a pipeline stops", async () => {
    const { to, folder } = await project();
    await to({ ...SECOND, migrations: `2: { renameSteps: { review: "chekc" } }` });
    const other = release({ ...FIRST, version: 1 }).replace('name: "claim"', 'name: "order"');
    await writeFile(join(folder, "order.ts"), other);
    await statecard(["run", "order.ts", "--task", "order-1"], { folder });
    const dry = await statecard(["migrate", "--dry-run"], { folder });
    expect(dry.code).toBe(3);
    expect(dry.stdout).toMatch(/^waits +claim +not checked: graph claim cannot be loaded$/m);
    expect(dry.stdout).toMatch(/^ended +claim +fine: it has ended$/m);
    expect(dry.stdout).toMatch(/^order-1 +order +fine$/m);
    expect(dry.stdout).toMatch(
      /^3 tasks: .*1 not checked.*\ngraph claim cannot be loaded: .*migrations\.2: .*chekc.*\n$/m,
    );
    expect(dry.stdout.match(/chekc/g)).toHaveLength(1);
    const json = await statecard(["migrate", "--dry-run", "--json"], { folder });
    expect(json.code).toBe(3);
    expect(jsonOf(json)).toMatchObject({ broken: [{ graph: "claim", workflow: "claim" }] });
    // Another database, where nothing is stored yet: it is broken all the same.
    const empty = { folder, environment: { STATECARD_DB: join(folder, "empty.db") } };
    const none = await statecard(["migrate", "--dry-run"], empty);
    expect(none).toMatchObject({ code: 3, stdout: expect.stringContaining("graph claim cannot be loaded: ") });
    await writeFile(join(folder, "langgraph.json"), JSON.stringify({ graphs: { claim: "./gone.ts:graph" } }));
    const gone = await statecard(["migrate", "--dry-run"], empty);
    expect(gone).toMatchObject({ code: 3, stdout: expect.stringContaining("./gone.ts is not there") });
  });

  test("a workflow changed without a new version: kept unless told otherwise", async () => {
    const { to, ...options } = await project();
    await to(CHANGED);
    await expectRefusal(
      ["resume", "waits", "--answer", "yes"],
      { code: "TASK_QUARANTINED", exit: 3, says: /its version was not.*npx statecard migrate$/m },
      options,
    );
    const kept = await statecard(["migrate", "--json"], options);
    expect(kept.code).toBe(3);
    expect(lineOf(kept, "waits")).toMatchObject({
      verdict: "quarantined",
      reason: expect.stringContaining('"amount"'),
    });
    const dry = await statecard(["migrate", "--dry-run", "--unfit", "empty", "--json"], options);
    expect(lineOf(dry, "waits")).toMatchObject({ verdict: "quarantined" });

    const emptied = await statecard(["migrate", "--unfit", "empty"], options);
    expect(emptied.code).toBe(0);
    expect(emptied.stdout).toContain("field amount was emptied, it was 5");
    expect(taskOf(await statecard(["show", "waits", "--json"], options)).state).toEqual({ amount: null });
    expect((await statecard(["resume", "waits", "--answer", "yes"], options)).code).toBe(0);
  });

  test("it can delete such a task, and no other", async () => {
    const { to, ...options } = await project();
    await to({ ...SECOND, migrations: "" });
    expect((await statecard(["migrate", "--unfit", "delete"], options)).code).toBe(3);
    await to(CHANGED);
    expect(lineOf(await statecard(["migrate", "--unfit", "delete", "--json"], options), "waits")).toMatchObject({
      verdict: "deleted",
    });
    expect(rowsOf(await statecard(["tasks", "--json"], options)).map(({ taskId }) => taskId)).toEqual(["ended"]);
  });

  test("a task that somebody runs at the moment is reported and left", async () => {
    const { to, ...options } = await project();
    await to(SECOND);
    const store = sqliteStore(join(options.folder, ".statecard/tasks.db"));
    const lease = await store.acquire("waits");
    const busy = await statecard(["migrate", "--json"], options);
    expect(busy.code).toBe(0);
    expect(lineOf(busy, "waits")).toMatchObject({ verdict: "busy", reason: expect.stringContaining("is being run") });
    await store.release(lease);
    await store.close();
    expect(taskOf(await statecard(["show", "waits", "--json"], options))).toMatchObject({ version: 1 });
  });

  test("wrong usage, and a database without tasks", async () => {
    const folder = await projectFolder({});
    await expectRefusal(
      ["migrate", "--unfit", "lose"],
      { code: "USAGE", exit: 2, says: /keep, empty, delete/ },
      { folder },
    );
    expect(await statecard(["migrate"], { folder })).toMatchObject({ code: 0, stdout: "No tasks.\n" });
    expect(await statecard(["migrate", "--json"], { folder })).toMatchObject({
      code: 0,
      stdout: '{\n  "tasks": []\n}\n',
    });
  });

  test.runIf(hasPython)("at a terminal it asks about each such task", async () => {
    const { to, ...options } = await project();
    await to(CHANGED);
    const kept = await atTerminal(["migrate"], [["or \\(d\\)elete the task\\?", "\r"]], options);
    expect(kept, kept.output).toMatchObject({ code: 3, left: 0 });
    const emptied = await atTerminal(["migrate"], [["\\(e\\)mpty amount", "e\r"]], options);
    expect(emptied, emptied.output).toMatchObject({ code: 0, left: 0 });
    expect(emptied.output).toContain("was emptied, it was 5");
  });

  test.runIf(hasPython)("at a terminal it asks about such a task when it is resumed, too", async () => {
    const { to, ...options } = await project();
    await to(CHANGED);
    const resume = ["resume", "waits", "--answer", "yes"];
    const kept = await atTerminal(resume, [["or \\(d\\)elete the task\\?", "\r"]], options);
    expect(kept, kept.output).toMatchObject({ code: 3, left: 0 });
    const gone = await atTerminal(resume, [["or \\(d\\)elete the task\\?", "d\r"]], options);
    expect(gone, gone.output).toMatchObject({ code: 0, left: 0 });
    expect(gone.output).toContain("Deleted waits");
  });
});

test("tasks of a workflow that is run for each item of a list are checked like others", async () => {
  const lists = `
import { compile, defineWorkflow } from "statecard";
const end = { final: true };
const asks = defineWorkflow({
  name: "asks", version: 1, state: {}, initial: "asking",
  steps: { asking: { to: ["end"], run: () => ({ ask: "Well?" }) }, end },
});
const each = { over: () => [1, 2], workflow: asks, input: () => ({}), output: () => ({ next: "end" }) };
export const graph = compile(
  defineWorkflow({ name: "lists", version: 1, state: {}, initial: "all", steps: { all: { map: each, to: ["end"] }, end } }),
);`;
  const langgraph = JSON.stringify({ graphs: { lists: "./lists.ts:graph" } });
  const folder = await projectFolder({ "lists.ts": lists, "langgraph.json": langgraph });
  await statecard(["run", "lists", "--task", "l"], { folder });
  const { tasks } = jsonOf(await statecard(["migrate", "--dry-run", "--json"], { folder })) as { tasks: object[] };
  expect(tasks).toHaveLength(3);
  for (const task of tasks) expect(task).toMatchObject({ verdict: "fine" });
});

/** A file whose workflow has another as a step, which asks at a step of the name that is given. */
const nested = (version: number, asking: string, migrations = "") => `
import { compile, defineWorkflow } from "statecard";
const end = { final: true };
const asks = defineWorkflow({
  name: "asks", version: ${version}, state: {}, initial: "${asking}", migrations: { ${migrations} },
  steps: { ${asking}: { to: ["${asking}", "end"], run: (_state, { observation }) => observation ? { next: "end" } : { ask: "Well?" } }, end },
});
const child = { workflow: asks, to: ["end"], input: () => ({}), output: () => ({ next: "end" }) };
export const graph = compile(
  defineWorkflow({ name: "outer", version: 1, state: {}, initial: "all", steps: { all: child, end } }),
);`;

interface Report {
  readonly tasks: readonly { readonly taskId: string; readonly verdict: string }[];
  readonly broken?: readonly object[];
}

describe("graphs of which one is not in langgraph.json", () => {
  shareOneProcess();

  const migrated = async (folder: string): Promise<{ code: number | null; report: Report }> => {
    const result = await statecard(["migrate", "--json"], { folder });
    return { code: result.code, report: jsonOf(result) as Report };
  };

  test("a task is taken by its own graph, where another has a workflow of the same name", async () => {
    const folder = await projectFolder({
      "two.ts": release(FIRST),
      "claim.ts": release(SECOND),
      "langgraph.json": JSON.stringify({ graphs: { claim: "./claim.ts:graph" } }),
    });
    await statecard(["run", "claim", "--task", "c1"], { folder });
    await statecard(["run", "two.ts", "--task", "c2"], { folder });
    await statecard(["resume", "c2", "--answer", "5"], { folder });
    const { code, report } = await migrated(folder);
    expect(code).toBe(0);
    expect(report.tasks).toMatchObject([
      { taskId: "c2", to: 1, verdict: "fine" },
      { taskId: "c1", to: 2, verdict: "fine" },
    ]);
    expect(taskOf(await statecard(["show", "c2", "--json"], { folder }))).toMatchObject({ version: 1, step: "review" });
    expect((await statecard(["resume", "c2", "--answer", "yes"], { folder })).code).toBe(0);
  });

  test("the task of a child workflow is taken by the graph of its outermost parent", async () => {
    const folder = await projectFolder({
      "two.ts": nested(1, "asking"),
      "outer.ts": nested(2, "inquiring", `2: { renameSteps: { asking: "inquiring" } }`),
      "langgraph.json": JSON.stringify({ graphs: { outer: "./outer.ts:graph" } }),
    });
    await statecard(["run", "two.ts", "--task", "o"], { folder });
    const { code, report } = await migrated(folder);
    expect(code).toBe(0);
    expect(report.tasks.map(({ taskId, verdict }) => [taskId, verdict])).toEqual(
      expect.arrayContaining([
        ["o", "fine"],
        ["o/all/1.0", "fine"],
      ]),
    );
    expect((await statecard(["resume", "o", "--answer", "yes"], { folder })).code).toBe(0);
  });

  test("a file that cannot be loaded is no fault of the release, and only its unfinished tasks are not checked", async () => {
    const { folder } = await project();
    await writeFile(join(folder, "two.ts"), nested(1, "asking"));
    for (const task of ["open", "cancelled"]) await statecard(["run", "two.ts", "--task", task], { folder });
    await statecard(["cancel", "cancelled"], { folder });
    await writeFile(join(folder, "two.ts"), "export const graph = {");
    const { code, report } = await migrated(folder);
    expect(report.broken).toBeUndefined();
    expect(code).toBe(0);
    const of = (taskId: string) => report.tasks.find((task) => task.taskId === taskId);
    const reason = expect.stringMatching(/^graph two\.ts cannot be loaded: two\.ts: .+/);
    expect(of("open")).toMatchObject({ verdict: "not checked", reason });
    expect(of("open/all/1.0")).toMatchObject({ verdict: "not checked", reason });
    expect(of("cancelled")).toMatchObject({ verdict: "fine", reason: "it has ended" });
    expect(of("waits")).toMatchObject({ verdict: "fine" });
  });

  test("a file of which all tasks have ended is not loaded", async () => {
    const { folder } = await project();
    await writeFile(join(folder, "langgraph.json"), JSON.stringify({ graphs: {} }));
    await writeFile(join(folder, "two.ts"), nested(1, "asking"));
    await statecard(["run", "two.ts", "--task", "o"], { folder });
    await statecard(["resume", "o", "--answer", "yes"], { folder });
    const loaded = "two.ts was loaded";
    await writeFile(join(folder, "two.ts"), `import { writeFileSync } from "node:fs"; writeFileSync("${loaded}", "");`);
    expect((await migrated(folder)).code).toBe(0);
    expect(existsSync(join(folder, loaded))).toBe(false);
  });

  test("a fault in a workflow that is a step: neither its tasks nor those of the outer one are checked", async () => {
    const folder = await projectFolder({
      "outer.ts": nested(1, "asking"),
      "langgraph.json": JSON.stringify({ graphs: { outer: "./outer.ts:graph" } }),
    });
    await statecard(["run", "outer", "--task", "o"], { folder });
    await writeFile(join(folder, "outer.ts"), nested(2, "inquiring", `2: { renameSteps: { asking: "wrong" } }`));
    const faulty = await migrated(folder);
    expect(faulty.report.broken).toMatchObject([{ graph: "outer", workflow: "asks" }]);
    await writeFile(join(folder, "outer.ts"), "export const graph = {");
    for (const { code, report } of [faulty, await migrated(folder)]) {
      expect(code).toBe(3);
      expect(report.tasks).toHaveLength(2);
      for (const task of report.tasks)
        expect(task).toMatchObject({ verdict: "not checked", reason: "graph outer cannot be loaded" });
    }
  });
});
