import { compile, modelFromEnvironment, openStore } from "statecard";
import { detectiveView } from "../log-detective/workflow.ts";
import { routerRules } from "./rules.ts";
import { routerOn } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? routerRules();
const store = openStore();
const { router, childMemories } = routerOn(store.memory());

export const graph = compile(router, { model, store, childMemories, view: detectiveView });
