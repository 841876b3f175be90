import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answer, compile, describeTask, sqliteStore, type CallResult, type PauseValue } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { INTERRUPT } from "@langchain/langgraph";
import { OfflineRules, type Prompt } from "../../graphs/offline-rules.ts";
import { movable } from "../../graphs/refactor/move.ts";
import { decideRefactor, refactorRules } from "../../graphs/refactor/rules.ts";
import { mask } from "../../graphs/refactor/source.ts";
import { refactor, refactorView } from "../../graphs/refactor/workflow.ts";
import { mermaidOf } from "../../src/cli/look.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { bundled, emptyFolder, filesIn, generated, type RefactorProject } from "../support/refactor.ts";

const config = { configurable: { thread_id: "t" } };

/** Compiles the example on a project; before its decisions somebody else may do something. */
function open(project: RefactorProject, meddle: (prompt: Prompt) => void = () => {}, store = sqliteStore(":memory:")) {
  const model = new OfflineRules((prompt) => {
    meddle(prompt);
    return decideRefactor(prompt);
  });
  const graph = compile(refactor, { model, store, view: refactorView, clients: { folders: [project.folder] } });
  const start = () => graph.invoke({ message: project.message, project: project.folder }, config);
  return { graph, store, start };
}

async function moveWith(project: RefactorProject, meddle?: (prompt: Prompt) => void) {
  const { graph, store, start } = open(project, meddle);
  const asked = await start();
  const done = await graph.invoke(answer(asked, "yes"), config);
  return { asked, done, store };
}

function questionIn(result: { readonly [INTERRUPT]?: readonly { readonly value?: unknown }[] }): string {
  return (result[INTERRUPT]?.[0]?.value as PauseValue | undefined)?.requests[0]?.question ?? "";
}

function testsPass(folder: string): boolean {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  return spawnSync(process.execPath, ["--test"], { cwd: folder, env }).status === 0;
}

test("its README shows its table", () => {
  expect(readFileSync("graphs/refactor/README.md", "utf8")).toContain(mermaidOf(anyWorkflow(refactor)));
});

describe("a function moves", () => {
  test("out of a module that uses it, with what it needs", async () => {
    const project = bundled("shop");
    const before = filesIn(project.folder);
    const { asked, done } = await moveWith(project);
    expect(questionIn(asked)).toContain('keep the signature: function formatPrice(price, kind = "other")');
    expect(done).toMatchObject({ tests: "passed", focus: "tests", execution: { status: "completed", step: "done" } });
    expect(done.plan?.map(({ path, status }) => [path, status])).toEqual([
      ["src/money.js", "done"],
      ["src/cart.js", "done"],
      ["src/index.js", "done"],
      ["src/invoice.js", "done"],
      ["src/labels.js", "done"],
      ["test/shop.test.js", "done"],
    ]);
    expect(done.plan?.[4]?.decision).toContain("does not import the function");
    const after = filesIn(project.folder);
    expect(after["src/money.js"]).toMatchInlineSnapshot(`
      "import { rateOf } from "./taxes.js";
      import { currencyOf } from "./cart.js";

      /**
       * A price for people: \`formatPrice(12.5, "books")\` is "13.13 EUR".
       * What stands in braces, such as } or \${price}, is text.
       */
      export function formatPrice(price, kind = "other") {
        const whole = price * (1 + rateOf(kind));
        return \`\${whole.toFixed(2)} \${currencyOf(\`-\${kind}\`)}\`;
      }
      "
    `);
    expect(after["src/cart.js"]).toMatchInlineSnapshot(`
      "import { readFileSync } from "node:fs";
      import { taxes } from "./taxes.js";
      import { formatPrice } from "./money.js";

      const CURRENCY = "EUR";

      /** The sum of a cart's items, without taxes. */
      export function sumOf(items) {
        return items.reduce((sum, { price, count }) => sum + price * count, 0);
      }

      export function currencyOf(kind) {
        return kind === "-points" ? "pts" : CURRENCY;
      }

      /** What a receipt says, a line each. */
      export function receipt(items) {
        const lines = items.map(({ name, price, kind }) => \`\${name}: \${formatPrice(price, kind)}\`);
        return [...lines, \`taxes known: \${Object.keys(taxes).length}\`].join("\\n");
      }

      export function load(file) {
        return JSON.parse(readFileSync(file, "utf8"));
      }
      "
    `);
    expect(after["src/invoice.js"]).toContain(
      'import { sumOf } from "./cart.js";\nimport { formatPrice as price } from "./money.js";',
    );
    expect(after["src/labels.js"]).toBe(before["src/labels.js"]);
    expect(testsPass(project.folder)).toBe(true);
  });

  test("and stays exported where somebody imports everything", async () => {
    const project = bundled("weather");
    const { done } = await moveWith(project);
    expect(done).toMatchObject({ reexport: true, tests: "passed", execution: { status: "completed" } });
    const after = filesIn(project.folder);
    expect(after["lib/report.js"]).toContain('export { signOf } from "./signs/sign.js";');
    expect(after["lib/signs/sign.js"]).toContain(
      'import { meanOf } from "../report.js";\n\n// One sign for each kind of day.\n',
    );
    expect(testsPass(project.folder)).toBe(true);
  });

  test.each([1, 2, 3])("in a project that nobody has seen before (%i)", async (seed) => {
    const project = generated(seed);
    const { done } = await moveWith(project);
    expect(done).toMatchObject({ tests: "passed", execution: { status: "completed" } });
    const { source, target, functionName } = done;
    expect(readFileSync(join(project.folder, target ?? ""), "utf8")).toContain(`export ${done.signature}`);
    expect(movable(readFileSync(join(project.folder, source ?? ""), "utf8"), functionName ?? "")).toBeNull();
  });
});

