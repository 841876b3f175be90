import { compile, defineTool, defineWorkflow, field, type TaskStore, type WorkflowGraph } from "statecard";
import { z } from "zod";

/** What an errand does to the world. */
export interface ErrandClients {
  /** Takes its time, changes nothing. */
  readonly wait: (taskId: string) => Promise<void>;
  /** Must not happen twice. */
  readonly send: (taskId: string) => Promise<void>;
}

const nothing = z.object({});
const clientsOf = (clients: Readonly<Record<string, unknown>>) => clients as unknown as ErrandClients;

/** A call that takes its time, then one that can neither be repeated nor checked; a question where it is told to ask. */
const errand = (deadlineMs: number, version: number) =>
  defineWorkflow({
    name: "errand",
    version,
    state: { ask: field(z.boolean()) },
    input: ["ask"],
    tools: {
      wait: defineTool({
        description: "Waits.",
        parameters: nothing,
        effect: "read",
        run: async (_args, { clients, taskId }) => clientsOf(clients).wait(taskId),
      }),
      send: defineTool({
        description: "Sends.",
        parameters: nothing,
        effect: "write",
        run: async (_args, { clients, taskId }) => clientsOf(clients).send(taskId),
      }),
    },
    initial: "waiting",
    steps: {
      waiting: {
        tools: ["wait"],
        to: ["waiting", "asking", "sending"],
        run: ({ ask }, { observation }) => {
          if (observation?.kind === "results") return { next: ask ? "asking" : "sending" };
          return { calls: [{ tool: "wait", args: {} }] };
        },
      },
      asking: {
        to: ["asking", "sending"],
        deadline: { afterMs: deadlineMs, to: "sending" },
        run: (_state, { observation }) => (observation?.kind === "answer" ? { next: "sending" } : { ask: "Really?" }),
      },
      sending: { tools: ["send"], to: ["done"], run: () => ({ calls: [{ tool: "send", args: {} }], next: "done" }) },
      done: { final: true },
    },
  });

/** @param deadlineMs how long its question may be answered. */
export function errandGraph(
  store: TaskStore,
  clients: ErrandClients,
  deadlineMs = 3_600_000,
  version = 1,
): WorkflowGraph {
  return compile(errand(deadlineMs, version), { store, clients: { ...clients } }) as unknown as WorkflowGraph;
}
