import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import { z } from "zod";
import { WorkflowError } from "../errors.ts";
import { ToolError } from "../tools/tool-error.ts";
import type { CallResult } from "../state/execution.ts";
import { NAME } from "../workflow/fault.ts";
import { defineTool, type AnyTool, type ToolDefinition } from "../workflow/tool.ts";
import { FEW_SKILLS } from "./choose.ts";
import { executeSkill, resultSchema } from "./execute.ts";
import { listing } from "./listing.ts";
import { argumentsOf, type SkillArguments } from "./parameters.ts";
import { skillNamed, skillsOf, type Skill, type SkillImplementation, type SkillSource } from "./skill.ts";
import { bodyOf, resourceOf, resourcesOf, usageOf } from "./stages.ts";

/** What the application says of a skill's tool, in place of what the skill says of itself. */
export type SkillToolDeclaration = Partial<
  Omit<ToolDefinition<SkillArguments>, "parameters" | "run" | "result" | "onResult" | "remembers">
>;

export interface SkillToolsOptions<N extends string = string, R extends boolean = boolean> {
  /**
   * The tools that are made of implementations; all unless set. Those that are named have to be there, and their
   * names are known to the type checker.
   */
  readonly tools?: readonly N[];
  /** False leaves out the tools that list and read skills, where the model only runs them. */
  readonly reading?: R;
  /** True where the skills are your own: then what is read of them counts as yours, not as text from outside. */
  readonly trusted?: boolean;
  /** The skills that a step may list and read, by step; a step that is not named may use all. */
  readonly steps?: Readonly<Record<string, readonly string[]>>;
  /** Finds skills by meaning as well as by words. */
  readonly embeddings?: EmbeddingsInterface;
  /** What is known better of implementations, by their tools' names; `false` makes no tool of one. */
  readonly declarations?: Readonly<Record<string, SkillToolDeclaration | false>>;
}

/** The tools that lead from the list to the files. */
type ReadingTool = "listSkills" | "readSkill" | "readSkillResource";

/** The longest that they may take. */
const READ_TIMEOUT_MS = 10_000;

/**
 * Tools for skills: `listSkills`, `readSkill` and `readSkillResource` lead a model from the list over the
 * instructions to the files of one; and each skill with an implementation becomes a tool of its own name.
 *
 * With a source that changes (`watchSkills`), what is listed, read and run is always the present version. A
 * skill that gains an implementation, or other parameters, becomes a tool in the next definition only, since
 * the tools of a workflow are part of its version.
 *
 * @throws INVALID_WORKFLOW where a name in `tools` or `declarations` is that of no implementation.
 * @example
 * const { skills } = loadSkills("skills");
 * const tools = skillTools(skills, { tools: ["read-log-file"], reading: false });
 * defineWorkflow({ tools, steps: { looking: { tools: ["read-log-file"], … }, … }, … });
 */
export function skillTools<const N extends string = string, const R extends boolean = true>(
  source: SkillSource,
  options: SkillToolsOptions<N, R> = {},
): Readonly<Record<N | (R extends false ? never : ReadingTool), AnyTool>> {
  const reading = options.reading === false ? {} : readingTools(source, options);
  return { ...reading, ...implementedTools(source, options) } as ReturnType<typeof skillTools<N, R>>;
}

function readingTools(source: SkillSource, { trusted = false, steps = {}, embeddings }: SkillToolsOptions) {
  const openIn = (step: string) => {
    const allowed = Object.hasOwn(steps, step) ? steps[step] : undefined;
    return skillsOf(source).filter(({ name }) => allowed?.includes(name) ?? true);
  };
  const skill = z.string().min(1).max(64).describe("The skill's name, as listSkills gives it");
  const common = { effect: "read", trusted, timeoutMs: READ_TIMEOUT_MS } as const;
  return {
    listSkills: defineTool({
      ...common,
      description: `Lists the skills that may help: instructions for certain kinds of work. Where there are more than ${FEW_SKILLS}, say what you want to do, and the best are listed; or open one of their groups.`,
      parameters: z.object({
        request: z.string().max(2000).optional().describe("What you want to do, in a sentence"),
        group: z.string().max(64).optional().describe("A group that was listed"),
      }),
      run: (asked, { step }) => listing(source, openIn(step), asked, embeddings),
    }),
    readSkill: defineTool({
      ...common,
      description: "Gives the instructions of a skill and the names of its files. Read them before you do such work.",
      parameters: z.object({ skill }),
      run: ({ skill }, { step }) => instructionsOf(find(openIn(step), skill)),
    }),
    readSkillResource: defineTool({
      ...common,
      description: "Gives a file of a skill that its instructions name.",
      parameters: z.object({ skill, path: z.string().min(1).max(500).describe("Its path in the skill's folder") }),
      run: ({ skill, path }, { step }) => resourceOf(find(openIn(step), skill), path),
    }),
  };
}