test("killed again and again in the middle, it repeats no edit and misses none", async () => {
  const [whole, project] = [bundled("shop"), bundled("shop")];
  await moveWith(whole);
  const database = join(emptyFolder(), "tasks.db");
  const store = sqliteStore(database);
  const { graph, start } = open(project, undefined, store);
  await start();
  const dies = (...args: string[]) => {
    const file = "test/support/refactor-process.ts";
    const words = ["--import", "tsx", file, database, project.folder, ...args];
    expect(spawnSync(process.execPath, words)).toMatchObject({ signal: "SIGKILL" });
  };
  const fileNow = (path: string) => filesIn(project.folder)[path];
  const [cart, wanted] = [fileNow("src/cart.js"), filesIn(whole.folder)];

  // The new module is written, and nobody has noted it.
  dies("yes", "after-call", "2");
  expect(fileNow("src/money.js")).toBe(wanted["src/money.js"]);
  // The next edit is noted down and has not begun.
  dies("on", "after-intent", "3");
  expect(fileNow("src/cart.js")).toBe(cart);
  // Now it is made, and nobody has noted it.
  dies("on", "after-call", "1");
  expect(fileNow("src/cart.js")).toBe(wanted["src/cart.js"]);

  const done = await graph.invoke(null, config);
  expect(done).toMatchObject({ tests: "passed", lastError: null, execution: { status: "completed" } });
  expect(filesIn(project.folder)).toEqual(wanted);
  const made = (await store.events("t")).flatMap(({ kind, data }) =>
    kind === "result" ? ((data.observation as { results?: readonly CallResult[] }).results ?? []) : [],
  );
  expect(made.filter(({ status }) => status !== "ok")).toEqual([]);
  const changed = made.filter(({ tool }) => tool === "writeFile" || tool === "editFile");
  expect(changed.map(({ value }) => (value as { path: string }).path)).toEqual([
    "src/money.js",
    "src/cart.js",
    "src/index.js",
    "src/invoice.js",
    "test/shop.test.js",
  ]);
});

test("it reads again what somebody else has changed between reading and writing", async () => {
  const project = bundled("shop");
  let meddled = 0;
  const { done, store } = await moveWith(project, ({ text, state }) => {
    const isReadNow = /<observation kind="results">\n\d+\.\d+ readFile ok/.test(text);
    if (state.focus === "src/invoice.js" && isReadNow && meddled++ === 0)
      appendFileSync(join(project.folder, "src/invoice.js"), "export const theirs = 1;\n");
  });
  expect(done).toMatchObject({ tests: "passed", execution: { status: "completed" } });
  const invoice = filesIn(project.folder)["src/invoice.js"];
  expect(invoice).toContain("export const theirs = 1;");
  expect(invoice).toContain('from "./money.js"');
  const told = JSON.stringify(await store.events("t"));
  expect(told).toContain("files changed outside: src/invoice.js was changed");
  expect(done.lastError).toMatchObject({
    status: "settled",
    message: expect.stringContaining("files changed outside"),
  });
});

test("a file that was changed after it was done is noticed, read, and left as it is", async () => {
  const project = bundled("shop");
  let meddled = 0;
  const { done, store } = await moveWith(project, ({ state }) => {
    if (state.focus === "test/shop.test.js" && meddled++ === 0)
      appendFileSync(join(project.folder, "src/index.js"), 'export { formatPrice as theirs } from "./cart.js";\n');
  });
  expect(done).toMatchObject({ tests: "passed", execution: { status: "completed", step: "done" } });
  expect(JSON.stringify(await store.events("t"))).toContain("files changed outside: src/index.js");
  expect(filesIn(project.folder)["src/index.js"]).toContain('export { formatPrice as theirs } from "./money.js";');
});

test("a file that is too long to be read as a whole is not changed, and a person is told", async () => {
  const project = bundled("shop");
  const invoice = join(project.folder, "src/invoice.js");
  appendFileSync(invoice, "// a long file has many lines\n".repeat(900));
  const before = readFileSync(invoice, "utf8");
  const { done, store } = await moveWith(project);
  expect(done.execution.step).toBe("mending");
  expect(done.plan?.find(({ path }) => path === "src/invoice.js")).toMatchObject({ status: "failed" });
  expect(readFileSync(invoice, "utf8")).toBe(before);
  const [request] = (await describeTask(store, "t")).waiting ?? [];
  expect(request?.question).toContain("not done: src/invoice.js (src/invoice.js is longer than these rules can read)");
});

