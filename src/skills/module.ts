import { createHash } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { faultOfPath, readTextFile } from "./files.ts";
import type { Skill } from "./skill.ts";

type Exports = Readonly<Record<string, unknown>>;

interface LoadedModule {
  readonly digest: string;
  readonly exports: Promise<Exports>;
}

// What was loaded stays in memory for the life of a process, so only what changed is loaded again.
const loaded = new Map<string, LoadedModule>();
let loads = 0;

/**
 * What a module of a skill exports. It is loaded anew when its file has changed.
 *
 * @param module its path inside the skill's folder.
 * @throws an Error that says why it cannot be loaded.
 */
export async function exportsOf(skill: Skill, module: string): Promise<Exports> {
  const file = join(skill.folder, module);
  const fault = faultOfPath(skill.folder, module);
  const read = fault === null ? readTextFile(file) : null;
  if (!read?.ok) throw new Error(fault ?? `${module}: ${read?.fault.message}`);
  const digest = createHash("sha256").update(read.text).digest("hex").slice(0, 12);
  let known = loaded.get(file);
  if (known?.digest !== digest) {
    known = { digest, exports: importModule(file) };
    loaded.set(file, known);
  }
  return known.exports.catch((error: unknown) => {
    // What it imports may be there the next time.
    loaded.delete(file);
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`${module} could not be loaded: ${said}`, { cause: error });
  });
}

async function importModule(file: string): Promise<Exports> {
  const { href } = pathToFileURL(file);
  if (/\.[cm]?ts$/.test(file)) {
    const { createJiti } = await import("jiti");
    // Packages load natively, so that a skill shares the copy of them that the process has.
    const loader = createJiti(href, {
      moduleCache: false,
      nativeModules: ["statecard", "@langchain/core", "@langchain/langgraph", "zod"],
    });
    return loader.import(file);
  }
  // Node keeps what it has loaded under an address, and that it failed, for ever.
  return (await import(`${href}?load=${++loads}`)) as Exports;
}
