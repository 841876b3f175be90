export { scriptedModel, ScriptedModel } from "./scripted-model.ts";
export type { ScriptedAnswer } from "./scripted-model.ts";
export { runWorkflow } from "./run-workflow.ts";
export type { RunWorkflowOptions, WorkflowRun } from "./run-workflow.ts";
