import { AIMessage, HumanMessage, SystemMessage, type BaseMessage } from "@langchain/core/messages";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Command, END, interrupt, MemorySaver, START, StateGraph, StateSchema } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Database from "better-sqlite3";
import { z } from "zod";
import { statecard, testing } from "./compiled.ts";
import type { Run, StoredBytes } from "./measure.ts";

/** How SQLite syncs; both sides always the same. */
export type Synchronous = "normal" | "full";

/** What one run is made with. */
export interface Setting {
  /** The state: a text of this many bytes, and a counter. */
  readonly document: string;
  readonly decisions: number;
  /** Gives the path of a file that does not exist yet. */
  readonly newFile: () => string;
}

const { compile, defineTool, defineWorkflow, field, sqliteStore } = statecard;
const TASK = { configurable: { thread_id: "task" } };
const BARE = { ...TASK, durability: "sync" as const, recursionLimit: 1_000_000 };
const MANY = 1_000_000;

/** What the scripted model answers in the decision with this number. */
function scriptedAnswer(number: number, of: number): string {
  return JSON.stringify({ because: "count on", patch: { count: number }, next: number >= of ? "done" : "work" });
}

function scripted(decisions: number): BaseChatModel {
  return testing.scriptedModel(Array.from({ length: decisions }, (_, index) => scriptedAnswer(index + 1, decisions)));
}

const stateFields = {
  document: field(z.string()).describe("what the work is about"),
  count: field(z.number()).describe("how far the work is"),
};
// Large rather than Infinity: the limits are checked in every decision, as they are in real workflows.
const definition = {
  version: 1,
  input: ["document"],
  state: stateFields,
  initial: "work",
  maxDecisions: MANY,
} as const;
const done = { final: true } as const;

function countingWorkflow(decisions: number) {
  return defineWorkflow({
    ...definition,
    name: "counting",
    steps: {
      work: {
        to: ["work", "done"],
        maxDecisions: MANY,
        run: ({ count }) => {
          const next = (count ?? 0) + 1;
          return { patch: { count: next }, next: next >= decisions ? "done" : "work" };
        },
      },
      done,
    },
  });
}

const countTool = defineTool({
  description: "Counts on.",
  parameters: z.object({ from: z.number() }),
  effect: "write",
  run: ({ from }) => from + 1,
});

/** Each decision calls a tool that changes the world, so each call is written down before and after it. */
function callingWorkflow(decisions: number) {
  return defineWorkflow({
    ...definition,
    name: "calling",
    tools: { countTool },
    steps: {
      work: {
        to: ["work", "done"],
        tools: ["countTool"],
        maxDecisions: MANY,
        run: ({ count }) => {
          const next = (count ?? 0) + 1;
          const calls = [{ tool: "countTool", args: { from: count ?? 0 } }];
          return { calls, patch: { count: next }, next: next >= decisions ? "done" : "work" };
        },
      },
      done,
    },
  });
}

const modelWorkflow = defineWorkflow({
  ...definition,
  name: "counting-by-model",
  goal: "Count until the work is done.",
  steps: {
    work: { to: ["work", "done"], writes: ["count"], maxDecisions: MANY, instructions: "Raise the count by one." },
    done,
  },
});

const askingWorkflow = defineWorkflow({
  ...definition,
  name: "asking",
  steps: {
    work: {
      to: ["work", "done"],
      maxDecisions: MANY,
      run: ({ count }) => ({ patch: { count: (count ?? 0) + 1 }, ask: "go on?" }),
    },
    done,
  },
});

const bareState = new StateSchema({
  document: z.string().nullable().default(null),
  count: z.number().default(0),
});
type BareState = { document: string | null; count: number };

/** A graph of one node that loops to itself, as one would write it without a framework around it. */
function bareLoop(
  decisions: number,
  checkpointer: BaseCheckpointSaver | undefined,
  decide: (state: BareState) => { count: number } | Promise<{ count: number }>,
) {
  return new StateGraph(bareState)
    .addNode("work", decide)
    .addEdge(START, "work")
    .addConditionalEdges("work", ({ count }) => (count >= decisions ? "end" : "work"), { work: "work", end: END })
    .compile(checkpointer ? { checkpointer } : {});
}

const bareCallState = new StateSchema({
  document: z.string().nullable().default(null),
  count: z.number().default(0),
  call: z.object({ tool: z.string(), from: z.number() }).nullable().default(null),
  result: z.number().nullable().default(null),
});

