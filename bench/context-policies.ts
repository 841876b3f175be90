import { decisionSchema } from "../src/decision/schema.ts";
import type { CacheRule } from "../src/view/cache-rules.ts";
import { paidTokens, type Paid, type Prompt, type PromptPart } from "../src/view/cost.ts";
import { POLICIES, type Policy } from "../src/view/options.ts";
import { promptOf, renderView } from "../src/view/render.ts";
import type { StandingSnapshot } from "../src/view/scene.ts";
import { estimateTokens } from "../src/view/tokens.ts";
import type { ModelCall } from "./context-replay.ts";
import type { ContextSet } from "./context-workflows.ts";

/** A way to make prompts. `agent` is an ordinary one: recorded messages and JSON tool schemas, nothing left out. */
export type Side = "agent" | Policy;
export const SIDES: readonly Side[] = ["agent", ...POLICIES];

/** The prompts of a conversation's calls; those of `adaptive` depend on the cache rule. */
export function promptsOf(
  side: Side,
  set: ContextSet,
  calls: readonly ModelCall[],
  rule: CacheRule,
): readonly Prompt[] {
  if (side === "agent") return calls.map((call) => agentPrompt(set, call));
  let standing: StandingSnapshot | null = null;
  return calls.map((call) => {
    const { snapshot, observation, turns } = call;
    const options = { policy: side, rawMessages: 0, provider: rule };
    const besideTokens = estimateTokens(schemaText(set.workflow, snapshot));
    const view = renderView({ workflow: set.workflow, snapshot, observation, turns, standing, options, besideTokens });
    if (view.plan?.isNew) standing = view.plan.choice.isKept ? view.plan.standing : null;
    return [schemaPart(set, call), ...promptOf(view)];
  });
}

/** The same decision schema for every side. What the tools take is said by their signatures, or by the agent's own schemas. */
function schemaPart({ workflow }: ContextSet, { snapshot }: ModelCall): PromptPart {
  return { role: "schema", text: schemaText(workflow, snapshot), isMarked: false };
}

const schemas = new WeakMap<object, string>();

function schemaText(workflow: ContextSet["workflow"], { execution, state }: ModelCall["snapshot"]): string {
  let text = schemas.get(workflow);
  if (text === undefined) {
    text = JSON.stringify(decisionSchema(workflow, execution.step, state, null, "open").schema);
    schemas.set(workflow, text);
  }
  return text;
}

function agentPrompt(set: ContextSet, call: ModelCall): Prompt {
  const tools = set.tools.map((tool) => ({ type: "function", function: tool }));
  const head: Prompt = [
    { role: "tools", text: JSON.stringify(tools), isMarked: false },
    schemaPart(set, call),
    { role: "system", text: set.instructions, isMarked: true },
  ];
  const messages = call.before.filter(({ role }) => role !== "system");
  const parts = messages.map(({ role, content, toolCalls = [] }, index): PromptPart => ({
    role,
    text: [content, ...toolCalls.map(({ name, args }) => JSON.stringify({ name, arguments: args }))]
      .filter(Boolean)
      .join("\n"),
    isMarked: index === messages.length - 1,
  }));
  return [...head, ...parts];
}

/** What prompts of one conversation cost, one after the other. */
export function payFor(rule: CacheRule, prompts: readonly Prompt[], warm: readonly Prompt[]): readonly Paid[] {
  return prompts.map((prompt, index) => paidTokens(rule, [...warm, ...prompts.slice(0, index)], prompt));
}
