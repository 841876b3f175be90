import type { Graph } from "@langchain/core/runnables/graph";
import { END, MemorySaver, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { compile, defineWorkflow, field } from "statecard";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { ticket } from "../../graphs/ticket/workflow.ts";

const alphabetically = (one: string, other: string) => one.localeCompare(other);

afterEach(() => {
  vi.unstubAllGlobals();
});

/** As LangGraph declares it. */
interface Drawable {
  getGraphAsync(config?: { xray?: boolean }): Promise<Graph>;
}

async function draw(workflow: Parameters<typeof compile>[0]) {
  const graph = await compile(workflow).getGraphAsync();
  const edges = graph.edges.map(({ source, target }) => `${source} > ${target}`);
  return { graph, nodes: Object.keys(graph.nodes).toSorted(alphabetically), edges: edges.toSorted(alphabetically) };
}

/** A step that repeats itself, a guarded move, a child workflow, and two ends. */
const errand = defineWorkflow({
  name: "errand",
  version: 1,
  state: { note: field(z.string()) },
  initial: "look",
  steps: {
    look: {
      run: () => ({ patch: { note: "seen" }, next: "look" }),
      to: ["look", { to: "hand_on", when: ({ note }) => note !== null, because: "there is no note" }, "lost"],
    },
    hand_on: { workflow: ticket as never, output: () => ({}), to: ["delivered"] },
    delivered: { final: true },
    lost: { final: true },
  },
});

describe("the drawing of a compiled workflow", () => {
  it("has a node for each step, one for actions, the start and the end", async () => {
    const { nodes } = await draw(ticket as never);
    expect(nodes).toEqual(
      ["__end__", "__start__", "act", "init", "gathering_info", "deciding", "resolving", "done"].toSorted(
        alphabetically,
      ),
    );
  });

  it("has an edge for each transition of the table, the ways to and from the actions, and no other", async () => {
    const { edges } = await draw(ticket as never);
    const table = [
      "init > gathering_info",
      "init > deciding",
      "gathering_info > gathering_info",
      "gathering_info > deciding",
      "deciding > resolving",
      "deciding > done",
      "resolving > done",
    ];
    const actions = ["init", "gathering_info", "deciding", "resolving"].flatMap((step) => [
      `${step} > act`,
      `act > ${step}`,
    ]);
    expect(edges).toEqual(["__start__ > init", ...table, ...actions, "done > __end__"].toSorted(alphabetically));
  });

  it("draws guarded moves, child workflows and several ends like any other", async () => {
    const { nodes, edges } = await draw(errand as never);
    expect(nodes).toEqual(["__end__", "__start__", "act", "delivered", "hand_on", "look", "lost"]);
    expect(edges).toEqual(
      [
        "__start__ > look",
        "look > look",
        "look > hand_on",
        "look > lost",
        "look > act",
        "act > look",
        "hand_on > delivered",
        "hand_on > act",
        "act > hand_on",
        "delivered > __end__",
        "lost > __end__",
      ].toSorted(alphabetically),
    );
  });

  it("draws a choice as conditional and the only way as a plain edge", async () => {
    const { graph } = await draw(ticket as never);
    const plain = graph.edges.filter(({ conditional }) => !conditional);
    expect(plain.map(({ source, target }) => `${source} > ${target}`)).toEqual(["__start__ > init", "done > __end__"]);
  });

  it("is the same with and without the option xray, and from a graph with bound settings", async () => {
    const graph: Drawable & { withConfig(config: object): Drawable } = compile(ticket);
    const plain = (await graph.getGraphAsync()).toJSON();
    expect((await graph.getGraphAsync({ xray: true })).toJSON()).toEqual(plain);
    expect((await graph.withConfig({ tags: ["night"] }).getGraphAsync()).toJSON()).toEqual(plain);
  });

  it("stands inside the drawing of a foreign graph with xray", async () => {
    const builder = new StateGraph(new StateSchema({ message: z.string().nullable().default(null) }))
      .addNode("support", compile(ticket))
      .addEdge(START, "support")
      .addEdge("support", END);
    const outer = builder.compile({ checkpointer: new MemorySaver() });
    const nodes = Object.keys((await outer.getGraphAsync({ xray: true })).nodes);
    expect(nodes).toEqual(expect.arrayContaining(Object.keys(ticket.steps).map((step) => `support:${step}`)));
  });

  it("becomes a Mermaid picture without any network", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new Error("there is no network")));
    const picture = (await compile(ticket).getGraphAsync()).drawMermaid();
    expect(picture).toMatch(/^%%\{init|^graph TD/);
    for (const step of Object.keys(ticket.steps)) expect(picture).toContain(step);
    expect(picture).toMatch(/init\s*-\.?.*-?>\s*gathering_info/);
    expect(picture).not.toMatch(/init\s*-\.?.*-?>\s*resolving/);
  });
});
