import { defineWorkflow, field, loadRole, memoryTools, planField, type Memories } from "statecard";
import { z } from "zod";
import { placesGuard } from "./guard.ts";
import { keepShown, tools } from "./tools.ts";

/** Rounds of looking; then it has to end with what it has. */
const MAX_ROUNDS = 5;

/** Answers a question about the code of one project, with the places that hold the answer up. */
export function codeAgentWith(memories: Memories) {
  return defineWorkflow({
    name: "code-agent",
    version: 1,
    goal: "Answer a question about the code of a project from its lines.",
    role: loadRole(new URL("../roles/code-agent.md", import.meta.url)),
    state: {
      question: field(z.string().max(1000)).describe("what the user wants to know").runtimeOnly(),
      user: field(z.string().max(200)).describe("who asks").runtimeOnly(),
      lines: field(z.array(z.string())).describe("lines that were shown").runtimeOnly(),
      asked: field(z.array(z.string())).describe("what was searched and read").runtimeOnly(),
      search: planField(),
      answer: field(z.string().max(4000)).describe("the answer that the user gets").writeOnce(),
    },
    input: ["question", "user"],
    tools: { ...tools, ...memoryTools(memories) },
    stateBudget: { warnBytes: 16_000, maxBytes: 32_000 },
    onResult: { "search-code": keepShown, "read-file": keepShown },
    initial: "looking",
    steps: {
      looking: {
        react: { into: "search", maxRounds: MAX_ROUNDS },
        tools: ["search-code", "read-file", "readSkill", "recall", "forget"],
        to: ["answering"],
        instructions: "Find the places that answer the question, then go to answering. Do not ask back.",
      },
      answering: {
        tools: ["remember"],
        writes: ["answer"],
        to: ["done"],
        guards: [placesGuard],
        instructions:
          "Remember the result as one statement with its place, then write the answer, reply with it, and go to done. Where the project does not answer the question, say what was searched.",
      },
      done: { requires: ["answer"], final: true },
    },
  });
}
