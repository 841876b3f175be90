import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  errorOf,
  expectNoStackTrace,
  expectRefusal,
  projectFolder,
  shareOneProcess,
  statecard,
  taskOf,
} from "../support/cli.ts";

shareOneProcess();

const IMPORTS = `
import { compile, defineWorkflow } from "statecard";
`;
const workflow = (name: string) =>
  `defineWorkflow({ name: "${name}", version: 1, state: {}, initial: "start",
     steps: { start: { to: ["done"], run: (_state: unknown, context: { clients: object }) =>
       ({ next: "done", because: Object.keys(context.clients).join() }) }, done: { final: true } } })`;

async function ranIn(folder: string, graph: string): Promise<string> {
  const ran = await statecard(["run", graph, "--task", "a", "--json"], { folder });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  return taskOf(ran).workflow;
}

describe("a graph is found", () => {
  test("in a TypeScript file that imports another one", async () => {
    const folder = await projectFolder({
      "workflow.ts": `${IMPORTS} export const only: ReturnType<typeof defineWorkflow> = ${workflow("typed")} as never;`,
      "graph.ts": `${IMPORTS} import { only } from "./workflow.ts"; export const graph = compile(only);`,
    });
    expect(await ranIn(folder, "graph.ts")).toBe("typed");
  });

  test("in a JavaScript module, under its default export", async () => {
    const javascript = workflow("plain")
      .replace(/\(_state.*?\) =>/s, "() =>")
      .replace(/, because.*?\.join\(\)/s, "");
    const folder = await projectFolder({ "graph.mjs": `${IMPORTS} export default compile(${javascript});` });
    expect(await ranIn(folder, "./graph.mjs")).toBe("plain");
  });

  test("under the export that file:export names, among several", async () => {
    const folder = await projectFolder({
      "both.ts": `${IMPORTS} export const first = compile(${workflow("first")});
        export const second = compile(${workflow("second")});`,
    });
    expect(await ranIn(folder, "both.ts:second")).toBe("second");
  });

  test("behind a factory, which may be asynchronous", async () => {
    const folder = await projectFolder({
      "factory.ts": `${IMPORTS} export async function make() { return compile(${workflow("made")}); }`,
    });
    expect(await ranIn(folder, "factory.ts:make")).toBe("made");
    const graph = await statecard(["graph", "factory.ts", "--json"], { folder });
    expect(taskOf(graph).workflow).toBe("made");
  });

  test("beside other exports, which may be functions that are no factories", async () => {
    const folder = await projectFolder({
      "graph.ts": `${IMPORTS}
        export function decide(prompt: { state: { a: string } }) { return prompt.state.a; }
        export const graph = compile(${workflow("beside")});`,
    });
    expect(await ranIn(folder, "graph.ts")).toBe("beside");
  });

  test("by its id in langgraph.json, and again for a task that was started from it", async () => {
    const folder = await projectFolder({
      "langgraph.json": `{ "graphs": { "shop": "./graph.ts:graph" } }`,
      "graph.ts": `${IMPORTS} export const graph = compile(${workflow("order").replace(
        `({ next: "done",`,
        `({ ask: "Which?",`,
      )});`,
    });
    const started = await statecard(["run", "shop", "--task", "a", "--json"], { folder });
    expect(started.code).toBe(10);
    const resumed = await statecard(["resume", "a", "--answer", "this", "--json"], { folder });
    expect(resumed.code).toBe(10);
    expect(taskOf(resumed)).toMatchObject({ workflow: "order", waiting: [{ question: "Which?" }] });
  });
});

describe("a graph that cannot be used is refused without a stack trace", () => {
  const refused = async (files: Record<string, string>, graph: string, says: RegExp) => {
    const folder = await projectFolder(files);
    await expectRefusal(["run", graph], { code: "INVALID_GRAPH", exit: 2, says }, { folder });
  };

  test("a syntax error, with the file", async () => {
    await refused({ "broken.ts": "export const graph = compile(;" }, "broken.ts", /broken\.ts/);
  });

  test("a module that throws, with what it said", async () => {
    await refused({ "broken.ts": `throw new Error("no such luck");` }, "broken.ts", /broken\.ts: no such luck/);
  });

  test("a missing import, with its name", async () => {
    await refused({ "broken.ts": `import "not-installed"; export const graph = 1;` }, "broken.ts", /not-installed/);
  });

  test("a file without a graph, with what to export", async () => {
    const says = /empty\.ts: no export.*export what compile\(\) returns/;
    await refused({ "empty.ts": "export const number = 1; export default { runtime: 2 };" }, "empty.ts", says);
  });

  test("an export that is missing or is no graph, with its name", async () => {
    const files = { "some.ts": "export const number = 1;" };
    await refused(files, "some.ts:graph", /export "graph".*compile\(\)/);
    await refused(files, "some.ts:number", /export "number".*compile\(\)/);
  });

  test("a factory that throws, with what it said", async () => {
    const files = { "factory.ts": `export function make() { throw new Error("no such luck"); }` };
    await refused(files, "factory.ts:make", /factory\.ts.*no such luck/);
    await refused(files, "factory.ts", /factory\.ts/);
  });

  test("a module that throws something that is no error", async () => {
    await refused({ "broken.mjs": "throw null;" }, "broken.mjs", /broken\.mjs/);
  });

  test("a langgraph.json that is not JSON, with the file", async () => {
    await refused({ "langgraph.json": "{ graphs: }" }, "shop", /langgraph\.json is not valid JSON/);
  });

  test("an id of langgraph.json whose file is missing, with that file", async () => {
    const folder = await projectFolder({ "langgraph.json": `{ "graphs": { "shop": "./gone.ts:graph" } }` });
    await expectRefusal(["run", "shop"], { code: "UNKNOWN_GRAPH", exit: 2, says: /gone\.ts/ }, { folder });
  });

  test("a workflow with faults, with every fault", async () => {
    const faulty = `defineWorkflow({ name: "faulty", version: 1, state: {}, initial: "nowhere", steps: { a: { to: ["b"] } } } as never)`;
    const folder = await projectFolder({ "faulty.ts": `${IMPORTS} export const graph = compile(${faulty});` });
    const says = /workflow "faulty" has 2 faults:(?=[\s\S]*no step "nowhere")(?=[\s\S]*no step "b")/;
    await expectRefusal(["run", "faulty.ts"], { code: "INVALID_WORKFLOW", exit: 2, says }, { folder });
  });

  test("a folder without langgraph.json", async () => {
    const folder = await projectFolder({});
    const says = /no graph "ticket".*no langgraph\.json/;
    await expectRefusal(["run", "ticket"], { code: "UNKNOWN_GRAPH", exit: 2, says }, { folder });
  });
});

test("a task whose graph is gone can be shown, and a resume says to name the graph", async () => {
  const asks = workflow("order").replace(`({ next: "done",`, `({ ask: "Which?",`);
  const folder = await projectFolder({ "graph.ts": `${IMPORTS} export const graph = compile(${asks});` });
  expect((await statecard(["run", "graph.ts", "--task", "a"], { folder })).code).toBe(10);
  const database = join(folder, ".statecard/tasks.db");
  const elsewhere = await projectFolder({});
  const options = { folder: elsewhere, environment: { STATECARD_DB: database } };
  expect(taskOf(await statecard(["show", "a", "--json"], options))).toMatchObject({ status: "waiting_user" });
  const refusal = { code: "UNKNOWN_GRAPH", exit: 2, says: /workflow "order".*--graph/ };
  await expectRefusal(["resume", "a", "--answer", "x"], refusal, options);
  const named = await statecard(["resume", "a", "--answer", "x", "--graph", join(folder, "graph.ts")], options);
  expect(named.code).toBe(10);

  await writeFile(join(elsewhere, "other.ts"), `${IMPORTS} export const graph = compile(${workflow("other")});`);
  const wrong = await statecard(["resume", "a", "--answer", "x", "--graph", "other.ts", "--json"], options);
  expect(errorOf(wrong)).toMatchObject({ code: "WRONG_WORKFLOW" });
  expect(wrong.code).toBe(3);
  expectNoStackTrace(wrong);
});

test("without langgraph.json, or with an empty one, it is said what goes in", async () => {
  const folder = await projectFolder({});
  const example = /\{"graphs": \{"order": "\.\/order\.ts:graph"\}\}/;
  const missing = /there is no langgraph\.json in this folder/;
  const [serving] = await expectRefusal(["serve"], { code: "USAGE", exit: 2, says: missing }, { folder });
  expect(serving?.stderr).toMatch(example);
  const run = ["run", "order"];
  await expectRefusal(run, { code: "UNKNOWN_GRAPH", exit: 2, says: example }, { folder });
  await writeFile(join(folder, "langgraph.json"), "{}");
  const [empty] = await expectRefusal(["serve"], { code: "USAGE", exit: 2, says: example }, { folder });
  expect(empty?.stderr).toContain("langgraph.json in this folder declares no graphs");
});
