import { compile, modelFromEnvironment, openStore } from "statecard";
import { LEDGER_FILE } from "./ledger.ts";
import { refundRules } from "./rules.ts";
import { refund } from "./workflow.ts";

const model = (await modelFromEnvironment()) ?? refundRules();
const ledger = process.env.REFUND_LEDGER ?? LEDGER_FILE;

export const graph = compile(refund, { model, store: openStore(), clients: { ledger } });
