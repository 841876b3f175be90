import type { Json } from "../internal/json.ts";

/** One argument of a skill, as its front matter declares it. */
export interface SkillParameter {
  readonly type?: "string" | "number" | "integer" | "boolean" | "array";
  readonly description?: string;
  readonly enum?: readonly (string | number | boolean)[];
  /** Values that fit, which the model is shown. */
  readonly examples?: readonly Json[];
  readonly default?: Json;
  /** True unless set, or unless there is a default. */
  readonly required?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  /** What the items of an array are; texts unless set. */
  readonly items?: SkillParameter;
}

/** The module that does what a skill is for, and what is declared of it; the rest is as for a tool. */
export interface SkillImplementation {
  /** Its path inside the skill's folder. */
  readonly module: string;
  readonly effect: "none" | "read" | "write";
  readonly idempotent: boolean;
  readonly timeoutMs?: number;
  readonly limit?: number;
}

/** A skill that was read from a folder with a SKILL.md and found to be whole. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly whenToUse: string | null;
  readonly whenNotToUse: string | null;
  readonly parameters: Readonly<Record<string, SkillParameter>>;
  /** Null for a skill that is instructions only. */
  readonly implementation: SkillImplementation | null;
  /** The module whose workflow does what the skill is for, as a step: its path inside the skill's folder. */
  readonly workflow: string | null;
  /** The state fields that its implementation sees; a workflow sees its parameters only. */
  readonly reads: readonly string[];
  /** The state fields that it may change; it sees them too. */
  readonly writes: readonly string[];
  /** The entry that it is listed under where there are many. */
  readonly group: string | null;
  readonly license: string | null;
  readonly compatibility: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly allowedTools: readonly string[];
  /** Where it lies, absolute. */
  readonly folder: string;
  /** Its SKILL.md, absolute. */
  readonly file: string;
  /** The instructions: what follows the front matter. */
  readonly body: string;
  /** Changes whenever the file does. */
  readonly digest: string;
}

export type SkillProblemCode =
  // of the folder or file
  | "MISSING_FOLDER"
  | "UNREADABLE"
  | "LINK"
  | "TOO_LARGE"
  | "NOT_TEXT"
  // of the front matter
  | "NO_FRONT_MATTER"
  | "INVALID_YAML"
  | "MISSING_NAME"
  | "INVALID_NAME"
  | "MISSING_DESCRIPTION"
  | "INVALID_DESCRIPTION"
  | "INVALID_COMPATIBILITY"
  | "INVALID_VALUE"
  | "INVALID_PARAMETERS"
  | "INVALID_IMPLEMENTATION"
  | "DUPLICATE_NAME"
  // of a skill that loads all the same
  | "UNKNOWN_KEY"
  | "ODD_VALUE"
  | "EMPTY_BODY"
  // advice
  | "CONFUSABLE"
  | "NO_LIMITS";

/** Something about a skill that somebody should look at. */
export interface SkillProblem {
  readonly file: string;
  readonly line: number;
  /** A skill with an error is left out; a warning and advice leave it in. */
  readonly severity: "error" | "warning" | "advice";
  readonly code: SkillProblemCode;
  readonly message: string;
}

/** Skills, and whatever holds skills that may change: what `loadSkills` and `watchSkills` give. */
export type SkillSource = readonly Skill[] | { readonly skills: readonly Skill[] };

/** The skills that a source has now. */
export function skillsOf(source: SkillSource): readonly Skill[] {
  return "skills" in source ? source.skills : source;
}

/** The skill of a name, or null. */
export function skillNamed(skills: readonly Skill[], name: string): Skill | null {
  return skills.find((skill) => skill.name === name) ?? null;
}
