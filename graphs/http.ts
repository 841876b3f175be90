import { readFileSync } from "node:fs";
import { HttpApi, type AnyGraph } from "statecard/server";

const root = new URL("../", import.meta.url);
const config = JSON.parse(readFileSync(new URL("langgraph.json", root), "utf8")) as { graphs: Record<string, string> };

/** Every graph of langgraph.json, by its id. */
const graphs = await Promise.all(
  Object.entries(config.graphs).map(async ([id, source]) => {
    const [file = "", name = ""] = source.split(":");
    const exports = (await import(new URL(file, root).href)) as Record<string, AnyGraph>;
    const graph = exports[name];
    if (!graph) throw new Error(`${file} has no export ${name}`);
    return [id, graph] as const;
  }),
);

/** The HTTP API beside the LangGraph server's own routes; langgraph.json names it as `http.app`. */
export const { app } = new HttpApi({ graphs: Object.fromEntries(graphs) });
