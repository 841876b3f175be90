import { readFileSync } from "node:fs";
import { defineTool, defineWorkflow, field, renderView } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { newExecution, type Observation } from "../../src/state/execution.ts";
import type { AnyWorkflow } from "../../src/workflow/define.ts";
import type { Turn } from "../../src/view/transcript.ts";

const shop = defineWorkflow({
  name: "tea-shop",
  version: 1,
  instructions: "Sell tea.",
  state: {
    customer: field(z.string()),
    article: field(z.string()),
    amount: field(z.number()),
    stock: field(z.array(z.object({ tea: z.string(), grams: z.number(), price: z.number() }))),
  },
  input: ["customer", "stock"],
  tools: {
    look: defineTool({
      description: "Looks into the store.",
      effect: "read",
      parameters: z.object({ shelf: z.string() }),
      run: () => null,
    }),
  },
  initial: "choose",
  steps: {
    choose: {
      instructions: "Find out what they want.",
      writes: ["article", "amount"],
      tools: ["look"],
      to: ["choose", "pay"],
    },
    pay: { requires: ["amount"], to: ["done"] },
    done: { final: true },
  },
});

test("the chapter on context shows a prompt as it is", () => {
  const stock = [
    { tea: "darjeeling", grams: 1200, price: 4.5 },
    { tea: "assam", grams: 300, price: 3.9 },
  ];
  const found: Observation = { kind: "results", results: [{ id: "1.0", tool: "look", status: "ok", value: stock }] };
  const look = { calls: [{ tool: "look", args: { shelf: "tea" } }] };
  const asked = { patch: { article: "darjeeling" }, ask: "How many packets?" };
  const looked: readonly Turn[] = [
    { role: "assistant", text: JSON.stringify(look), decision: look, to: "choose", sequence: 2 },
    { role: "user", text: "", observation: found, to: "choose", sequence: 3 },
  ];
  const view = (more: Partial<Parameters<typeof renderView>[0]>, state: object, retryCount = 0, revision = 2) =>
    renderView({
      workflow: shop as unknown as AnyWorkflow,
      snapshot: {
        execution: { ...newExecution(shop as unknown as AnyWorkflow), status: "running", revision, retryCount },
        state: { customer: "Ada Marin", article: null, amount: null, stock, ...state },
      },
      observation: found,
      turns: looked,
      options: { policy: "adaptive", rawMessages: 0, provider: "vllm" },
      ...more,
    });
  const first = view({}, {});
  const answer = { kind: "answer", question: asked.ask, text: "Two, please." } as const;
  const turns = [
    ...looked,
    { role: "assistant", text: JSON.stringify(asked), decision: asked, to: "choose", sequence: 4 },
    { role: "user", text: answer.text, observation: answer, to: "choose", sequence: 5 },
  ] as const;
  const standing = first.plan?.standing ?? null;
  const later = view({ observation: answer, turns, standing }, { article: "darjeeling" }, 1, 4);
  const shown = later.messages.slice(1).map(({ content }) => content);
  expect(readFileSync("docs/context.md", "utf8")).toContain(`\`\`\`\n${shown.join("\n")}\n\`\`\``);
});
