import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { compile } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { detect, FOCUSES, RULES, type Focus } from "../../graphs/code-review/detectors.ts";
import type { Finding } from "../../graphs/code-review/kept.ts";
import { reviewRules } from "../../graphs/code-review/rules.ts";
import { codeReview, reviewView } from "../../graphs/code-review/workflow.ts";
import { mermaidOf } from "../../src/cli/graph.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { randomFrom } from "../../bench/random.ts";
import { PROJECT, temporaryFolder } from "../support/cli.ts";

const config = { configurable: { thread_id: "t" } };

function openReview(folder: string, model: BaseChatModel = reviewRules()) {
  return compile(codeReview, { model, view: reviewView, clients: { reviewFolders: [folder] } });
}

async function review(folder: string, directory: string, focus: Focus) {
  return openReview(folder).invoke({ directory, focus }, config);
}

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

test("its README shows its table", () => {
  expect(readFileSync("graphs/code-review/README.md", "utf8")).toContain(mermaidOf(anyWorkflow(codeReview)));
});

/** Faults as people write them, one a line: the line that is found is marked. */
const PLANTS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  eval: [["» return eval(input);"], ["» const made = new Function('a', body);"]],
  "shell-interpolation": [
    ["» execSync(`rm -rf ${folder}`);"],
    ["» child_process.exec('ls ' + folder, done);"],
    ["» cp.execSync(", "  `convert ${from} ${to}`,", ");"],
  ],
  "secret-in-code": [
    ["» const apiKey = 'a8f5f167f44f4964e6c998dee827110c';"],
    ['» const login = { user: "root", password: "hunter2!x9" };'],
  ],
  "sql-concatenation": [
    ["» db.all(`select * from users where name = '${name}'`);"],
    ['» const sql = "DELETE FROM orders WHERE id = " + id;'],
    ["» await db.run(`insert into notes (text) values ('${text}')`);"],
  ],
  "empty-catch": [
    ["» try { work(); } catch {}"],
    ["try {", "  work();", "» } catch (error) {", "}"],
    ["» send().catch(() => {});"],
  ],
  "unawaited-promise": [["async function store(x) { await put(x); }", "function go() {", "» store(1);", "}"]],
  "missing-error-check": [
    ["» fs.readFile(path, (err, data) => {", "  use(data);", "});"],
    ["» db.get(sql, function (error, row) {", "  show(row);", "});"],
  ],
};

/** What looks like a fault and is none. */
const DECOYS: readonly string[] = [
  "// eval(input) would be wrong here",
  'const advice = "never call eval(x) or execSync(`rm ${x}`)";',
  "/* try { work(); } catch {} */",
  "const found = /select .* from/.exec(text);",
  "execSync('git status --short');",
  "db.all('select * from users where name = ?', [name]);",
  "db.all(`select ${COLUMNS} from users where name = ?`, [name]);",
  "try { work(); } catch { /* the file may be gone already */ }",
  "const password = process.env.PASSWORD;",
  "const apiKey = readKey('name-of-the-key');",
  "fs.readFile(path, (err, data) => { if (err) throw err; use(data); });",
  "async function later(x) { await put(x); }",
  "async function all() { await later(1); void later(2); return later(3); }",
  "const half = total / 2; const rest = total / 3; // a catch {} in a comment",
  "const text = `a template with ${inner(`another ${one}`)} and catch {}`;",
];

interface Planted {
  readonly files: Readonly<Record<string, string>>;
  readonly faults: readonly (Pick<Finding, "file" | "line" | "rule"> & { readonly focus: Focus })[];
}

