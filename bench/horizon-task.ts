import { statSync } from "node:fs";
import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { z } from "zod";
import { countTokens } from "../src/internal/tokens.ts";
import { statecard, testing } from "./compiled.ts";
import { median } from "./measure.ts";
import { randomFrom, randomText } from "./random.ts";

/**
 * One stretch of a long task, in a process of its own: from one length to the next, or one answer and the
 * decision after it. Prints what it measured.
 */
export interface Stretch {
  /** Tokens (o200k) of the last prompts of the stretch: their mean, and those of the longest of all. */
  readonly promptTokens: number;
  readonly largestPrompt: number;
  readonly stateBytes: number;
  readonly fileBytes: number;
  /** Milliseconds between the last model calls: the median. */
  readonly msPerDecision: number;
  /** Milliseconds from opening the database to the next pause. */
  readonly ms: number;
}

const LAST = 50;
const TASK = { configurable: { thread_id: "task" } };
const { compile, defineTool, defineWorkflow, field, sqliteStore } = statecard;

/** What the gauge shows at a turn: the same for both sides. */
function reading(turn: number): string {
  return `turn ${turn}: pressure ${100 + (turn % 7)}, valve ${turn % 2 === 0 ? "open" : "shut"}, ${randomText(120, randomFrom(turn + 1))}`;
}

const watching = defineWorkflow({
  name: "watching",
  version: 1,
  goal: "Watch a gauge and keep its latest reading and its peak.",
  input: ["plant"],
  state: {
    plant: field(z.string()).describe("what is watched"),
    turn: field(z.number()).describe("how often the gauge was read"),
    pressure: field(z.number()).describe("the latest reading"),
    peak: field(z.number()).describe("the highest reading"),
  },
  tools: {
    read_gauge: defineTool({
      description: "Reads the gauge.",
      parameters: z.object({ turn: z.number() }),
      effect: "read",
      run: ({ turn }) => reading(turn),
    }),
  },
  initial: "work",
  maxDecisions: 1_000_000,
  steps: {
    work: {
      to: ["work", "done"],
      tools: ["read_gauge"],
      writes: ["turn", "pressure", "peak"],
      maxDecisions: 1_000_000,
      instructions: "Read the gauge, again and again.",
    },
    done: { final: true },
  },
});

if (process.argv[2] === "ours" || process.argv[2] === "messages") {
  const [side, file = "", from = "0", until = "0"] = process.argv.slice(2);
  const stretch = side === "ours" ? ours : messages;
  process.stdout.write(JSON.stringify(await stretch(file, Number(from), Number(until))));
}

async function ours(file: string, from: number, until: number): Promise<Stretch> {
  const at: number[] = [];
  const decide = (turn: number) => () => {
    at.push(performance.now());
    const patch = { turn, pressure: 100 + (turn % 7), peak: 106 };
    // At the end of a stretch somebody is asked, and the process ends.
    return turn >= until ? { patch, ask: "go on?" } : { patch, calls: [{ tool: "read_gauge", args: { turn } }] };
  };
  const script = Array.from({ length: until - from }, (_, index) => decide(from + index + 1));
  const model = testing.scriptedModel(script);
  const started = performance.now();
  const store = sqliteStore(file);
  const graph = compile(watching, { store, model });
  const result = await graph.invoke(from === 0 ? { plant: randomText(400, randomFrom(7)) } : { message: "yes" }, TASK);
  const ms = performance.now() - started;
  const { plant, turn, pressure, peak } = result;
  if (turn !== until) throw new Error(`the task stands at ${turn} instead of ${until}`);
  await store.close();
  return measured(file, { plant, turn, pressure, peak }, model.prompts, at, ms);
}

/** The usual graph that keeps its messages. */
async function messages(file: string, from: number, until: number): Promise<Stretch> {
  const at: number[] = [];
  const prompts: string[] = [];
  const textOf = (all: readonly BaseMessage[]) => all.map((message) => message.text).join("\n");
  let turn = from;
  const saver = SqliteSaver.fromConnString(file);
  const started = performance.now();
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("agent", ({ messages: all }) => {
      at.push(performance.now());
      prompts.push(textOf(all));
      turn++;
      const asked = new AIMessage(JSON.stringify({ calls: [{ tool: "read_gauge", args: { turn } }] }));
      return { messages: [asked, new HumanMessage(reading(turn))] };
    })
    .addEdge(START, "agent")
    .addConditionalEdges("agent", () => (turn >= until ? "end" : "agent"), { agent: "agent", end: "__end__" })
    .compile({ checkpointer: saver });
  const said = new HumanMessage(from === 0 ? randomText(400, randomFrom(7)) : "yes");
  const result = await graph.invoke({ messages: [said] }, { ...TASK, durability: "sync", recursionLimit: 1_000_000 });
  const ms = performance.now() - started;
  saver.db.pragma("wal_checkpoint(TRUNCATE)");
  saver.db.close();
  return measured(
    file,
    result.messages.map((message) => message.text),
    prompts,
    at,
    ms,
  );
}

function measured(
  file: string,
  state: unknown,
  prompts: readonly string[],
  at: readonly number[],
  ms: number,
): Stretch {
  const last = prompts.slice(-LAST).map((prompt) => countTokens(prompt));
  const gaps = at.slice(1).map((time, index) => time - (at[index] ?? time));
  return {
    promptTokens: last.reduce((sum, tokens) => sum + tokens, 0) / Math.max(1, last.length),
    largestPrompt: countTokens(prompts.reduce((most, prompt) => (prompt.length > most.length ? prompt : most), "")),
    stateBytes: Buffer.byteLength(JSON.stringify(state)),
    fileBytes: statSync(file).size,
    msPerDecision: median(gaps.slice(-LAST)),
    ms,
  };
}
