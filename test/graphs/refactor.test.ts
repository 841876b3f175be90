import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { answer, compile, describeTask, sqliteStore, type CallResult, type PauseValue } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { INTERRUPT } from "@langchain/langgraph";
import { OfflineRules, type Prompt } from "../../graphs/offline-rules.ts";
import { foldersFrom } from "../../graphs/refactor/folders.ts";
import { endOf } from "../../graphs/refactor/kept.ts";
import { movable } from "../../graphs/refactor/move.ts";
import { decideRefactor, refactorRules } from "../../graphs/refactor/rules.ts";
import { refactor, refactorView } from "../../graphs/refactor/workflow.ts";
import { mermaidOf } from "../../src/cli/graph.ts";
import { checksumOf } from "../../src/tools/files/folder.ts";
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
  return { asked, done, store, graph };
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
    const isReadNow = /"tool":"readFile"[^\n]*\n<observation>\n/.test(text);
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
  expect(done.report).toContain("Files changed outside: src/index.js.");
  expect(filesIn(project.folder)["src/index.js"]).toContain('export { formatPrice as theirs } from "./money.js";');
});

test("one that has become too long to be read as a whole, or is gone, ends in no circle", async () => {
  const project = bundled("shop");
  let meddled = 0;
  const { done } = await moveWith(project, ({ state }) => {
    if (state.focus !== "test/shop.test.js" || meddled++ > 0) return;
    appendFileSync(join(project.folder, "src/index.js"), "// a long file has many lines\n".repeat(900));
    rmSync(join(project.folder, "src/labels.js"));
  });
  expect(questionIn(done)).toContain("files changed outside again: src/labels.js\n");
  expect(done.changedOutside?.toSorted()).toEqual(["src/index.js", "src/labels.js"]);
  expect(done.execution.decisions).toBeLessThan(40);
});

describe("a file that was changed while the tests ran", () => {
  /** A project whose tests change the new module, which is what somebody else does meanwhile. */
  function meddling(when: string): RefactorProject {
    const project = bundled("shop");
    const code = `import { appendFileSync, readFileSync } from "node:fs";\nif (${when}) appendFileSync("src/money.js", "// theirs\\n");\n`;
    writeFileSync(join(project.folder, "test/meddling.test.js"), code);
    return project;
  }

  test("is noticed: the tests run again on what is there, and the report names it", async () => {
    const project = meddling('!readFileSync("src/money.js", "utf8").includes("theirs")');
    const { done } = await moveWith(project);
    expect(done).toMatchObject({ tests: "passed", execution: { status: "completed", step: "done" } });
    expect(done.report).toContain("the tests pass. Files changed outside: src/money.js.");
    const now = checksumOf(readFileSync(join(project.folder, "src/money.js")));
    expect(done.resources?.find(({ path }) => path === "src/money.js")?.checksum).toBe(now);
  });

  test("and again: a person is asked, since that may never end", async () => {
    const { done, graph } = await moveWith(meddling("true"));
    expect(done).toMatchObject({ tests: "passed", execution: { step: "mending" } });
    expect(questionIn(done)).toContain("files changed outside again: src/money.js\n");
    const asked = await graph.invoke(answer(done, "again"), config);
    expect(questionIn(asked)).toContain("files changed outside again: src/money.js\n");
  });

  test("cannot be told where the project is gone by then: a person is asked", async () => {
    const [project, away] = [bundled("shop"), join(emptyFolder(), "away")];
    const code = `import { renameSync } from "node:fs";\nprocess.on("exit", () => renameSync(process.cwd(), ${JSON.stringify(away)}));\n`;
    appendFileSync(join(project.folder, "test/shop.test.js"), code);
    const { done, graph } = await moveWith(project);
    expect(done).toMatchObject({ tests: "passed", report: null, execution: { step: "mending" } });
    expect(questionIn(done)).toContain(`checkFiles: ${project.folder} is no folder`);
    // Now the tests cannot be run either.
    const asked = await graph.invoke(answer(done, "again"), config);
    expect(asked).toMatchObject({ tests: "not run", report: null, execution: { step: "mending" } });
  });
});

test("a file that was changed between plan and edit is named in the report", async () => {
  const project = bundled("shop");
  const { done } = await moveWith(project, ({ step, question }) => {
    if (step === "confirming" && question !== "")
      appendFileSync(join(project.folder, "src/cart.js"), "export const theirs = 1;\n");
  });
  expect(done.report).toContain("Files changed outside: src/cart.js.");
  expect(filesIn(project.folder)["src/cart.js"]).toContain("export const theirs = 1;");
});

test("without a single test nothing has passed, and a person is told", async () => {
  const project = bundled("shop");
  rmSync(join(project.folder, "test"), { recursive: true });
  const { done, graph } = await moveWith(project);
  expect(done).toMatchObject({ tests: "not run", execution: { step: "mending" } });
  expect(questionIn(done)).toMatch("no tests were run: the project has none");
  const stopped = await graph.invoke(answer(done, "stop"), config);
  expect(stopped).toMatchObject({ execution: { step: "stopped" }, report: expect.stringMatching("no tests were run") });
});

test.each([
  ['import { formatPrice } from "../src/cart.js";', false],
  ['import {\n  formatPrice,\n} from "../src/cart.js";', false],
  ['import cart, { formatPrice } from "../src/cart.js"; // not "cart"', false],
  ['import * as cart\n  from "../src/cart.js";', true],
  ['export *\n  from "../src/cart.js";', true],
  ['const { formatPrice } = await import(\n  "../src/cart.js"\n);', true],
  ['import { formatPrice } from "#src/cart.js";', true],
  ['import { formatPrice } from "../src/cart";', true],
])("where a module says %j, whether the old one goes on exporting it is %s", async (text, reexport) => {
  const project = bundled("shop");
  writeFileSync(join(project.folder, "test/more.js"), `${text}\n`);
  expect(await open(project).start()).toMatchObject({ reexport, execution: { step: "confirming" } });
});

