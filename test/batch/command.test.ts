import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteStore } from "statecard";
import { describe, expect, onTestFinished, test } from "vitest";
import type { BatchReport } from "../../src/batch/report.ts";
import {
  atTerminal,
  expectRefusal,
  hasPython,
  jsonOf,
  PROJECT,
  projectFolder,
  shareOneProcess,
  startStatecard,
  statecard,
  until,
  type CommandResult,
} from "../support/cli.ts";

shareOneProcess();

type OnStore = (graph: object, store: object) => { updateState: (config: object, values: object) => Promise<unknown> };

// A workflow whose tasks do what their names say, and write down each time that they do it.
const GRAPH = `
import { appendFileSync } from "node:fs";
import { compile, defineWorkflow, field } from "statecard";
import { z } from "zod";
const work = defineWorkflow({
  name: "work", version: 1, goal: "Do it.",
  state: { name: field(z.string()), result: field(z.string()).runtimeOnly() },
  input: ["name"],
  initial: "working",
  steps: {
    working: { to: ["asking", "ended"], async run({ name }) {
      appendFileSync("effects.log", name + "\\n");
      if (name.startsWith("slow")) await new Promise((resolve) => setTimeout(resolve, 120));
      if (name.startsWith("hang")) await new Promise((resolve) => setTimeout(resolve, 3_600_000));
      if (name.startsWith("bad")) throw new Error("bad luck");
      return { patch: { result: "=done " + name }, next: name.startsWith("ask") ? "asking" : "ended" };
    } },
    asking: { to: ["asking", "ended"], run: (_state, { observation }) => observation?.kind === "answer" ? { next: "ended" } : { ask: "Sure?" } },
    ended: { final: true },
  },
});
export const graph = compile(work);
`;

async function projectWith(lines: readonly (object | string)[]) {
  const folder = await projectFolder({
    "graph.js": GRAPH,
    "package.json": `{"type": "module"}`,
    "langgraph.json": `{"graphs": {"work": "./graph.js:graph"}}`,
    "tasks.jsonl": lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"),
  });
  const run = (command: string, ...more: readonly string[]) =>
    statecard([command, "tasks.jsonl", "--graph", "work", ...more], { folder });
  return {
    folder,
    batch: (...more: readonly string[]) => run("batch", "--backoff", "1", ...more),
    review: (...more: readonly string[]) => run("review", ...more),
    effects: () => readFileSync(join(folder, "effects.log"), "utf8").trimEnd().split("\n"),
  };
}

const named = (...names: readonly string[]) => names.map((name) => ({ id: name, input: { name } }));
const reportIn = (result: CommandResult) => jsonOf(result) as BatchReport;
const statuses = (result: CommandResult) =>
  Object.fromEntries(reportIn(result).tasks.map(({ id, status }) => [id, status]));