/** The usual pair of an agent and its tools. A call is on record from the agent's step on, and runs again after a crash. */
function bareAgentAndTools(decisions: number, checkpointer: BaseCheckpointSaver) {
  return new StateGraph(bareCallState)
    .addNode("agent", ({ count }) => ({ count: count + 1, call: { tool: "countTool", from: count } }))
    .addNode("tools", ({ call }) => ({ result: (call?.from ?? 0) + 1, call: null }))
    .addEdge(START, "agent")
    .addConditionalEdges("agent", ({ call }) => (call ? "tools" : "end"), { tools: "tools", end: END })
    .addConditionalEdges("tools", ({ count }) => (count >= decisions ? "end" : "agent"), { agent: "agent", end: END })
    .compile({ checkpointer });
}

const countOn = ({ count }: BareState) => ({ count: count + 1 });

function sqliteSaver(file: string, synchronous: Synchronous): SqliteSaver {
  const database = new Database(file, { timeout: 5000 });
  const saver = new SqliteSaver(database);
  // The first call makes the tables, which is not part of a decision.
  (saver as unknown as { setup: () => void }).setup();
  database.pragma(`synchronous = ${synchronous}`);
  // As ours has it; with SQLite's own 1,000 this side would be slower.
  database.pragma("wal_autocheckpoint = 4000");
  return saver;
}

async function openedStore(file: string, synchronous: Synchronous) {
  const store = sqliteStore(file, { synchronous });
  await store.head("none");
  return store;
}

export async function ours(setting: Setting, synchronous: Synchronous): Promise<Run> {
  const { document, decisions } = setting;
  const file = setting.newFile();
  const graph = compile(countingWorkflow(decisions), { store: await openedStore(file, synchronous) });
  return {
    work: async () => expectCount(decisions, await graph.invoke({ document }, TASK)),
    stored: () => storedBytes(file),
  };
}

export async function oursWithCalls(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const file = setting.newFile();
  const graph = compile(callingWorkflow(decisions), { store: await openedStore(file, "normal") });
  return {
    work: async () => expectCount(decisions, await graph.invoke({ document }, TASK)),
    stored: () => storedBytes(file),
  };
}

export async function bareWithCalls(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const file = setting.newFile();
  const graph = bareAgentAndTools(decisions, sqliteSaver(file, "normal"));
  return {
    work: async () => expectCount(decisions, await graph.invoke({ document }, BARE)),
    stored: () => storedBytes(file),
  };
}

export async function oursInMemory(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const graph = compile(countingWorkflow(decisions));
  return { work: async () => expectCount(decisions, await graph.invoke({ document }, TASK)) };
}

export async function oursWithModel(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const file = setting.newFile();
  const store = await openedStore(file, "normal");
  const graph = compile(modelWorkflow, { store, model: scripted(decisions) });
  return {
    work: async () => expectCount(decisions, await graph.invoke({ document }, TASK)),
    stored: () => storedBytes(file),
  };
}

/** Many tasks of one decision each. */
export async function oursStarted(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const graph = compile(countingWorkflow(1), { store: await openedStore(setting.newFile(), "normal") });
  return {
    work: () => repeat(decisions, async (id) => expectCount(1, await graph.invoke({ document }, taskNamed(id)))),
  };
}

/** One task that asks a question in each decision. */
export async function oursAnswered(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const graph = compile(askingWorkflow, { store: await openedStore(setting.newFile(), "normal") });
  await graph.invoke({ document }, TASK);
  return {
    work: () =>
      repeat(decisions, async (number) => expectCount(number + 2, await graph.invoke({ message: "yes" }, TASK))),
  };
}

export async function bare(setting: Setting, checkpointer: Synchronous | "memory" | "none"): Promise<Run> {
  const { document, decisions } = setting;
  const run = (saver: BaseCheckpointSaver | undefined): Run => {
    const graph = bareLoop(decisions, saver, countOn);
    return { work: async () => expectCount(decisions, await graph.invoke({ document }, BARE)) };
  };
  if (checkpointer === "none") return run(undefined);
  if (checkpointer === "memory") return run(new MemorySaver());
  const file = setting.newFile();
  return { ...run(sqliteSaver(file, checkpointer)), stored: () => storedBytes(file) };
}

export async function bareWithModel(setting: Setting, prompt: readonly BaseMessage[]): Promise<Run> {
  const { document, decisions } = setting;
  const file = setting.newFile();
  const model = scripted(decisions);
  const ask = async () => {
    const answer = await model.invoke([...prompt]);
    return (JSON.parse(answer.text) as { patch: { count: number } }).patch;
  };
  const graph = bareLoop(decisions, sqliteSaver(file, "normal"), ask);
  return {
    work: async () => expectCount(decisions, await graph.invoke({ document }, BARE)),
    stored: () => storedBytes(file),
  };
}

