import { join } from "node:path";
import { randomFrom } from "../../bench/random.ts";
import type { Move } from "../../graphs/refactor/move.ts";
import type { Files } from "./refactor.ts";

/** A project of which `main.js` exports a promise of what its modules come to, and a move in it. */
export interface HostileProject {
  readonly files: Files;
  readonly move: Move;
  /** The module that imports the function `F`. */
  readonly user: string;
}

/**
 * A project whose module is written in all the ways that people write modules: without semicolons, with several
 * declarations on a line, lists of exports, patterns, comments in imports, other line ends; the same for the same seed.
 */
export function hostileProject(seed: number): HostileProject {
  const random = randomFrom(seed);
  const pick = <T>(...all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const chance = (share: number) => random() < share;
  const s = chance(0.7) ? ";" : "";
  const q = pick('"', "'");
  const folder = pick("src", "src/deep", ".");
  const [from, to] = [join(folder, "home.js"), join(pick("src", "made/by", "."), "fresh.js")];
  const root = folder === "." ? "./" : "../".repeat(folder.split("/").length);
  const lib = `${q}${root}lib.js${q}`;

  const imports = pick(
    [`import { up, low } from ${lib}${s}`],
    [`import one, { up, low } from ${lib}${s}`],
    ["import { up,", "  // the other } one", "  low,", `} from ${lib}${s}`],
    [`import * as all from ${lib}${s}`, `import { up } from ${lib}${s}`, `import { low } from ${lib}${s}`],
    [`import { up as up, low as lower } from ${lib}${s}`, `const low = lower${s}`],
    [`import { up } from ${lib}; import { low } from ${lib}`],
  );
  const json = chance(0.3) ? [`import data from ${q}${root}data.json${q} with { type: ${q}json${q} }${s}`] : [];
  const value = pick(
    [`const K = 3${s}`],
    [`export const K = 3${s}`],
    [`const K = 3, L = 4${s}`],
    [`const { K, M: [N] } = { K: 3, M: [5] }${s}`],
    [`let K = 3${s}`, `export function bump() { return K += 1${s} }`],
    [`const K = 3; const Z = 2${s}`],
    [`  const K = 3${s}`],
    ["const K =", "  1 +", `  2${s}`],
    [`const K = ${q}3${q}.length`, `  + 2${s}`],
    [`export { K }${s}`, `const K = 3${s}`],
    [`const K = 3${s}`, `export { K as konst }${s}`],
    [`const K = 3${s}`, `const other = 4${s}`, `export { other as K }${s}`],
  );
  const helper = pick(
    [`function h(x) { return x + K${s} }`],
    [`const h = (x) => x + K${s}`],
    ["export function h(x) {", `  return x + K${s}`, "}"],
    [`function h(x) { return x + K${s} }`, `export { h }${s}`],
    [`const h = async (x) => x${s}`, `const again = h${s}`],
    [`function *h(x) { yield x${s} }`],
    [`class h { constructor(x) { this.x = x${s} } }`],
    [`export default function h(x) { return x + K${s} }`],
    ["const h = x =>", `  x + K${s}`],
    ["const h = [1, 2]", `  .map((x) => x)[0]${s}`],
    [`/* c */ const h = 2${s} // tail }`],
  );
  const lines = [
    "",
    `if (/[/"'{]/.test(a)) a = a + "}"${s}`,
    `const t = \`}\${up(\`{\${a}\`)}\`; a = t${s}`,
    "// it's } here",
    "/* { */",
    `const x = 8 / 2 / 1${s} // /`,
    `let i = 0; i++ / 2 / 3${s}`,
    `void import(${q}${root}other/lib.js${q})${s}`,
  ];
  const line = chance(0.2) ? `${pick(...SETS)}${s}` : pick(...lines);
  const use =
    pick("typeof h", "K", "typeof h + K", "({ h: 1, K: 2 }).h", "1") +
    (json.length > 0 && chance(0.6) ? " + data.n" : "");
  const [head, end] = pick(
    ["function F(a, ...rest) {", "}"],
    ["const F = (a, ...rest) => {", `}${s}`],
    ['function F(a = { x: "}" }, ...rest) {', "}"],
    ["async function F(a, ...rest) {", "}"],
    ["function  F (a, ...rest)\n{", "}"],
    ["let F = (a, ...rest) => {", `}${s}`],
    ["const F = async (a, ...rest) => {", `}${s}`],
  );
  const comment = pick([], ["/** F says { */"], ["// F", "// two"], ["/*", " * } F", " */"]);
  const moved = [
    ...comment,
    `${pick("export ", "export  ")}${head}`,
    `  ${line}`,
    `  return up(low(String(a))) + ${use} + rest.length${s}`,
    end,
  ];
  const uses = pick(
    ["export function uses(x) {", `  return F(x)${s}`, "}"],
    [`export const once = F(1)${s}`, `export const uses = () => once${s}`],
    [`export const uses = F${s}`],
    [`export function uses() { return 1${s} }`],
    [`export const table = { F }${s}`, `export const uses = (x) => table.F(x)${s}`],
    [`export const uses = (x) => (${q}F${q}, x)${s}`],
  );
  const parts = [[...value, ...helper], moved, uses];
  if (chance(0.3)) parts.reverse();
  const gap = chance(0.8) ? [""] : [];
  const top = [...pick([], [], ["#!/usr/bin/env -S node --it's"]), ...pick([], [], ["// licence: it's free {", ""])];
  const home = [...top, ...imports, ...json, ...gap, ...parts.flatMap((part) => [...part, ...gap]), ""];

  const call = (name: string) => `export const told = async () => [await ${name}("a", 1), await ${name}("b")];`;
  const other = pick(
    [`import { F, uses } from "./${from}";`, call("F"), "export { uses };"],
    [`import { uses } from "./${from}"`, `import { F as G } from "./${from}"`, call("G"), "export { uses }"],
    ["import {", "  F, // the one", "  uses,", `} from './${from}'`, call("F"), "export { uses }"],
    [`export { F } from "./${from}";`, `import { F } from "./${from}"; import { uses } from "./${from}";`, call("F")],
    [`import * as home from "./${from}";`, call("home.F")],
  );
  const main = [
    'import * as other from "./other.js";',
    'export const told = [await other.told(), await other.told(), await other.uses?.("x")];',
    "",
  ];
  const modules = { [from]: home, "other.js": [...other, ""], "main.js": main };
  const newLine = chance(0.25) ? "\r\n" : "\n";
  const written = Object.entries(modules).map(([path, each]) => [path, each.join("\n").replaceAll("\n", newLine)]);
  return {
    files: { ...REST, ...Object.fromEntries(written) },
    move: { name: "F", from, to, reexport: other[0]?.includes("*") ?? false },
    user: "other.js",
  };
}

/** Ways to set `K`, or another of that name. */
const SETS = [
  "K++",
  "++K",
  "[K] = [4]",
  "({ K } = { K: 5 })",
  "for (K of [1, 2]) a += K",
  "K <<= 1",
  "K ??= 1",
  "const [K] = [9]",
];

const REST: Files = {
  "package.json": '{ "type": "module" }\n',
  "lib.js": "export const up = (s) => s.toUpperCase(); export const low = (s) => s.toLowerCase(); export default 1;\n",
  "other/lib.js": "export const two = 2;\n",
  "data.json": '{ "n": 7 }\n',
};
