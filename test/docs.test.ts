// Two pages are made of whole files: docs/workflow.md and docs/testing.md. Here they are taken out, checked and run.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { afterAll, describe, expect, test } from "vitest";
import type { Workflow } from "statecard";
import { ERROR_CODES } from "../src/errors.ts";
import { COMMAND, statecard } from "./support/cli.ts";

const PAGES = ["workflow", "testing"] as const;
const [workflowPage, testingPage] = PAGES.map((name) => readFileSync(`docs/${name}.md`, "utf8")) as [string, string];

const folder = mkdtempSync(join(tmpdir(), "statecard-docs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const blocks = [...`${workflowPage}${testingPage}`.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code ?? "");
for (const code of blocks) {
  const [, name] = /^\/\/ ([\w.-]+\.ts)\b/.exec(code) ?? [];
  if (name === undefined) throw new Error(`a block does not begin with the name of its file: "${code}"`);
  writeFileSync(join(folder, name), code);
}
writeFileSync(join(folder, "package.json"), '{"type":"module"}');
const compilerOptions = {
  module: "nodenext",
  target: "es2022",
  lib: ["es2023"],
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noUnusedLocals: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  noEmit: true,
};
writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
mkdirSync(join(folder, "node_modules"));
symlinkSync(resolve("."), join(folder, "node_modules/statecard"));
for (const name of ["zod", "vitest", "tsx", "@langchain", "@types"]) {
  symlinkSync(resolve("node_modules", name), join(folder, "node_modules", name));
}

/** Runs a program of ours in the folder, as a project that has nothing of ours but the package. */
function run(program: string, ...args: readonly string[]): string {
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST") && name !== "NODE_ENV");
  const ran = spawnSync(resolve("node_modules/.bin", program), args, {
    cwd: folder,
    encoding: "utf8",
    env: Object.fromEntries(environment),
  });
  return ran.status === 0 ? "" : `${ran.stdout}${ran.stderr}`;
}

/** One of the workflows of a page. */
async function workflowIn(file: string, name: string): Promise<Workflow> {
  const { [name]: found } = (await import(join(folder, file))) as Readonly<Record<string, Workflow>>;
  if (!found) throw new Error(`${file} exports no ${name}`);
  return found;
}

describe("docs/workflow.md", () => {
  test("its whole one does what the page shows", async () => {
    const file = join(folder, "parcel.ts");
    const shown = readFileSync(file, "utf8");
    writeFileSync(file, shown.replace("openStore()", 'openStore(":memory:")'));
    const run = await runWorkflow(await workflowIn("parcel.ts", "parcel"), { answers: ["P-0", "P-77"] });
    expect(run.task).toMatchObject({ status: "completed", step: "done" });
    const replies = run.events.flatMap(({ data }) => (data.decision as { reply?: string } | null)?.reply ?? []);
    for (const reply of replies) expect(workflowPage).toContain(`> ${reply}`);
    expect(replies).toHaveLength(2);
    for (const [field, value] of Object.entries(run.state)) {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      expect(workflowPage).toMatch(new RegExp(`^ {2}${field} +${text.replaceAll(/[[\]]/g, "\\$&")} +new$`, "m"));
    }
    writeFileSync(file, shown);
  });

  test("its workflow with a step of every kind goes through all of them", async () => {
    const call = (town: string) => ({ tool: "price", args: { town } });
    const model = scriptedModel([
      { patch: { towns: ["Rome", "Oslo"] }, next: "comparing" },
      { calls: [{ ...call("Rome"), id: "rome", expect: [{ path: "euros", is: "at least", value: 1 }] }] },
      { patch: { best: "Rome" }, next: "searching" },
      { calls: [call("Oslo")] },
      { patch: { best: "Oslo" }, next: "pricing" },
    ]);
    const { task, state } = await runWorkflow(await workflowIn("trip.ts", "trip"), { model, message: "go" });
    expect(task.status).toBe("completed");
    expect(state).toMatchObject({ prices: [40, 40], notes: ["see Rome", "see Oslo"], first: "see Oslo", total: 80 });
  });

  test("its output guard sends back once, then mends", async () => {
    const promise = { patch: { text: "we guarantee it" }, next: "done" };
    const model = scriptedModel([promise, promise]);
    const run = await runWorkflow(await workflowIn("reply.ts", "reply"), { model, message: "go" });
    expect(run.refused).toMatchObject([{ code: "OUTPUT_GUARD", reason: "promise nothing" }]);
    expect(run.state).toEqual({ text: "we hope for it" });
  });

  test.each([
    ["src/workflow/define.ts", "export interface WorkflowDefinition<"],
    ["src/workflow/step.ts", "export interface Step<"],
    ["src/workflow/step.ts", "export interface StepContext "],
    ["src/workflow/step.ts", "export interface StepResult<"],
    ["src/workflow/step.ts", "export interface PlanRule<"],
    ["src/workflow/step.ts", "export interface ReactRule<"],
    ["src/workflow/step.ts", "export interface MapRule<"],
    ["src/workflow/tool.ts", "export interface ToolDefinition<"],
  ])("it has every key of %s, %s", (file, start) => {
    const source = readFileSync(file, "utf8");
    const [declared = ""] = source.slice(source.indexOf(start)).split("\n}\n");
    const keys = [...declared.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, key]) => key ?? "");
    expect(keys.length).toBeGreaterThan(1);
    expect(keys.filter((key) => !workflowPage.includes(`\`${key}\``))).toEqual([]);
  });

  test("it has every method of a field, every code of a refused decision and every fault", () => {
    const methods = readFileSync("src/state/fields.ts", "utf8").matchAll(/^ {2}(\w+)\(.*\): (?:this|Field<T>) \{/gm);
    const refusals = /\/\/ a refused decision\n([\s\S]*?)\n {2}\/\//.exec(readFileSync("src/errors.ts", "utf8"))?.[1];
    const faults = readFileSync("src/workflow/fault.ts", "utf8").matchAll(/\| "(\w+)"/g);
    const names = [
      ...[...methods].map(([, name]) => `\`${name}(`),
      ...[...(refusals ?? "").matchAll(/([A-Z_]+):/g), ...faults].map(([, code]) => `\`${code}\``),
    ];
    expect(names.length).toBeGreaterThan(40);
    expect(names.filter((name) => !workflowPage.includes(name))).toEqual([]);
  });
});

describe.skipIf(!existsSync(COMMAND))("both pages, as a project of its own (needs npm run build)", () => {
  test("their files type-check", () => {
    expect(run("tsc", "-p", ".")).toBe("");
  });

  test("their tests pass", () => {
    expect(run("vitest", "run", "--root", ".", "--no-isolate", "--maxWorkers", "1")).toBe("");
  });

  test("the model of rules answers at the command line, as the page shows", async () => {
    const commands = [...testingPage.matchAll(/^\$ npx statecard (.*)$/gm)].map(([, command]) => command ?? "");
    expect(commands).toHaveLength(3);
    const said: string[] = [];
    for (const command of commands) {
      const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
      said.push((await statecard(words, { folder })).stdout);
    }
    const shown = [...testingPage.matchAll(/^(?:waiting for you: .*| {2}(?:cups|name|receipt) .*|Done in .*)$/gm)];
    expect(shown).toHaveLength(6);
    for (const [line] of shown) expect(said.join("\n")).toContain(line);
  });
});

test("every error code that the pages name exists", () => {
  const faults = new Set(
    [...readFileSync("src/workflow/fault.ts", "utf8").matchAll(/"(\w+)"/g)].map(([, code]) => code),
  );
  const named = [...`${workflowPage}${testingPage}`.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, code]) => code ?? "");
  const known = (code: string) => faults.has(code) || ERROR_CODES.some((one) => one === code);
  expect(named.filter((code) => !known(code) && !["FAULT_POINTS", "OPENAI_API_KEY"].includes(code))).toEqual([]);
});