export async function bareStarted(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const graph = bareLoop(1, sqliteSaver(setting.newFile(), "normal"), countOn);
  return {
    work: () =>
      repeat(decisions, async (id) => expectCount(1, await graph.invoke({ document }, { ...BARE, ...taskNamed(id) }))),
  };
}

/** The shortest graph that waits for a person in each round, with the decision kept before it asks. */
export async function bareAnswered(setting: Setting): Promise<Run> {
  const { document, decisions } = setting;
  const graph = new StateGraph(bareState)
    .addNode("work", countOn)
    .addNode("ask", () => {
      interrupt("go on?");
      return {};
    })
    .addEdge(START, "work")
    .addEdge("work", "ask")
    .addEdge("ask", "work")
    .compile({ checkpointer: sqliteSaver(setting.newFile(), "normal") });
  await graph.invoke({ document }, BARE);
  return {
    work: () =>
      repeat(decisions, async (number) =>
        expectCount(number + 2, await graph.invoke(new Command({ resume: "yes" }), BARE)),
      ),
  };
}

/** What no library can go below: one transaction a decision that writes this many bytes as one row. */
export async function floor(setting: Setting, synchronous: Synchronous, bytes: number): Promise<Run> {
  const file = setting.newFile();
  const database = new Database(file);
  database.pragma("journal_mode = wal");
  database.pragma(`synchronous = ${synchronous}`);
  database.exec("create table decisions (number integer primary key, body blob)");
  const insert = database.prepare("insert into decisions values (?, ?)");
  const write = database.transaction((number: number) => insert.run(number, Buffer.alloc(bytes, number % 256)));
  return {
    work: async () => {
      for (let number = 0; number < setting.decisions; number++) write.immediate(number);
    },
    stored: () => storedBytes(file),
  };
}

/** The mean bytes that one decision of ours hands to SQLite: checkpoint, event, and head. */
export async function writtenBytes(setting: Setting): Promise<number> {
  const file = setting.newFile();
  const graph = compile(countingWorkflow(setting.decisions), { store: await openedStore(file, "normal") });
  await graph.invoke({ document: setting.document }, TASK);
  const database = new Database(file, { readonly: true });
  const mean = (sql: string) => Number(database.prepare(sql).pluck().get());
  const bytes =
    mean("select avg(length(checkpoint) + length(metadata)) from checkpoints") +
    mean("select avg(length(data)) from statecard_events") +
    mean("select avg(length(execution)) from statecard_heads");
  database.close();
  return Math.round(bytes);
}

/** The first decision's view, and what it was made from. */
export async function firstView(setting: Setting) {
  const graph = compile(modelWorkflow, { model: scripted(1) });
  const ended = await graph.invoke({ document: setting.document }, TASK);
  const execution = { ...ended.execution, step: "work", status: "running" as const };
  const workflow = graph.runtime.workflow;
  const state = { document: setting.document, count: 1 };
  const input = {
    workflow,
    snapshot: { execution, state },
    observation: null,
    turns: [],
    options: { policy: "state" as const, rawMessages: 0 },
  };
  return { input, view: statecard.renderView(input), answer: scriptedAnswer(1, 2) };
}

export function messagesOf(view: { messages: readonly { role: string; content: string }[] }): BaseMessage[] {
  return view.messages.map(({ role, content }) => {
    if (role === "system") return new SystemMessage(content);
    return role === "user" ? new HumanMessage(content) : new AIMessage(content);
  });
}

function taskNamed(number: number) {
  return { configurable: { thread_id: `task-${number}` } };
}

async function repeat(times: number, work: (number: number) => Promise<void>): Promise<void> {
  for (let number = 0; number < times; number++) await work(number);
}

/** A run that did not do its work must not count as a fast one. */
function expectCount(count: number, ended: { count: number | null }): void {
  if (ended.count !== count) throw new Error(`the run ended at ${ended.count}, not at ${count}`);
}

function storedBytes(file: string): StoredBytes {
  const database = new Database(file);
  database.pragma("wal_checkpoint(truncate)");
  const pages = database.pragma("page_count", { simple: true }) as number;
  const pageSize = database.pragma("page_size", { simple: true }) as number;
  const tables = database.prepare("select name, sum(pgsize) as bytes from dbstat group by name").all();
  database.close();
  const byTable = Object.fromEntries(
    (tables as { name: string; bytes: number }[]).map(({ name, bytes }) => [name, bytes]),
  );
  return { file: pages * pageSize, byTable };
}
