import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi, type TestContext } from "vitest";
import {
  atTerminal,
  hasPython,
  projectFolder,
  startStatecard,
  statecard,
  temporaryFolder,
  until,
  type CommandResult,
} from "../support/cli.ts";

const DEV = ["dev", "--distributed", "--workers", "1", "--graphs"];
/** A graph whose one step does something and then goes on for a minute. */
const graphThat = (does: string) => `
  import { compile, defineWorkflow } from "statecard";
  const run = async () => {
    ${does};
    await new Promise((resolve) => setTimeout(resolve, 60_000));
    return { next: "ended" };
  };
  const steps = { begun: { to: ["ended"], run }, ended: { final: true } };
  export const graph = compile(defineWorkflow({ name: "long", version: 1, state: {}, initial: "begun", steps }));`;
const PROJECT = {
  "langgraph.json": '{"graphs": {"slow": "./slow.mjs", "deadly": "./deadly.mjs", "broken": "./broken.mjs"}}',
  "slow.mjs": graphThat('console.log("in the step")'),
  "deadly.mjs": graphThat('process.kill(process.ppid, "SIGKILL")'),
  "broken.mjs": 'throw new Error("no such luck");',
};

/** A folder for everything temporary that a command makes. */
async function ownPlace() {
  const place = await temporaryFolder();
  return { place, environment: { TMPDIR: place } };
}

/** What a command has left in its place: folders of databases, and processes of any kind, which all inherit its environment. */
function leftIn(place: string) {
  const processes = spawnSync("ps", ["axeww", "-o", "args="], { encoding: "utf8" }).stdout.split("\n");
  return { folders: databasesIn(place), processes: processes.filter((args) => args.includes(place)) };
}

const databasesIn = (place: string) => readdirSync(place).filter((name) => name.startsWith("statecard-postgres-"));
const NOTHING = { folders: [], processes: [] };

function skipWithoutPostgres(context: TestContext, { stderr }: Pick<CommandResult, "stderr">): void {
  context.skip(stderr.includes("are not installed here"), "PostgreSQL's programs are not installed");
}

test("one command starts a database, workers and a prompt, and puts all of it away", async (context) => {
  const { place, environment } = await ownPlace();
  const input = "ticket network unstable\nnowhere hello\n";
  const result = await statecard([...DEV, "ticket"], { input, environment });
  skipWithoutPostgres(context, result);
  expect(result.stderr).toBe("");
  expect(result.code).toBe(0);
  expect(result.stdout).toMatch(
    /^1 worker on a PostgreSQL of its own[^]*^submitted ticket-\w{6}$[^]*^USAGE: "nowhere"[^]*^Stopping/m,
  );
  expect(leftIn(place)).toEqual(NOTHING);
});

test("Ctrl-C while the database starts puts it away", async () => {
  const { place, environment } = await ownPlace();
  const dev = startStatecard([...DEV, "ticket"], { environment });
  await until(() => databasesIn(place).length > 0 || dev.process.exitCode !== null);
  dev.process.kill("SIGINT");
  const { code } = await dev.result;
  expect(leftIn(place)).toEqual(NOTHING);
  // It ends with 2 where the programs are not installed.
  expect([130, 2]).toContain(code);
});

test.skipIf(!hasPython)("a second Ctrl-C ends a step that goes on, and leaves nothing", async (context) => {
  const { place, environment } = await ownPlace();
  const folder = await projectFolder(PROJECT);
  const steps = [
    ["Ctrl-D ends it", "slow\r"],
    ["in the step", "\u0003"],
    ["Stopping", "\u0003"],
  ] as const;
  const { code, output, left } = await atTerminal([...DEV, "slow"], steps, { folder, environment });
  skipWithoutPostgres(context, { stderr: output });
  expect({ code, left }, output).toEqual({ code: 130, left: 0 });
  expect(leftIn(place)).toEqual(NOTHING);
});

test.skipIf(!hasPython)("kill -9 leaves nothing either", async (context) => {
  const { place, environment } = await ownPlace();
  const folder = await projectFolder(PROJECT);
  const steps = [["Ctrl-D ends it", "deadly\r"]] as const;
  const { code, output } = await atTerminal([...DEV, "deadly"], steps, { folder, environment });
  skipWithoutPostgres(context, { stderr: output });
  expect(code, output).toBe(-9);
  await vi.waitFor(() => expect(leftIn(place)).toEqual(NOTHING), { timeout: 30_000, interval: 100 });
});

const STARTING = "Starting PostgreSQL and 1 worker …\n";

test("a start that fails says why and leaves nothing", async (context) => {
  const { place, environment } = await ownPlace();
  const folder = await projectFolder(PROJECT);
  const broken = await statecard([...DEV, "slow,broken"], { folder, environment });
  skipWithoutPostgres(context, broken);
  expect(broken).toMatchObject({
    code: 2,
    stdout: STARTING,
    stderr: expect.stringMatching(/^INVALID_GRAPH: .*no such luck/),
  });
  expect(leftIn(place)).toEqual(NOTHING);

  const initdb = join(place, "initdb");
  await writeFile(initdb, '#!/bin/sh\necho "initdb: error: the disk is full" >&2\nexit 1\n');
  chmodSync(initdb, 0o755);
  const full = { ...environment, PATH: `${place}:${process.env.PATH}` };
  const result = await statecard([...DEV, "slow"], { folder, environment: full });
  expect(result).toMatchObject({
    code: 2,
    stdout: STARTING,
    stderr: expect.stringMatching(/^USAGE: .*disk is full.*--db/),
  });
  expect(leftIn(place)).toEqual(NOTHING);
});
