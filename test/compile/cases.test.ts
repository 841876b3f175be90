import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { INTERRUPT } from "@langchain/langgraph";
import Database from "better-sqlite3";
import {
  answer,
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  isWorkflowError,
  sqliteStore,
  WorkflowError,
} from "statecard";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { scriptedModel } from "../../src/testing/index.ts";
import { onBothDialects } from "../support/stores.ts";

const folder = mkdtempSync(join(tmpdir(), "statecard-cases-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const asking = defineWorkflow({
  name: "asking",
  version: 1,
  state: { count: field(z.number()), last: field(z.string()) },
  initial: "asking",
  maxDecisions: 1000,
  steps: {
    asking: {
      maxDecisions: 1000,
      to: ["asking", "done"],
      run: ({ count }, { observation }) => {
        const number = (count ?? 0) + 1;
        const said = observation?.kind === "answer" ? { last: observation.text } : {};
        return number > 200
          ? { patch: said, next: "done" }
          : { patch: { ...said, count: number }, ask: `Question ${number}?` };
      },
    },
    done: { final: true },
  },
});

test("K14: questions in a row, each answered by a new process, store a bounded amount each", async () => {
  const file = join(folder, "questions.db");
  const config = { configurable: { thread_id: "t" } };
  const sizes: number[] = [];
  for (let number = 0; number <= 125; number++) {
    const store = sqliteStore(file);
    const graph = compile(asking, { store });
    const input = number === 0 ? { message: "begin" } : { message: `answer ${number}` };
    const paused = await graph.invoke(input, config);
    expect(paused[INTERRUPT]?.[0]?.value?.question).toBe(`Question ${number + 1}?`);
    await store.close();
    if (number % 25 !== 0) continue;
    const database = new Database(file);
    database.exec("vacuum");
    sizes.push(database.pragma("page_count", { simple: true }) as number);
    database.close();
  }
  // Between 25 and 50 questions checkpoints still pile up; from then on only the log grows, evenly.
  const growth = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0));
  expect(Math.max(...growth.slice(2))).toBeLessThanOrEqual(Math.max(...growth.slice(0, 2)));
  expect(Math.max(...growth.slice(2)) * 4096).toBeLessThan(25 * 4096);
});

test("K11: a pause in the third round of a loop leaves the loop's state as it was", async () => {
  const rounds = defineWorkflow({
    name: "rounds",
    version: 1,
    state: { round: field(z.number()), notes: field(z.array(z.string())).appendOnly() },
    initial: "working",
    steps: {
      working: {
        to: ["working", "done"],
        run: ({ round, notes }, { observation }) => {
          const next = (round ?? 0) + 1;
          if (observation?.kind === "answer" && !notes?.includes(observation.text))
            return { patch: { notes: [observation.text] }, next: "working" };
          if (next === 3 && !notes?.includes("go on")) return { ask: "Go on?" };
          return { patch: { round: next, notes: [`round ${next}`] }, next: next === 5 ? "done" : "working" };
        },
      },
      done: { final: true },
    },
  });
  const file = join(folder, "rounds.db");
  const config = { configurable: { thread_id: "t" } };
  const first = sqliteStore(file);
  const paused = await compile(rounds, { store: first }).invoke({ message: "begin" }, config);
  expect(paused).toMatchObject({ round: 2, notes: ["round 1", "round 2"] });
  await first.close();
  const done = await compile(rounds, { store: sqliteStore(file) }).invoke(answer(paused, "go on"), config);
  expect(done).toMatchObject({ round: 5, notes: ["round 1", "round 2", "go on", "round 3", "round 4", "round 5"] });
  expect(done.execution.decisionsByStep).toEqual({ working: 7 });
});

test("K26: tasks of two tenants in one process see nothing of one another", async () => {
  const prompts: Record<string, string[]> = { crimson: [], azure: [] };
  const graphOf = (tenant: string) => {
    const model = scriptedModel([
      (prompt: string) => {
        prompts[tenant]?.push(prompt);
        return { patch: { secret: `${tenant}-fact` }, calls: [{ tool: "look", args: { what: tenant } }] };
      },
      (prompt: string) => {
        prompts[tenant]?.push(prompt);
        return { ask: `${tenant}: enough?` };
      },
    ]);
    const workflow = defineWorkflow({
      name: "shared",
      version: 1,
      state: { secret: field(z.string()) },
      tools: {
        look: defineTool({
          description: "Looks.",
          parameters: z.object({ what: z.string() }),
          effect: "read",
          run: async ({ what }, { clients, taskId }) => {
            await new Promise((resolve) => setTimeout(resolve, 1));
            return `${what} for ${taskId} by ${String(clients.tenant)}`;
          },
        }),
      },
      initial: "working",
      steps: { working: { tools: ["look"], writes: ["secret"], to: ["done", "working"] }, done: { final: true } },
    });
    return compile(workflow, { model, store: sqliteStore(join(folder, `${tenant}.db`)), clients: { tenant } });
  };
  const [red, blue] = [graphOf("crimson"), graphOf("azure")];
  // The same task id on purpose.
  const config = { configurable: { thread_id: "t" } };
  await Promise.all([
    red.invoke({ message: "hello from crimson" }, config),
    blue.invoke({ message: "hello from azure" }, config),
  ]);
  for (const [own, other, graph] of [
    ["crimson", "azure", red],
    ["azure", "crimson", blue],
  ] as const) {
    const seen = JSON.stringify([
      prompts[own],
      await describeTask(graph.runtime.store, "t"),
      await graph.runtime.store.events("t"),
      (await graph.getState(config)).values,
      await graph.runtime.store.tasks(),
    ]);
    expect(seen).toContain(`${own} for t by ${own}`);
    expect(seen).not.toContain(other);
  }
});

