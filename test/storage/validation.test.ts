import { validate } from "@langchain/langgraph-checkpoint-validation";
import { sqliteStore } from "statecard";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describePostgres } from "../support/postgres.ts";

// LangGraph's suite for checkpointers takes the functions of a test framework from the global scope. Under
// the name of LangGraph's own SQLite saver it leaves out one test, for savers that store only the channels
// that have changed: like that one, ours stores whole checkpoints. That test is none of ours, so it does not
// appear as one that was skipped.
const only = new Proxy(it, {
  get: (target, name): unknown => (name === "skip" ? () => {} : Reflect.get(target, name)),
});
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it: only });

const checkpointerName = "@langchain/langgraph-checkpoint-sqlite";

describe("SQLite: a store without workflows, by LangGraph's own suite for savers", () => {
  validate({ checkpointerName, createCheckpointer: () => sqliteStore(":memory:").checkpointer });
});

describePostgres("PostgreSQL: a store without workflows, by LangGraph's own suite for savers", (schema) => {
  // The suite lists threads of all tests at once, so each gets an empty database.
  const store = schema.open();
  validate({
    checkpointerName,
    createCheckpointer: () => store.checkpointer,
    destroyCheckpointer: async () => {
      await schema.query("truncate checkpoints, writes, statecard_heads");
    },
  });
});
