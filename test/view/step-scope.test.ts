import { defineWorkflow, field, renderView, viewTokens, type CacheRule, type ViewOptions } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { compile } from "../../src/compile/compile.ts";
import { defineTool } from "../../src/workflow/tool.ts";
import { POLICIES } from "../../src/view/options.ts";
import type { AnyWorkflow } from "../../src/workflow/define.ts";
import type { StandingSnapshot } from "../../src/view/scene.ts";
import type { Turn } from "../../src/view/transcript.ts";

const KINDS = ["book", "modify", "cancel", "refund"] as const;
const rules = (kind: string) => Array.from({ length: 60 }, (_each, index) => `${kind}rule${index} holds.`).join(" ");
const tool = (description: string) =>
  defineTool({ description, effect: "write", parameters: z.object({ id: z.string() }), run: () => null });

const desk = defineWorkflow({
  name: "desk",
  version: 1,
  instructions: `Help with flights. ${rules("any")} ${rules("each")} ${rules("every")}`,
  state: { checked: field(z.boolean()) },
  tools: {
    look: defineTool({ description: "Looks.", effect: "read", parameters: z.object({}), run: () => null }),
    ...Object.fromEntries(KINDS.map((kind) => [kind, tool(`Does ${kind}.`)])),
  },
  initial: "sort",
  steps: {
    sort: { run: () => ({ next: "book" }), to: ["book", "modify", "cancel", "refund"] },
    ...Object.fromEntries(
      KINDS.map((kind) => [
        kind,
        {
          instructions: rules(kind),
          tools: ["look", kind],
          to: [...KINDS, { to: "done", when: () => kind === "book", because: "not yet" }],
        },
      ]),
    ),
    done: { final: true },
  },
} as never);

interface Told {
  readonly step?: string;
  readonly turns?: readonly Turn[];
  readonly standing?: StandingSnapshot | null;
  readonly retries?: number;
}

function view(options: Partial<ViewOptions>, { step = "book", turns = [], standing = null, retries = 0 }: Told = {}) {
  const shown = renderView({
    workflow: desk as never,
    snapshot: {
      execution: { ...newExecution(desk as never), status: "running", step, retryCount: retries },
      state: { checked: null },
    },
    observation: { kind: "message", text: "Hello" },
    turns,
    standing,
    options: { policy: "adaptive", rawMessages: 0, ...options },
  });
  return { ...shown, text: shown.messages.map(({ content }) => content).join("\n") };
}

const described = (text: string) => [...text.matchAll(/^name: (\w+)$/gm)].map(([, name]) => name);
const moved = (to: string, from = "book"): readonly Turn[] => [
  { role: "user", text: "Hello", observation: { kind: "message", text: "Hello" }, sequence: 1 },
  { role: "assistant", text: `{"next":"${to}"}`, decision: { next: to }, from, to, sequence: 2 },
];

describe("which steps a prompt describes", () => {
  test("its own, where that is long enough to be cached, or nothing is", () => {
    for (const provider of ["openai", "none", "anthropic", "deepseek"] as const) {
      expect(described(view({ provider }).text)).toEqual(["book"]);
    }
  });

  test("all, where only their beginning is long enough for the provider's cache", () => {
    const first = view({ provider: "gemini" });
    expect(described(first.text)).toEqual([...KINDS]);
    expect(first.text.match(/^look\(\) – /gm)).toHaveLength(1);
    // Of many none is the one that the task is at, so that it is told.
    expect(first.text).toMatch(/<now>\nstep: book\nnext: .*\n<\/now>$/);
  });

  test("a task keeps to it: after a move the prompt begins with the same bytes, and no step is described again", () => {
    const first = view({ provider: "gemini" });
    const standing = JSON.parse(JSON.stringify(first.plan?.standing)) as StandingSnapshot;
    // Another model may have made the later prompt.
    for (const provider of ["gemini", "openai"] as const) {
      const later = view({ provider }, { step: "cancel", turns: moved("cancel"), standing });
      expect(later.plan?.isNew).toBe(false);
      expect(later.text.startsWith(first.text.slice(0, first.text.indexOf("<now>")).trimEnd())).toBe(true);
      expect(described(later.text)).toEqual([...KINDS]);
      expect(later.text).toMatch(/<now>\nstep: cancel\n/);
    }
  });

  test("what the option says, whatever that costs", () => {
    expect(described(view({ provider: "openai", stepScope: "workflow" }).text)).toEqual([...KINDS]);
    expect(described(view({ provider: "gemini", stepScope: "step" }).text)).toEqual(["book"]);
  });

  test("its own alone, where all have no room", () => {
    const tight = view({ provider: "gemini", maxTokens: 3000 });
    expect(viewTokens(view({ stepScope: "workflow" }))).toBeGreaterThan(2000);
    expect(described(tight.text)).toEqual(["book"]);
    const forced = view({ stepScope: "workflow", maxTokens: 2000 });
    expect(described(forced.text)).toEqual(["book"]);
    expect(viewTokens(forced)).toBeLessThanOrEqual(2000);
  });

  test("a rule of one's own decides as well", () => {
    const rule: CacheRule = {
      name: "mine",
      match: "prefix",
      read: 0.1,
      write: 1,
      minimum: 2000,
      step: 1,
      breakpoints: 0,
      lookBack: 0,
      mark: null,
    };
    expect(described(view({ provider: rule }).text)).toEqual([...KINDS]);
    expect(described(view({ provider: { ...rule, minimum: 100 } }).text)).toEqual(["book"]);
    // No prompt of this workflow is ever that long.
    expect(described(view({ provider: { ...rule, minimum: 1e6 } }).text)).toEqual(["book"]);
  });

  test("a wrong scope is refused by name", () => {
    expect(() => compile(desk as never, { view: { stepScope: "all" as never } })).toThrow(
      /unknown view\.stepScope "all"; there are: step, workflow/,
    );
  });
});

