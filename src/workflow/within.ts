import type { AnyWorkflow } from "./define.ts";

/** A workflow and those that are steps of it, however deep, each once; itself first. Pure. */
export function workflowsWithin(workflow: AnyWorkflow): readonly AnyWorkflow[] {
  const children = Object.values(workflow.steps).flatMap((step) => step.workflow ?? step.map?.workflow ?? []);
  return [...new Set([workflow, ...children.flatMap(workflowsWithin)])];
}
