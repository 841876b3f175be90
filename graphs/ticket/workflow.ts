import { defineWorkflow, field } from "statecard";
import { z } from "zod";

/** A support ticket, from the first word to "closed, user told". */
export const ticket = defineWorkflow({
  name: "ticket",
  version: 1,
  goal: "Bring a support ticket to a solution.",
  instructions: "Speak the user's language. Be short and friendly.",
  state: {
    ticketType: field(z.string().max(2000)).describe("what is broken, in the user's words"),
    priority: field(z.enum(["P1", "P2", "P3"])).describe("how urgent: P1 now, P2 today, P3 when there is time"),
    analysis: field(z.string()).describe("the likely cause"),
    solution: field(z.string()).describe("what will be done").writeOnce(),
    result: field(z.string()).describe("how it ended").writeOnce(),
  },
  input: ["ticketType", "priority"],
  initial: "init",
  steps: {
    init: {
      to: ["gathering_info", "deciding"],
      instructions: "Go to deciding if type and priority are known, else to gathering_info.",
    },
    gathering_info: {
      writes: ["ticketType", "priority"],
      to: ["gathering_info", "deciding"],
      instructions: "Ask for one missing field at a time: first what is broken, then how urgent it is.",
    },
    deciding: {
      requires: ["ticketType", "priority"],
      writes: ["analysis", "solution", "result"],
      to: ["resolving", "done"],
      instructions:
        "Write analysis and solution and ask whether to start. If the user agrees, go to resolving; if not, write the result and go to done.",
    },
    resolving: {
      requires: ["solution"],
      writes: ["result"],
      to: ["done"],
      instructions: "Carry out the solution, tell the user in a reply, and set the result to: closed, user told.",
    },
    done: { final: true },
  },
});
