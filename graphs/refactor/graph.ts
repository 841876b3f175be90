import { delimiter } from "node:path";
import { compile, modelFromEnvironment, openStore } from "statecard";
import { refactorRules } from "./rules.ts";
import { refactor, refactorView } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? refactorRules();
const folders = process.env.REFACTOR_FOLDERS?.split(delimiter);

export const graph = compile(refactor, { model, store: openStore(), view: refactorView, clients: { folders } });
