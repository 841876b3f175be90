import {
  CACHE_RULES,
  defineTool,
  defineWorkflow,
  field,
  renderView,
  type Observation,
  type ViewOptions,
} from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { emptyState, type State } from "../../src/state/fields.ts";
import type { StandingSnapshot } from "../../src/view/scene.ts";
import { transcript, type TranscriptEvent } from "../../src/view/transcript.ts";

const orders = defineWorkflow({
  name: "orders",
  version: 1,
  state: {
    orders: field(z.record(z.string(), z.unknown())).runtimeOnly(),
    plan: field(z.string()),
    note: field(z.string()),
  },
  tools: {
    look: defineTool({
      description: "Looks an order up.",
      effect: "read",
      parameters: z.object({ id: z.string() }),
      run: () => null,
    }),
  },
  onResult: { look: () => ({}) },
  initial: "work",
  steps: { work: { tools: ["look"], writes: ["plan", "note"], to: ["work", "done"] }, done: { final: true } },
});

const order = (id: string) => ({ order_id: id, city: `the city of ${id}`, items: [`item ${id}`, "another item"] });
const plan = `${"Look at every order, then tell what was bought where. ".repeat(4)}End.`;
const looked = (number: number, id: string): readonly TranscriptEvent[] => {
  const results = [{ id: `${number}.0`, tool: "look", status: "ok" as const, value: order(id) }];
  const decision = { calls: [{ tool: "look", args: { id } }], ...(number === 1 ? { patch: { plan } } : {}) };
  return [
    { kind: "decision", data: { to: "work", decision }, sequence: 2 * number },
    { kind: "result", data: { to: "work", observation: { kind: "results", results } }, sequence: 2 * number + 1 },
  ];
};
const started: TranscriptEvent = { kind: "started", data: { input: { message: "hello" } }, sequence: 1 };
const events = [started, ...looked(1, "W111"), ...looked(2, "W222")];
const state: State = { orders: { W111: order("W111"), W222: order("W222") }, plan };
const CACHED = { ...CACHE_RULES.vllm, step: 1 };

function view(
  log: readonly TranscriptEvent[],
  values: State,
  standing: StandingSnapshot | null,
  options: Partial<ViewOptions> = {},
) {
  const turns = transcript(log);
  const observation: Observation | null = turns.at(-1)?.observation ?? null;
  const decisions = turns.filter(({ role }) => role === "assistant").length;
  const snapshot = {
    execution: { ...newExecution(orders), status: "running" as const, decisions },
    state: { ...emptyState(orders.state), ...values },
  };
  const all = { policy: "adaptive" as const, rawMessages: 0, provider: CACHED, ...options };
  const shown = renderView({ workflow: orders, snapshot, observation, turns, options: all, standing });
  const text = shown.messages.map(({ content }) => content).join("\n");
  return { plan: shown.plan, text, block: /<state[^>]*>\n([\s\S]*?)\n<\/state>/.exec(text)?.[1] ?? "" };
}

test("a snapshot does not repeat what has just come back and stands right below it", () => {
  const { block, text } = view(events, state, null);
  expect(block).toContain("W111");
  expect(block).not.toContain("W222");
  expect(block).toContain("not set: note\nthe rest stands below: orders");
  expect(text.match(/the city of W222/g)).toHaveLength(1);
});

test("what a decision has written is always in it, whether the decision is shown or not", () => {
  const { block, text } = view(events.slice(0, 3), { ...state, orders: { W111: order("W111") } }, null);
  expect(text).toContain(JSON.stringify({ plan }).slice(1, -1));
  expect(block).toContain(`plan: ${JSON.stringify(plan)}`);
});

test("later prompts begin with the same bytes, from the snapshot as the log keeps it", () => {
  const first = view(events, state, null);
  const kept = JSON.parse(JSON.stringify(first.plan?.standing)) as StandingSnapshot;
  const later = view(
    [...events, ...looked(3, "W333")],
    { ...state, orders: { ...(state.orders as object), W333: order("W333") } },
    kept,
  );
  expect(later.plan?.isNew).toBe(false);
  const stable = first.text.replace(/<now>\n[\s\S]*$/, "").trimEnd();
  expect(later.text.startsWith(stable)).toBe(true);
  expect(/<now>\n[\s\S]*$/.exec(later.text)?.[0] ?? "").not.toContain("W222");
});

test("it shows the whole state where nothing is cached, and where turns may have to go", () => {
  expect(view(events, state, null, { provider: "none" }).block).toContain("the city of W222");
  const long = `${"word ".repeat(900)}W222`;
  const crowded = events.map(
    (event) => JSON.parse(JSON.stringify(event).replaceAll("another item", long)) as TranscriptEvent,
  );
  const small = view(crowded, state, null, { maxTokens: 700 });
  expect(small.block).toContain("the city of W222");
});

test("what a decision has chosen from what stands below is said, whatever that shows", () => {
  const shop = defineWorkflow({
    name: "shop",
    version: 1,
    state: { chosen: field(z.object({ article: z.string() })), offers: field(z.array(z.string())).runtimeOnly() },
    tools: orders.tools,
    onResult: { look: () => ({}) },
    initial: "work",
    steps: { work: { tools: ["look"], writes: ["chosen"], to: ["work", "done"] }, done: { final: true } },
  });
  const offers = ["a pound of assam", "a pound of darjeeling", "a pound of ceylon"];
  const results = [{ id: "2.0", tool: "look", status: "ok" as const, value: offers }];
  const turns = transcript([
    { kind: "decision", data: { to: "work", decision: { patch: { chosen: { article: offers[0] } } } }, sequence: 2 },
    { kind: "decision", data: { to: "work", decision: { calls: [{ tool: "look", args: { id: "x" } }] } }, sequence: 3 },
    { kind: "result", data: { to: "work", observation: { kind: "results", results } }, sequence: 4 },
  ]);
  const options = { policy: "adaptive" as const, rawMessages: 0, provider: CACHED };
  const snapshot = {
    execution: { ...newExecution(shop), status: "running" as const, decisions: 2 },
    state: { chosen: { article: offers[0] }, offers },
  };
  const shown = renderView({ workflow: shop, snapshot, observation: { kind: "results", results }, turns, options });
  const block = /<state[^>]*>\n([\s\S]*?)\n<\/state>/.exec(
    shown.messages.map(({ content }) => content).join("\n"),
  )?.[1];
  expect(block).toContain("assam");
  expect(block).toContain("the rest stands below: offers");
});