test("without a yes nothing is changed", async () => {
  const project = bundled("shop");
  const before = filesIn(project.folder);
  const { graph, start } = open(project);
  const done = await graph.invoke(answer(await start(), "no, wait"), config);
  expect(done).toMatchObject({ constraints: null, execution: { step: "stopped", status: "completed" } });
  expect(filesIn(project.folder)).toEqual(before);
});

test("what was confirmed does not change any more", async () => {
  const { graph, start } = open(bundled("shop"));
  await graph.invoke(answer(await start(), "yes"), config);
  await expect(graph.updateState(config, { constraints: ["anything goes"] } as never)).rejects.toThrow(/constraints/);
});

describe("a model that would do otherwise", () => {
  const known = [
    {
      patch: { functionName: "formatPrice", source: "src/cart.js", target: "src/money.js" },
      calls: [{ tool: "readFile", args: { path: "src/cart.js" } }],
    },
    {
      patch: {
        signature: 'function formatPrice(price, kind = "other")',
        plan: [{ path: "src/money.js", action: "create", status: "pending", decision: "its home" }],
      },
      next: "confirming",
    },
    { patch: { constraints: ["keep the signature"] }, next: "starting" },
  ];
  const run = async (project: RefactorProject, ...decisions: object[]) => {
    const store = sqliteStore(":memory:");
    const model = scriptedModel([...known, ...decisions] as never);
    const graph = compile(refactor, { model, store, clients: { folders: [project.folder] } });
    await graph.invoke({ message: "go", project: project.folder }, config);
    return describeTask(store, "t");
  };
  const write = (path: string, text: string) => ({ calls: [{ tool: "writeFile", args: { path, text } }] });

  test("needs a person for what is outside the plan, and for programs", async () => {
    const project = bundled("shop");
    const task = await run(project, write("src/other.js", "1"));
    expect(task.waiting).toMatchObject([{ kind: "approval", tool: "writeFile", args: { path: "src/other.js" } }]);
    const other = await run(project, { calls: [{ tool: "runCommand", args: { command: ["node", "--version"] } }] });
    expect(other.waiting).toMatchObject([{ kind: "approval", tool: "runCommand" }]);
    expect(filesIn(project.folder)["src/other.js"]).toBeUndefined();
  });

  test.each(["src/money.js", "./src//money.js"])("cannot change the signature by writing %s", async (path) => {
    const project = bundled("shop");
    const text = "export function formatPrice(price) {}\n";
    const task = await run(project, write(path, text), { ask: "?" });
    expect(task.state.lastError).toMatchObject({ message: expect.stringContaining("has to keep its signature") });
    expect(filesIn(project.folder)["src/money.js"]).toBeUndefined();
  });
});

test("tests that fail are no end: a person mends, and it goes on", async () => {
  const project = bundled("shop");
  appendFileSync(join(project.folder, "test/shop.test.js"), 'test("new", () => assert.equal(1, 2));\n');
  const { graph, store, start } = open(project);
  const failed = await graph.invoke(answer(await start(), "yes"), config);
  expect(failed).toMatchObject({ tests: "failed", execution: { step: "mending" } });
  expect((await describeTask(store, "t")).waiting?.[0]?.question).toContain("the tests fail: ");
  const text = filesIn(project.folder)["test/shop.test.js"] ?? "";
  writeFileSync(join(project.folder, "test/shop.test.js"), text.replace("equal(1, 2)", "equal(2, 2)"));
  const done = await graph.invoke(answer(failed, "again"), config);
  expect(done).toMatchObject({ tests: "passed", execution: { status: "completed", step: "done" } });
});

test("a project outside of the allowed folders is not opened", async () => {
  const [mine, other] = [bundled("shop"), bundled("weather")];
  const graph = compile(refactor, { model: refactorRules(), clients: { folders: [mine.folder] } });
  await expect(graph.invoke({ message: mine.message, project: other.folder }, config)).rejects.toMatchObject({
    code: "STEP_FAILED",
  });
});

describe("what the rules leave alone", () => {
  test.each([
    ["a default export", "export default function f(a) {\n  return a;\n}\n"],
    ["an export in a list", "function f(a) {\n  return a;\n}\nexport { f };\n"],
    ["one that sets a variable of its module", "let n = 0;\nexport function f() {\n  n += 1;\n}\n"],
    ["one that is only in a comment", "// function f(a) {}\n"],
    ["no function", "export const f = 1;\n"],
  ])("%s", (_name, text) => {
    expect(movable(text, "f")).toBeNull();
  });

  test("text is no code", () => {
    const code = 'a("}"); // {\nb(/[/}]{/g, `}${c("`")}{`); /* ( */ d / e / f;';
    expect(mask(code)).toHaveLength(code.length);
    expect(mask(code).replaceAll(/\s+/g, " ").trim()).toBe("a( ); b( , c( ) ); d / e / f;");
  });
});
