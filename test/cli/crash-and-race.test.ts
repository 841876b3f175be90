import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type CommandResult,
  errorOf,
  eventsOf,
  expectNoStackTrace,
  projectFolder,
  rowsOf,
  startStatecard,
  statecard,
  taskOf,
  until,
} from "../support/cli.ts";

/** Asks for a colour, paints slowly, and leaves a line in effects.txt for each coat and each end. */
const PAINTING = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compile, defineWorkflow, field } from "statecard";
import { z } from "zod";

// Processes that are to meet wait here for one another.
if (existsSync("meet")) {
  writeFileSync("arrived-" + process.pid, "");
  while (!existsSync("go")) await sleep(2);
}

export const graph = compile(defineWorkflow({
  name: "painting", version: 1, state: { colour: field(z.string()) }, initial: "choose",
  steps: {
    choose: {
      writes: ["colour"], to: ["prime"],
      run: (_state, { observation }) => observation?.kind === "answer"
        ? { patch: { colour: observation.text }, next: "prime" }
        : { ask: "Which colour?" },
    },
    prime: { to: ["paint"], run: () => { appendFileSync("effects.txt", "primed\\n"); return { next: "paint" }; } },
    paint: {
      to: ["done"],
      run: async ({ colour }) => {
        writeFileSync("painting", "");
        while (existsSync("slow")) await sleep(5);
        appendFileSync("effects.txt", colour + "\\n");
        return { next: "done" };
      },
    },
    done: { final: true },
  },
}));`;

async function paintingFolder(): Promise<string> {
  return projectFolder({ "painting.ts": PAINTING });
}

function effects(folder: string): readonly string[] {
  const file = join(folder, "effects.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

/** Lets several commands load the graph, and starts them off together when all of them have. */
async function together(folder: string, commands: readonly (readonly string[])[]): Promise<readonly CommandResult[]> {
  await writeFile(join(folder, "meet"), "");
  const started = commands.map((args) => startStatecard(args, { folder }));
  const hasArrived = (name: string) => name.startsWith("arrived-");
  await until(() => readdirSync(folder).filter(hasArrived).length === commands.length, ...started);
  await writeFile(join(folder, "go"), "");
  return Promise.all(started.map((each) => each.result));
}

function expectOneWinner(results: readonly CommandResult[], winnersExit: number, losersCodes: readonly string[]): void {
  const losers = results.filter((result) => result.code === 3);
  expect(results.filter((result) => result.code !== 3).map((result) => result.code)).toEqual([winnersExit]);
  expect(losers.length).toBe(results.length - 1);
  for (const loser of losers) {
    expect(losersCodes).toContain(errorOf(loser).code);
    expectNoStackTrace(loser);
  }
}

describe("kill -9", () => {
  test("in the middle of a step loses nothing: a resume in a new process goes on and repeats no finished step", async () => {
    const folder = await paintingFolder();
    await statecard(["run", "painting.ts", "--task", "p-1"], { folder });
    await writeFile(join(folder, "slow"), "");
    const running = startStatecard(["resume", "p-1", "--answer", "green"], { folder });
    await until(() => existsSync(join(folder, "painting")), running);
    running.process.kill("SIGKILL");
    expect((await running.result).code).toBeNull();

    const shown = taskOf(await statecard(["show", "p-1", "--json"], { folder }));
    expect(shown).toMatchObject({ status: "running", step: "paint", state: { colour: "green" } });
    expect(shown.completedSteps).toEqual(["choose", "prime"]);

    await writeFile(join(folder, "painting.ts"), PAINTING.replace(`existsSync("slow")`, "false"));
    const resumed = await statecard(["resume", "p-1", "--json"], { folder });
    expect(resumed.code).toBe(0);
    expect(taskOf(resumed)).toMatchObject({ status: "completed", completedSteps: ["choose", "prime", "paint"] });
    expect(effects(folder)).toEqual(["primed", "green"]);
  });

  test("of the only owner frees the task at once; while the owner lives, others are told who it is", async () => {
    const folder = await paintingFolder();
    await statecard(["run", "painting.ts", "--task", "p-1"], { folder });
    await writeFile(join(folder, "slow"), "");
    const running = startStatecard(["resume", "p-1", "--answer", "green"], { folder });
    await until(() => existsSync(join(folder, "painting")), running);

    const busy = await statecard(["resume", "p-1", "--json"], { folder });
    expect(busy.code).toBe(3);
    const error = errorOf(busy);
    expect(error).toMatchObject({ code: "TASK_BUSY", message: expect.stringMatching(/process \d+ .*wait until/) });
    expect(error.message).toContain(String(running.process.pid));
    expect(await statecard(["show", "p-1"], { folder })).toMatchObject({ code: 0, stderr: "" });
    running.process.kill("SIGKILL");
    await running.result;
  });
});

describe("a stop by signal", () => {
  test.each(["SIGINT", "SIGTERM"] as const)("%s frees the task and says how to go on", async (signal) => {
    const folder = await paintingFolder();
    await statecard(["run", "painting.ts", "--task", "p-1"], { folder });
    await writeFile(join(folder, "slow"), "");
    const running = startStatecard(["resume", "p-1", "--answer", "green"], { folder });
    await until(() => existsSync(join(folder, "painting")), running);
    running.process.kill(signal);
    const stopped = await running.result;
    expectNoStackTrace(stopped);
    expect(stopped.stdout + stopped.stderr).toContain("statecard resume p-1");
    expect(effects(folder)).toEqual(["primed"]);
  });

  test("ends the command at once, also where the step at work does not heed its signal", async () => {
    const folder = await paintingFolder();
    await statecard(["run", "painting.ts", "--task", "p-1"], { folder });
    await writeFile(join(folder, "slow"), "");
    const running = startStatecard(["resume", "p-1", "--answer", "green"], { folder });
    await until(() => existsSync(join(folder, "painting")), running);
    running.process.kill("SIGINT");
    expect((await running.result).code).toBe(130);
    await rm(join(folder, "slow"));
    expect((await statecard(["resume", "p-1"], { folder })).code).toBe(0);
    expect(effects(folder)).toEqual(["primed", "green"]);
  });
});

describe("processes at once", () => {
  test("that answer the same question: exactly one wins, and only its answer counts", async () => {
    const folder = await paintingFolder();
    const started = taskOf(await statecard(["run", "painting.ts", "--task", "p-1", "--json"], { folder }));
    const request = started.waiting?.[0]?.id ?? "";
    const colours = ["red", "green", "blue"];
    const results = await together(
      folder,
      colours.map((colour) => ["resume", "p-1", "--request", request, "--answer", colour, "--json"]),
    );
    expectOneWinner(results, 0, ["TASK_BUSY", "STALE_RESUME", "TASK_FINISHED"]);
    const winner = results.findIndex((result) => result.code === 0);
    const colour = colours[winner] ?? "";
    expect(taskOf(await statecard(["show", "p-1", "--json"], { folder }))).toMatchObject({
      status: "completed",
      completedSteps: ["choose", "prime", "paint"],
      state: { colour },
    });
    expect(effects(folder)).toEqual(["primed", colour]);
    const history = await statecard(["history", "p-1", "--json"], { folder });
    const events = eventsOf(history);
    expect(events.filter((event) => event.kind === "answered")).toHaveLength(1);
  });

  test("that start the same task: exactly one does, and the others cause nothing", async () => {
    const folder = await paintingFolder();
    const start = ["run", "painting.ts", "--task", "p-1", "--message", "hello", "--json"];
    const results = await together(folder, [start, start, start]);
    expectOneWinner(results, 10, ["TASK_BUSY", "TASK_STARTED", "TASK_WAITING"]);
    expect(taskOf(await statecard(["show", "p-1", "--json"], { folder }))).toMatchObject({
      status: "waiting_user",
      step: "choose",
      waiting: [{ question: "Which colour?" }],
    });
    const history = await statecard(["history", "p-1", "--json"], { folder });
    const events = eventsOf(history);
    // Each of them may note where the graph came from; only one may start it.
    const happened = events.map((event) => event.kind).filter((kind) => kind !== "source");
    expect(happened).toEqual(["started", "decision", "asked"]);
  });

  test("that start the same task with different words: the late one does not answer the question", async () => {
    const folder = await paintingFolder();
    const start = ["run", "painting.ts", "--task", "p-1", "--json"];
    expect((await statecard([...start, "--message", "paint the door"], { folder })).code).toBe(10);
    const late = await statecard([...start, "--message", "paint the fence"], { folder });
    expect(late.code).toBe(3);
    expect(taskOf(await statecard(["show", "p-1", "--json"], { folder }))).toMatchObject({
      status: "waiting_user",
      state: { colour: null },
    });
  });

  test("that run different tasks on a new database do not disturb each other", async () => {
    const folder = await paintingFolder();
    const ids = ["a", "b", "c"];
    const results = await together(
      folder,
      ids.map((id) => ["run", "painting.ts", "--task", id, "--json"]),
    );
    expect(results.map((result) => result.code)).toEqual([10, 10, 10]);
    const tasks = rowsOf(await statecard(["tasks", "--json"], { folder }));
    expect(tasks.map((task) => task.taskId).toSorted()).toEqual(ids);
  });
});
