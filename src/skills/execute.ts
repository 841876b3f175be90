import { z } from "zod";
import { jsonBytes, notJson, shorten } from "../internal/json.ts";
import { ToolError } from "../tools/tool-error.ts";
import type { State } from "../state/fields.ts";
import { MEMORY_TYPES, type Memorable } from "../workflow/memorable.ts";
import type { ToolContext } from "../workflow/tool.ts";
import { exportsOf } from "./module.ts";
import type { Skill, SkillImplementation } from "./skill.ts";
import { resourceOf } from "./stages.ts";

/** What a skill found worth remembering across tasks. */
export type NewMemory = Omit<Memorable, "skill">;

/** What a skill's implementation gives back; all of it has to survive as JSON. */
export interface SkillResult<Output = unknown> {
  /** What it found out. Of a failure: a text that says why, or `{ type, error, advice }`. */
  readonly output: Output;
  /** `failure` is an error that the model is told; `require_more` means that it has to be called with more. */
  readonly status: "success" | "failure" | "require_more";
  /** Written into the task's memory with the result, where the graph has memories; else they stay in the result. */
  readonly newMemories?: readonly NewMemory[];
  /** Changes to the state fields that the skill declares as `writes`; they commit with the result. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Counts, durations and the like, for whoever reads the log. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** What a skill's implementation gets beside its parameters: all that a tool gets, and its own folder. */
export interface SkillContext extends ToolContext {
  readonly skill: Pick<Skill, "name" | "folder">;
  /** The fields that the skill declares as `reads` or `writes`, as they were when the call was decided. */
  readonly state: State;
  /** Reads a file of the skill's folder. */
  readonly resource: (path: string) => string;
}

/**
 * The one protocol of skills: what the module of a skill exports as `execute`.
 *
 * @example
 * export const execute: Execute<{ file: string }> = async ({ file }, { signal }) => {
 *   const lines = await suspicious(file, signal);
 *   return { status: "success", output: lines, metadata: { lines: lines.length } };
 * };
 */
export type Execute<Parameters = Readonly<Record<string, unknown>>> = (
  parameters: Parameters,
  context: SkillContext,
) => Promise<SkillResult> | SkillResult;

const memorySchema = z.strictObject({
  type: z.enum(MEMORY_TYPES),
  text: z.string().trim().min(1),
  priority: z.number().int().min(0).max(5).optional(),
});

/** The shape of a result; `metadata.durationMs` is added to what the skill gives. */
export const resultSchema = z.strictObject({
  output: z.unknown(),
  status: z.enum(["success", "failure", "require_more"]),
  newMemories: z.array(memorySchema).optional(),
  state: z.record(z.string(), z.unknown()).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});

/** A larger result is shown as a preview, and what code keeps of it would be lost. */
const MAX_KEPT_BYTES = 16_000;
const MAX_SAID = 1000;

/**
 * Runs a skill's implementation and checks what it gives. The module is read anew when its file has changed.
 *
 * @throws a ToolError where the module or its result is not as agreed, or where the skill says `failure`.
 */
export async function executeSkill(
  skill: Skill,
  implementation: SkillImplementation,
  parameters: Readonly<Record<string, unknown>>,
  context: ToolContext,
): Promise<z.output<typeof resultSchema>> {
  const execute = await executeOf(skill, implementation);
  const seen = new Set([...skill.reads, ...skill.writes]);
  const state = Object.fromEntries(Object.entries(context.state).filter(([name]) => seen.has(name)));
  const { name, folder } = skill;
  const startedAt = context.clock.now();
  const given = await execute(parameters, {
    ...context,
    state,
    skill: { name, folder },
    resource: (path) => resourceOf(skill, path),
  });
  const result = checkResult(skill, given);
  if (result.status === "failure") throw failure(result.output);
  const durationMs = context.clock.now() - startedAt;
  return { ...result, metadata: { ...result.metadata, durationMs } };
}

function checkResult(skill: Skill, given: unknown): z.output<typeof resultSchema> {
  const wrong = (message: string) => new ToolError(`${skill.name} ${message}`, { type: "INVALID_SKILL_RESULT" });
  const parsed = resultSchema.safeParse(given);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "it"}: ${message}`);
    throw wrong(`gave no result of a skill: ${issues.join("; ")}`);
  }
  const odd = notJson({ ...parsed.data });
  if (odd) throw wrong(`gave a result that would not survive as JSON: ${odd}`);
  const strange = Object.keys(parsed.data.state ?? {}).find((field) => !skill.writes.includes(field));
  if (strange !== undefined) throw wrong(`may not change ${strange}, since its writes do not name it`);
  const { state, newMemories } = parsed.data;
  if ((state || newMemories) && jsonBytes(parsed.data) > MAX_KEPT_BYTES) {
    throw wrong(`gave state or memories in a result of more than ${MAX_KEPT_BYTES} bytes, where they would be lost`);
  }
  return parsed.data;
}

const failureSchema = z.object({ type: z.string().min(1), error: z.string().min(1), advice: z.string().optional() });

/** The model is told what went wrong as it is of any tool: kind, message, and what to try. */
function failure(output: unknown): ToolError {
  const told = failureSchema.safeParse(output);
  if (told.success) {
    const { type, error, advice } = told.data;
    return new ToolError(error, { type, ...(advice === undefined ? {} : { hint: advice }) });
  }
  const said = typeof output === "string" ? output : JSON.stringify(output ?? "no reason was given");
  return new ToolError(shorten(said, MAX_SAID), { type: "SKILL_FAILED" });
}

async function executeOf(skill: Skill, { module }: SkillImplementation): Promise<Execute> {
  const { execute } = await exportsOf(skill, module).catch((error: unknown) => {
    throw broken(skill, error instanceof Error ? error.message : String(error), error);
  });
  if (typeof execute !== "function") throw broken(skill, `${module} exports no function execute`);
  return execute as Execute;
}

function broken(skill: Skill, message: string, cause?: unknown): ToolError {
  return new ToolError(`the skill ${skill.name} is broken: ${message}`, { type: "BROKEN_SKILL", cause });
}