describe("secrets", () => {
  const DECLARED = "correct-horse-battery";
  const NAMED = "a-value-that-only-a-name-tells";
  const FORMAT = `sk-${"abcdefghij".repeat(3)}`;
  // In another object than before, the environment of other tests could not be put back any more.
  afterEach(() => void vi.unstubAllEnvs());

  onBothDialects((dialect) => {
    test("planted everywhere, they are in no state, view, log, error, trace or database", async () => {
      vi.stubEnv("SHOP_PHRASE", DECLARED);
      vi.stubEnv("SHOP_API_KEY", NAMED);
      const planted = [DECLARED, NAMED, FORMAT].join(" and ");
      const seen: unknown[] = [];
      const model = scriptedModel([
        { patch: { note: `model: ${planted}` }, ask: `May I? ${planted}`, because: planted },
        { next: planted },
        { reply: `said ${planted}`, because: planted, next: "working" },
        { calls: [{ tool: "look", args: { what: planted } }], patch: { list: [planted] }, because: planted },
        { next: "coding" },
      ]);
      const workflow = defineWorkflow({
        name: "leaky",
        version: 1,
        instructions: `An author pasted ${planted}`,
        state: { note: field(z.string()), list: field(z.array(z.string())).appendOnly(), given: field(z.string()) },
        input: ["given"],
        tools: {
          look: defineTool({
            description: "Looks.",
            parameters: z.object({ what: z.string() }),
            effect: "read",
            run: ({ what }) => {
              seen.push(what);
              throw new Error(`no ${planted}`);
            },
          }),
        },
        initial: "working",
        steps: {
          working: { tools: ["look"], writes: ["note", "list"], to: ["working", "coding"] },
          coding: {
            to: ["failing"],
            run: () => ({ patch: { note: `code: ${planted}` }, because: planted, next: "failing" }),
          },
          failing: {
            to: ["done"],
            run: () => {
              throw new WorkflowError("STEP_FAILED", `it broke on ${planted}`, { details: { planted } });
            },
          },
          done: { final: true },
        },
      });
      const store = dialect.open();
      const graph = compile(workflow, { model, store, secrets: ["SHOP_PHRASE"] });
      const config = { configurable: { thread_id: "leak" } };
      const chunks: unknown[] = [];
      const run = async (input: unknown) => {
        const stream = await graph.stream(input as never, {
          ...config,
          streamMode: ["values", "updates", "messages", "custom"],
        });
        for await (const chunk of stream) chunks.push(chunk);
      };
      const traces: unknown[] = [];
      await run({ message: `hello ${planted}`, given: planted });
      const error = await graph
        .invoke(
          { message: `answer ${planted}` },
          {
            ...config,
            callbacks: [
              {
                handleChainEnd: (output) => traces.push(output),
                handleChatModelStart: (_llm, messages) => traces.push(messages),
              },
            ],
          },
        )
        .catch((caught: unknown) => caught);
      expect(isWorkflowError(error, "STEP_FAILED")).toBe(true);
      await graph.updateState(config, { note: `by hand: ${planted}` });
      expect(seen).toHaveLength(1);

      const tables = (await dialect.query(tablesQuery(dialect.place.length === 1))).map((row) => String(row.name));
      const stored = await Promise.all(tables.map((table) => dialect.query(`select * from ${table}`)));
      const everything = [
        ...stored
          .flat()
          .flatMap((row) =>
            Object.values(row).map((value) =>
              value instanceof Uint8Array ? Buffer.from(value).toString() : String(value),
            ),
          ),
        ...model.prompts,
        ...[chunks, traces, seen, await describeTask(store, "leak"), await store.events("leak")].map((part) =>
          JSON.stringify(part),
        ),
        (error as Error).message,
        JSON.stringify((error as WorkflowError).details),
      ].join("\n");
      expect(everything).toContain("[redacted]");
      for (const secret of [DECLARED, NAMED, FORMAT]) {
        const at = everything.indexOf(secret);
        expect(at < 0 ? "" : everything.slice(at - 200, at + 60)).toBe("");
      }
    });
  });
});

function tablesQuery(isFile: boolean): string {
  return isFile
    ? "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    : "select table_name as name from information_schema.tables where table_schema = current_schema()";
}
