import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { COMMAND, projectFolder, until } from "../support/cli.ts";

// Its first step notes that it runs, and waits for a file.
const SLOW = `
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compile, defineWorkflow } from "statecard";
const run = async () => {
  writeFileSync("begun", "");
  while (!existsSync("go")) await sleep(5);
  return { next: "last" };
};
export const graph = compile(defineWorkflow({
  name: "slow", version: 1, state: {}, initial: "first",
  steps: { first: { to: ["last"], run }, last: { to: ["ended"], run: () => ({ next: "ended" }) }, ended: { final: true } },
}));`;

/** A command that runs tasks, with a step of one under way. */
async function started(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const folder = await projectFolder({ "slow.mjs": SLOW, "tasks.jsonl": '{"id": "a"}\n' });
  await mkdir(join(folder, "node_modules/.bin"));
  await symlink(COMMAND, join(folder, "node_modules/.bin/statecard"));
  const { PATH = "", HOME = "" } = process.env;
  const log = join(folder, "said");
  const line = [program, ...args, "batch", "tasks.jsonl", "--graph", "slow.mjs"].join(" ");
  // A group of its own, which leaves nothing behind; what it says goes to a file, which outlives whoever starts it.
  const child = spawn("/bin/sh", ["-c", `exec ${line} > said 2>&1`], {
    cwd: folder,
    env: { PATH, HOME, LANG: "C.UTF-8", ...environment },
    detached: true,
    stdio: "ignore",
  });
  const { pid = 0 } = child;
  const isAlive = () => isThere(-pid);
  onTestFinished(() => void (isAlive() && process.kill(-pid, "SIGKILL")));
  await until(() => existsSync(join(folder, "begun")));
  return {
    pid,
    said: () => readFileSync(log, "utf8"),
    go: () => writeFileSync(join(folder, "go"), ""),
    ended: () => until(() => !isAlive()),
  };
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const NPX = ["npx", ["--offline", "--no", "statecard"]] as const;
/** Longer than it takes to look whether npm is still there. */
const LOOKED_MS = 1500;

test("SIGTERM to npx stops the command, though npm ends only the shell between", async () => {
  const { pid, said, go, ended } = await started(...NPX);
  process.kill(pid, "SIGTERM");
  await until(() => said().includes("Stopping"));
  go();
  await ended();
  expect(said()).toContain("Stopped, nothing is lost");
});

test("SIGTERM to npx and all that it has started counts once", async () => {
  const { pid, said, go, ended } = await started(...NPX);
  process.kill(-pid, "SIGTERM");
  await sleep(LOOKED_MS);
  go();
  await ended();
  expect(said()).toContain("Stopped, nothing is lost");
});

test("a Ctrl-C that comes from the terminal and from npm counts once", async () => {
  const { pid, said, go, ended } = await started(process.execPath, [COMMAND], { npm_lifecycle_event: "npx" });
  process.kill(pid, "SIGINT");
  await sleep(5);
  process.kill(pid, "SIGINT");
  await until(() => said().includes("Stopping"));
  go();
  await ended();
  expect(said()).toContain("Stopped, nothing is lost");
});

test("without npm a second signal ends it at once", async () => {
  const { pid, said, ended } = await started(process.execPath, [COMMAND]);
  process.kill(pid, "SIGINT");
  await until(() => said().includes("Stopping"));
  process.kill(pid, "SIGINT");
  await ended();
  expect(said()).not.toContain("Stopped");
});
