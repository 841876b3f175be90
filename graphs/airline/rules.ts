import { OfflineRules, type CallOutcome, type Prompt } from "../offline-rules.ts";
import { cabinIn, flightsIn, paymentsIn, reservationIn, userIn, wishIn } from "./reading.ts";

const WHO = "What is your user id?";
const WHICH = "Which reservation is it about?";
const WHAT = "Shall I cancel the reservation, or change its cabin to basic economy, economy or business?";
const GAVE_UP = "We did not find out what to do. Nothing was changed.";

const MAX_ASKED = 2;

/** One decision of a desk that can cancel a reservation or change its cabin, from the prompt alone. */
function decideAirline(prompt: Prompt): object {
  if (prompt.step === "identify") return identify(prompt);
  return prompt.step === "propose" ? propose(prompt) : gather(prompt);
}

function identify(prompt: Prompt): object {
  const { state, said, results } = prompt;
  const request = [state.request, said].filter(Boolean).join(". ");
  const userId = userIn(said);
  if (userId !== null) {
    return {
      because: "the user said who it is",
      calls: [{ tool: "get_user_details", args: { user_id: userId } }],
      patch: { userId, request },
      next: "gather",
    };
  }
  const because = results.length > 0 ? "there is no such user" : "the user id is missing";
  return question(prompt, because, WHO, request === "" ? {} : { request });
}

function gather(prompt: Prompt): object {
  const { state, said, question: asked } = prompt;
  const [result] = prompt.results;
  if (typeof state.objection === "string") return end(`I cannot do that: ${state.objection}.`);
  if (result && result.tool !== "get_user_details" && result.tool !== "get_reservation_details") {
    return end(toldOf(result));
  }
  if (result?.tool === "get_reservation_details" && result.status !== "ok") {
    return question(prompt, "there is no such reservation", WHICH, {});
  }

  const payments = result?.tool === "get_user_details" ? paymentsIn(result.detail) : [];
  const request = [asked === "" ? "" : said, state.request].filter(Boolean).join(". ");
  const patch = { request, ...(payments.length > 0 ? { notes: `pays with ${payments.join(", ")}` } : {}) };
  const reservation = reservationIn(request);
  if (reservation === null) return question(prompt, "the reservation is missing", WHICH, patch);
  const wish = wishIn(request);
  if (wish === "a person") {
    const summary = `reservation ${reservation}: ${request}`;
    return { because: "the user wants a person", patch: { ...patch, summary }, next: "transfer" };
  }
  if (wish === null) return question(prompt, "it is not clear what to do", WHAT, patch);
  if (result?.tool === "get_reservation_details") return { because: "everything is known", next: "propose" };
  const calls = [{ tool: "get_reservation_details", args: { reservation_id: reservation } }];
  return { because: "the reservation has to be looked up", calls, patch };
}

function propose(prompt: Prompt): object {
  const { state } = prompt;
  const request = String(state.request);
  const reservation_id = reservationIn(request);
  const cabin = cabinIn(request);
  if (wishIn(request) === "cancel" || cabin === null) {
    const proposal = { tool: "cancel_reservation", args: { reservation_id } };
    return { because: "the user wants to cancel", patch: { proposal }, next: "review" };
  }
  const flights = flightsIn(prompt.results[0]?.detail ?? "");
  const payment_id = paymentsIn(String(state.notes)).find((id) => !id.startsWith("certificate")) ?? "none";
  const proposal = { tool: "update_reservation_flights", args: { reservation_id, cabin, flights, payment_id } };
  return { because: "the user wants another cabin", patch: { proposal }, next: "review" };
}

/** What a write came to, for the user. */
function toldOf({ tool, status, detail }: CallOutcome): string {
  if (status === "ok") return tool === "cancel_reservation" ? "It is cancelled." : "It is changed.";
  return `Nothing was changed: ${detail.replace(/^Error: /, "")}.`;
}

function end(outcome: string): object {
  return { because: "there is nothing more to do", patch: { outcome }, reply: outcome, next: "done" };
}

function question(prompt: Prompt, because: string, ask: string, patch: object): object {
  const asked = prompt.recent.filter((line) => line.includes(`asked: ${ask}`)).length;
  return asked < MAX_ASKED ? { because, patch, ask } : end(GAVE_UP);
}

/** The airline example's own model, for when no key is set. */
export function airlineRules(): OfflineRules {
  return new OfflineRules(decideAirline);
}
