import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client, ThreadState } from "@langchain/langgraph-sdk";
import type { Execution, PauseValue } from "statecard";
import { describe, expect, it } from "vitest";
import { PROJECT } from "../support/cli.ts";

type Values = { readonly execution: Execution } & Readonly<Record<string, unknown>>;
type Paused = Values & { readonly __interrupt__?: readonly { readonly id: string; readonly value: PauseValue }[] };

const approve = { decisions: [{ type: "approve" }] };

/** What is said to each example, in order, until it ends. */
const TALKS: Readonly<Record<string, readonly [string, ...unknown[]]>> = {
  ticket: ["network unstable", "P1", "yes"],
  refund: ["refund 490 for order 77, arrived broken", approve],
  research: ["compare omega and alpha"],
  "service-desk": ["Please cancel my contract, customer 1001."],
  airline: ["I am ben_osei_1002, please upgrade reservation EF34GH to business", approve],
  "code-review": ["please review graphs/ticket for errors"],
  "log-detective": ["Why is the UART output in uart.log sometimes garbled?"],
  router: ["help", "It is about the code: where is the ring size defined?"],
  refactor: ["move formatPrice from graphs/refactor/projects/shop/src/cart.js to graphs/refactor/money.js", "no"],
};

const { graphs } = JSON.parse(readFileSync(join(PROJECT, "langgraph.json"), "utf8")) as { graphs: object };

/** What Studio and the SDK do with every example that langgraph.json serves. */
export function describeEveryGraph(client: () => Client): void {
  describe.each(Object.keys(graphs))("the example %s", (id) => {
    const [opening, ...replies] = TALKS[id] ?? [`TALKS has nothing to say to ${id}`];
    const wait = (thread: string, sent: object): Promise<Paused> =>
      client().runs.wait(thread, id, sent) as unknown as Promise<Paused>;

    /** Starts it and says what there is to say; each pause shows what it waits for. */
    async function talk(): Promise<{ thread: string; done: Paused }> {
      const { thread_id: thread } = await client().threads.create();
      let result = await wait(thread, { input: { message: opening } });
      for (const reply of replies) {
        const [shown] = result.__interrupt__ ?? [];
        expect(shown?.value.requests.length).toBeGreaterThan(0);
        result = await wait(thread, { command: { resume: { [shown?.id ?? ""]: reply } } });
      }
      return { thread, done: result };
    }

    it("is drawn, tells its schemas, runs to its end, and is read and forked", async () => {
      const [assistant] = await client().assistants.search({ graphId: id });
      const assistantId = assistant?.assistant_id ?? "";
      const { nodes } = await client().assistants.getGraph(assistantId);
      const names = nodes.map((node) => String(node.id));
      expect(names).toEqual(expect.arrayContaining(["__start__", "act", "__end__"]));
      const { input_schema: input, state_schema: state } = await client().assistants.getSchemas(assistantId);
      expect(Object.keys(input?.properties ?? {})).toContain("message");
      expect(Object.keys(state?.properties ?? {})).toContain("execution");

      const { thread, done } = await talk();
      expect(done.execution).toMatchObject({ status: "completed", taskId: thread });
      expect(names).toEqual(expect.arrayContaining([...done.execution.completedSteps]));

      const history: readonly ThreadState<Values>[] = await client().threads.getHistory<Values>(thread, { limit: 200 });
      const revisions = history.map(({ values }) => values.execution?.revision ?? 0);
      expect(revisions).toEqual(revisions.toSorted((a, b) => b - a));
      expect(revisions[0]).toBe(done.execution.revision);

      // A wake-up at an older checkpoint forks; the fork keeps to the table and to what was done.
      const early = history.find(({ values, next }) => values.execution?.decisions === 1 && next.length > 0);
      await wait(thread, { input: null, checkpointId: early?.checkpoint.checkpoint_id });
      const { values, next } = await client().threads.getState<Values>(thread);
      expect(values.execution.taskId).toBe(thread);
      expect(["completed at ", "waiting_user at act"]).toContain(`${values.execution.status} at ${next.join()}`);
    });
  });
}
