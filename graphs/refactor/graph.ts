import { compile, modelFromEnvironment, openStore } from "statecard";
import { foldersFrom } from "./folders.ts";
import { refactorRules } from "./rules.ts";
import { refactor, refactorView } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? refactorRules();
const folders = foldersFrom("REFACTOR_FOLDERS");

export const graph = compile(refactor, { model, store: openStore(), view: refactorView, clients: { folders } });
