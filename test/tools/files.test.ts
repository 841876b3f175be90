import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { defineWorkflow, fileTools, resourceField } from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import type { CallResult } from "../../src/state/execution.ts";
import type { Resource } from "../../src/state/resources.ts";
import { applyEdits, areApplied } from "../../src/tools/files/edits.ts";
import { checksumOf } from "../../src/tools/files/folder.ts";
import type { AnyTool, Tools } from "../../src/workflow/tool.ts";
import { callContext, run as runTool } from "../support/calls.ts";

type Calls = readonly (readonly [tool: string, args: object])[];

function project(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "statecard-files-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** Makes one decision after the other; between them, somebody else may do something. */
async function work(root: string, ...decisions: (Calls | (() => void))[]) {
  const tools = fileTools({ root, commands: ["node"] });
  const names = Object.keys(tools) as (keyof typeof tools)[];
  const workflow = defineWorkflow({
    name: "files",
    version: 1,
    state: { resources: resourceField() },
    tools,
    initial: "work",
    steps: { work: { tools: names, to: ["work", "done"] }, done: { final: true } },
  });
  const meanwhile: (() => void)[] = [];
  const script = decisions.flatMap((decision) => {
    if (typeof decision === "function") {
      meanwhile.push(decision);
      return [];
    }
    const before = meanwhile.splice(0);
    return () => {
      for (const act of before) act();
      return { calls: decision.map(([tool, args]) => ({ tool, args })) };
    };
  });
  const task = await runWorkflow(workflow, { model: scriptedModel([...script, { next: "done" }]), message: "go" });
  const results = task.events.flatMap(({ kind, data }) =>
    kind === "result" ? (data.observation as { results: readonly CallResult[] }).results : [],
  );
  return { results, last: results.at(-1), resources: (task.state.resources ?? []) as readonly Resource[] };
}

const read = (path: string) => [["readFile", { path }]] as const;
const edit = (path: string, find: string, replace: string) =>
  [["editFile", { path, edits: [{ find, replace }] }]] as const;

test("what is read, edited and made is kept with its checksum", async () => {
  const root = project({ "src/a.js": "let a = 1;\n" });
  const { results, resources } = await work(root, read("./src//a.js"), edit("src/a.js", "= 1", "= 2"), [
    ["writeFile", { path: "src/new/b.js", text: "let b;\n" }],
  ]);
  expect(results.map(({ status }) => status)).toEqual(["ok", "ok", "ok"]);
  expect(readFileSync(join(root, "src/a.js"), "utf8")).toBe("let a = 2;\n");
  expect(resources).toEqual([
    { kind: "file", path: "src/a.js", checksum: checksumOf("let a = 2;\n"), status: "written" },
    { kind: "file", path: "src/new/b.js", checksum: checksumOf("let b;\n"), status: "written" },
  ]);
  expect(readdirSync(join(root, "src"))).toEqual(["a.js", "new"]);
});

describe("a file that somebody else has changed", () => {
  test.each([
    ["an edit", edit("a.js", "1", "2")],
    ["a whole text", [["writeFile", { path: "a.js", text: "2" }]] as const],
  ])("is not written over by %s, until it was read again", async (_name, change) => {
    const root = project({ "a.js": "1" });
    const theirs = () => writeFileSync(join(root, "a.js"), "1 theirs");
    const { results } = await work(root, read("a.js"), theirs, change, change, read("a.js"), edit("a.js", "1", "2"));
    expect(results[1]).toMatchObject({
      status: "error",
      errorType: "CHANGED_OUTSIDE",
      hint: expect.stringMatching("read a.js again"),
    });
    expect(results[1]?.error).toMatch("files changed outside: a.js was changed");
    expect(results[2]).toMatchObject({ errorType: "CHANGED_OUTSIDE" });
    expect(results[3]?.value).toMatchObject({ text: "1 theirs", note: expect.stringMatching("files changed outside") });
    expect(readFileSync(join(root, "a.js"), "utf8")).toBe("2 theirs");
  });

  test("is found by checkFiles, and so is one that is gone", async () => {
    const root = project({ "a.js": "1", "b.js": "1", "c.js": "1" });
    const theirs = () => {
      writeFileSync(join(root, "a.js"), "2");
      rmSync(join(root, "b.js"));
    };
    const { last, resources } = await work(root, [...read("a.js"), ...read("b.js"), ...read("c.js")], theirs, [
      ["checkFiles", {}],
    ]);
    expect(last?.value).toEqual({ changed: ["a.js"], gone: ["b.js"] });
    expect(resources.map(({ path, status }) => [path, status])).toEqual([
      ["a.js", "changed outside"],
      ["b.js", "gone"],
      ["c.js", "read"],
    ]);
  });

  test("one that exists and was never read is not written over", async () => {
    const root = project({ "a.js": "1" });
    const { last } = await work(root, [["writeFile", { path: "a.js", text: "2" }]]);
    expect(last).toMatchObject({ errorType: "NOT_READ" });
    expect(readFileSync(join(root, "a.js"), "utf8")).toBe("1");
  });
});

describe("paths", () => {
  test.each([
    ["../outside.js", "OUTSIDE"],
    ["/etc/passwd", "OUTSIDE"],
    ["src\\..\\..\\x", "OUTSIDE"],
    ["~/x", "OUTSIDE"],
    ["link/passwd", "OUTSIDE"],
    [".env", "HIDDEN"],
    [".git/config", "HIDDEN"],
    ["node_modules/x/index.js", "HIDDEN"],
    ["key.txt", "LINK"],
    ["installed/x.js", "LINK"],
  ])("%s is refused to read and to write", async (path, errorType) => {
    const root = project({ ".env": "KEY=1", ".git/config": "x", "node_modules/x.js": "x" });
    symlinkSync("/etc", join(root, "link"));
    symlinkSync(".env", join(root, "key.txt"));
    symlinkSync("node_modules", join(root, "installed"));
    const { results } = await work(root, [...read(path), ["writeFile", { path, text: "x" }]]);
    expect(results).toMatchObject([{ errorType }, { errorType }]);
    expect(existsSync(join(root, "../outside.js"))).toBe(false);
  });

  test("hidden and installed files and links are neither listed nor searched", async () => {
    const root = project({ ".env": "word", "node_modules/x/i.js": "word", "src/a.js": "a word\n", "b.bin": "word\0" });
    symlinkSync("a.js", join(root, "src/link.js"));
    const { results } = await work(root, [
      ["listFiles", {}],
      ["searchFiles", { text: "word" }],
    ]);
    expect(results[0]?.value).toEqual({ files: ["b.bin", "src/a.js"] });
    expect(results[1]?.value).toEqual({ found: [{ path: "src/a.js", line: 1, text: "a word" }] });
  });
});

test("a search that did not get to all files says so, and a folder that is not there is told", async () => {
  const root = project(Object.fromEntries(Array.from({ length: 5001 }, (_, file) => [`many/${file}.txt`, ""])));
  writeFileSync(join(root, "z.txt"), "word");
  mkdirSync(join(root, "few"));
  const { results } = await work(root, [
    ["searchFiles", { text: "word" }],
    ["searchFiles", { text: "word", below: "few" }],
    ["searchFiles", { text: "word", below: "none" }],
  ]);
  expect(results[0]?.value).toMatchObject({ found: [], searchedOnly: 5000 });
  expect(results[1]?.value).toEqual({ found: [] });
  expect(results[2]).toMatchObject({ errorType: "NOT_FOUND", error: expect.stringContaining("no folder none") });
});

test("a long file is read in pieces that make up the whole", async () => {
  const text = Array.from({ length: 900 }, (_, line) => `line ${line} with "quotes" and é\n`).join("");
  const root = project({ "long.txt": text });
  const tool = fileTools({ root }).readFile as unknown as AnyTool;
  const pieces: string[] = [];
  for (let from: number | undefined = 1; from !== undefined;) {
    const { value } = await runTool(tool, { path: "long.txt", from });
    const piece = value as { text: string; goOnFrom?: number };
    expect(Buffer.byteLength(JSON.stringify(piece))).toBeLessThan(14_000);
    pieces.push(piece.text);
    from = piece.goOnFrom;
  }
  expect(pieces.join("")).toBe(text);
});

test("a secret that was shown as [redacted] is not written back as that", async () => {
  const root = project({ "a.js": 'call("sk-abcdefghijkl");\n' });
  const { results } = await work(root, read("a.js"), [["writeFile", { path: "a.js", text: 'call("[redacted]");\n' }]]);
  expect(JSON.stringify(results[0]?.value)).toContain("[redacted]");
  expect(results[1]).toMatchObject({ errorType: "REDACTED" });
  expect(readFileSync(join(root, "a.js"), "utf8")).toContain("sk-abcdefghijkl");
});

test("a file keeps its mode", async () => {
  const root = project({ "run.sh": "echo 1\n" });
  chmodSync(join(root, "run.sh"), 0o755);
  await work(root, read("run.sh"), edit("run.sh", "1", "2"));
  expect(statSync(join(root, "run.sh")).mode & 0o777).toBe(0o755);
});

describe("programs", () => {
  test("of a long output the end is kept, and no half of a character", async () => {
    const root = project({ "say.cjs": 'process.stdout.write("\u{1F600}".repeat(3500) + "x");' });
    const { last } = await work(root, [["runCommand", { command: ["node", "say.cjs"] }]]);
    const { output = "" } = (last?.value ?? {}) as { output?: string };
    expect(output).toMatch(/^… 1002 characters left out …\n/);
    expect(output.replace(/^.*\n/, "")).toMatch(/^(?:\u{1F600})+x$/u);
  });

  test("tests pass or fail, without this process's secrets", async () => {
    process.env.STATECARD_SAMPLE_TOKEN = "a-long-secret-value";
    onTestFinished(() => void delete process.env.STATECARD_SAMPLE_TOKEN);
    const good =
      'require("node:test")("x", () => { if (process.env.STATECARD_SAMPLE_TOKEN) throw new Error("seen"); });';
    const root = project({ "a.test.cjs": good });
    const breakIt = () => writeFileSync(join(root, "a.test.cjs"), 'throw new Error("broken");');
    const removeIt = () => rmSync(join(root, "a.test.cjs"));
    const runs = [["runTests", {}]] as const;
    const { results } = await work(root, runs, breakIt, runs, removeIt, runs);
    expect(results.map(({ value }) => (value as { passed: boolean }).passed)).toEqual([true, false, false]);
    expect(results[1]?.value).toMatchObject({ output: expect.stringContaining("broken") });
    // The test runner calls that a success; nothing has been tested.
    expect(results[2]?.value).toMatchObject({ exitCode: 0, tests: 0 });
  });

  test("only listed programs run, and nothing dangerous", async () => {
    const root = project({ "a.js": "" });
    const command = (...words: string[]) => ["runCommand", { command: words }] as const;
    const { results } = await work(root, [
      command("node", "--version"),
      command("rm", "-rf", "/"),
      command("git", "push"),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["ok", "refused", "refused"]);
    expect(results[0]?.value).toMatchObject({ exitCode: 0, output: expect.stringMatching(/^v\d/) });
  });
});

describe("after a crash it is found out whether a change was written", () => {
  const before = "one\ntwo\nthree\n";
  const known = [{ kind: "file", path: "a.txt", checksum: checksumOf(before), status: "read" }];
  const ask = (now: string | null, tool: string, args: object, resources: unknown = known) => {
    const root = project(now === null ? {} : { "a.txt": now });
    const declared = (fileTools({ root }) as Tools)[tool];
    return declared?.reconcile?.({ path: "a.txt", ...args } as never, {
      ...callContext({ resources }),
      signal: AbortSignal.timeout(9e6),
    });
  };
  const edits = [
    { find: "two", replace: "2" },
    { find: "three\n", replace: "" },
  ];

  test.each([
    ["not yet", before, "editFile", { edits }, known, { happened: false }],
    ["written", "one\n2\n", "editFile", { edits }, known, { happened: true }],
    ["changed by somebody else", "one\n2\nthree\n", "editFile", { edits }, known, null],
    ["whole text written", "new", "writeFile", { text: "new" }, known, { happened: true }],
    ["new file, not yet", null, "writeFile", { text: "new" }, [], { happened: false }],
    ["new file, somebody else's", "other", "writeFile", { text: "new" }, [], null],
    ["gone", null, "writeFile", { text: "new" }, known, null],
  ])("%s", (_name, now, tool, args, resources, expected) => {
    const found = ask(now, tool, args, resources);
    if (expected === null) expect(found).toBeNull();
    else expect(found).toMatchObject(expected);
  });
});

describe("edits", () => {
  test("what occurs twice or never is no edit", () => {
    expect(() => applyEdits("a a", [{ find: "a", replace: "b" }])).toThrow(
      expect.objectContaining({ type: "AMBIGUOUS" }),
    );
    expect(() => applyEdits("a", [{ find: "b", replace: "c" }])).toThrow(
      expect.objectContaining({ type: "NOT_FOUND" }),
    );
    expect(() => applyEdits("aaa", [{ find: "aa", replace: "b" }])).toThrow(
      expect.objectContaining({ type: "AMBIGUOUS" }),
    );
  });

  test("they are recognised in what they have made, and only there", () => {
    const before = "x = f(1);\ny = f(2);\nz = g(2);\n";
    const edits = [
      { find: "f(1)", replace: "g(2)" },
      { find: "y = f(2);\n", replace: "" },
      { find: "z = ", replace: "w = z = " },
    ];
    const after = applyEdits(before, edits);
    const isBefore = (text: string) => text === before;
    expect(areApplied(after, edits, isBefore)).toBe(true);
    expect(areApplied(`${after}// more\n`, [edits[0] as (typeof edits)[0]], isBefore)).toBe(false);
    expect(areApplied("y".repeat(9000), [{ find: "x", replace: "y" }], isBefore)).toBeNull();
  });
});