describe("statecard batch", () => {
  test("runs all of a file, tells what is broken in it, and the same command goes on", async () => {
    const { folder, batch, effects } = await projectWith([...named("a", "ask", "bad"), "{broken", ...named("b")]);
    const first = await batch("--attempts", "2");
    expect(first.code).toBe(1);
    expect(first.stderr).toContain("line 4 is no task and is left out; the report says why\n");
    expect(first.stderr).not.toContain("it is not JSON");
    expect(first.stderr).toMatch(/4\/4 {2}\w+ {2}/);
    expect(first.stdout).toMatch(/^bad +failed +2 .*STEP_FAILED: .*bad luck/m);
    expect(first.stdout).toMatch(/^ask +waiting +1 .*Sure\?/m);
    expect(first.stdout).toContain("4 tasks: 2 completed, 1 waiting, 1 failed; completion rate 50 %, 5 attempts");
    expect(first.stdout).toMatch(/^left out:\nline 4: it is not JSON: /m);
    expect(first.stdout).toContain("attempts are those of all commands so far; one command makes at most 2 a task");

    const again = await batch("--attempts", "1", "--json");
    expect(again).toMatchObject({ code: 1, stderr: "" });
    expect(statuses(again)).toEqual({ a: "completed", ask: "waiting", bad: "failed", b: "completed" });
    expect(reportIn(again).broken).toMatchObject([{ line: 4 }]);
    expect(reportIn(again).tasks[2]).toMatchObject({ id: "bad", attempts: 3, maxAttempts: 1 });
    expect(effects().toSorted()).toEqual(["a", "ask", "b", "bad", "bad", "bad"]);

    // Its tasks are tasks like others: a person answers one as always.
    const { taskId = "" } = reportIn(again).tasks.find(({ id }) => id === "ask") ?? {};
    expect(await statecard(["resume", taskId, "--answer", "yes"], { folder })).toMatchObject({ code: 0 });
    expect(statuses(await batch("--json"))).toMatchObject({ ask: "completed" });
  });

  test("writes tables for spreadsheets, without formulas, and whole files", async () => {
    const { folder, batch } = await projectWith([{ id: "=1+1", input: { name: "a" } }, ...named("bad", "ask")]);
    const written = await batch("--out", "report.csv");
    expect(written).toMatchObject({ code: 1, stdout: "Written to report.csv.\n" });
    const csv = readFileSync(join(folder, "report.csv"), "utf8");
    expect(csv.split("\r\n")).toHaveLength(5);
    expect(csv).toMatch(/^line,id,task,policy,status,attempts,max_attempts,resumed,/);
    expect(csv).toMatch(/^1,'=1\+1,tasks\.=1\+1\.\w+,,completed,1,3,false,0,/m);
    expect(csv).toContain(`"{""name"":""a"",""result"":""=done a""}"`);
    expect(existsSync(join(folder, "report.csv.part"))).toBe(false);
  });

  test("compares views: the same tasks under each, one table", async () => {
    const { batch, effects } = await projectWith(named("a", "b"));
    const compared = await batch("--compare", "history,state", "--json");
    expect(reportIn(compared).summaries).toMatchObject([
      { policy: "history", tasks: 2, completionRate: 1 },
      { policy: "state", tasks: 2, completionRate: 1 },
    ]);
    expect(effects().toSorted()).toEqual(["a", "a", "b", "b"]);
    const table = await batch("--compare", "history,state");
    expect(table.stdout).toMatch(/^policy +tasks +through[^\n]*\nhistory +2 +100 %[^\n]*\nstate +2 +100 %/m);
  });

  test("what a task costs is in its row: tokens by its decisions, counted where the model tells none", async () => {
    const { folder } = await projectWith([]);
    const environment = { STATECARD_DB: join(folder, "t.db") };
    writeFileSync(join(folder, "tickets.jsonl"), `{"message": "network unstable, P1"}\n`);
    const ran = await statecard(["batch", join(folder, "tickets.jsonl"), "--graph", "ticket", "--json"], {
      environment,
    });
    const [row] = reportIn(ran).tasks;
    expect(row).toMatchObject({ status: "waiting", usage: { calls: 3, inputTokens: 0 }, counted: { prompts: 3 } });
    expect(row?.decisions).toHaveLength(3);
    for (const { latencyMs, firstTokenMs } of row?.decisions ?? [])
      expect(latencyMs).toBeGreaterThanOrEqual(firstTokenMs);
    const [summary] = reportIn(ran).summaries;
    expect(summary?.inputPerCall).toBe((summary?.counted.tokens ?? 0) / 3);
    expect(summary?.latencyMs).not.toBeNull();
  });

  test("wrong usage is told at once", async () => {
    const { folder } = await projectWith(named("a"));
    const refused = (args: readonly string[], says: RegExp) =>
      expectRefusal(["batch", ...args], { code: "USAGE", exit: 2, says }, { folder });
    await refused(["tasks.jsonl"], /--graph/);
    await refused(["gone.jsonl", "--graph", "work"], /is not there/);
    await refused(["tasks.jsonl", "--graph", "work", "--workers", "0"], /--workers/);
    await refused(["tasks.jsonl", "--graph", "work", "--compare", "past"], /there is no policy "past"/);
    await refused(["tasks.jsonl", "--graph", "work", "--compare", "state", "--review"], /choose one/);
    await refused(["tasks.jsonl", "--graph", "work", "--out", "gone/report.csv"], /no folder gone/);
    writeFileSync(join(folder, "empty.jsonl"), "\n\n");
    await refused(["empty.jsonl", "--graph", "work"], /has no tasks/);
    expect(existsSync(join(folder, "effects.log"))).toBe(false);
  });

  test("of many broken lines the first ten are told, once; a file without any task is wrong usage", async () => {
    const lines = Array.from({ length: 1200 }, () => "{broken");
    const { folder, batch } = await projectWith([...lines, ...named("a")]);
    const { code, stdout, stderr } = await batch("--report", "table");
    expect(code).toBe(1);
    expect(stderr).toContain("lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1,190 more are no tasks and are left out");
    expect(`${stdout}${stderr}`.match(/it is not JSON/g)).toHaveLength(10);
    expect(stdout).toMatch(/^line 10: it is not JSON.*\nand 1,190 more$/m);
    expect(reportIn(await batch("--json")).broken).toHaveLength(1200);
    writeFileSync(join(folder, "none.jsonl"), lines.join("\n"));
    const says = /no line of none\.jsonl is a task\n {2}line 1: it is not JSON.*\n(?: {2}.*\n){9} {2}and 1,190 more$/m;
    await expectRefusal(["batch", "none.jsonl", "--graph", "work"], { code: "USAGE", exit: 2, says }, { folder });
  });
});

describe("review before publishing", () => {
  const result = (report: CommandResult, wanted: string) =>
    reportIn(report).tasks.find(({ id }) => id === wanted)?.result;

  test("no result is in a report before a person has approved it, whatever the next command says", async () => {
    const { folder, batch, review } = await projectWith(named("a", "b", "c"));
    const first = await batch("--review");
    expect(first).toMatchObject({ code: 10 });
    expect(first.stderr).toMatch(/^1\/3 {2}\w {2}reviewing$/m);
    expect(first.stderr).not.toContain("completed");
    const held = await batch("--json");
    expect(held.code).toBe(10);
    expect(statuses(held)).toEqual({ a: "reviewing", b: "reviewing", c: "reviewing" });
    expect(held.stdout).not.toContain("=done");

    const listed = await review();
    expect(listed).toMatchObject({ code: 10 });
    expect(listed.stdout).toContain("a  reviewing\n  name: a\n  result: =done a\n");
    expect(await review("--reject", "b")).toMatchObject({ code: 2 });
    expect(await review("--approve", "nobody")).toMatchObject({ code: 2 });
    expect((await review("--approve", "a", "--as", "ada")).code).toBe(3);
    const token = await statecard(["token", "create", "ada"], { folder });
    const [secret = ""] = /sc_\S+/.exec(token.stdout) ?? [];
    const said = await statecard(
      [
        "review",
        "tasks.jsonl",
        "--graph",
        "work",
        "--approve",
        "a",
        "--reject",
        "b",
        "--reason",
        "too short",
        "--as",
        "ada",
      ],
      { folder, environment: { STATECARD_TOKEN: secret } },
    );
    expect(said.stdout).toContain("a  approved by ada");
    expect(said.stdout).toContain("b  rejected by ada: too short");
    const told = (await batch()).stderr;
    expect(told).toMatch(/ a {2}completed \(as it was found\)\n/);
    expect(told).toMatch(/ b {2}rejected \(as it was found\)\n/);
    expect(told).toMatch(/ c {2}reviewing \(as it was found\)\n/);
    const published = await batch("--json");
    expect(statuses(published)).toEqual({ a: "completed", b: "rejected", c: "reviewing" });
    expect([result(published, "a"), result(published, "b"), result(published, "c")]).toEqual([
      { name: "a", result: "=done a" },
      null,
      null,
    ]);
    expect(await review("--approve", "all")).toMatchObject({ code: 0 });
    expect(statuses(await batch("--json"))).toEqual({ a: "completed", b: "rejected", c: "completed" });
    const history = await statecard(["history", reportIn(published).tasks[0]?.taskId ?? ""], { folder });
    expect(history.stdout).toMatch(/review +status approved, who ada/);
  });

  test("an approval is for the result that was shown: a later change takes it back", async () => {
    const { folder, batch, review } = await projectWith(named("a"));
    await batch("--review");
    await review("--approve", "a");
    const taskId = reportIn(await batch("--json")).tasks[0]?.taskId ?? "";
    const store = sqliteStore(join(folder, ".statecard/tasks.db"));
    onTestFinished(() => store.close());
    const { graph } = (await import(join(folder, "graph.js"))) as { graph: object };
    // The command's own copy of the package compiles the graph on the command's database.
    const { onStore } = (await import(join(PROJECT, "dist/compile/compile.js"))) as { onStore: OnStore };
    await onStore(graph, store).updateState({ configurable: { thread_id: taskId } }, { name: "another" });
    expect(statuses(await batch("--json"))).toEqual({ a: "reviewing" });
  });
});

describe("processes", () => {
  const own = (folder: string, ...more: readonly string[]) =>
    startStatecard(["batch", "tasks.jsonl", "--graph", "work", "--backoff", "1", ...more], { folder });

  test("Ctrl-C lets what runs end its step, and says how to go on", async () => {
    const { folder, batch, effects } = await projectWith(named("slow1", "slow2", "slow3"));
    const running = own(folder, "--workers", "1");
    await until(() => existsSync(join(folder, "effects.log")));
    running.process.kill("SIGINT");
    const stopped = await running.result;
    expect(stopped.code).toBe(130);
    expect(stopped.stdout).toBe("");
    expect(stopped.stderr).toContain(
      "Go on with:  npx statecard batch tasks.jsonl --graph work --backoff 1 --workers 1",
    );
    expect(statuses(await batch("--json"))).toEqual({ slow1: "completed", slow2: "completed", slow3: "completed" });
    expect(effects()).toEqual(["slow1", "slow2", "slow3"]);
  });

  test("a second Ctrl-C ends it at once", async () => {
    const { folder, effects } = await projectWith(named("hang", "a"));
    const running = own(folder, "--workers", "1");
    let said = "";
    running.process.stderr?.on("data", (data: Buffer) => (said += data.toString()));
    await until(() => existsSync(join(folder, "effects.log")));
    running.process.kill("SIGINT");
    await until(() => said.includes("Once more ends it at once"));
    running.process.kill("SIGINT");
    expect((await running.result).code).toBe(130);
    expect(effects()).toEqual(["hang"]);
  });

  test("one that hangs fails at its limit while the others end, and the command ends too", async () => {
    const { folder } = await projectWith(named("hang", "a", "b"));
    const ended = await own(folder, "--step-timeout", "1", "--attempts", "1", "--json").result;
    expect(ended.code).toBe(1);
    expect(statuses(ended)).toEqual({ hang: "failed", a: "completed", b: "completed" });
    expect(reportIn(ended).tasks[0]?.error?.code).toBe("TASK_TIMEOUT");
  });

  test("two commands on the same file share the work, and one takes over what the other's death has left", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `slow${index}`);
    const { folder, effects } = await projectWith(named(...names));
    const dies = own(folder, "--workers", "2");
    const lives = own(folder, "--workers", "2", "--json");
    await until(() => existsSync(join(folder, "effects.log")) && effects().length >= 4);
    dies.process.kill("SIGKILL");
    const ended = await lives.result;
    expect(ended.code).toBe(0);
    expect(statuses(ended)).toEqual(Object.fromEntries(names.map((name) => [name, "completed"])));
    // A step that was cut off is run again; nothing that was committed is.
    expect(effects().length - names.length).toBeLessThanOrEqual(2);
  });

  test.runIf(hasPython)("at a terminal there is a bar with rate and counts", async () => {
    const { folder } = await projectWith(named("a", "b", "bad"));
    const shown = await atTerminal(["batch", "tasks.jsonl", "--graph", "work", "--attempts", "1"], [], { folder });
    expect(shown.output).toMatch(/█.* 3\/3 .*\/s.*1 failed/);
    expect(shown.output).toContain("3 tasks: ");
    expect(shown.code).toBe(1);
  });
});
