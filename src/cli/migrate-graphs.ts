import type { TaskRow } from "../compile/store.ts";
import { isWorkflowError, type WorkflowError } from "../errors.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { workflowsWithin } from "../workflow/within.ts";
import { declaredGraphs, loadGraph } from "./graphs.ts";

/** A graph that is here and cannot be loaded. */
export interface BrokenGraph {
  readonly graph: string;
  readonly reason: string;
  /** Its workflow, where the fault is in that one's definition. */
  readonly workflow?: string;
}

/** The present release. */
export interface Release {
  readonly workflows: ReadonlyMap<string, AnyWorkflow>;
  readonly broken: readonly BrokenGraph[];
  /** The graphs that tasks were started from, by the tasks' ids. */
  readonly sources: ReadonlyMap<string, string>;
}

/**
 * Loads the graph that is named, else all that langgraph.json declares and those that tasks were started from, each
 * with the workflows that are steps of it.
 *
 * @throws UNKNOWN_GRAPH, INVALID_GRAPH, INVALID_WORKFLOW where one is named.
 */
export async function loadRelease(
  store: SqlStore,
  rows: readonly TaskRow[],
  named: string | undefined,
): Promise<Release> {
  const workflows = new Map<string, AnyWorkflow>();
  const add = (workflow: AnyWorkflow): void => {
    for (const each of workflowsWithin(workflow)) if (!workflows.has(each.name)) workflows.set(each.name, each);
  };
  const sources = new Map<string, string>();
  if (named !== undefined) {
    add((await loadGraph(named, store)).runtime.workflow);
    return { workflows, broken: [], sources };
  }
  for (const { taskId } of rows) {
    const source = (await store.firstEvent(taskId, "source"))?.data.graph;
    if (typeof source === "string") sources.set(taskId, source);
  }
  const declared = Object.keys(declaredGraphs());
  const broken: BrokenGraph[] = [];
  // In the order in which `resume` looks for a task's graph.
  for (const graph of new Set([...sources.values(), ...declared])) {
    try {
      add((await loadGraph(graph, store)).runtime.workflow);
    } catch (error) {
      if (!isWorkflowError(error)) throw error;
      const isGone = error.code === "UNKNOWN_GRAPH" && !declared.includes(graph);
      if (!isGone) broken.push({ graph, reason: error.message, ...workflowIn(error) });
    }
  }
  return { workflows, broken, sources };
}

function workflowIn({ code, details }: WorkflowError): Pick<BrokenGraph, "workflow"> {
  const { workflow } = details as { readonly workflow?: unknown };
  return code === "INVALID_WORKFLOW" && typeof workflow === "string" ? { workflow } : {};
}

/** The graph of a task whose workflow was not found, where it is here and cannot be loaded. */
export function brokenGraphOf(release: Release, { taskId, execution }: TaskRow): BrokenGraph | undefined {
  const source = release.sources.get(taskId);
  return release.broken.find(({ graph, workflow }) =>
    workflow === undefined ? graph === source : workflow === execution.workflow,
  );
}
