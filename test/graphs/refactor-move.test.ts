import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { mask } from "../../graphs/refactor/mask.ts";
import {
  editBetween,
  movable,
  newModule,
  oldModule,
  otherModule,
  whyNot,
  type Move,
} from "../../graphs/refactor/move.ts";
import { hostileProject } from "../support/hostile-modules.ts";
import { emptyFolder, type Files } from "../support/refactor.ts";

const move: Move = { name: "f", from: "src/home.js", to: "made/by/fresh.js", reexport: false };
const made = (text: string) => newModule(text, move);
const left = (text: string) => oldModule(text, move);

describe("what is left alone, and why", () => {
  const set = (how: string) => `let n = 0;\nexport function f(a) {\n  ${how};\n}\n`;
  test.each([
    ["a default export", "export default function f(a) {\n  return a;\n}\n", "no function there, or a default export"],
    ["an export in a list", "function f(a) {\n  return a;\n}\nexport { f };\n", "exported in a list"],
    ["one that is only in a comment", "// function f(a) {}\n", "no function"],
    ["no function", "export const f = 1;\n", "no function"],
    ["what a function has made", "export const f = [1].map((x) => x);\n", "no function"],
    ["one that is declared with another", "export const f = () => 1, g = 2;\n", "together with something else"],
    ["one that its module sets", "export let f = () => 1;\nf = () => 2;\n", "sets f"],
    ["one that knows where it is", "export function f() {\n  return import.meta.url;\n}\n", "import.meta"],
    ["one that knows its folder", "export function f() {\n  return __dirname;\n}\n", "import.meta or the file's name"],
    ["one that imports what it is told", "export function f(a) {\n  return import(a);\n}\n", "made up as it runs"],
    ["a module of the older kind", "function f() {}\nmodule.exports = { f };\n", "module.exports"],
    ["a name out of a pattern", "const { n } = { n: 1 };\nexport function f() {\n  return n;\n}\n", "it uses n"],
    ["the second of two names", "const m = 1, n = 2;\nexport function f() {\n  return n;\n}\n", "it uses n"],
    ["types", 'import { type n } from "./n.js";\nexport function f() {\n  return n;\n}\n', "it uses n"],
    [
      "another export of that name",
      "const n = 1, m = 2;\nexport function f() {\n  return n;\n}\nexport { m as n };\n",
      "something else by that name",
    ],
    ["a loop of imports", "const n = 1;\nexport const f = () => n;\nexport const g = f();\n", "while it is loaded"],
    ["what cannot be read", "export function f(a) {\n  return a) }\n", "brackets"],
  ])("%s", (_name, text, why) => {
    expect(whyNot(text, "f")).toContain(why);
    expect(movable(text, "f")).toBeNull();
  });

  test.each([
    "n += 1",
    "n++",
    "++n",
    "--n",
    "n <<= 1",
    "n >>>= 1",
    "n **= 2",
    "n ??= 1",
    "[n] = a",
    "[a, ...n] = a",
    "({ n } = a)",
    "({ a: [n] = [] } = a)",
    "for (n of a) a()",
    "for (n in a) a()",
    "for ([n] of a) a()",
  ])("one that sets a variable of its module: %s", (how) => {
    expect(whyNot(set(how), "f")).toContain("sets n, a variable of its module");
  });

  test.each([
    "n === 1",
    "n >= 1",
    "n <= 1",
    "a[n] = 1",
    "a.n = 1",
    "for (const b of [n]) a(b)",
    "(() => n)()",
    "const { n } = a",
    "const n = 1",
    "n[0]++",
    "++n.count",
  ])("but not one that does not set it: %s", (how) => {
    expect(whyNot(set(how), "f")).toBeNull();
  });
});

