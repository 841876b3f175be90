import { compile, modelFromEnvironment, openStore } from "statecard";
import { detectiveRules } from "./rules.ts";
import { detectiveView, logDetective } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? detectiveRules();

export const graph = compile(logDetective, { model, store: openStore(), view: detectiveView });
