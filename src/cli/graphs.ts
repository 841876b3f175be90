import { existsSync, readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { onStore } from "../compile/compile.ts";
import type { TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import { usage } from "./exit.ts";

const CONFIG = "langgraph.json";
const EXAMPLE = '{"graphs": {"order": "./order.ts:graph"}}';

/** A graph as a command names it: an id of langgraph.json, or a file with an optional export. */
interface GraphSource {
  readonly file: string;
  readonly exportName: string | null;
}

/** The graphs that langgraph.json in the current folder declares, by id. */
export function declaredGraphs(): Readonly<Record<string, GraphSource>> {
  if (!existsSync(CONFIG)) return {};
  let config: unknown;
  try {
    config = JSON.parse(readFileSync(CONFIG, "utf8"));
  } catch (error) {
    throw new WorkflowError(
      "INVALID_GRAPH",
      `${CONFIG} is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
  const graphs = isPlainObject(config) && isPlainObject(config.graphs) ? config.graphs : {};
  return Object.fromEntries(
    Object.entries(graphs).flatMap(([id, given]) => {
      const source = isPlainObject(given) ? given.path : given;
      return typeof source === "string" ? [[id, parseSource(source)]] : [];
    }),
  );
}

function parseSource(text: string): GraphSource {
  const [, file, name] = /^(.*\.[cm]?[jt]sx?)(?::(\w+))?$/.exec(text) ?? [];
  return { file: file ?? text, exportName: name ?? null };
}

/**
 * Loads a compiled workflow by id or file and binds it to the store of this command.
 *
 * @throws UNKNOWN_GRAPH, INVALID_GRAPH.
 */
export async function loadGraph(name: string, store: TaskStore): Promise<WorkflowGraph> {
  const declared = declaredGraphs();
  const source = Object.hasOwn(declared, name) ? declared[name] : parseSource(name);
  const known = Object.keys(declared);
  if (!source || !existsSync(source.file) || statSync(source.file).isDirectory()) {
    const missing = Object.hasOwn(declared, name)
      ? `its file ${source?.file} is not there`
      : source && existsSync(source.file)
        ? "that is a folder, not its file"
        : "there is no such file either";
    const there =
      known.length > 0
        ? `${CONFIG} here has: ${known.join(", ")}`
        : `there is no ${CONFIG} with graphs in this folder; name a file, or write one: ${EXAMPLE}`;
    const graph = shorten(name, 100);
    const what = Object.hasOwn(declared, name)
      ? `graph "${graph}" is in ${CONFIG}, but ${missing}`
      : `there is no graph "${graph}", and ${missing}; ${there}`;
    throw new WorkflowError("UNKNOWN_GRAPH", what, { details: { graph, known } });
  }
  return onStore(await importGraph(source), store);
}

/**
 * The ids in an option of several, else all that langgraph.json in the current folder declares.
 *
 * @throws USAGE where there are none.
 */
export function graphIds(option: string | undefined): readonly string[] {
  const ids = option === undefined ? Object.keys(declaredGraphs()) : option.split(",").map((id) => id.trim());
  if (ids.length === 0) {
    throw usage(
      existsSync(CONFIG)
        ? `${CONFIG} in this folder declares no graphs; write into it where yours are: ${EXAMPLE}`
        : `there is no ${CONFIG} in this folder; go to the one that has it, or write one that says where your graphs are: ${EXAMPLE}`,
    );
  }
  return [...new Set(ids)];
}

/**
 * Loads several graphs, by the names that they are given.
 *
 * @throws UNKNOWN_GRAPH, INVALID_GRAPH.
 */
export async function loadGraphs(
  names: readonly string[],
  store: TaskStore,
): Promise<ReadonlyMap<string, WorkflowGraph>> {
  const loaded = new Map<string, WorkflowGraph>();
  for (const name of names) loaded.set(name, await loadGraph(name, store));
  return loaded;
}

async function importGraph(source: GraphSource): Promise<WorkflowGraph> {
  const exports = await importModule(source.file);
  const candidates = source.exportName === null ? Object.values(exports) : [exports[source.exportName]];
  const graph = candidates.find(isGraph) ?? (await firstFactory(candidates, source.file));
  if (graph) return graph;
  const what = source.exportName === null ? "no export is" : `its export "${source.exportName}" is not`;
  throw new WorkflowError("INVALID_GRAPH", `${source.file}: ${what} a workflow graph; export what compile() returns`, {
    details: { file: source.file },
  });
}

/** LangGraph's servers take functions that make a graph, too. */
async function firstFactory(candidates: readonly unknown[], file: string): Promise<WorkflowGraph | null> {
  let failure: unknown;
  for (const candidate of candidates) {
    if (typeof candidate !== "function") continue;
    try {
      const made: unknown = await (candidate as (config: object) => unknown)({});
      if (isGraph(made)) return made;
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure === undefined) return null;
  if (isWorkflowError(failure)) throw failure;
  const said = shorten(failure instanceof Error ? failure.message : String(failure));
  throw new WorkflowError("INVALID_GRAPH", `${file} exports no graph, and a function in it threw: ${said}`, {
    cause: failure,
    details: { file },
  });
}

async function importModule(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    if (/\.[cm]?tsx?$/.test(file)) return await importTypeScript(resolve(file));
    return (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
  } catch (error) {
    if (isWorkflowError(error)) throw error;
    const said = error instanceof Error ? error.message : String(error);
    throw new WorkflowError("INVALID_GRAPH", `${file}: ${shorten(said, 400)}`, { cause: error, details: { file } });
  }
}

async function importTypeScript(file: string): Promise<Readonly<Record<string, unknown>>> {
  const { createJiti } = await import("jiti");
  // Packages load natively, so that the graph and this command share one copy of them.
  const loader = createJiti(pathToFileURL(file).href, {
    nativeModules: ["statecard", "@langchain/core", "@langchain/langgraph", "zod"],
  });
  return loader.import(file);
}

// Not instanceof: the graph's file may resolve to another copy of this package.
function isGraph(value: unknown): value is WorkflowGraph {
  return (
    typeof value === "object" &&
    value !== null &&
    "runtime" in value &&
    "invoke" in value &&
    isPlainObject(value.runtime)
  );
}

/** Finds the graph of a stored task: where it was started from, else by its workflow's name. */
export async function graphOfTask(
  store: TaskStore,
  taskId: string,
  workflow: string,
  override: string | undefined,
): Promise<WorkflowGraph> {
  if (override !== undefined) return loadGraph(override, store);
  const source = await store.firstEvent(taskId, "source");
  const names = [source?.data.graph, ...Object.keys(declaredGraphs())].filter((name) => typeof name === "string");
  for (const name of names) {
    const graph = await loadGraph(name, store).catch((error: unknown) => {
      if (isWorkflowError(error, "UNKNOWN_GRAPH")) return null;
      throw error;
    });
    if (graph?.runtime.workflow.name === workflow) return graph;
  }
  throw new WorkflowError(
    "UNKNOWN_GRAPH",
    `task ${taskId} belongs to workflow "${workflow}", which no graph in ${CONFIG} here has; name it with --graph`,
    { details: { taskId, workflow } },
  );
}

/** Notes where a new task's graph came from, so that resume finds it. Only this command line writes that: it is a file to run. */
export async function rememberGraph(store: TaskStore, taskId: string, graph: string): Promise<void> {
  const isNew = (await store.head(taskId)) === null && (await store.firstEvent(taskId, "source")) === null;
  if (isNew) await store.append(taskId, 0, "source", { graph });
}