describe("what goes along", () => {
  test("an export in a list is not made again", () => {
    const text =
      "function g() {}\nfunction h() {}\nexport function f() {\n  return g() + h();\n}\nexport { g, h as help };\n";
    expect(made(text)).toContain('import { g, help as h } from "../../src/home.js";');
    expect(left(text)).toBe("function g() {}\nfunction h() {}\nexport { g, h as help };\n");
  });

  test("imports stay below the line that says which program runs the file, and that line stays", () => {
    const text = "#!/usr/bin/env -S node --title=`\nexport function f() {}\n\nf();\n";
    expect(made(text)).toBe("export function f() {}\n");
    expect(left(text)).toBe('#!/usr/bin/env -S node --title=`\nimport { f } from "../made/by/fresh.js";\n\nf();\n');
  });

  test("modules that it loads as it runs are found from its new place", () => {
    const text =
      'export const f = async () => [import("./a.js"), require("../b"), require.resolve(\'./c.json\'), import("node:fs"), "./d.js"];\n';
    expect(made(text)).toBe(
      'export const f = async () => [import("../../src/a.js"), require("../../b"), require.resolve(\'../../src/c.json\'), import("node:fs"), "./d.js"];\n',
    );
    const own = 'import { require } from "./own.js";\nexport function f() {\n  return require("./a");\n}\n';
    expect(made(own)).toContain('require("./a")');
  });

  test("attributes, comments in lists, and what the function never used", () => {
    const text =
      'import data from "./d.json" with { type: "json" };\nimport {\n  a, // not } b\n  b,\n} from "./x.js";\nimport { unused } from "./y.js";\nexport function f() {\n  return a(data);\n}\n\nexport const g = () => b();\n';
    expect(made(text)).toBe(
      'import data from "../../src/d.json" with { type: "json" };\nimport { a } from "../../src/x.js";\n\nexport function f() {\n  return a(data);\n}\n',
    );
    expect(left(text)).toBe(
      'import { b } from "./x.js";\nimport { unused } from "./y.js";\nexport const g = () => b();\n',
    );
  });

  test("a module without semicolons is written without, and the function ends where it ends", () => {
    const text =
      "import { a } from './a.js'\n\nexport const f = (x) =>\n  a(x)\n    .b\n\nexport const g = () => f(1)\nconst s = 'x'\nexport const h = s\n";
    expect(made(text)).toBe("import { a } from '../../src/a.js'\n\nexport const f = (x) =>\n  a(x)\n    .b\n");
    expect(left(text)).toBe(
      "import { f } from '../made/by/fresh.js'\n\nexport const g = () => f(1)\nconst s = 'x'\nexport const h = s\n",
    );
  });

  test("line ends stay as they are", () => {
    const text =
      'import { a } from "./a.js";\r\n\r\nexport const k = 1;\r\n\r\n/** f */\r\nexport function f() {\r\n  return a();\r\n}\r\n\r\nexport const g = f;\r\n';
    const other = 'import { f, g } from "./src/home.js";\r\nf(g);\r\n';
    const all = [made(text), left(text), otherModule(other, "other.js", move)];
    expect(all.map((one) => one?.replaceAll("\r\n", "")).join("")).not.toMatch(/[\r\n]/);
    expect(all[1]).toBe(
      'import { f } from "../made/by/fresh.js";\r\n\r\nexport const k = 1;\r\n\r\nexport const g = f;\r\n',
    );
  });
});

test("projects written in all kinds of ways come to the same after a move", () => {
  const root = emptyFolder();
  const write = (folder: string, files: Files) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, folder, path)), { recursive: true });
      writeFileSync(join(root, folder, path), text);
    }
  };
  const seeds = Array.from({ length: 100 }, (_, seed) => seed);
  const moved = seeds.filter((seed) => {
    const { files, move: wanted, user } = hostileProject(seed);
    const [source = "", using = ""] = [files[wanted.from], files[user]];
    if (whyNot(source, "F") !== null) return false;
    write(`${seed}/before`, files);
    const after = {
      [wanted.to]: newModule(source, wanted) ?? "",
      [wanted.from]: oldModule(source, wanted) ?? "",
      [user]: otherModule(using, user, wanted) ?? using,
    };
    write(`${seed}/after`, { ...files, ...after });
    for (const [path, text] of Object.entries(after)) {
      const { find, replace } = editBetween(files[path] ?? "", text);
      if (path !== wanted.to && text !== files[path])
        expect((files[path] ?? "").split(find).join(replace), `${seed} ${path}`).toBe(text);
      if (source.includes("\r")) expect(text, `${seed} ${path}`).not.toMatch(/(?<!\r)\n|\r(?!\n)/);
    }
    return true;
  });
  // All in one process: what each comes to, before and after.
  const program = `
    process.on("unhandledRejection", () => {});
    const told = {};
    for (const seed of ${JSON.stringify(moved)}) for (const when of ["before", "after"]) {
      const main = await import("./" + seed + "/" + when + "/main.js").catch((error) => ({ told: String(error) }));
      (told[when] ??= {})[seed] = main.told;
    }
    console.log(JSON.stringify(told));`;
  writeFileSync(join(root, "all.mjs"), program);
  const { stdout } = spawnSync(process.execPath, ["--no-warnings", "all.mjs"], { cwd: root, encoding: "utf8" });
  const { before, after } = JSON.parse(stdout) as Record<"before" | "after", Readonly<Record<string, unknown>>>;
  const ran = Object.keys(before).filter((seed) => Array.isArray(before[seed]));
  expect(ran.length).toBeGreaterThan(30);
  for (const seed of ran) expect(after[seed], `seed ${seed}`).toEqual(before[seed]);
});

test("text is no code", () => {
  const code = 'a("}"); // {\nb(/[/}]{/g, `}${c("`")}{`); /* ( */ d / e / f;';
  expect(mask(code)).toHaveLength(code.length);
  expect(mask(code).replaceAll(/\s+/g, " ").trim()).toBe("a( ); b( , c( ) ); d / e / f;");
});
