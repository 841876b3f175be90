import { Graph } from "@langchain/core/runnables/graph";
import { END, START } from "@langchain/langgraph";
import type { AnyWorkflow } from "../workflow/define.ts";
import { ACT, targets } from "../workflow/next-step.ts";

/** The drawable graph of a workflow: its table plus the action node, with one edge a transition. */
export function drawTable(workflow: AnyWorkflow, bodyOf: (node: string) => unknown): Graph {
  const graph = new Graph();
  const placeholder = { schema: {} };
  for (const name of [START, ...Object.keys(workflow.steps), ACT, END]) {
    graph.nodes[name] = { id: name, name, data: (bodyOf(name) ?? placeholder) as never };
  }
  const connect = (from: string, to: string, conditional: boolean) => {
    const [source, target] = [graph.nodes[from], graph.nodes[to]];
    if (source && target) graph.addEdge(source, target, undefined, conditional);
  };
  connect(START, workflow.initial, false);
  for (const [name, step] of Object.entries(workflow.steps)) {
    if (step.final) {
      connect(name, END, false);
      continue;
    }
    connect(name, ACT, true);
    connect(ACT, name, true);
    for (const to of targets(step)) connect(name, to, true);
  }
  return graph;
}
