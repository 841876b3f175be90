import { parentTaskId } from "../compile/child.ts";
import type { TaskRow } from "../compile/store.ts";
import { isWorkflowError, type WorkflowError } from "../errors.ts";
import type { Execution } from "../state/execution.ts";
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

/** Where a task came from; for the task of a child workflow, where its outermost parent did. */
interface Origin {
  /** The graph that it was started from, where that is known. */
  readonly graph: string | undefined;
  readonly workflow: string;
}

/** The present release. */
export interface Release {
  /** The workflows of the graphs that could be loaded. Two graphs may have a workflow of the same name. */
  readonly workflows: ReadonlyMap<string, AnyWorkflow>;
  /** The graphs in which a task's workflow is looked for by its name, one after the other. */
  readonly searched: readonly string[];
  /** Those of langgraph.json that could not be loaded: the release is at fault. */
  readonly broken: readonly BrokenGraph[];
  /** Files that tasks were started from, here but not declared, that could not be loaded. */
  readonly strays: readonly BrokenGraph[];
  /** Of the tasks that have not ended, by their ids. */
  readonly origins: ReadonlyMap<string, Origin>;
}

/** What the present release has for a task. */
type Found =
  | { readonly kind: "workflow"; readonly workflow: AnyWorkflow }
  | { readonly kind: "not loaded"; readonly reason: string }
  | { readonly kind: "nothing" };

/** What has ended is never run again. */
export function hasEnded({ status }: Execution): boolean {
  return status === "completed" || status === "cancelled";
}

/** A release of one workflow and of those that are steps of it. */
export function releaseOf(workflow: AnyWorkflow): Release {
  const { name } = workflow;
  return { workflows: new Map([[name, workflow]]), searched: [name], broken: [], strays: [], origins: new Map() };
}

/**
 * Loads the graph that is named, else all that langgraph.json declares and those that tasks were started from which
 * have not ended.
 *
 * @throws UNKNOWN_GRAPH, INVALID_GRAPH, INVALID_WORKFLOW where one is named.
 */
export async function loadRelease(
  store: SqlStore,
  rows: readonly TaskRow[],
  named: string | undefined,
): Promise<Release> {
  if (named !== undefined) return releaseOf((await loadGraph(named, store)).runtime.workflow);
  const origins = await originsOf(store, rows);
  const declared = Object.keys(declaredGraphs());
  const sources = [...origins.values()].flatMap(({ graph }) => graph ?? []);
  const workflows = new Map<string, AnyWorkflow>();
  const broken: BrokenGraph[] = [];
  const strays: BrokenGraph[] = [];
  for (const graph of new Set([...declared, ...sources])) {
    const isDeclared = declared.includes(graph);
    try {
      workflows.set(graph, (await loadGraph(graph, store)).runtime.workflow);
    } catch (error) {
      if (!isWorkflowError(error)) throw error;
      const isGone = error.code === "UNKNOWN_GRAPH" && !isDeclared;
      if (!isGone) (isDeclared ? broken : strays).push({ graph, reason: error.message, ...workflowIn(error) });
    }
  }
  return { workflows, searched: declared, broken, strays, origins };
}

async function originsOf(store: SqlStore, rows: readonly TaskRow[]): Promise<ReadonlyMap<string, Origin>> {
  const tasks = new Map(rows.map((row) => [row.taskId, row]));
  const roots = new Map<string, Origin>();
  const origins = new Map<string, Origin>();
  for (const row of rows) {
    if (hasEnded(row.execution)) continue;
    const root = outermost(tasks, row);
    const origin = roots.get(root.taskId) ?? (await originOf(store, root));
    roots.set(root.taskId, origin);
    origins.set(row.taskId, origin);
  }
  return origins;
}

async function originOf(store: SqlStore, { taskId, execution }: TaskRow): Promise<Origin> {
  const graph = (await store.firstEvent(taskId, "source"))?.data.graph;
  return { graph: typeof graph === "string" ? graph : undefined, workflow: execution.workflow };
}

/** The task that a task is run by in the end: itself where it is no child's. */
function outermost(tasks: ReadonlyMap<string, TaskRow>, row: TaskRow): TaskRow {
  const parent = tasks.get(parentTaskId(row.taskId) ?? "");
  return parent ? outermost(tasks, parent) : row;
}

/** A reason for a table. */
export function oneLine(reason: string): string {
  return reason.replaceAll(/\s*\n\s*/g, " ");
}

function workflowIn({ code, details }: WorkflowError): Pick<BrokenGraph, "workflow"> {
  const { workflow } = details as { readonly workflow?: unknown };
  return code === "INVALID_WORKFLOW" && typeof workflow === "string" ? { workflow } : {};
}

/** The workflow by which a task goes on: of the graph that it was started from, else by its name, as `resume` finds it. */
export function workflowOf(release: Release, { taskId, execution }: TaskRow): Found {
  const name = execution.workflow;
  const origin = release.origins.get(taskId) ?? { graph: undefined, workflow: name };
  const isSource = ({ graph }: BrokenGraph) => graph === origin.graph;
  const stray = release.strays.find(isSource);
  if (stray) return { kind: "not loaded", reason: `graph ${stray.graph} cannot be loaded: ${oneLine(stray.reason)}` };
  const broken = release.broken.find(isSource);
  if (broken) return notLoaded(broken);
  const graphs = origin.graph === undefined ? release.searched : [origin.graph, ...release.searched];
  const loaded = graphs.flatMap((graph) => release.workflows.get(graph) ?? []);
  // Graphs of the workflow that was started go before those that have it as a step.
  const ordered = [...loaded.filter((each) => each.name === origin.workflow), ...loaded];
  const workflow = ordered.flatMap(workflowsWithin).find((each) => each.name === name);
  if (workflow) return { kind: "workflow", workflow };
  const named = release.broken.find((each) => each.workflow === name || each.workflow === origin.workflow);
  return named ? notLoaded(named) : { kind: "nothing" };
}

/** Without the fault, which is told once for all tasks. */
function notLoaded({ graph }: BrokenGraph): Found {
  return { kind: "not loaded", reason: `graph ${graph} cannot be loaded` };
}
