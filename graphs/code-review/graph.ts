import { compile, modelFromEnvironment, openStore } from "statecard";
import { reviewRules } from "./rules.ts";
import { codeReview, reviewView } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? reviewRules();

export const graph = compile(codeReview, { model, store: openStore(), view: reviewView });
