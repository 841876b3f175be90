import { compile, modelFromEnvironment, openStore } from "statecard";
import { bundledMarket } from "./market.ts";
import { researchPlanner } from "./planner.ts";
import { researchRules } from "./rules.ts";
import { research } from "./workflow.ts";

// A strong model may plan and a cheap one do the rest: OPENAI_PLANNER_MODEL beside OPENAI_MODEL.
const { OPENAI_MODEL, OPENAI_PLANNER_MODEL = OPENAI_MODEL } = process.env;
const model = (await modelFromEnvironment()) ?? researchRules();
const planner =
  (await modelFromEnvironment({ ...process.env, OPENAI_MODEL: OPENAI_PLANNER_MODEL })) ?? researchPlanner();

export const graph = compile(research, { model, planner, store: openStore(), clients: { market: bundledMarket() } });
