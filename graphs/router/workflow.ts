import { defineWorkflow, field, loadRole, Memories, type MemoryStore } from "statecard";
import { z } from "zod";
import { codeAgentWith } from "./code-agent/workflow.ts";
import { logAgentWith } from "./log-agent.ts";

const NO_ANSWER = "No answer: the task of the colleague who had the question has failed.";

/**
 * Finds out what a request is about and hands it to one of two agents. Each has its own role, skills and memory:
 * neither can name what is the other's.
 *
 * @param store where memories are kept, those of each user and agent apart.
 */
export function routerOn(store: MemoryStore) {
  const memoriesOf = (agent: string) => new Memories({ store, userField: "user", agent });
  const childMemories = { "log-agent": memoriesOf("log-agent"), "code-agent": memoriesOf("code-agent") };
  const router = defineWorkflow({
    name: "router",
    version: 1,
    goal: "Hand a request to the agent that can answer it.",
    role: loadRole(new URL("./roles/router.md", import.meta.url)),
    state: {
      request: field(z.string().max(1000)).describe("the request, with what was said to make it clear"),
      topic: field(z.enum(["log", "code", "other"])).describe("what would have to be read to answer it"),
      user: field(z.string().max(200)).describe("who asks").runtimeOnly(),
      answer: field(z.string().max(6000)).describe("what the user was told").writeOnce(),
    },
    input: ["user"],
    initial: "classifying",
    steps: {
      classifying: {
        writes: ["request", "topic"],
        writesAnswer: true,
        to: [
          { to: "asking_logs", when: ({ topic }) => topic === "log", because: "it is not about a log" },
          { to: "asking_code", when: ({ topic }) => topic === "code", because: "it is not about code" },
          { to: "declining", when: ({ topic }) => topic === "other", because: "a colleague can answer it" },
        ],
        instructions:
          "Write down the request and its topic, and go on. If it is not clear, ask; after two answers that did not help, it is other.",
      },
      asking_logs: {
        requires: ["request"],
        workflow: logAgentWith(childMemories["log-agent"]),
        input: ({ request, user }) => ({ message: request, question: request, user }),
        output: ({ state: { report } }) => (typeof report === "string" ? { patch: { answer: report } } : {}),
        to: ["telling"],
      },
      asking_code: {
        requires: ["request"],
        workflow: codeAgentWith(childMemories["code-agent"]),
        input: ({ request, user }) => ({ message: request, question: request, user }),
        output: ({ state: { answer } }) => (typeof answer === "string" ? { patch: { answer } } : {}),
        to: ["telling"],
      },
      telling: { to: ["answered", "unanswered"], run: tell },
      declining: {
        writes: ["answer"],
        to: ["declined"],
        instructions: "Say that this cannot be answered here and what can; write it as answer too, and go to declined.",
      },
      answered: { requires: ["answer"], final: true },
      unanswered: { requires: ["answer"], final: true },
      declined: { requires: ["answer"], final: true },
    },
  });
  return { router, childMemories };
}

/** Passes an agent's answer on as it is; its task may have ended without one. */
function tell({ answer }: { readonly answer: string | null }) {
  if (answer !== null) return { reply: answer, next: "answered" as const };
  return { patch: { answer: NO_ANSWER }, reply: NO_ANSWER, next: "unanswered" as const };
}
