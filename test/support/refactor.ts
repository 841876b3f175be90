import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { randomFrom } from "../../bench/random.ts";

/** Files by path. */
export type Files = Readonly<Record<string, string>>;

export interface RefactorProject {
  readonly folder: string;
  readonly message: string;
}

const PROJECTS = fileURLToPath(new URL("../../graphs/refactor/projects", import.meta.url));

export const BUNDLED = {
  shop: "move formatPrice from src/cart.js to src/money.js",
  weather: "please move signOf out of ./lib/report.js into lib/signs/sign.js",
} as const;

/** A copy of a bundled project, removed after the test. */
export function bundled(name: keyof typeof BUNDLED): RefactorProject {
  const folder = emptyFolder();
  cpSync(join(PROJECTS, name), folder, { recursive: true });
  return { folder, message: BUNDLED[name] };
}

/** A folder that is removed after the test. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "statecard-refactor-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** All files of a folder. */
export function filesIn(folder: string, below = ""): Files {
  return Object.fromEntries(
    readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
      const path = join(below, entry.name);
      return entry.isDirectory()
        ? Object.entries(filesIn(folder, path))
        : [[path, readFileSync(join(folder, path), "utf8")]];
    }),
  );
}

/** A project with names, modules and uses that nobody has seen before; the same for the same seed. */
export function generated(seed: number): RefactorProject {
  const random = randomFrom(seed);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const taken = new Set(["word", "items"]);
  const name = (): string => {
    const made =
      Array.from({ length: 2 }, () => pick(["ba", "ko", "ri", "ne", "zu", "tal", "mer", "fi"])).join("") +
      pick(["A", "B", "X"]);
    if (taken.has(made)) return name();
    taken.add(made);
    return made;
  };
  const [moved, local, constant, stays, imported, library] = [name(), name(), name(), name(), name(), name()];
  const modules = Array.from({ length: 1 + Math.floor(random() * 4) }, name);
  const [home, folder, target] = [name(), pick(["src", "lib", "src/deep"]), name()];
  const quote = pick(['"', "'"]);
  const extra = pick(["", `\n  // }} ${moved} {{`, `\n  if (/[/{]${moved}/.test(word)) return "${moved}";`]);
  const isArrow = random() < 0.4;
  const head = isArrow ? `const ${moved} = (word, ...rest) => {` : `function ${moved}(word, ...rest) {`;
  const files: Record<string, string> = {
    "package.json": '{ "type": "module" }\n',
    [`${folder}/${library}.js`]: `export const ${imported} = (word) => word.toUpperCase();\n`,
    [`${folder}/${home}.js`]: [
      `import { ${imported} } from ${quote}./${library}.js${quote};`,
      "",
      `const ${constant} = { mark: "${pick(["!", "?", "}"])}" };`,
      ...(random() < 0.5 ? [`/** ${moved} says it loud. */`] : []),
      `export ${head}${extra}`,
      `  return ${imported}(word) + ${local}(rest.length);`,
      isArrow ? "};" : "}",
      "",
      `${pick(["", "export "])}function ${local}(count) {`,
      `  return ${constant}.mark.repeat(count + 1);`,
      "}",
      "",
      `export function ${stays}(items) {`,
      `  return items.map((item) => ${moved}(item)).join();`,
      "}",
      "",
    ].join("\n"),
  };
  for (const module of modules) {
    const alias = pick([moved, `${moved} as ${name()}`]);
    const used = alias.split(" as ").at(-1) ?? moved;
    files[`${module}.js`] = [
      `import { ${pick([`${alias}, ${stays}`, `${stays},\n  ${alias},`])} } from ${quote}./${folder}/${home}.js${quote};`,
      `export const ${module} = () => ${used}("a", 1) + ${stays}(["b"]);`,
      "",
    ].join("\n");
  }
  files["all.test.js"] = [
    'import assert from "node:assert/strict";',
    'import { test } from "node:test";',
    ...modules.map((module) => `import { ${module} } from "./${module}.js";`),
    `import { ${moved} } from "./${folder}/${home}.js";`,
    `test("${moved}", () => {`,
    `  assert.equal(${moved}.length, 1);`,
    ...modules.map((module) => `  assert.equal(${module}(), ${moved}("a", 1) + ${moved}("b"));`),
    "});",
    "",
  ].join("\n");
  const root = emptyFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { folder: root, message: `move ${moved} from ${folder}/${home}.js to ${pick([folder, "made"])}/${target}.js` };
}
