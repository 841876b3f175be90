import type { TaskStore, WorkflowGraph } from "statecard";
import { z } from "zod";
import type { Payment } from "../../graphs/refund/ledger.ts";
import { refundRules } from "../../graphs/refund/rules.ts";
import { refund } from "../../graphs/refund/workflow.ts";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { statecard } from "../compiled.ts";
import type { Ledger } from "./ledger.ts";

const { compile, defineTool, defineWorkflow, field } = statecard;

/** A process that is killed and resumed, and the person who answers what it asks. */
export interface Scenario {
  readonly compile: (store: TaskStore, ledger: Ledger) => WorkflowGraph;
  readonly message: string;
  readonly answer: (question: string) => string;
  /** How many effects one whole run has in the world. */
  readonly effects: number;
}

/** The call is neither idempotent nor can it find out what it did: the hardest kind. */
const sendMail = defineTool({
  description: "Sends a mail.",
  parameters: z.object({ to: z.string() }),
  effect: "write",
  run: async ({ to }, { clients, taskId, idempotencyKey }) => {
    await (clients.ledger as Ledger).add(taskId, { key: idempotencyKey, to });
    return "sent";
  },
});
const lookUp = defineTool({
  description: "Looks an address up.",
  parameters: z.object({ name: z.string() }),
  effect: "read",
  run: ({ name }) => `${name}@example.org`,
});

/** A question, a read call, an effect with an approval, an effect without, and a growing list. */
const mail = defineWorkflow({
  name: "mail",
  version: 1,
  state: {
    name: field(z.string()),
    address: field(z.string()),
    sent: field(z.array(z.string())).appendOnly(),
  },
  tools: { sendMail, lookUp },
  initial: "asking",
  steps: {
    asking: {
      to: ["asking", "looking"],
      run: (_state, { observation }) =>
        observation?.kind === "answer"
          ? { patch: { name: observation.text }, next: "looking" }
          : { ask: "Who gets the mail?" },
    },
    looking: {
      tools: ["lookUp"],
      to: ["looking", "sending"],
      run: ({ name }, { observation }) =>
        observation?.kind === "results"
          ? { patch: { address: String(observation.results[0]?.value) }, next: "sending" }
          : { calls: [{ tool: "lookUp", args: { name } }] },
    },
    sending: {
      tools: ["sendMail"],
      approve: ["sendMail"],
      to: ["copying"],
      run: ({ address }) => ({
        calls: [{ tool: "sendMail", args: { to: address } }],
        patch: { sent: ["first"] },
        next: "copying",
      }),
    },
    copying: {
      tools: ["sendMail"],
      to: ["done"],
      run: ({ address }) => ({
        calls: [{ tool: "sendMail", args: { to: `copy-${address}` } }],
        patch: { sent: ["copy"] },
        next: "done",
      }),
    },
    done: { final: true },
  },
});

/** The refund example's own ledger, kept by the process that counts. */
function bankOf(ledger: Ledger, task: () => string) {
  return {
    add: (payment: Payment) => ledger.add(payment.taskId, { ...payment }),
    payments: async () => ({ all: (await ledger.of(task())) as unknown as readonly Payment[], complete: true }),
  };
}

/** The task that a worker drives at the moment: the refund's ledger has no other way to know whose payments to read. */
export const current = { task: "" };

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ticket: {
    compile: (store) => compile(ticket, { store, model: ticketRules() }) as unknown as WorkflowGraph,
    message: "network unstable",
    answer: (question) => (/P1/.test(question) ? "P1" : "yes, go"),
    effects: 0,
  },
  refund: {
    compile: (store, ledger) =>
      compile(refund, {
        store,
        model: refundRules(),
        clients: { ledger: bankOf(ledger, () => current.task) },
      }) as unknown as WorkflowGraph,
    message: "refund 4900 for order 77, it arrived broken",
    answer: () => "it arrived broken",
    effects: 1,
  },
  mail: {
    compile: (store, ledger) => compile(mail, { store, clients: { ledger } }) as unknown as WorkflowGraph,
    message: "write to Ada",
    answer: () => "ada",
    effects: 2,
  },
};
