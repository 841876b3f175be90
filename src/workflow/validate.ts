import { z } from "zod";
import type { AnyWorkflow } from "./define.ts";
import type { RuntimeStep } from "./step.ts";
import { NAME, type Fault } from "./fault.ts";
import { isModelStep, targets } from "./next-step.ts";
import { planFieldOf } from "./plan.ts";
import { roleFaults } from "./role.ts";
import { sensitiveFaults } from "./sensitive.ts";
import { budgetFaults, kindFaults } from "./validate-steps.ts";
import { migrationFaults, toolFaults } from "./validate-tools.ts";

const RESERVED_STEPS = new Set(["act", "__start__", "__end__", "__input__", "__copy__"]);
const RESERVED_FIELDS = new Set(["execution", "message", "__interrupt__", "__proto__"]);

/** Everything that is wrong with a definition's structure, all at once. Pure. */
export function findFaults(workflow: AnyWorkflow): readonly Fault[] {
  return [
    ...nameFaults(workflow),
    ...fieldFaults(workflow),
    ...Object.entries(workflow.steps).flatMap(([name, step]) => stepFaults(workflow, name, step)),
    ...kindFaults(workflow),
    ...budgetFaults(workflow),
    ...toolFaults(workflow),
    ...roleFaults(workflow),
    ...sensitiveFaults(workflow),
    ...migrationFaults(workflow),
    ...pathFaults(workflow),
    ...writerFaults(workflow),
  ];
}

function nameFaults(workflow: AnyWorkflow): Fault[] {
  const faults: Fault[] = [];
  const name = (path: string, value: string, reserved: ReadonlySet<string>) => {
    if (!NAME.test(value)) {
      faults.push({
        path,
        code: "INVALID_NAME",
        message: "use 1 to 64 letters, digits, _ and -, starting with a letter",
      });
    } else if (reserved.has(value) || value in Object.prototype) {
      faults.push({ path, code: "INVALID_NAME", message: `"${value}" belongs to the runtime; choose another name` });
    }
  };
  name("name", workflow.name, new Set());
  for (const step of Object.keys(workflow.steps)) name(`steps.${step}`, step, RESERVED_STEPS);
  for (const field of Object.keys(workflow.state)) name(`state.${field}`, field, RESERVED_FIELDS);
  for (const field of Object.keys(workflow.state).filter((field) => Object.hasOwn(workflow.steps, field))) {
    faults.push({
      path: `state.${field}`,
      code: "INVALID_NAME",
      message: `a step is named "${field}" too; rename one`,
    });
  }
  if (!Number.isInteger(workflow.version) || workflow.version < 1) {
    faults.push({ path: "version", code: "INVALID_VERSION", message: "must be a whole number from 1" });
  }
  return faults;
}

function fieldFaults(workflow: AnyWorkflow): Fault[] {
  const faults: Fault[] = [];
  for (const [name, field] of Object.entries(workflow.state)) {
    const path = `state.${name}`;
    try {
      z.toJSONSchema(field.schema);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      faults.push({ path, code: "UNSERIALIZABLE_FIELD", message: `its values would not survive as JSON: ${why}` });
    }
    if (field.schema.safeParse(null).success) {
      faults.push({
        path,
        code: "CONTRADICTION",
        message: "null means that a field has no value; take .nullable() or .nullish() away",
      });
    }
    if (field.rules.appendOnly && !field.schema.safeParse([]).success) {
      faults.push({
        path,
        code: "CONTRADICTION",
        message: "append-only, but the empty list is not allowed by its schema",
      });
    }
    if (field.rules.appendOnly && field.rules.writeOnce) {
      faults.push({ path, code: "CONTRADICTION", message: "write-once and append-only exclude each other" });
    }
    if (field.rules.clearable && (field.rules.writeOnce || field.rules.appendOnly)) {
      const message = "clearable would let a write-once or append-only field be filled anew";
      faults.push({ path, code: "CONTRADICTION", message });
    }
    if (!(field.rules.maxBytes > 0)) {
      faults.push({ path, code: "INVALID_LIMIT", message: "maxBytes must be above 0" });
    }
  }
  return faults;
}