describe("a place where no module can be", () => {
  test.each(["../../outside.js", "node_modules/x.js", "/etc/x.js", "src/.hidden/x.js", "dist/x.js"])(
    "%s is not planned: another is asked for",
    async (target) => {
      const project = bundled("shop");
      const { graph, start } = open({ ...project, message: `move formatPrice from src/cart.js to ${target}` });
      const asked = await start();
      expect(asked).toMatchObject({ target: null, plan: null, execution: { step: "scoping" } });
      expect(questionIn(asked)).toContain(`${target} is outside of the project, hidden, installed or built`);
      const planned = await graph.invoke(answer(asked, project.message), config);
      expect(planned).toMatchObject({ target: "src/money.js", execution: { step: "confirming" } });
    },
  );

  test("is found out by writing: all stays as it was, and nothing is tried again and again", async () => {
    const project = bundled("shop");
    const before = filesIn(project.folder);
    const message = "move formatPrice from src/cart.js to src/taxes.js/money.js";
    const { done, graph } = await moveWith({ ...project, message });
    expect(filesIn(project.folder)).toEqual(before);
    expect(done.plan?.map(({ status }) => status)).toEqual(Array(6).fill("failed"));
    expect(done.plan?.[1]?.decision).toContain("left as it is, since src/taxes.js/money.js was not made");
    expect(questionIn(done)).toContain("not done: src/taxes.js/money.js (writeFile: ");
    expect(done.execution.decisions).toBeLessThan(20);
    // Somebody has done it by hand.
    const after = await graph.invoke(answer(done, "done"), config);
    expect(after).toMatchObject({ tests: "passed", execution: { status: "completed", step: "done" } });
  });
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

  test("cannot plan to work outside of the project", async () => {
    const graph = compile(refactor, {
      model: scriptedModel([
        { patch: { target: "../money.js" }, ask: "?" },
        { patch: { target: "money.js" }, ask: "?" },
      ]),
      clients: { folders: [bundled("shop").folder] },
    });
    const asked = await graph.invoke({ message: "go" }, config);
    expect(asked).toMatchObject({ target: "money.js", execution: { refused: 1 } });
  });
});

test("tests that fail are no end: a person mends, and it goes on", async () => {
  const project = bundled("shop");
  appendFileSync(join(project.folder, "test/shop.test.js"), 'test("new", () => assert.equal(1, 2));\n');
  const { graph, store, start } = open(project);
  const failed = await graph.invoke(answer(await start(), "yes"), config);
  expect(failed).toMatchObject({ tests: "failed", execution: { step: "mending" } });
  expect((await describeTask(store, "t")).waiting?.[0]?.question).toMatch(/^the tests fail:\nnot ok \d+ - new\n/);
  const text = filesIn(project.folder)["test/shop.test.js"] ?? "";
  writeFileSync(join(project.folder, "test/shop.test.js"), text.replace("equal(1, 2)", "equal(2, 2)"));
  const done = await graph.invoke(answer(failed, "again"), config);
  expect(done).toMatchObject({ tests: "passed", execution: { status: "completed", step: "done" } });
});

test("of failing tests whole lines are told: which failed, and the end", () => {
  const noise = Array.from({ length: 40 }, (_, line) => `  at line ${line} of a stack that is long`);
  const output = ["TAP version 13", "ok 1 - well", "not ok 2 - the one", ...noise, "# pass 1", "# fail 1", ""];
  const told = endOf(output.join("\n")).split("\n");
  expect(told.slice(0, 2)).toEqual(["not ok 2 - the one", "…"]);
  expect(told.slice(-2)).toEqual(["# pass 1", "# fail 1"]);
  expect(told.slice(2).every((line) => output.includes(line))).toBe(true);
  expect(told.join("\n").length).toBeLessThan(1000);
});

describe("the folders that it may work in", () => {
  test("a project outside of them is not opened: another folder is asked for, and the wish is kept", async () => {
    const [mine, other] = [bundled("shop"), bundled("weather")];
    const graph = compile(refactor, { model: refactorRules(), clients: { folders: [mine.folder] } });
    const asked = await graph.invoke({ message: mine.message, project: other.folder }, config);
    expect(questionIn(asked)).toContain(`"${other.folder}" is no plain path inside the allowed folders`);
    const again = await graph.invoke(answer(asked, join(mine.folder, "gone")), config);
    expect(questionIn(again)).toContain("gone is no folder. Which folder is the project in?");
    const planned = await graph.invoke(answer(again, "."), config);
    expect(planned).toMatchObject({ project: mine.folder, target: "src/money.js", execution: { step: "confirming" } });
  });

  test("come from the environment, and an empty one is none", () => {
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv("REFACTOR_FOLDERS", ["/a", "/b"].join(delimiter));
    expect(foldersFrom("REFACTOR_FOLDERS")).toEqual(["/a", "/b"]);
    vi.stubEnv("REFACTOR_FOLDERS", undefined);
    expect(foldersFrom("REFACTOR_FOLDERS")).toBeUndefined();
    vi.stubEnv("REFACTOR_FOLDERS", "");
    expect(() => foldersFrom("REFACTOR_FOLDERS")).toThrow(/^REFACTOR_FOLDERS names an empty folder/);
  });
});
