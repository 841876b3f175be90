import { defineWorkflow, field, planField, type CallResult } from "statecard";
import { z } from "zod";
import { check, subtaskSchema } from "./subtasks.ts";
import { financialsSchema, foundSchema, listingSchema, newsSchema, tools } from "./tools.ts";

/** Plans after the first; then follows a free loop of so many rounds; then it has to end with what it has. */
const MAX_REPLANS = 1;
const MAX_ROUNDS = 8;
/** Figures and news age: so long after anything has last happened to a task, it is removed. */
const HOUR_MS = 3_600_000;

/** A result of a tool as its schema says; null where the call did not go well. */
function valueOf<T>(schema: z.ZodType<T>, { status, value }: CallResult): T | null {
  return status === "ok" ? schema.parse(value) : null;
}

/**
 * Looks companies up: cuts the request into subtasks, plans the calls of the most important ones, plans
 * again where the plan did not come true, tries freely where that does not help either, and says in the
 * end what is known and what is open.
 */
export const research = defineWorkflow({
  name: "research",
  version: 1,
  goal: "Answer a question about companies from their figures and from news.",
  instructions:
    "Report figures from get_financials only. What news say is hearsay: quote it as such, never as a figure. Where something cannot be found out, say so.",
  state: {
    subtasks: field(z.array(subtaskSchema).min(1).max(24)).describe("what has to be found out; priority 1 comes first"),
    codes: field(z.record(z.string(), z.string())).runtimeOnly().describe("stock codes by company, as last seen"),
    revenue: field(z.record(z.string(), z.array(z.number())))
      .runtimeOnly()
      .describe("revenue of the latest periods by company, oldest first"),
    news: field(z.record(z.string(), z.string())).runtimeOnly().describe("hearsay by company"),
    plan: planField(),
    answer: field(z.string().max(4000)).describe("the answer as far as it is known"),
  },
  tools,
  // What a tool found is kept by code, so that it does not depend on what a model makes of it.
  onResult: {
    search_company(result) {
      const found = valueOf(foundSchema, result);
      return found ? { codes: { [found.company]: found.code } } : {};
    },
    get_listing(result) {
      const listing = valueOf(listingSchema, result);
      return listing?.code ? { codes: { [listing.company]: listing.code } } : {};
    },
    get_financials(result) {
      const figures = valueOf(financialsSchema, result);
      return figures?.company ? { revenue: { [figures.company]: figures.revenue } } : {};
    },
    get_news(result) {
      const note = valueOf(newsSchema, result);
      return note ? { news: { [note.company]: note.text } } : {};
    },
  },
  timeToLiveMs: HOUR_MS,
  initial: "scoping",
  steps: {
    scoping: {
      tools: ["list_sector"],
      writes: ["subtasks", "answer"],
      to: ["scoping", "looking", "done"],
      instructions:
        "Cut the request into subtasks, one for each company and thing to find out, all open; what the answer rests on has priority 1. A sector stands for its companies (list_sector). Where no company or sector is named, ask. If nobody says, write that as the answer and go to done.",
    },
    looking: {
      requires: ["subtasks"],
      plan: { into: "plan", maxReplans: MAX_REPLANS, maxRounds: MAX_ROUNDS },
      tools: ["search_company", "get_listing", "get_financials", "get_news"],
      writes: ["answer"],
      to: ["checking"],
      instructions:
        "Find out the open subtasks of the highest priority only. To conclude, write the answer from the fields revenue and news, and go to checking.",
    },
    checking: { to: ["looking", "done"], run: check },
    done: { requires: ["answer"], final: true },
  },
});