function stepFaults(workflow: AnyWorkflow, name: string, step: RuntimeStep): Fault[] {
  const path = `steps.${name}`;
  const faults: Fault[] = [];
  for (const to of targets(step)) {
    if (!Object.hasOwn(workflow.steps, to)) {
      faults.push({ path: `${path}.to`, code: "UNKNOWN_STEP", message: `there is no step "${to}"` });
    }
  }
  for (const key of ["requires", "writes"] as const) {
    for (const field of step[key] ?? []) {
      if (!Object.hasOwn(workflow.state, field)) {
        faults.push({ path: `${path}.${key}`, code: "UNKNOWN_FIELD", message: `there is no field "${field}"` });
      }
    }
  }
  if (step.final && (step.to ?? step.writes ?? step.instructions ?? step.model ?? step.tools) !== undefined) {
    faults.push({
      path,
      code: "INVALID_STEP",
      message: "is final, so nothing happens in it: only requires makes sense",
    });
  }
  if ((step.input ?? step.output) !== undefined && !step.workflow) {
    faults.push({ path, code: "INVALID_STEP", message: "input and output belong to a step with a workflow" });
  }
  if (step.maxDecisions !== undefined && !isLimit(step.maxDecisions)) {
    faults.push({
      path: `${path}.maxDecisions`,
      code: "INVALID_LIMIT",
      message: "must be a whole number from 1, or Infinity",
    });
  }
  for (const field of isModelStep(step) ? (step.writes ?? []) : []) {
    if (workflow.state[field]?.rules.runtimeOnly) {
      faults.push({
        path: `${path}.writes`,
        code: "RUNTIME_ONLY",
        message: `no model may write "${field}"; write it in a code step`,
      });
    }
  }
  return faults;
}

function isLimit(value: number): boolean {
  return value === Infinity || (Number.isInteger(value) && value >= 1);
}

function pathFaults(workflow: AnyWorkflow): Fault[] {
  const steps = Object.keys(workflow.steps);
  const faults: Fault[] = [];
  if (!isLimit(workflow.maxDecisions)) {
    faults.push({ path: "maxDecisions", code: "INVALID_LIMIT", message: "must be a whole number from 1, or Infinity" });
  }
  if (!Object.hasOwn(workflow.steps, workflow.initial)) {
    faults.push({ path: "initial", code: "UNKNOWN_STEP", message: `there is no step "${workflow.initial}"` });
    return faults;
  }
  const initial = workflow.steps[workflow.initial];
  if (initial?.final) {
    faults.push({ path: "initial", code: "INVALID_STEP", message: "the first step is final, so nothing would happen" });
  }
  for (const field of initial?.requires ?? []) {
    if (workflow.input.includes(field)) continue;
    faults.push({
      path: `steps.${workflow.initial}.requires`,
      code: "CONTRADICTION",
      message: `"${field}" is not known yet at the first step: make it an input, or require it later`,
    });
  }
  const reached = reachable(workflow, workflow.initial);
  for (const name of steps) {
    if (!reached.has(name)) {
      faults.push({
        path: `steps.${name}`,
        code: "UNREACHABLE",
        message: "no transition leads here from the first step",
      });
    }
    if (workflow.steps[name]?.final) continue;
    const onward = reachable(workflow, name);
    if (![...onward].some((other) => workflow.steps[other]?.final)) {
      faults.push({ path: `steps.${name}`, code: "DEAD_END", message: "no final step can be reached from here" });
    }
    if (workflow.maxDecisions === Infinity && loopsForEver(workflow, name)) {
      faults.push({
        path: `steps.${name}`,
        code: "UNLIMITED_LOOP",
        message: "can be visited for ever: set maxDecisions here or on the workflow",
      });
    }
  }
  return faults;
}

function reachable(workflow: AnyWorkflow, from: string): ReadonlySet<string> {
  const seen = new Set([from]);
  for (const name of seen) {
    for (const to of targets(workflow.steps[name])) seen.add(to);
  }
  return seen;
}

/** Whether a step can come back to itself through steps without a limit only: any limit ends a loop. */
function loopsForEver(workflow: AnyWorkflow, name: string): boolean {
  const unlimited = (step: string) => workflow.steps[step]?.maxDecisions === Infinity;
  const seen = new Set(unlimited(name) ? targets(workflow.steps[name]).filter(unlimited) : []);
  for (const step of seen) {
    for (const to of targets(workflow.steps[step]).filter(unlimited)) seen.add(to);
  }
  return seen.has(name);
}

function writerFaults(workflow: AnyWorkflow): Fault[] {
  const faults: Fault[] = [];
  const steps = Object.values(workflow.steps);
  // What code keeps of results may go into any field.
  const keepsResults =
    Object.keys(workflow.onResult).length > 0 || Object.values(workflow.tools).some((tool) => tool.onResult);
  for (const field of workflow.input) {
    if (!Object.hasOwn(workflow.state, field)) {
      faults.push({ path: "input", code: "UNKNOWN_FIELD", message: `there is no field "${field}"` });
    }
  }
  for (const name of Object.keys(workflow.state)) {
    const written = steps.some(
      (step) =>
        step.writes?.includes(name) ||
        planFieldOf(step) === name ||
        ((step.run ?? step.workflow ?? step.map) !== undefined && step.writes === undefined),
    );
    if (!written && !keepsResults && !workflow.input.includes(name)) {
      faults.push({ path: `state.${name}`, code: "UNWRITTEN_FIELD", message: "no step writes it and it is no input" });
    }
  }
  return faults;
}
