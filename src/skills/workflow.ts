import { WorkflowError } from "../errors.ts";
import { isPlainObject } from "../internal/json.ts";
import type { State } from "../state/fields.ts";
import { anyWorkflow, defineWorkflow, type AnyWorkflow } from "../workflow/define.ts";
import type { ChildResult } from "../workflow/step.ts";
import { exportsOf } from "./module.ts";
import { argumentsOf, requiredOf } from "./parameters.ts";
import type { Skill } from "./skill.ts";

/**
 * What a skill that is a workflow says of the step that runs it; to be spread into one. Which fields it names is
 * known at run time only, so `defineWorkflow` checks them, and not the type checker.
 */
export interface SkillStep {
  readonly workflow: AnyWorkflow;
  /** The parameters that it needs, as fields of the parent. */
  readonly requires: readonly never[];
  /** The fields that the skill `writes`. */
  readonly writes: readonly never[];
  readonly input: (state: State) => Readonly<Record<string, unknown>>;
  readonly output: (child: ChildResult) => { readonly patch: Readonly<Record<string, never>> };
}

/**
 * The workflow of a skill as a step of another: its table holds, it runs as a task of its own, and what it asks is
 * asked by the task that runs it. Its parameters are taken from the fields of the same names, and the fields that
 * it `writes` are taken over from its end; where the parent calls them otherwise, give `input` or `output` after it.
 *
 * @throws INVALID_WORKFLOW where the skill has no workflow, its module cannot be loaded or exports none, or its
 * workflow does not take its parameters or have what it writes.
 * @example
 * const { skills } = loadSkills("skills");
 * const returning = await workflowOf(skills.find(({ name }) => name === "return-goods"));
 * defineWorkflow({ …, steps: { returning: { ...returning, to: ["done"] }, … } });
 */
export async function workflowOf(skill: Skill | undefined): Promise<SkillStep> {
  if (!skill) throw refused("?", "there is no such skill, or it is broken: see the problems that loadSkills gives");
  const { name, parameters, writes } = skill;
  if (skill.workflow === null) throw refused(name, "has no workflow: name its module under `workflow` in SKILL.md");
  const workflow = await loadWorkflow(skill, skill.workflow);
  for (const parameter of Object.keys(parameters).filter((one) => !workflow.input.includes(one)))
    throw refused(name, `takes ${parameter}, which is no input of its workflow ${workflow.name}`);
  for (const field of writes.filter((one) => !Object.hasOwn(workflow.state, one)))
    throw refused(name, `writes ${field}, which its workflow ${workflow.name} does not have`);
  const schema = argumentsOf(parameters);
  return {
    workflow,
    requires: requiredOf(parameters) as readonly never[],
    writes: writes as readonly never[],
    input(state) {
      const given = Object.keys(parameters).map((one) => [one, state[one] ?? undefined]);
      const checked = schema.safeParse(Object.fromEntries(given.filter(([, value]) => value !== undefined)));
      if (checked.success) return checked.data;
      const issues = checked.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
      throw new Error(`the skill ${name} cannot be run with this state: ${issues.join("; ")}`);
    },
    output({ state, status, error }) {
      if (status === "failed") throw new Error(`the skill ${name} failed: ${error ?? "its workflow did"}`);
      const written = writes.map((field) => [field, state[field]]).filter(([, value]) => value !== null);
      return { patch: Object.fromEntries(written) as Readonly<Record<string, never>> };
    },
  };
}

async function loadWorkflow(skill: Skill, module: string): Promise<AnyWorkflow> {
  const { workflow } = await exportsOf(skill, module).catch((error: unknown) => {
    throw refused(skill.name, error instanceof Error ? error.message : String(error), error);
  });
  if (!isPlainObject(workflow) || !isPlainObject(workflow.steps) || !isPlainObject(workflow.state))
    throw refused(skill.name, `${module} exports no workflow: export const workflow = defineWorkflow({ … })`);
  // Checked here too, since the module may have another release of this library.
  return anyWorkflow(defineWorkflow(workflow as never));
}

function refused(name: string, message: string, cause?: unknown): WorkflowError {
  const fault = { path: `skills.${name}`, code: "INVALID_STEP", message };
  return new WorkflowError("INVALID_WORKFLOW", `the skill ${name}: ${message}`, {
    details: { faults: [fault] },
    cause,
  });
}
