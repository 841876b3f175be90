import {
  defineTool,
  defineWorkflow,
  field,
  isWorkflowError,
  renderView,
  viewTokens,
  type ViewOptions,
} from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution, type CallResult, type Observation } from "../../src/state/execution.ts";
import { emptyState } from "../../src/state/fields.ts";
import { POLICIES } from "../../src/view/options.ts";
import { transcript, type TranscriptEvent } from "../../src/view/transcript.ts";

const reading = defineWorkflow({
  name: "reading",
  version: 1,
  goal: "Read files.",
  state: { summary: field(z.string()) },
  tools: {
    read: defineTool({
      description: "Reads a file.",
      effect: "read",
      parameters: z.object({ path: z.string() }),
      run: () => "",
    }),
  },
  initial: "look",
  steps: { look: { tools: ["read"], writes: ["summary"], to: ["look", "done"] }, done: { final: true } },
});

const words = (count: number, from: string) => Array.from({ length: count }, (_, index) => `${from}${index}`).join(" ");
const result = (number: number, value: unknown): CallResult => ({
  id: `${number}.0`,
  tool: "read",
  status: "ok",
  value,
});

/** A task that has read so many files, each with so many words. */
function task(rounds: number, size: number): readonly TranscriptEvent[] {
  const events: TranscriptEvent[] = [{ kind: "started", data: { input: { message: "OPENING" } }, sequence: 1 }];
  for (let number = 1; number <= rounds; number++) {
    const calls = [{ tool: "read", args: { path: `file${number}.txt` } }];
    events.push({ kind: "decision", data: { decision: { calls }, to: "look" }, sequence: events.length + 1 });
    const observation: Observation = { kind: "results", results: [result(number, words(size, `w${number}x`))] };
    events.push({ kind: "result", data: { observation, to: "look" }, sequence: events.length + 1 });
  }
  return events;
}

function view(
  events: readonly TranscriptEvent[],
  options: Partial<ViewOptions> & Pick<ViewOptions, "policy">,
  summary = "short",
) {
  const turns = transcript(events);
  const observation = turns.at(-1)?.observation ?? null;
  const snapshot = {
    execution: { ...newExecution(reading), status: "running" as const, recent: ["1. look: called read"] },
    state: { ...emptyState(reading.state), summary },
  };
  return renderView({ workflow: reading, snapshot, observation, turns, options: { rawMessages: 0, ...options } });
}

const textOf = (shown: ReturnType<typeof view>) => shown.messages.map(({ content }) => content).join("\n");

describe.each(POLICIES)("the hard limit under %s", (policy) => {
  test.each([600, 1000, 2000, 4000])("%i tokens hold, and step, moves and the latest observation stay", (maxTokens) => {
    for (const [rounds, size] of [
      [1, 5],
      [40, 20],
      [30, 300],
      [2, 20_000],
    ] as const) {
      const shown = view(task(rounds, size), { policy, maxTokens });
      expect(viewTokens(shown)).toBeLessThanOrEqual(maxTokens);
      expect(textOf(shown)).toContain("\nnext: look | done\n");
      expect(textOf(shown)).toContain(`w${rounds}x0 `);
      expect(textOf(shown)).toContain("tools:\nread(path) – Reads a file.\n");
    }
  });

  test("K17: no results without their decision, and no decision without its results", () => {
    for (let maxTokens = 500; maxTokens < 3000; maxTokens += 130) {
      const shown = view(task(25, 60), { policy, maxTokens, keepMessages: 5 });
      const text = textOf(shown);
      const decided = [...text.matchAll(/"path":"file(\d+)\.txt"/g)].map(([, number]) => number);
      const came = [...text.matchAll(/(?:^|ok: ")w(\d+)x0 /gm)].map(([, number]) => number);
      expect(decided.filter((number) => !came.includes(number))).toEqual([]);
      // Without a conversation the latest results stand alone.
      expect(came.filter((number) => !decided.includes(number))).toEqual(policy === "state" ? ["25"] : []);
    }
  });

  test("where even that has no room, the error says which part has how many tokens", () => {
    const attempt = () => view(task(3, 10), { policy, maxTokens: 120 });
    expect(attempt).toThrow(/needs more than 120 tokens \(instructions \d+, .*\); raise view\.maxTokens/);
    try {
      attempt();
    } catch (error) {
      expect(isWorkflowError(error, "CONTEXT_TOO_SMALL")).toBe(true);
    }
  });

  test("a state that has no room is shortened, never its fields' names", () => {
    const shown = view(task(2, 10), { policy, maxTokens: 900 }, words(4000, "s"));
    expect(viewTokens(shown)).toBeLessThanOrEqual(900);
    if (["state", "adaptive", "structured", "retrieval"].includes(policy)) {
      expect(textOf(shown)).toMatch(/summary: ?"s0 s1 [\s\S]*characters left out/);
    }
  });
});

test("the opening message stays, the oldest turns after it go first, and what was left out is said", () => {
  const shown = view(task(40, 60), { policy: "history", maxTokens: 3000 });
  const text = textOf(shown);
  expect(text).toContain("OPENING");
  expect(text).toMatch(/\(\d+ messages left out\)/);
  const kept = [...text.matchAll(/^w(\d+)x0 /gm)].map(([, number]) => Number(number));
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 41 - kept.length + index));
});

test("the prompt keeps its beginning for some turns after something was left out", () => {
  const beginnings = Array.from({ length: 12 }, (_, extra) => {
    const text = textOf(view(task(40 + extra, 60), { policy: "history", maxTokens: 3000 }));
    return /\(\d+ messages left out\)/.exec(text)?.[0];
  });
  expect(new Set(beginnings).size).toBeLessThan(beginnings.length);
});

test("K15: a result of 700,000 characters is cut once, from the whole, and says where all of it is", () => {
  const observation: Observation = {
    kind: "results",
    results: [{ ...result(1, "x".repeat(700_000)), artifact: "a-1" }],
  };
  const events = [...task(0, 0), { kind: "result", data: { observation }, sequence: 2 }];
  for (const maxTokens of [600, 2000, 8000]) {
    const text = textOf(view(events, { policy: "history", maxTokens }));
    expect(text.match(/characters left out/g)).toHaveLength(1);
    expect(text).toContain("whole: artifact a-1, readArtifact or searchArtifact");
  }
});
