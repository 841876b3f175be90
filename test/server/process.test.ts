import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  expectRefusal,
  jsonOf,
  projectFolder,
  shareOneProcess,
  startStatecard,
  statecard,
  taskOf,
  until,
  type RunningCommand,
} from "../support/cli.ts";

// Each step notes that it has run, and waits for a file that the test makes.
const SLOW = `
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compile, defineWorkflow, field } from "statecard";
import { z } from "zod";
const step = (name, next) => ({
  to: [next],
  writes: ["done"],
  run: async (state) => {
    appendFileSync("begun.txt", name + "\\n");
    // What heeds no signal must not keep a server that was stopped.
    if (name === "one") setInterval(() => {}, 1000);
    while (!existsSync(name + ".go")) await sleep(5);
    return { patch: { done: [...(state.done ?? []), name] }, next };
  },
});
export const graph = compile(defineWorkflow({
  name: "slow", version: 1, goal: "Be slow.",
  state: { done: field(z.array(z.string())) },
  initial: "one",
  steps: { one: step("one", "two"), two: step("two", "three"), three: step("three", "end"), end: { final: true } },
}));
`;

shareOneProcess();

interface Project {
  readonly folder: string;
  readonly begun: () => readonly string[];
  readonly go: (...steps: readonly string[]) => void;
}

async function project(): Promise<Project> {
  const folder = await projectFolder({
    "slow.mjs": SLOW,
    "langgraph.json": JSON.stringify({ graphs: { slow: "./slow.mjs:graph" } }),
  });
  return {
    folder,
    begun: () => {
      const file = join(folder, "begun.txt");
      return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
    },
    go: (...steps) => steps.forEach((step) => writeFileSync(join(folder, `${step}.go`), "")),
  };
}

interface ServerProcess extends RunningCommand {
  readonly url: string;
}

async function serve(folder: string, ...options: readonly string[]): Promise<ServerProcess> {
  const command = startStatecard(["serve", "--port", "0", "--json", ...options], { folder });
  onTestFinished(() => void command.process.kill("SIGKILL"));
  let said = "";
  command.process.stdout?.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await until(() => said.includes("\n"), command);
  return { ...command, url: (JSON.parse(said) as { url: string }).url };
}

async function post(url: string, path: string, body: object = {}): Promise<any> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
}

const stands = async (url: string) =>
  (await (await fetch(`${url}/tasks/t`)).json()) as { status: string; state: object };

/** Waits until a server takes no more requests. */
async function untilItStops({ url }: ServerProcess): Promise<void> {
  const standing = () =>
    fetch(`${url}/healthz`).then(
      ({ status }) => status,
      () => "gone",
    );
  await expect.poll(standing).not.toBe(200);
}

test("killed in the middle and started again, it takes its tasks up; no finished step runs twice", async () => {
  const { folder, begun, go } = await project();
  const first = await serve(folder);
  expect(await post(first.url, "/tasks", { graph: "slow", taskId: "t" })).toMatchObject({ taskId: "t" });
  await post(first.url, "/tasks", { graph: "slow", taskId: "other" });
  await post(first.url, "/tasks/other/cancel", { reason: "not needed" });
  go("one");
  await until(() => begun().includes("two"));
  first.process.kill("SIGKILL");
  await first.result;
  go("two", "three");
  const second = await serve(folder);
  await expect
    .poll(() => stands(second.url), { timeout: 60_000 })
    .toMatchObject({
      status: "completed",
      state: { done: ["one", "two", "three"] },
    });
  expect(begun().filter((step) => step === "three")).toHaveLength(1);
  const other = await (await fetch(`${second.url}/tasks/other`)).json();
  expect(other).toMatchObject({ status: "cancelled", lastError: { message: expect.stringContaining("not needed") } });
});