/** A project of some files, one of them longer than a piece, with faults at random lines between decoys. */
function plantedProject(seed: number): Planted {
  const random = randomFrom(seed);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const files: Record<string, string> = {};
  const faults: { file: string; line: number; rule: string; focus: Focus }[] = [];
  const names = ["app.ts", "lib/store.js", "lib/deep/jobs.mts", "long.ts"];
  for (const [rule, plants] of Object.entries(RULES).map(([name]) => [name, PLANTS[name] ?? []] as const)) {
    expect(plants.length, rule).toBeGreaterThan(0);
  }
  for (const file of names) {
    const lines: string[] = [];
    const want = file === "long.ts" ? 900 : 60;
    while (lines.length < want) {
      const rule = pick(Object.keys(PLANTS));
      const isRare = file === "long.ts" ? random() < 0.02 : random() < 0.2;
      for (const line of isRare ? pick(PLANTS[rule] ?? []) : [pick(DECOYS)]) {
        if (line.startsWith("» ")) {
          faults.push({ file, line: lines.length + 1, rule, focus: RULES[rule]?.focus ?? "errors" });
        }
        lines.push(line.replace(/^» /, ""));
      }
    }
    files[file] = `${lines.join("\n")}\n`;
  }
  return { files, faults };
}

const sortKey = ({ file, line, rule }: Pick<Finding, "file" | "line" | "rule">) => `${file}:${line} ${rule}`;

describe("a project with planted faults", () => {
  test.each([1, 2])("seed %i: all of them are found, with their lines, and nothing else", async (seed) => {
    const { files, faults } = plantedProject(seed);
    const folder = await folderWith(files);
    for (const focus of FOCUSES) {
      const done = await review(folder, ".", focus);
      expect(done.execution).toMatchObject({ status: "completed", refused: 0 });
      const found = (done.findings ?? []).map(sortKey).toSorted();
      expect(found).toEqual(
        faults
          .filter((fault) => fault.focus === focus)
          .map(sortKey)
          .toSorted(),
      );
      for (const { file, line, quote } of done.findings ?? []) {
        expect(files[file]?.split("\n")[line - 1]?.trim().startsWith(quote)).toBe(true);
      }
    }
  });
});

