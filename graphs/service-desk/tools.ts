import { defineTool, ToolError } from "statecard";
import { z } from "zod";
import { CONTRACTS, OUTCOMES, type PhoneCall } from "./provider.ts";

export const MAX_CALLS = 3;
export const customerNumber = z.string().regex(/^\d{4}$/, "four digits");

/** What `callProvider` gives back. */
const phoneCall = z.object({
  outcome: z.enum(OUTCOMES),
  said: z.string().optional(),
  confirmation: z.string().optional(),
});
/** What a call came to, in words. */
const TOLD: Readonly<Record<PhoneCall["outcome"], string>> = {
  no_answer: "nobody answered",
  busy: "the line was busy",
  refused: "they refused",
  cancelled: "they agreed",
};

const found = z.object({ provider: z.string(), number: z.string() });

export const findNumber = defineTool({
  description: "Looks up the provider of a customer's contract and its telephone number.",
  parameters: z.object({ customer: customerNumber }),
  effect: "read",
  trusted: true,
  run({ customer }) {
    const contract = CONTRACTS[customer];
    if (contract) return { provider: contract.provider, number: contract.number };
    throw new ToolError(`no contract under the customer number ${customer}`, {
      type: "NO_CONTRACT",
      hint: "ask the user for the number on the last bill",
    });
  },
  onResult(result) {
    const contract = found.safeParse(result.value);
    return result.status === "ok" && contract.success ? contract.data : {};
  },
});

export const callProvider = defineTool({
  description: "Calls the provider and asks for the contract to be cancelled. One call a decision.",
  parameters: z.object({ customer: customerNumber, number: z.string() }),
  effect: "write",
  limit: MAX_CALLS,
  conflicts: () => "the telephone",
  run({ customer, number }, { state }): PhoneCall {
    const contract = CONTRACTS[customer];
    if (contract?.number !== number) {
      throw new ToolError(`${number} is not in service`, {
        type: "NOT_IN_SERVICE",
        hint: "look the number up with findNumber",
      });
    }
    return contract.calls[Math.min(callsIn(state), contract.calls.length - 1)] ?? { outcome: "no_answer" };
  },
  // Code keeps what came of a call, so that nobody can claim a cancellation that there was not.
  onResult(result, state) {
    if (result.status === "refused" || result.status === "cancelled") return {};
    const call = result.status === "ok" ? phoneCall.safeParse(result.value).data : undefined;
    const told = call ? `${TOLD[call.outcome]}${call.said ? ` ("${call.said}")` : ""}` : "the call did not go through";
    const before = typeof state.callLog === "string" ? `${state.callLog}; ` : "";
    return {
      callsMade: callsIn(state) + 1,
      callLog: `${before}${told}`,
      ...(call?.confirmation ? { confirmation: call.confirmation } : {}),
    };
  },
});

function callsIn(state: Readonly<Record<string, unknown>>): number {
  return typeof state.callsMade === "number" ? state.callsMade : 0;
}
