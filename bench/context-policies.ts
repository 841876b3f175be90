import { workflowSchema } from "../src/decision/schema.ts";
import type { CacheRule } from "../src/view/cache-rules.ts";
import { paidTokens, type Paid, type Prompt, type PromptPart } from "../src/view/cost.ts";
import { POLICIES, type Policy } from "../src/view/options.ts";
import { promptOf, renderView } from "../src/view/render.ts";
import type { StandingSnapshot } from "../src/view/scene.ts";
import { estimateTokens } from "../src/view/tokens.ts";
import type { ModelCall } from "./context-replay.ts";
import type { Message } from "./context-sets.ts";
import type { ContextSet } from "./context-workflows.ts";

/**
 * A way to make prompts. Two are made without us, with JSON tool schemas and nothing left out: `agent` keeps the recorded
 * messages, `paper` shows the state as JSON, the last decision and what came of it, as the paper on explicit state does.
 */
export type Side = "agent" | "paper" | Policy;
export const SIDES: readonly Side[] = ["agent", "paper", ...POLICIES];
/** What `adaptive` is held against: the two ordinary ones, and our own way to show the state alone, which is leaner. */
export const ORDINARY: readonly Side[] = ["agent", "paper"];
export const OTHERS: readonly Side[] = [...ORDINARY, "state"];

/** The model calls that a side makes: the ordinary ones have no steps to go to. */
export function callsOf(side: Side, calls: readonly ModelCall[]): readonly ModelCall[] {
  return ORDINARY.includes(side) ? calls.filter(({ isMove }) => !isMove) : calls;
}

/** The prompts of a side's calls; those of `adaptive` depend on the cache rule. */
export function promptsOf(
  side: Side,
  set: ContextSet,
  calls: readonly ModelCall[],
  rule: CacheRule,
): readonly Prompt[] {
  if (side === "agent") return calls.map((call) => agentPrompt(set, call));
  if (side === "paper") return calls.map((call) => paperPrompt(set, call));
  let standing: StandingSnapshot | null = null;
  return calls.map((call) => {
    const { snapshot, observation, turns } = call;
    const options = { policy: side, rawMessages: 0, provider: rule };
    const besideTokens = estimateTokens(schemaText(set));
    const view = renderView({ workflow: set.workflow, snapshot, observation, turns, standing, options, besideTokens });
    if (view.plan?.isNew && view.plan.choice.isKept) standing = view.plan.standing;
    return [schemaPart(set), ...promptOf(view)];
  });
}

/** The same decision schema for every side. What the tools take is said by their signatures, or by the agent's own schemas. */
function schemaPart(set: ContextSet): PromptPart {
  return { role: "schema", text: schemaText(set), isMarked: false };
}

const schemas = new WeakMap<ContextSet, string>();

function schemaText(set: ContextSet): string {
  const text = schemas.get(set) ?? JSON.stringify(workflowSchema(set.workflow, "open").schema);
  schemas.set(set, text);
  return text;
}

function agentPrompt(set: ContextSet, call: ModelCall): Prompt {
  const messages = recordedParts(call.before);
  const last = messages.length - 1;
  return [...ordinaryHead(set), ...messages.map((part, index) => ({ ...part, isMarked: index === last }))];
}

function paperPrompt(set: ContextSet, call: ModelCall): Prompt {
  const lastDecision = call.before.findLastIndex(({ role }) => role === "assistant");
  const state: PromptPart = { role: "user", text: `State: ${JSON.stringify(call.snapshot.state)}`, isMarked: false };
  return [...ordinaryHead(set), state, ...recordedParts(call.before.slice(Math.max(0, lastDecision)))];
}

function ordinaryHead(set: ContextSet): Prompt {
  const tools = set.tools.map((tool) => ({ type: "function", function: tool }));
  return [
    { role: "tools", text: JSON.stringify(tools), isMarked: false },
    schemaPart(set),
    { role: "system", text: set.instructions, isMarked: true },
  ];
}

/** Messages as they were recorded, without the instructions. */
function recordedParts(messages: readonly Message[]): readonly PromptPart[] {
  return messages
    .filter(({ role }) => role !== "system")
    .map(({ role, content, toolCalls = [] }) => {
      const calls = toolCalls.map(({ name, args }) => JSON.stringify({ name, arguments: args }));
      return { role, text: [content, ...calls].filter(Boolean).join("\n"), isMarked: false };
    });
}

/** What prompts of one conversation cost, one after the other. */
export function payFor(rule: CacheRule, prompts: readonly Prompt[], warm: readonly Prompt[]): readonly Paid[] {
  return prompts.map((prompt, index) => paidTokens(rule, [...warm, ...prompts.slice(0, index)], prompt));
}
