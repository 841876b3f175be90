import { shorten } from "../internal/json.ts";
import type { AnyWorkflow } from "./define.ts";
import type { RuntimeStep, Step } from "./step.ts";
import type { Fault } from "./fault.ts";
import { isModelStep, targets } from "./next-step.ts";

const STEP_KEYS: Readonly<Record<keyof Step, true>> = {
  to: true,
  requires: true,
  writes: true,
  instructions: true,
  writesAnswer: true,
  tools: true,
  approve: true,
  plan: true,
  react: true,
  map: true,
  guards: true,
  deadline: true,
  model: true,
  maxDecisions: true,
  run: true,
  trusted: true,
  workflow: true,
  input: true,
  output: true,
  final: true,
};

/**
 * The keys of a definition or of a step that nobody knows: in JavaScript, a slip there would do nothing. One without a
 * value counts as absent. Pure.
 *
 * @param path what stands before a key, as in `steps.work.`.
 */
export function keyFaults(path: string, given: object, known: object): readonly Fault[] {
  const present = Object.entries(given).filter(([, value]) => value !== undefined);
  const unknown = present.filter(([key]) => !Object.hasOwn(known, key));
  return unknown.map(([key]) => ({
    path: path + shorten(key, 60),
    code: "UNKNOWN_KEY",
    message: `there is no such key; there are ${Object.keys(known).join(", ")}`,
  }));
}

/** What is wrong with the steps that plan, loop, or go through a list. Pure. */
export function kindFaults(workflow: AnyWorkflow): readonly Fault[] {
  return Object.entries(workflow.steps).flatMap(([name, step]) => {
    const path = `steps.${name}`;
    const faults: Fault[] = [];
    const fault = (code: Fault["code"], at: string, message: string) => faults.push({ path: at, code, message });
    const kinds = Object.entries({
      run: step.run,
      workflow: step.workflow,
      map: step.map,
      plan: step.plan,
      react: step.react,
      final: step.final,
    }).flatMap(([kind, declared]) => (declared === undefined ? [] : [kind]));
    faults.push(...keyFaults(`${path}.`, step, STEP_KEYS));
    if (kinds.length > 1) fault("INVALID_STEP", path, `has ${kinds.join(" and ")}; a step is of one kind`);
    if (step.plan || step.react) loopFaults(workflow, step, path, name, fault);
    if (step.map) mapFaults(workflow, step, path, fault);
    if (step.guards && !isModelStep(step)) {
      fault("INVALID_STEP", `${path}.guards`, "guards look at what a model decides, and no model decides here");
    }
    if (step.trusted && !step.run && !step.map) {
      fault("INVALID_STEP", path, "trusted is for code: it belongs to a step with run or map");
    }
    return faults;
  });
}

type AddFault = (code: Fault["code"], path: string, message: string) => void;

function loopFaults(workflow: AnyWorkflow, step: RuntimeStep, path: string, name: string, fault: AddFault): void {
  const kind = step.plan ? "plan" : "react";
  const rule = step.plan ?? step.react;
  const field = rule && Object.hasOwn(workflow.state, rule.into) ? workflow.state[rule.into] : undefined;
  if (!field) fault("UNKNOWN_FIELD", `${path}.${kind}.into`, `there is no field "${rule?.into}"`);
  else if (!field.schema.safeParse(SAMPLE).success) {
    fault("INVALID_STEP", `${path}.${kind}.into`, `"${rule?.into}" cannot hold a plan; make it with planField()`);
  }
  if (!step.tools?.length) fault("INVALID_STEP", path, `has ${kind} and no tools`);
  if (!targets(step).some((to) => to !== name)) fault("INVALID_STEP", `${path}.to`, `has ${kind} and no way on`);
  const { maxRounds = 1, maxReplans = 0, maxCalls = 1 } = { ...step.react, ...step.plan };
  for (const [limit, value, least] of [
    ["maxRounds", maxRounds, step.plan ? 0 : 1],
    ["maxReplans", maxReplans, 0],
    ["maxCalls", maxCalls, 1],
  ] as const) {
    if (Number.isInteger(value) && value >= least) continue;
    fault("INVALID_LIMIT", `${path}.${kind}.${limit}`, `must be a whole number from ${least}`);
  }
}

const SAMPLE = { mode: "plan", calls: [], met: true, replans: 0, rounds: 0, concluded: false };

function mapFaults(workflow: AnyWorkflow, { map, tools }: RuntimeStep, path: string, fault: AddFault): void {
  if (!map) return;
  if ((map.tool === undefined) === (map.workflow === undefined)) {
    fault("INVALID_STEP", `${path}.map`, "needs either a tool or a workflow");
  }
  if (map.tool !== undefined && !Object.hasOwn(workflow.tools, map.tool)) {
    fault("UNKNOWN_TOOL", `${path}.map.tool`, `there is no tool "${map.tool}"`);
  }
  if (tools) fault("INVALID_STEP", `${path}.tools`, "a map step calls the one tool of its map");
  if (map.parallel !== undefined && !(Number.isInteger(map.parallel) && map.parallel >= 1)) {
    fault("INVALID_LIMIT", `${path}.map.parallel`, "must be a whole number from 1");
  }
}

/** What is wrong with the limits of a definition. Pure. */
export function budgetFaults({ parallelCalls, stateBudget, timeToLiveMs }: AnyWorkflow): readonly Fault[] {
  const faults: Fault[] = [];
  if (!(timeToLiveMs > 0)) {
    faults.push({ path: "timeToLiveMs", code: "INVALID_LIMIT", message: "must be above 0" });
  }
  if (!Number.isInteger(parallelCalls) || parallelCalls < 1) {
    faults.push({ path: "parallelCalls", code: "INVALID_LIMIT", message: "must be a whole number from 1" });
  }
  const { warnBytes, maxBytes } = stateBudget;
  if (!(warnBytes > 0) || !(maxBytes >= warnBytes)) {
    faults.push({
      path: "stateBudget",
      code: "INVALID_LIMIT",
      message: "warnBytes must be above 0, and maxBytes not below it",
    });
  }
  return faults;
}
