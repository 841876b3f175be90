import { compile, modelFromEnvironment, openStore } from "statecard";
import { serviceDeskRules } from "./rules.ts";
import { serviceDesk } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? serviceDeskRules();

export const graph = compile(serviceDesk, { model, store: openStore() });
