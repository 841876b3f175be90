import { compile, modelFromEnvironment, openStore } from "statecard";
import { airlineRules } from "./rules.ts";
import { airline } from "./workflow.ts";
import { airlineWorld } from "./world.ts";

const model = (await modelFromEnvironment()) ?? airlineRules();

export const graph = compile(airline, {
  model,
  store: openStore(),
  clients: { world: airlineWorld() },
  // A list of connections has to be seen whole: the longest one recorded fits.
  view: { maxResultTokens: 3000 },
});
