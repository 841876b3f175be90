import { setTimeout as sleep } from "node:timers/promises";
import type { TaskStore, WorkflowGraph } from "statecard";
import { z } from "zod";
import { statecard } from "./compiled.ts";
import type { Ledger } from "./crash/ledger.ts";

const { compile, defineTool, defineWorkflow, field } = statecard;

/**
 * A task that does nothing but wait for others, at three places.
 *
 * @param waitMs how long it waits at each.
 */
export function errandGraph(store: TaskStore, ledger: Ledger, waitMs: number): WorkflowGraph {
  const lookUp = defineTool({
    description: "Looks something up elsewhere.",
    parameters: z.object({ name: z.string() }),
    effect: "read",
    async run({ name }) {
      await sleep(waitMs);
      return `address of ${name}`;
    },
  });
  /** An effect in the world that can be found again, and must not happen twice. */
  const send = defineTool({
    description: "Sends something.",
    parameters: z.object({ to: z.string() }),
    effect: "write",
    async run({ to }, { taskId, idempotencyKey: key }) {
      await sleep(waitMs);
      await ledger.add(taskId, { key, to });
      return "sent";
    },
    async reconcile(_args, { taskId, idempotencyKey }) {
      const sent = (await ledger.of(taskId)).some(({ key }) => key === idempotencyKey);
      return sent ? { happened: true, value: "sent" } : { happened: false };
    },
  });

  const errand = defineWorkflow({
    name: "errand",
    version: 1,
    goal: "Wait for others, three times.",
    state: { name: field(z.string()), address: field(z.string()) },
    input: ["name"],
    tools: { lookUp, send },
    initial: "looking",
    steps: {
      looking: {
        to: ["looking", "thinking"],
        tools: ["lookUp"],
        run: ({ name }, { observation }) =>
          observation?.kind === "results"
            ? { patch: { address: String(observation.results[0]?.value) }, next: "thinking" }
            : { calls: [{ tool: "lookUp", args: { name: name ?? "" } }] },
      },
      thinking: {
        to: ["sending"],
        async run() {
          await sleep(waitMs);
          return { next: "sending" };
        },
      },
      sending: {
        to: ["sent"],
        tools: ["send"],
        run: ({ address }) => ({ calls: [{ tool: "send", args: { to: address ?? "" } }], next: "sent" }),
      },
      sent: { final: true },
    },
  });

  return compile(errand, { store }) as unknown as WorkflowGraph;
}
