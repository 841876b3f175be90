import { z } from "zod";
import { isPlainObject } from "../internal/json.ts";
import { NAME } from "../workflow/fault.ts";
import type { FrontMatter } from "./front-matter.ts";
import { readParameters } from "./parameters.ts";
import type { Skill, SkillImplementation, SkillProblem, SkillProblemCode } from "./skill.ts";

/** What a front matter says of a skill. */
export type SkillDeclaration = Omit<Skill, "folder" | "file" | "body" | "digest">;

/** Says why a file of the skill's folder cannot be its module; null where it can. */
export type ModuleCheck = (module: string) => string | null;

const MAX_NAME = 64;
const MAX_DESCRIPTION = 1024;
const MAX_COMPATIBILITY = 500;
const SKILL_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const MODULE = /\.[cm]?[jt]s$/;

const PUBLIC_KEYS = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
const TOOL_KEYS = ["effect", "idempotent", "timeout_ms", "limit", "reads", "writes"];
const OWN_KEYS = ["when_to_use", "when_not_to_use", "group", "parameters", "implementation", "workflow", ...TOOL_KEYS];

type Found = Pick<SkillProblem, "line" | "severity" | "code" | "message">;

/** Collects what is wrong with one front matter. */
class Findings {
  readonly found: Found[] = [];
  private readonly matter: FrontMatter;

  constructor(matter: FrontMatter) {
    this.matter = matter;
  }

  error(code: SkillProblemCode, message: string, ...path: readonly string[]): void {
    this.found.push({ line: this.matter.lineOf(...path), severity: "error", code, message });
  }

  warn(code: SkillProblemCode, message: string, ...path: readonly string[]): void {
    this.found.push({ line: this.matter.lineOf(...path), severity: "warning", code, message });
  }
}

/**
 * Reads a skill's declaration: the keys of the public format by its rules, and ours. All that is wrong is
 * reported together. Pure.
 *
 * @param folderName what the skill has to be named.
 */
export function readDeclaration(
  matter: FrontMatter,
  folderName: string,
  checkModule: ModuleCheck,
): { readonly declaration: SkillDeclaration; readonly found: readonly Found[] } {
  const findings = new Findings(matter);
  const declaration: SkillDeclaration = {
    name: readName(matter, folderName, findings),
    description: readDescription(matter, findings),
    whenToUse: textOf(matter, "when_to_use", findings),
    whenNotToUse: textOf(matter, "when_not_to_use", findings),
    parameters: parametersOf(matter, findings),
    implementation: implementationOf(matter, checkModule, findings),
    workflow: workflowModuleOf(matter, checkModule, findings),
    group: groupOf(matter, findings),
    reads: fieldsOf(matter, "reads", findings),
    writes: fieldsOf(matter, "writes", findings),
    license: licenseOf(matter, findings),
    compatibility: readCompatibility(matter, findings),
    metadata: metadataOf(matter, findings),
    allowedTools: allowedToolsOf(matter, findings),
  };
  warnOfKeys(matter, declaration, findings);
  return { declaration, found: findings.found.toSorted((a, b) => a.line - b.line) };
}

function readName(matter: FrontMatter, folderName: string, findings: Findings): string {
  const name = matter.text("name") ?? "";
  if (name === "") {
    findings.error("MISSING_NAME", `there is no name; it has to be that of the folder: ${folderName}`, "name");
    return name;
  }
  if (name.length > MAX_NAME || !SKILL_NAME.test(name)) {
    const message = `the name "${name}" has to be 1 to ${MAX_NAME} of a-z, 0-9 and single hyphens between them`;
    findings.error("INVALID_NAME", message, "name");
  } else if (name !== folderName) {
    findings.error("INVALID_NAME", `the name "${name}" has to be that of the folder: ${folderName}`, "name");
  }
  return name;
}

function readDescription(matter: FrontMatter, findings: Findings): string {
  const description = matter.text("description");
  if (description === null && matter.has("description")) {
    findings.error("INVALID_DESCRIPTION", "the description is no text", "description");
  } else if (!description) {
    findings.error("MISSING_DESCRIPTION", "there is no description; the skill is chosen by it", "description");
  } else if (description.length > MAX_DESCRIPTION) {
    const message = `the description has ${description.length} characters, at most ${MAX_DESCRIPTION} are allowed`;
    findings.error("INVALID_DESCRIPTION", message, "description");
  }
  return description ?? "";
}

function readCompatibility(matter: FrontMatter, findings: Findings): string | null {
  const text = textOf(matter, "compatibility", findings);
  if (text !== null && text.length > MAX_COMPATIBILITY) {
    const message = `compatibility has ${text.length} characters, at most ${MAX_COMPATIBILITY} are allowed`;
    findings.error("INVALID_COMPATIBILITY", message, "compatibility");
  }
  return text;
}

function textOf(matter: FrontMatter, key: string, findings: Findings): string | null {
  const text = matter.text(key);
  if (text === null && matter.has(key)) findings.error("INVALID_VALUE", `${key} has to be a text`, key);
  return text === "" ? null : text;
}

