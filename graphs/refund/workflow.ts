import { createHash } from "node:crypto";
import { defineTool, defineWorkflow, field } from "statecard";
import { z } from "zod";
import { ledgerOf } from "./ledger.ts";

/** From this amount on one person approves, above the second two different ones do. */
const ONE_APPROVES_FROM = 100;
const TWO_APPROVE_ABOVE = 1000;

const HOUR_MS = 3_600_000;
const amount = z.number().positive();

/** Pays once for each task, and can tell after a crash whether it has. */
const payBack = defineTool({
  description: "Pays the customer of an order money back. Cannot be undone.",
  parameters: z.object({ order: z.string().min(1).max(40), amount }),
  effect: "write",
  async run({ order, amount }, { clients, taskId, idempotencyKey: key }) {
    const ledger = ledgerOf(clients);
    const paid = (await ledger.payments()).all.find((payment) => payment.taskId === taskId);
    if (paid) throw new Error(`${paid.amount} were paid back for this request already, receipt ${paid.receipt}`);
    const receipt = `R-${createHash("sha256").update(key).digest("hex").slice(0, 8)}`;
    await ledger.add({ key, taskId, order, amount, receipt });
    return { receipt };
  },
  async reconcile(_args, { clients, idempotencyKey }) {
    const { all, complete } = await ledgerOf(clients).payments();
    const paid = all.find(({ key }) => key === idempotencyKey);
    if (paid) return { happened: true, value: { receipt: paid.receipt } };
    // A line that cannot be read may be this payment: that is for a person to find out.
    return complete ? { happened: false } : null;
  },
});

/** A refund, from the first word to money or a reason. */
export const refund = defineWorkflow({
  name: "refund",
  version: 1,
  goal: "Settle a customer's request for a refund.",
  instructions: "Speak the customer's language. Be short and friendly. Never promise money before it is paid.",
  state: {
    order: field(z.string().min(1).max(40)).describe("the number of the order"),
    amount: field(amount).describe("how much the customer wants back; how much was paid, once it was"),
    reason: field(z.string().max(2000)).describe("why, in the customer's words"),
    receipt: field(z.string()).describe("the receipt of the payment").writeOnce(),
    outcome: field(z.string()).describe("how it ended").writeOnce(),
  },
  input: ["order", "amount", "reason"],
  tools: { pay_back: payBack },
  initial: "talking",
  steps: {
    talking: {
      writes: ["order", "amount", "reason", "outcome"],
      to: ["talking", "paying", "closed"],
      instructions:
        "Ask for one missing field at a time: order, amount, reason. With all three go to paying. If nobody approved it in time, say so and ask whether to ask again; if the customer does not want that, write the outcome and go to closed.",
    },
    paying: {
      requires: ["order", "amount", "reason"],
      tools: ["pay_back"],
      writes: ["amount", "receipt", "outcome"],
      to: ["talking", "closed"],
      // The limits look at what would be paid, and anything else than what the customer was asked is looked at too.
      approve: {
        pay_back: (args, state) => {
          if (args.amount > TWO_APPROVE_ABOVE) return { count: 2 };
          return args.amount >= ONE_APPROVES_FROM || args.amount !== state.amount || args.order !== state.order;
        },
      },
      deadline: { afterMs: 24 * HOUR_MS, to: "talking" },
      instructions:
        "Call pay_back with the order and amount of the state. Once it is ok, write receipt and outcome (and the amount, if a person changed it), tell the customer, and go to closed. If it was refused or failed, write that as the outcome, tell the customer, and go to closed.",
    },
    closed: { requires: ["outcome"], final: true },
  },
});