describe("this repository's own source", () => {
  /** What a line must have for a rule to point at it, told apart from how the rule looks for it. */
  const HAS: Readonly<Record<string, RegExp>> = {
    eval: /eval|new Function/,
    "shell-interpolation": /exec(?:Sync)?\(/,
    "secret-in-code": /["'`]/,
    "sql-concatenation": /(?:select|insert into|update|delete from)\b/i,
    "empty-catch": /catch/,
    "unawaited-promise": /\w\(/,
    "missing-error-check": /\b(?:err|error)\b/,
  };

  test("every line that a rule points at has what the rule is about", () => {
    let looked = 0;
    for (const name of readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".ts")) continue;
      const text = readFileSync(join(PROJECT, "src", name), "utf8");
      const lines = text.split("\n");
      for (const { rule, line } of FOCUSES.flatMap((focus) => detect(text, focus))) {
        expect(lines[line - 1], `${name}:${line} ${rule}`).toMatch(HAS[rule] as RegExp);
      }
      looked++;
    }
    expect(looked).toBeGreaterThan(150);
  });

  test("a directory of it is reviewed to its end", async () => {
    const done = await review(PROJECT, "src/decision", "errors");
    const onDisk = readdirSync(join(PROJECT, "src/decision"), { recursive: true, encoding: "utf8" });
    expect(done.files?.map(({ path }) => path).toSorted()).toEqual(
      onDisk.filter((name) => name.endsWith(".ts")).toSorted(),
    );
    expect(new Set(done.files?.map(({ status }) => status))).toEqual(new Set(["read"]));
    expect(done.findings?.length).toBeGreaterThan(0);
    for (const { file, line, quote } of done.findings ?? []) {
      const text = readFileSync(join(PROJECT, "src/decision", file), "utf8").split("\n")[line - 1];
      expect(text?.trim().startsWith(quote)).toBe(true);
      expect(done.report).toContain(`${file}:${line}  `);
    }
  });
});

describe("what a model says", () => {
  test("an invented line goes back once, then it is left out", async () => {
    const folder = await folderWith({ "a.ts": "const a = 1;\neval(a);\n" });
    const invented = { file: "a.ts", line: 1, rule: "eval", why: "x", quote: "eval(b);" };
    const real = { file: "a.ts", line: 2, rule: "eval", why: "x", quote: "eval(a);" };
    const model = scriptedModel([
      { next: "listing" },
      { calls: [{ tool: "readFile", args: { path: "a.ts" } }] },
      { patch: { findings: [invented, real] }, next: "reporting" },
      { patch: { findings: [invented, real] }, next: "reporting" },
    ]);
    const done = await openReview(folder, model).invoke({ directory: ".", focus: "security" }, config);
    model.assertConsumed();
    expect(model.prompts.at(-1)).toContain('a.ts:1 is not "eval(b);"');
    expect(done.findings).toEqual([real]);
    expect(done.execution.refused).toBe(1);
  });

  test("it may not report before every file is read", async () => {
    const folder = await folderWith({ "a.ts": "1;\n", "b.ts": "2;\n" });
    const model = scriptedModel([
      { next: "listing" },
      { calls: [{ tool: "readFile", args: { path: "a.ts" } }] },
      { next: "reporting" },
      { calls: [{ tool: "readFile", args: { path: "b.ts" } }] },
      { next: "reporting" },
    ]);
    const done = await openReview(folder, model).invoke({ directory: ".", focus: "security" }, config);
    expect(model.prompts[3]).toContain("not every file is read to its end");
    expect(done.execution).toMatchObject({ status: "completed", refused: 1 });
  });
});

describe("where it may look", () => {
  test.each(["..", "/etc", "link", "gone", "~"])(
    "%s is not read: another directory is asked for",
    async (directory) => {
      const outside = await folderWith({ "secret.ts": "eval(1);\n" });
      const folder = await folderWith({ "lib/a.ts": "eval(2);\n" });
      symlinkSync(outside, join(folder, "link"));
      const graph = openReview(folder);
      const asked = await graph.invoke({ directory, focus: "security" }, config);
      const { pending } = asked.execution;
      expect(pending).toMatchObject({
        question: expect.stringMatching(/inside the allowed folders|there is no directory/),
      });
      expect(asked.files).toBeNull();
      const again = await graph.invoke({ message: directory }, config);
      expect(again.execution).toMatchObject({ status: "waiting_user", step: "listing" });
      const done = await graph.invoke({ message: "lib" }, config);
      expect(done).toMatchObject({
        directory: "lib",
        findings: [{ file: "a.ts" }],
        execution: { status: "completed" },
      });
    },
  );

  test("what cannot be read is told and holds up nothing; a secret does not get into the state", async () => {
    const folder = await folderWith({
      "a.ts": "eval(1);\n",
      "b.ts": "const x = 'a\0b';\n",
      "c.ts": `const apiKey = "sk-${"a1".repeat(20)}";\n`,
      "notes.md": "eval(1)\n",
    });
    const done = await review(folder, ".", "security");
    expect(done.files).toEqual([
      { path: "a.ts", status: "read" },
      { path: "b.ts", status: "unreadable" },
      { path: "c.ts", status: "read" },
    ]);
    expect(done.findings?.map(sortKey)).toEqual(["a.ts:1 eval", "c.ts:1 secret-in-code"]);
    expect(done.report).toContain("not read: b.ts");
    expect(JSON.stringify(done)).not.toContain("a1a1a1");
  });

  test("it asks for what it is not told", async () => {
    const folder = await folderWith({ "lib/a.ts": "eval(1);\n" });
    const graph = openReview(folder);
    await graph.invoke({ message: "please review some code" }, config);
    const asked = await graph.invoke({ message: "lib" }, config);
    expect(asked.execution.pending).toMatchObject({ question: "With which focus: security or errors?" });
    const done = await graph.invoke({ message: "security" }, config);
    expect(done.findings).toMatchObject([{ file: "a.ts", line: 1, rule: "eval" }]);
  });
});
