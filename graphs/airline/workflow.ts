import { isDeepStrictEqual } from "node:util";
import { defineWorkflow, field, type ApprovalRule, type Observation, type StateOf } from "statecard";
import { z } from "zod";
import { actionSchema } from "./arguments.ts";
import { judge } from "./policy.ts";
import { airlineTools } from "./tools.ts";
import { worldOf } from "./world.ts";

const text = (characters: number) => field(z.string().max(characters));

const state = {
  userId: text(80).describe("who is talking").writeOnce(),
  request: text(2000).describe("what the user wants, in short"),
  notes: text(8000).describe("facts from results that are still needed: flights, prices, payment ids"),
  proposal: field(actionSchema).describe("the one change that is to be made next, complete").clearable(),
  objection: text(500).describe("why the last proposal was not taken").clearable().runtimeOnly(),
  exception: text(500).describe("why a colleague has to agree to the proposal too").clearable().runtimeOnly(),
  seenResult: text(40).describe("the latest result when the proposal was reviewed").runtimeOnly(),
  summary: text(2000).describe("what a human agent has to know"),
  outcome: text(2000).describe("how it ended").writeOnce(),
};

const LOOKING = [
  "get_user_details",
  "get_reservation_details",
  "search_direct_flight",
  "search_onestop_flight",
  "list_all_airports",
  "calculate",
  "think",
] as const;
const WRITING = [
  "book_reservation",
  "cancel_reservation",
  "update_reservation_flights",
  "update_reservation_passengers",
  "update_reservation_baggages",
  "send_certificate",
] as const;

/**
 * The user confirms exactly what was reviewed; for an exception a colleague has to agree too. Whoever
 * edits a call makes another one of it, which nobody has reviewed: that nobody may approve.
 */
function asReviewed(args: unknown, { proposal, exception }: StateOf<typeof state>): boolean | ApprovalRule {
  if (!isDeepStrictEqual(args, proposal?.args)) return { approvers: [] };
  return exception === null || { count: 2 };
}

/** An airline's desk: nothing is booked, changed or paid before the user has confirmed exactly that. */
export const airline = defineWorkflow({
  name: "airline",
  version: 1,
  goal: "Help a user of an airline to book, change or cancel flights, within the airline's rules.",
  instructions:
    "It is 2024-05-15 15:00 EST. Say only what the user or the tools have told you; give no opinions. Turn down what the rules forbid.",
  state,
  tools: airlineTools,
  initial: "identify",
  maxDecisions: 300,
  steps: {
    identify: {
      writes: ["userId", "request", "notes", "summary", "outcome"],
      tools: ["get_user_details"],
      to: ["gather", "transfer", "done"],
      instructions:
        "Find out who is talking: ask for the user id, call get_user_details with it, and set userId and the request beside the call. Note the membership, payment ids and reservations. Then go to gather.",
    },
    gather: {
      requires: ["userId"],
      writes: ["request", "notes", "summary", "outcome"],
      tools: LOOKING,
      to: ["propose", "transfer", "done"],
      maxDecisions: 150,
      instructions:
        "Find out what the user wants and look up what it needs; keep in notes what you will need again. For a cancellation ask for the reason. If there is an objection, tell it. For a change go to propose. If only a person can help, write the summary and go to transfer. When the user needs nothing more, write the outcome and go to done.",
    },
    propose: {
      requires: ["userId"],
      writes: ["proposal", "notes"],
      tools: ["calculate", "think"],
      to: ["review", "gather"],
      maxDecisions: 60,
      instructions: [
        "Write one proposal with all its arguments and go to review; the user is asked to confirm it after that. Several changes are several proposals.",
        "Booking: at most 5 passengers, all on the same flights in one cabin; pay with at most one certificate, one credit card and three gift cards of the user's profile, adding up to the price; ask about insurance (30 a passenger). Free bags for each passenger in basic economy, economy, business: regular 0, 1, 2; silver 1, 2, 3; gold 2, 3, 3; each other bag costs 50.",
        "Changing flights: not in basic economy; the trip begins and ends where it did; list all flights, kept ones too; one gift or credit card. Changing the cabin: always possible, for all flights at once. Bags: add, never remove. Insurance cannot be added. Passengers: names can change, not their number.",
        "Cancelling: the whole trip; within 24 hours of booking, or if the airline cancelled, or in business; else with insurance for reasons of health or weather. Not once a flight has been used.",
        "Certificate: only if the user complains and asks for it, and is silver or gold, insured or in business: 100 a passenger for a cancelled flight, 50 for a delayed one after the reservation was changed or cancelled.",
      ].join("\n"),
    },
    review: {
      requires: ["userId", "proposal"],
      to: ["perform", "gather"],
      maxDecisions: 60,
      run: ({ userId, proposal }, { clients, observation }) => {
        const verdict = judge(actionSchema.parse(proposal), userId ?? "", worldOf(clients));
        if (verdict.is === "refused") {
          const { because } = verdict;
          return { because, patch: { objection: because }, clear: ["proposal"], next: "gather" };
        }
        const patch = { seenResult: latestResult(observation) };
        if (verdict.is === "allowed") {
          return { because: "the rules allow it", patch, clear: ["objection", "exception"], next: "perform" };
        }
        return {
          because: `a colleague has to agree: ${verdict.because}`,
          patch: { ...patch, exception: verdict.because },
          clear: ["objection"],
          next: "perform",
        };
      },
    },
    perform: {
      requires: ["proposal"],
      tools: WRITING,
      approve: Object.fromEntries(WRITING.map((name) => [name, asReviewed])),
      to: ["gather"],
      maxDecisions: 120,
      run: ({ proposal, seenResult }, { observation }) => {
        // A result that was not there at the review is the call's own: it did not happen, and is not tried again.
        if (proposal === null || latestResult(observation) !== seenResult) {
          return { because: "the change was not made", clear: ["proposal", "exception"], next: "gather" };
        }
        return {
          because: "it was reviewed",
          calls: [proposal],
          clear: ["proposal", "exception"],
          next: "gather",
        };
      },
    },
    transfer: {
      requires: ["summary"],
      tools: ["transfer_to_human_agents"],
      to: ["done"],
      run: ({ summary }) => ({
        calls: [{ tool: "transfer_to_human_agents", args: { summary } }],
        patch: { outcome: "handed to a human agent" },
        next: "done",
      }),
    },
    done: { requires: ["outcome"], final: true },
  },
});

/** The latest result's id, which tells a new one from one that was there before. */
function latestResult(observation: Observation | null): string {
  return (observation?.kind === "results" ? observation.results.at(-1)?.id : null) ?? "none";
}