function licenseOf(matter: FrontMatter, findings: Findings): string | null {
  const text = matter.text("license");
  if (text === null && matter.has("license")) findings.warn("ODD_VALUE", "license has to be a text", "license");
  return text || null;
}

/** Texts by name; what is none is written as one, since half of the files in the wild have such. */
function metadataOf(matter: FrontMatter, findings: Findings): Readonly<Record<string, string>> {
  const given = matter.value("metadata");
  if (given === undefined || given === null) return {};
  if (!isPlainObject(given)) {
    findings.warn("ODD_VALUE", "metadata has to map names to texts; it was left out", "metadata");
    return {};
  }
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const text = matter.text("metadata", name);
      if (text !== null) return [name, text];
      findings.warn("ODD_VALUE", `metadata.${name} has to be a text; it was taken as JSON`, "metadata", name);
      return [name, JSON.stringify(value)];
    }),
  );
}

function allowedToolsOf(matter: FrontMatter, findings: Findings): readonly string[] {
  const given = matter.value("allowed-tools");
  // A tool may be limited, with spaces inside: `Bash(git add:*)`.
  if (!Array.isArray(given)) return (matter.text("allowed-tools") ?? "").match(/[^\s,(]+(?:\([^)]*\))?/g) ?? [];
  findings.warn("ODD_VALUE", "allowed-tools has to be one text with spaces; the list was taken", "allowed-tools");
  return given.map(String);
}

/** Names of state fields: a list, or one text with spaces. */
function fieldsOf(matter: FrontMatter, key: "reads" | "writes", findings: Findings): readonly string[] {
  const given = matter.value(key);
  const names: readonly unknown[] = Array.isArray(given)
    ? given
    : (matter.text(key) ?? "").split(/[\s,]+/).filter(Boolean);
  const isNames = names.every((name): name is string => typeof name === "string" && NAME.test(name));
  if (isNames && !isPlainObject(given)) return names;
  findings.error("INVALID_VALUE", `${key} has to be a list of state fields`, key);
  return [];
}

function parametersOf(matter: FrontMatter, findings: Findings): SkillDeclaration["parameters"] {
  const read = readParameters(matter.value("parameters"));
  if (read.ok) return read.parameters;
  findings.error(
    "INVALID_PARAMETERS",
    read.message,
    "parameters",
    ...(read.parameter === null ? [] : [read.parameter]),
  );
  return {};
}

const toolSchema = z.object({
  effect: z.enum(["none", "read", "write"]).default("write"),
  idempotent: z.boolean().default(false),
  timeout_ms: z.number().int().min(1).optional(),
  limit: z.number().int().min(1).optional(),
});

function implementationOf(
  matter: FrontMatter,
  checkModule: ModuleCheck,
  findings: Findings,
): SkillImplementation | null {
  const module = textOf(matter, "implementation", findings);
  if (module === null) return null;
  const fault = faultOfModule(module, checkModule);
  if (fault !== null) findings.error("INVALID_IMPLEMENTATION", fault, "implementation");
  const given = Object.fromEntries(TOOL_KEYS.map((key) => [key, matter.value(key) ?? undefined]));
  const parsed = toolSchema.safeParse(given);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const key = String(path[0]);
    findings.error("INVALID_VALUE", `${key}: ${message}`, key);
  }
  const { effect = "write", idempotent = false, timeout_ms: timeoutMs, limit } = parsed.data ?? {};
  return {
    module,
    effect,
    idempotent,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(limit === undefined ? {} : { limit }),
  };
}

function faultOfModule(module: string, checkModule: ModuleCheck): string | null {
  return MODULE.test(module) ? checkModule(module) : `${module} is no JavaScript or TypeScript module`;
}

function workflowModuleOf(matter: FrontMatter, checkModule: ModuleCheck, findings: Findings): string | null {
  const module = textOf(matter, "workflow", findings);
  if (module === null) return null;
  const fault = matter.has("implementation")
    ? "there is an implementation too; a skill is a tool or a step, not both"
    : faultOfModule(module, checkModule);
  if (fault !== null) findings.error("INVALID_IMPLEMENTATION", fault, "workflow");
  return module;
}

function groupOf(matter: FrontMatter, findings: Findings): string | null {
  const group = textOf(matter, "group", findings);
  if (group === null || (group.length <= MAX_NAME && SKILL_NAME.test(group))) return group;
  findings.error("INVALID_VALUE", `the group "${group}" has to be written like the name of a skill`, "group");
  return null;
}

const WORKFLOW_KEYS = new Set(["parameters", "writes"]);

function warnOfKeys(matter: FrontMatter, { implementation, workflow }: SkillDeclaration, findings: Findings): void {
  for (const key of matter.keys) {
    if (![...PUBLIC_KEYS, ...OWN_KEYS].includes(key)) {
      findings.warn("UNKNOWN_KEY", `unknown key ${key}; it means nothing here`, key);
    }
    const isUsed = implementation !== null || (workflow !== null && WORKFLOW_KEYS.has(key));
    if (!isUsed && (key === "parameters" || TOOL_KEYS.includes(key))) {
      findings.warn("ODD_VALUE", `${key} means nothing without an implementation`, key);
    }
  }
}