function find(skills: readonly Skill[], name: string): Skill {
  const skill = skillNamed(skills, name);
  if (skill) return skill;
  const names = skills
    .slice(0, 50)
    .map((one) => one.name)
    .join(", ");
  throw new ToolError(`there is no skill "${name}" here`, {
    type: "UNKNOWN_SKILL",
    hint: names === "" ? "there are none" : `there are: ${names}`,
  });
}

/** One text, not an object: long instructions are set aside, and are then read line by line. */
function instructionsOf(skill: Skill): string {
  const files = resourcesOf(skill);
  return [
    `skill: ${skill.name}`,
    ...(files.length > 0 ? [`its files, for readSkillResource: ${files.join(", ")}`] : []),
    ...(skill.implementation ? [`the tool that does it: ${toolName(skill)}`] : []),
    ...(skill.workflow === null ? [] : ["a workflow does it, in a step of its own"]),
    "",
    bodyOf(skill),
  ].join("\n");
}

/** A name of a tool begins with a letter, that of a skill may begin with a digit. */
function toolName({ name }: Skill): string {
  return NAME.test(name) ? name : `_${name}`.slice(0, 64);
}

function implementedTools(
  source: SkillSource,
  { tools: wanted, declarations = {} }: SkillToolsOptions,
): Readonly<Record<string, AnyTool>> {
  const made = skillsOf(source).flatMap((skill) => {
    const name = toolName(skill);
    const declared = Object.hasOwn(declarations, name) ? declarations[name] : undefined;
    return skill.implementation ? [{ name, skill, implementation: skill.implementation, declared }] : [];
  });
  refuseStrangers(
    [...(wanted ?? []), ...Object.keys(declarations)],
    made.map(({ name }) => name),
  );
  return Object.fromEntries(
    made.flatMap(({ name, skill, implementation, declared }) =>
      declared === false || (wanted && !wanted.includes(name))
        ? []
        : [[name, toolOf(source, skill, implementation, declared ?? {})]],
    ),
  );
}

/** A slip in a name would leave a tool without its approval; and a skill that is broken is missing here. */
function refuseStrangers(named: readonly string[], known: readonly string[]): void {
  const faults = [...new Set(named)]
    .filter((name) => !known.includes(name))
    .map((name) => {
      const message = `no skill that has loaded has an implementation for a tool "${name}"; there are: ${known.join(", ") || "none"}; \`statecard skills check\` tells which are broken`;
      return { path: `tools.${name}`, code: "INVALID_TOOL", message };
    });
  if (faults.length === 0) return;
  throw new WorkflowError("INVALID_WORKFLOW", faults.map(({ message }) => message).join("; "), { details: { faults } });
}

function toolOf(
  source: SkillSource,
  skill: Skill,
  { effect, idempotent, timeoutMs, limit }: SkillImplementation,
  declared: SkillToolDeclaration,
): AnyTool {
  return defineTool<SkillArguments>({
    description: usageOf(skill),
    effect,
    idempotent,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(limit === undefined ? {} : { limit }),
    ...declared,
    parameters: argumentsOf(skill.parameters),
    result: resultSchema,
    run: (parameters, context) => {
      const present = skillNamed(skillsOf(source), skill.name);
      if (present?.implementation) return executeSkill(present, present.implementation, parameters, context);
      throw new ToolError(`the skill ${skill.name} can no longer be run`, { type: "UNKNOWN_SKILL" });
    },
    ...(skill.writes.length > 0 ? { onResult: (result) => changesOf(skill, result) } : {}),
    remembers: (result) => (resultIn(result)?.newMemories ?? []).map((memory) => ({ ...memory, skill: skill.name })),
  });
}

/** What a skill gave; null where its call did not go well. */
function resultIn({ status, value }: CallResult) {
  return status === "ok" ? (resultSchema.safeParse(value).data ?? null) : null;
}

function changesOf({ writes }: Skill, result: CallResult): Readonly<Record<string, unknown>> {
  const changes = Object.entries(resultIn(result)?.state ?? {});
  return Object.fromEntries(changes.filter(([name]) => writes.includes(name)));
}
