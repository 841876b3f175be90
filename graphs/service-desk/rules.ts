import { OfflineRules, type Prompt } from "../offline-rules.ts";

const ASK_CUSTOMER = "What is your customer number? It has four digits.";
const noContract = (customer: string) => `There is no contract under ${customer}. Which number is on your last bill?`;
const MAX_ASKED = 2;

const TODOS = [
  { id: "number", text: "find the provider's number", status: "in_progress" },
  { id: "call", text: "call and ask for the cancellation" },
  { id: "confirmation", text: "have it confirmed" },
];

/** One decision of a service desk that knows a handful of rules, from the prompt alone. */
export function decideServiceDesk(prompt: Prompt): object {
  switch (prompt.step) {
    case "intake":
      return takeIn(prompt);
    case "preparing":
      return prepare(prompt);
    case "calling":
      return call(prompt);
    case "reporting":
      return report(prompt);
    default:
      return {};
  }
}

function takeIn({ state, said, recent }: Prompt): object {
  if (state.customer !== undefined) return { because: "the customer number is known", next: "preparing" };
  const customer = customerIn(said);
  if (customer) return { because: "the user gave it", patch: { customer }, next: "preparing" };
  if (timesAsked(recent) < MAX_ASKED) return { because: "the customer number is missing", ask: ASK_CUSTOMER };
  return { because: "no customer number to be had", next: "reporting" };
}

function prepare({ state, said, question, results }: Prompt): object {
  const customer = String(state.customer);
  if (state.number !== undefined) return { because: "the number is known", next: "calling" };
  if (question === noContract(customer)) {
    const other = customerIn(said);
    if (other === null || other === customer) return { because: "no contract to be found", next: "reporting" };
    return { because: "another number", patch: { customer: other }, next: "preparing" };
  }
  const failed = results.some(({ tool, status }) => tool === "findNumber" && status !== "ok");
  if (failed) return { because: "no contract under this number", ask: noContract(customer) };
  const todos = state.todos === undefined ? [{ tool: "writeTodos", args: { todos: TODOS } }] : [];
  return { because: "first the number", calls: [{ tool: "findNumber", args: { customer } }, ...todos] };
}

function call({ next, state }: Prompt): object {
  const { customer, number } = state;
  if (!next.includes("reporting")) {
    const begin = state.callsMade === undefined ? [set("number", "completed"), set("call", "in_progress")] : [];
    return { because: "not cancelled yet", calls: [{ tool: "callProvider", args: { customer, number } }, ...begin] };
  }
  const confirmed = state.confirmation !== undefined;
  const calls = [set("call", "completed"), set("confirmation", confirmed ? "completed" : "cancelled")];
  return { because: confirmed ? "it is confirmed" : "no calls are left", calls, next: "reporting" };
}

function set(id: string, status: string): object {
  return { tool: "setTodo", args: { id, status } };
}

function report({ state }: Prompt): object {
  const { provider, confirmation, customer, callsMade, callLog } = state;
  const isCancelled = confirmation !== undefined;
  const told = isCancelled
    ? `Your contract with ${String(provider)} is cancelled. Confirmation: ${String(confirmation)}.`
    : callLog !== undefined
      ? `Your contract with ${String(provider)} is not cancelled. I called ${String(callsMade)} times: ${String(callLog)}. Open: the cancellation, best in writing.`
      : customer === undefined
        ? "Nothing is cancelled: I have no customer number. Open: everything."
        : `Nothing is cancelled: I found no contract under ${String(customer)}. Open: the right customer number.`;
  const because = isCancelled ? "it was confirmed" : "it was not confirmed";
  return { because, patch: { report: told }, reply: told, next: isCancelled ? "cancelled" : "not_cancelled" };
}

function customerIn(text: string): string | null {
  return /(?<!\d)\d{4}(?!\d)/.exec(text)?.[0] ?? null;
}

function timesAsked(recent: readonly string[]): number {
  return recent.filter((line) => line.includes("asked: ")).length;
}

/** The service desk's own model, for when no key is set. */
export function serviceDeskRules(): OfflineRules {
  return new OfflineRules(decideServiceDesk);
}
