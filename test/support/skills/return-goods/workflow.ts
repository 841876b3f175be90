import { defineWorkflow, field } from "statecard";
import { z } from "zod";

export const workflow = defineWorkflow({
  name: "return-goods",
  version: 1,
  goal: "Take an article back.",
  state: {
    article: field(z.string()),
    days: field(z.number()),
    isUsed: field(z.boolean()),
    refund: field(z.number()).runtimeOnly(),
  },
  input: ["article", "days"],
  initial: "asking",
  steps: {
    asking: { writes: ["isUsed"], to: ["asking", "reckoning"], instructions: "Ask whether it was used." },
    reckoning: {
      requires: ["isUsed"],
      to: ["done"],
      run: ({ isUsed, days }) => ({ patch: { refund: (days ?? 0) > 30 ? 0 : isUsed ? 20 : 40 }, next: "done" }),
    },
    done: { final: true },
  },
});
