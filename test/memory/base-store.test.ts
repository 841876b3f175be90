import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { describe, expect, test } from "vitest";
import { memoryChecks } from "../../src/testing/memory-conformance.ts";
import { onBothDialects } from "../support/stores.ts";

describe("LangGraph's own store in memory, so that the checks ask for no more than LangGraph does", () => {
  for (const check of memoryChecks()) test(check.name, () => check.run(async (options) => new InMemoryStore(options)));
});

onBothDialects((dialect) => {
  for (const check of memoryChecks())
    test(check.name, () => check.run(async (options) => dialect.open().memory(options)));
});

onBothDialects((dialect) => {
  test("a graph that knows only LangGraph puts and finds items in the store", async () => {
    const graph = new StateGraph(Annotation.Root({ found: Annotation<string[]> }))
      .addNode("write", async (_, { store }) => {
        for (const drink of ["tea", "coffee"]) await store?.put(["drinks", "ann"], drink, { note: `likes ${drink}` });
        return {};
      })
      .addNode("read", async (_, { store }) => {
        const found = (await store?.search(["drinks"], { query: "who likes coffee" })) ?? [];
        return { found: found.map(({ key, score }) => `${key} ${score}`) };
      })
      .addEdge(START, "write")
      .addEdge("write", "read")
      .compile({ store: dialect.open().memory() });
    expect(await graph.invoke({})).toEqual({ found: ["coffee 1", "tea 0.5"] });
  });
});
