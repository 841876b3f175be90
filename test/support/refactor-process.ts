// A process of its own that goes on with a refactoring and dies as if by kill -9 at a named place:
// `refactor-process.ts DATABASE FOLDER yes|on POINT COUNT`: it answers yes or just goes on.
import { Command } from "@langchain/langgraph";
import { compile, sqliteStore } from "statecard";
import { onFaultPoint, type FaultPoint } from "statecard/testing";
import { refactorRules } from "../../graphs/refactor/rules.ts";
import { refactor, refactorView } from "../../graphs/refactor/workflow.ts";

const [database = "", folder = "", input = "", point, count] = process.argv.slice(2);
const store = sqliteStore(database);
const graph = compile(refactor, { model: refactorRules(), store, view: refactorView, clients: { folders: [folder] } });

let left = Number(count);
onFaultPoint((reached: FaultPoint) => {
  if (reached === point && --left === 0) process.kill(process.pid, "SIGKILL");
});
await graph.invoke(input === "yes" ? new Command({ resume: "yes" }) : null, { configurable: { thread_id: "t" } });
