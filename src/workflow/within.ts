import type { AnyWorkflow } from "./define.ts";
import type { RuntimeStep } from "./step.ts";

/** The workflow that a step runs, once or for each item of a list; undefined where it runs none. */
export function childOf(step: RuntimeStep | undefined): AnyWorkflow | undefined {
  return step?.workflow ?? step?.map?.workflow;
}

/** The names of workflows and of those that are steps of them, however deep; one may be a step of several. Pure. */
export function namesWithin(workflows: readonly AnyWorkflow[]): ReadonlySet<string> {
  return new Set(workflows.flatMap(workflowsWithin).map(({ name }) => name));
}

/** A workflow and those that are steps of it, however deep, each once; itself first. Pure. */
export function workflowsWithin(workflow: AnyWorkflow): readonly AnyWorkflow[] {
  const children = Object.values(workflow.steps).flatMap((step) => childOf(step) ?? []);
  return [...new Set([workflow, ...children.flatMap(workflowsWithin)])];
}
