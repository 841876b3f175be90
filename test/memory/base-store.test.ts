import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { describe, test } from "vitest";
import { memoryChecks } from "../../src/testing/memory-conformance.ts";
import { onBothDialects } from "../support/stores.ts";

describe("LangGraph's own store in memory, so that the checks ask for no more than LangGraph does", () => {
  for (const check of memoryChecks()) test(check.name, () => check.run(async (options) => new InMemoryStore(options)));
});

onBothDialects((dialect) => {
  for (const check of memoryChecks())
    test(check.name, () => check.run(async (options) => dialect.open().memory(options)));
});