test("at SIGTERM the running step commits, the next does not begin, and the task is nobody's", async () => {
  const { folder, begun, go } = await project();
  const server = await serve(folder);
  await post(server.url, "/tasks", { graph: "slow", taskId: "t" });
  go("one");
  await until(() => begun().includes("two"));
  server.process.kill("SIGTERM");
  await untilItStops(server);
  go("two", "three");
  expect(await server.result).toMatchObject({ code: 0, stderr: expect.stringContaining("Stopping") });
  expect(begun()).toEqual(["one", "two"]);
  const stopped = taskOf(await statecard(["show", "--json", "t"], { folder }));
  expect(stopped).toMatchObject({ status: "running", step: "three", state: { done: ["one", "two"] } });
  // Without the sweep the task stays as it is; the command line, or a server with it, goes on.
  const idle = await serve(folder, "--no-sweep");
  expect(await stands(idle.url)).toMatchObject({ status: "running" });
  expect(taskOf(await statecard(["resume", "--json", "t"], { folder }))).toMatchObject({ status: "completed" });
  idle.process.kill("SIGINT");
  expect((await idle.result).code).toBe(0);
});

test("a second signal ends it at once", async () => {
  const { folder, begun } = await project();
  const server = await serve(folder);
  await post(server.url, "/tasks", { graph: "slow", taskId: "t" });
  await until(() => begun().includes("one"));
  server.process.kill("SIGTERM");
  await untilItStops(server);
  server.process.kill("SIGTERM");
  expect((await server.result).code).toBe(130);
});

test("`cancel` takes a task from the server that runs it", async () => {
  const { folder, begun, go } = await project();
  const server = await serve(folder);
  await post(server.url, "/tasks", { graph: "slow", taskId: "t" });
  await until(() => begun().includes("one"));
  const cancelled = await statecard(["cancel", "--json", "t", "--reason", "wrong one"], { folder });
  expect(taskOf(cancelled)).toMatchObject({ status: "cancelled", step: "one", state: { done: null } });
  go("one", "two", "three");
  await expect.poll(async () => (await fetch(`${server.url}/tasks/t`)).json()).toMatchObject({ status: "cancelled" });
  await expectRefusal(["resume", "t"], { code: "TASK_CANCELLED", exit: 3, says: /wrong one/ }, { folder });
  await expectRefusal(["cancel", "t"], { code: "TASK_CANCELLED", exit: 3, says: /wrong one/ }, { folder });
  expect(begun()).toEqual(["one"]);
  const { events } = jsonOf(await statecard(["history", "--json", "t"], { folder })) as { events: { kind: string }[] };
  expect(events.at(-1)?.kind).toBe("cancelled");
  const folderOut = join(folder, "out");
  expect((await statecard(["export", "t", folderOut], { folder })).code).toBe(0);
  expect((await statecard(["verify", folderOut], { folder })).code).toBe(0);
});

test("wrong options are said", async () => {
  const { folder } = await project();
  const refuse = (args: readonly string[], says: RegExp) =>
    expectRefusal(args, { code: "USAGE", exit: 2, says }, { folder });
  await refuse(["serve", "--port", "x"], /whole number from 0 to 65535/);
  await refuse(["serve", "--rate", "0"], /whole number from 1 to 1000000/);
  await refuse(["serve", "--step-timeout", "0"], /--step-timeout is a whole number from 1/);
  await refuse(["serve", "--graphs", "nope"], /it has: slow/);
  await refuse(["serve", "--host", "0.0.0.0", "--port", "0"], /token create/);
  await refuse(["token", "create", "ada", "--tenant", "A B"], /small letters/);
  await refuse(["token", "list", "--tenant", "acme"], /token create/);
});

test("a token's tenant is kept and listed", async () => {
  const { folder } = await project();
  const made = jsonOf(await statecard(["token", "create", "ada", "--tenant", "acme", "--json"], { folder }));
  expect(made).toMatchObject({ name: "ada", tenant: "acme", token: expect.stringMatching(/^sc_/) });
  expect(jsonOf(await statecard(["token", "list", "--json"], { folder }))).toMatchObject({
    tokens: [{ name: "ada", tenant: "acme" }],
  });
  await statecard(["token", "create", "bob"], { folder });
  const { stdout } = await statecard(["token", "list"], { folder });
  expect(stdout).toMatch(/^ada {2}since \S+ {2}tenant acme\nbob {2}since \S+\n$/);
});

test("a database that cannot be reached ends it with the reason, instead of leaving it alive", async () => {
  const { folder } = await project();
  const away = startStatecard(["serve", "--port", "0", "--db", "postgres://nobody@127.0.0.1:1/none"], { folder });
  onTestFinished(() => void away.process.kill("SIGKILL"));
  const { code, stdout, stderr } = await away.result;
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("DATABASE_UNAVAILABLE: ");
});
