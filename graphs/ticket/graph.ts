import { compile, modelFromEnvironment, openStore } from "statecard";
import { ticketRules } from "./rules.ts";
import { ticket } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? ticketRules();

export const graph = compile(ticket, { model, store: openStore() });