describe("where the task is, at the end of a prompt", () => {
  test.each(POLICIES.filter((policy) => policy !== "state" && policy !== "retrieval"))(
    "is told under %s only where it says something",
    (policy) => {
      const options = { policy, provider: "openai" } as const;
      // At the step that is described last, with all moves open and nothing tried in vain.
      const quiet = view(options, policy === "adaptive" ? {} : { turns: moved("book") });
      expect(quiet.text).not.toContain("<now>");
      expect(quiet.text).toMatch(/name: book\n[\s\S]*\nnext: book \| modify \| cancel \| refund \| done\n<\/step>/);
      // A closed move; a step that was described earlier; a decision that has not counted.
      expect(view(options, { step: "modify", turns: moved("modify") }).text).toMatch(
        /<now>\nstep: modify\nnext: book \| modify \| cancel \| refund \| \(done is closed: not yet\)\n/,
      );
      const there = [...moved("book"), ...moved("modify").slice(1), ...moved("book").slice(1)];
      if (policy !== "adaptive") expect(view(options, { turns: there }).text).toMatch(/<now>\nstep: book\n/);
      expect(view(options, { retries: 1 }).text).toMatch(/\nretries: 1\n<\/now>/);
    },
  );

  test("a step's description tells nothing of the state: what has changed is told though it names steps", () => {
    const lists = defineWorkflow({
      name: "queue",
      version: 1,
      instructions: "Work.",
      state: { queue: field(z.array(z.string())) },
      input: ["queue"],
      initial: "work",
      steps: {
        work: { to: ["modify", "refund"] },
        modify: { to: ["done"] },
        refund: { to: ["done"] },
        done: { final: true },
      },
    }) as unknown as AnyWorkflow;
    const shown = (queue: readonly string[] | null, standing: StandingSnapshot | null) =>
      renderView({
        workflow: lists,
        snapshot: { execution: { ...newExecution(lists), status: "running" }, state: { queue } },
        observation: { kind: "message", text: "Hello" },
        turns: [],
        standing,
        options: { policy: "adaptive", rawMessages: 0, provider: "vllm" },
      });
    const first = shown(null, null);
    const later = shown(["modify", "refund"], first.plan?.standing ?? null);
    expect(later.messages.at(-1)?.content).toContain("queue: [modify, refund]");
  });

  test("no prompt ends with the model's own words", () => {
    const shown = view({ provider: "openai" }, { turns: moved("book") });
    expect(shown.messages.at(-1)?.role).toBe("user");
  });

  test("of very many moves only the end of the prompt tells", () => {
    const names = Array.from({ length: 20 }, (_each, index) => `step${index}`);
    const wide = defineWorkflow({
      name: "wide",
      version: 1,
      instructions: "Go.",
      state: {},
      initial: "step0",
      steps: { ...Object.fromEntries(names.map((name) => [name, { to: [...names, "done"] }])), done: { final: true } },
    } as never) as unknown as AnyWorkflow;
    const shown = renderView({
      workflow: wide,
      snapshot: { execution: { ...newExecution(wide), status: "running" }, state: {} },
      observation: { kind: "message", text: "Hello" },
      turns: [],
      options: { policy: "history", rawMessages: 0 },
    });
    const text = shown.messages.map(({ content }) => content).join("\n");
    expect(text.match(/^next: step/gm)).toHaveLength(1);
    expect(text).toMatch(/<now>\nstep: step0\nnext: step0 \| /);
  });

  test("after going back to an earlier step adaptive tells which", () => {
    const standing = view({ provider: "vllm" }).plan?.standing ?? null;
    const turns = [...moved("modify"), { ...moved("book", "modify")[1], sequence: 3 }] as readonly Turn[];
    const back = view({ provider: "vllm" }, { turns, standing });
    expect(back.plan?.isNew).toBe(false);
    expect(described(back.text)).toEqual(["book", "modify"]);
    expect(back.text).toMatch(/<now>\nstep: book\n/);
  });
});
