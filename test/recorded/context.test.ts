import { viewTokens } from "statecard";
import { describe, expect, test } from "vitest";
import { replay } from "../../bench/context-replay.ts";
import { contextSets, type ContextSet } from "../../bench/context-workflows.ts";
import { POLICIES, type Policy } from "../../src/view/options.ts";
import { renderView, type View } from "../../src/view/render.ts";
import type { StandingSnapshot } from "../../src/view/scene.ts";
import { missingTrajectories } from "../support/trajectories.ts";

const FILES = [
  "tau-airline-gpt4o",
  "tau2-retail-toolorchestra",
  "intercode-ctf-gpt4",
  "sgd-dev",
  "bfcl-long_context-groundtruth",
  "intercode-sql-gpt4",
];
const missing = missingTrajectories(FILES);
const sets = missing ? [] : contextSets();
// All prompts of all conversations take some minutes, so they are checked where that is asked for.
const IS_WHOLE = process.env.STATECARD_EVERY_PROMPT === "1";
// Else the policies that most tasks use are checked on every conversation, the others on some.
const EVERY: readonly Policy[] = ["adaptive", "history"];
const SAMPLE = 12;

/** The prompts of a recorded conversation, one for each recorded model call. */
function* prompts(set: ContextSet, index: number, policy: Policy, maxTokens: number, every: number): Generator<View> {
  const conversation = set.conversations[index];
  if (!conversation) return;
  let standing: StandingSnapshot | null = null;
  const calls = replay(set, conversation);
  for (const [number, { snapshot, observation, turns }] of calls.entries()) {
    // The last one is the largest as a rule.
    if (!IS_WHOLE && number % every !== 0 && number !== calls.length - 1) continue;
    const options = { policy, rawMessages: 0, maxTokens, provider: "openai" as const };
    const view: View = renderView({ workflow: set.workflow, snapshot, observation, turns, standing, options });
    if (view.plan?.isNew && view.plan.choice.isKept) standing = view.plan.standing;
    yield view;
  }
}

describe("the token limit on recorded conversations", { timeout: 3_600_000 }, () => {
  test.for(FILES.map((file, index) => [file, index] as const))(
    "holds for every one of %s at 8,000",
    ([, index], { skip }) => {
      skip(missing !== null, missing ?? "");
      const set = sets[index];
      if (!set) throw new Error("no such set");
      for (const policy of EVERY) {
        for (const [number] of set.conversations.entries()) {
          for (const view of prompts(set, number, policy, 8000, 6)) expect(viewTokens(view)).toBeLessThanOrEqual(8000);
        }
      }
    },
  );

  test.for([4000, 8000, 32_000])(
    "holds at %i tokens under every policy, with the step and its moves",
    (maxTokens, { skip }) => {
      skip(missing !== null, missing ?? "");
      for (const set of sets) {
        // Those with the longest conversations among them.
        const longest = [...set.conversations.keys()]
          .toSorted((a, b) => size(set, b) - size(set, a))
          .filter((_each, rank) => IS_WHOLE || rank < SAMPLE / 2 || rank % 40 === 0)
          .slice(0, IS_WHOLE ? Infinity : SAMPLE);
        for (const policy of POLICIES) {
          for (const number of longest) {
            for (const view of prompts(set, number, policy, maxTokens, 9)) {
              expect(viewTokens(view)).toBeLessThanOrEqual(maxTokens);
              expect(placeIn(view)).toMatch(/^(?:name|step): (?!sort)\w+\n(?:[\s\S]*\n)?next: serve \|[\w| ]* done$/m);
            }
          }
        }
      }
    },
  );
});

/** What a prompt says of where the task is: at its end, else where the last step was described. */
function placeIn({ messages }: View): string {
  const text = messages.map(({ content }) => content).join("\n");
  return (
    /<now>\n([\s\S]*?)\n<\/now>/.exec(text)?.[1] ??
    text.slice(text.lastIndexOf("<step>\n")).split("\n</step>")[0]?.slice(7) ??
    ""
  );
}

function size({ conversations }: ContextSet, index: number): number {
  return conversations[index]?.messages.reduce((sum, { content }) => sum + content.length, 0) ?? 0;
}
