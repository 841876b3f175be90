import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readLimit } from "../../src/batch/queue/read-limit.ts";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  errorOf,
  expectRefusal,
  jsonOf,
  projectFolder,
  rowsOf,
  shareOneProcess,
  startStatecard,
  statecard,
  taskOf,
  temporaryFolder,
  until,
} from "../support/cli.ts";
import { describePostgres, postgresUrl } from "../support/postgres.ts";

const SOON = { timeout: 60_000, interval: 100 };

describe("a limit is read", () => {
  test.each([
    ["ticket=10", "graph", "ticket", { concurrency: 10, rate: null }],
    ["ticket=100/min", "graph", "ticket", { concurrency: null, rate: { max: 100, perMs: 60_000 } }],
    ["@acme=2,30/s", "tenant", "acme", { concurrency: 2, rate: { max: 30, perMs: 1000 } }],
  ])("%s", (text, kind, name, limit) => {
    expect(readLimit(text)).toEqual({ kind, name, limit });
  });

  test.each(["ticket", "ticket=", "=3", "ticket=0", "ticket=-1", "ticket=3/day", "@=3", "ticket=1.5"])(
    "not %s",
    (text) => {
      expect(() => readLimit(text)).toThrow(/write GRAPH=10/);
    },
  );
});

describePostgres("at the command line", (schema) => {
  const database = `statecard_queue_${randomUUID().slice(0, 8)}`;
  const url = Object.assign(new URL(postgresUrl()), { pathname: `/${database}` }).href;
  const environment = { STATECARD_DB: url };
  shareOneProcess();
  beforeAll(() => schema.query(`create database ${database}`));
  afterAll(() => schema.query(`drop database ${database} with (force)`));

  test("tasks of a file are submitted, run by a worker, answered, and run on", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "tickets.jsonl");
    await writeFile(
      file,
      '{"id":"a","message":"network unstable"}\nnonsense\n{"id":"b","message":"printer","input":{"priority":"P9"}}\n',
    );
    const submit = () => statecard(["submit", "ticket", file, "--json"], { environment });
    const worker = startStatecard(["worker", "--graphs", "ticket", "--json"], { environment });
    const first = await submit();
    expect(first.code).toBe(3);
    const { started, refused } = jsonOf(first) as { started: string[]; refused: { line: number }[] };
    expect(started).toEqual([expect.stringMatching(/^tickets\.a\./)]);
    expect(refused.map(({ line }) => line)).toEqual([2, 3]);
    const [taskId = ""] = started;
    const shown = async () => taskOf(await statecard(["show", taskId, "--json"], { environment }));
    await vi.waitFor(async () => expect((await shown()).status).toBe("waiting_user"), SOON);
    expect(jsonOf(await submit())).toMatchObject({ started: [], left: [taskId] });
    const again = await statecard(["submit", "ticket", "--task", taskId, "--message", "P1"], { environment });
    expect(again.stdout).toBe(
      `${taskId} exists already and has ended or waits for a person; nothing was added to it.\n`,
    );
    await statecard(["resume", taskId, "--answer", "P1"], { environment });
    expect((await shown()).state).toMatchObject({ priority: "P1" });
    worker.process.kill("SIGTERM");
    const ended = await worker.result;
    expect(ended.code).toBe(0);
    expect(ended.stdout).toContain(`"taskId":"${taskId}","outcome":"waiting"`);
    expect(rowsOf(await statecard(["tasks", "--json"], { environment }))).toHaveLength(1);
  });

  test("a worker with many graphs says nothing of its own, and ends though a step has left a timer behind", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `graph_${index}`);
    const folder = await projectFolder({
      "many.mjs": `
import { compile, defineWorkflow } from "statecard";
const made = (name) => compile(defineWorkflow({
  name, version: 1, state: {}, initial: "begun",
  steps: { begun: { to: ["ended"], run: () => (setInterval(() => {}, 1000), { next: "ended" }) }, ended: { final: true } },
}));
${names.map((name) => `export const ${name} = made("${name.replace("_", "-")}");`).join("\n")}`,
      "langgraph.json": JSON.stringify({
        graphs: Object.fromEntries(names.map((name) => [name, `./many.mjs:${name}`])),
      }),
    });
    const worker = startStatecard(["worker", "--json"], { folder, environment });
    let said = "";
    worker.process.stdout?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await statecard(["submit", "graph_7", "--json"], { folder, environment });
    await until(() => said.includes('"outcome":"completed"'), worker);
    worker.process.kill("SIGTERM");
    expect(await worker.result).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Stopping: [^\n]*\n$/) });
  });

  test("what cannot work is said before anything is done", async () => {
    const file = { environment: { STATECARD_DB: join(await temporaryFolder(), "tasks.db") } };
    await expectRefusal(["worker"], { code: "USAGE", exit: 2, says: /--db postgres:/ }, file);
    await expectRefusal(["submit", "ticket"], { code: "USAGE", exit: 2, says: /--db postgres:/ }, file);
    await expectRefusal(["dev"], { code: "USAGE", exit: 2, says: /--distributed/ }, file);
    const limit = ["worker", "--graphs", "ticket", "--limit", "refund=3"];
    await expectRefusal(limit, { code: "USAGE", exit: 2, says: /@refund/ }, { environment });
    const away = "redis://:geheim@127.0.0.1:1/0";
    const result = await statecard(["submit", "ticket", "--queue", away, "--json"], { environment });
    expect(errorOf(result)).toMatchObject({
      code: "DATABASE_UNAVAILABLE",
      message: expect.stringContaining("127.0.0.1:1"),
    });
    expect(result.stdout + result.stderr).not.toContain("geheim");
  });
});
