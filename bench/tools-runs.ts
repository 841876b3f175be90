import { setTimeout as sleep } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { z } from "zod";
import { statecard } from "./compiled.ts";
import { batchesOf, type CallGraph } from "./tools-graphs.ts";

const { compile, defineTool, defineWorkflow, planField, sqliteStore } = statecard;

/** Longer than any chain of a graph, so that whatever waits for it for no reason is seen to do so. */
export const HANGS_FOR_MS = 700;

/** When a call's body ran, in milliseconds of one clock. */
interface Span {
  readonly position: number;
  readonly from: number;
  readonly to: number;
}

/** What one run of a graph was like. */
export interface GraphRun {
  /** From the first body's start to the last one's end. */
  readonly callsMs: number;
  /** From the model's answer to its next question: journal, commits and the next prompt included. */
  readonly decisionMs: number;
  readonly spans: readonly Span[];
  /** How many ended with each status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Answers with a plan, then concludes, and notes when. */
class PlanningModel extends BaseChatModel {
  private readonly calls: readonly object[];
  answeredAt = 0;
  askedAgainAt = 0;

  constructor(calls: readonly object[]) {
    super({});
    this.calls = calls;
  }

  override _llmType(): string {
    return "planning";
  }

  override async _generate() {
    const isFirst = this.answeredAt === 0;
    if (!isFirst) this.askedAgainAt = performance.now();
    const text = JSON.stringify(isFirst ? { calls: this.calls } : { next: "done" });
    if (isFirst) this.answeredAt = performance.now();
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

const parameters = z.object({ position: z.number(), ms: z.number(), uses: z.array(z.number()) });
const result = z.object({ value: z.number(), keys: z.array(z.string()) });

/** Runs plans through a compiled graph, each call written down before and after it. */
export class PlanRunner {
  private readonly spans: Span[] = [];
  private readonly store: ReturnType<typeof sqliteStore>;
  private readonly workflow;
  private tasks = 0;

  constructor(file: string, limit: number) {
    this.store = sqliteStore(file);
    const run = async ({ position, ms }: z.infer<typeof parameters>) => {
      const from = performance.now();
      await sleep(ms);
      this.spans.push({ position, from, to: performance.now() });
      return { value: position, keys: KEYS };
    };
    const look = defineTool({ description: "Looks something up.", parameters, result, effect: "read", run });
    const write = defineTool({
      description: "Writes something.",
      parameters: parameters.extend({ key: z.string() }),
      result,
      effect: "write",
      conflicts: ({ key }) => key,
      run,
    });
    const hang = defineTool({
      description: "Never ends.",
      parameters,
      result,
      effect: "read",
      timeoutMs: HANGS_FOR_MS,
      // A server that neither answers nor hears.
      run: () => new Promise<never>(() => {}),
    });
    this.workflow = defineWorkflow({
      name: "calls",
      version: 1,
      state: { plan: planField() },
      tools: { look, write, hang },
      parallelCalls: limit,
      initial: "work",
      steps: {
        work: { plan: { into: "plan", maxReplans: 0 }, tools: ["look", "write", "hang"], to: ["done"] },
        done: { final: true },
      },
    });
  }

  /** @param hanging the position of a call that never ends; none unless set. */
  async run(graph: CallGraph, hanging?: number): Promise<GraphRun> {
    const model = new PlanningModel(callsOf(graph, hanging));
    const compiled = compile(this.workflow, { store: this.store, model });
    this.spans.length = 0;
    const config = { configurable: { thread_id: `task-${this.tasks++}` } };
    const { execution, plan } = await compiled.invoke({ message: "go" }, config);
    if (execution.status !== "completed" || plan?.calls.length !== graph.length) {
      throw new Error(`a run ended ${execution.status} with ${plan?.calls.length} of ${graph.length} calls`);
    }
    const spans = [...this.spans];
    const statuses: Record<string, number> = {};
    for (const { status } of plan.calls) statuses[status] = (statuses[status] ?? 0) + 1;
    return { callsMs: makespan(spans), decisionMs: model.askedAgainAt - model.answeredAt, spans, statuses };
  }
}

const KEYS = ["one", "two", "three"];

/** The plan as a model writes it. Where a call uses results, its key is known from one of them only. */
function callsOf(graph: CallGraph, hanging?: number): readonly object[] {
  return graph.map(({ ms, needs, key }, position) => {
    const uses = needs.map((other) => ({ $ref: `c${other + 1}.value` }));
    const from = key === null || needs[0] === undefined ? key : { $ref: `c${needs[0] + 1}.keys.${KEYS.indexOf(key)}` };
    const tool = position === hanging ? "hang" : key === null ? "look" : "write";
    return { tool, args: { position, ms, uses, ...(key === null ? {} : { key: from }) } };
  });
}

/** Runs the same calls as bare promises, each as soon as it can: without a limit, and with nothing written down. */
export async function runBare(graph: CallGraph): Promise<number> {
  const from = performance.now();
  const known: Promise<unknown>[] = [];
  const ended: Promise<void>[] = [];
  for (const [position, { ms, needs, key }] of graph.entries()) {
    const needed = Promise.all(needs.flatMap((other) => ended[other] ?? []));
    const before = graph.slice(0, position).flatMap((other, index) => {
      if (key === null || other.key === null) return [];
      return (other.key === key ? ended : known)[index] ?? [];
    });
    known.push(needed);
    ended.push(Promise.all([needed, ...before]).then(() => sleep(ms)));
  }
  await Promise.all(ended);
  return performance.now() - from;
}

/** Runs the same calls level by level, with nothing written down: the naive way, at its best. */
export async function runBatches(graph: CallGraph, limit: number): Promise<number> {
  const from = performance.now();
  for (const batch of batchesOf(graph, limit)) {
    await Promise.all(batch.map((position) => sleep(graph[position]?.ms ?? 0)));
  }
  return performance.now() - from;
}

/** Runs the same calls one after the other. */
export async function runSequence(graph: CallGraph): Promise<number> {
  const from = performance.now();
  for (const { ms } of graph) await sleep(ms);
  return performance.now() - from;
}

function makespan(spans: readonly Span[]): number {
  return Math.max(...spans.map(({ to }) => to)) - Math.min(...spans.map(({ from }) => from));
}

/** The same calls, each as long as it really took. */
export function asRun(graph: CallGraph, spans: readonly Span[]): CallGraph {
  const took = new Map(spans.map(({ position, from, to }) => [position, to - from]));
  return graph.map((call, position) => ({ ...call, ms: took.get(position) ?? call.ms }));
}

/** The most calls that ran at once. */
export function concurrency(spans: readonly Span[]): number {
  return Math.max(0, ...spans.map(({ from: at }) => spans.filter(({ from, to }) => from <= at && at < to).length));
}

/** Calls that ran beside, or before, an earlier one with the same key. */
export function keyViolations(graph: CallGraph, spans: readonly Span[]): number {
  const byPosition = new Map(spans.map((span) => [span.position, span]));
  let violations = 0;
  for (const { position, from } of spans) {
    const key = graph[position]?.key ?? null;
    if (key === null) continue;
    for (const [other, call] of graph.slice(0, position).entries()) {
      if (call.key === key && (byPosition.get(other)?.to ?? 0) > from) violations++;
    }
  }
  return violations;
}
