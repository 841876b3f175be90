import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { INTERRUPT } from "@langchain/langgraph";
import { answer, compile, describeTask, sqliteStore } from "statecard";
import type { Execution, TaskDescription, TaskStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { checkText } from "../../src/people/replies.ts";
import { missingTrajectories, readConversations, type Conversation } from "../support/trajectories.ts";

const FILES = ["tau2-retail-toolorchestra", "sgd-dev"];
const CONVERSATIONS_PER_FILE = 50;
const OTHER_FILES = ["tau-airline-gpt4o", "bfcl-long_context-groundtruth"];

// The pairs of steps that the ticket's table allows.
const LEGAL_PAIRS = new Set([
  "init > gathering_info",
  "init > deciding",
  "gathering_info > gathering_info",
  "gathering_info > deciding",
  "deciding > resolving",
  "deciding > done",
  "resolving > done",
]);

// 73 of 100 were measured; the others' users had no more to say before the ticket's last question.
const LEAST_FINISHED = 70;
const LEAST_DISTINCT_SHARE = 0.95;

const GREETING_ONLY = /^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening|day))\W*(?:there|all|everyone)?\W*$/i;
const SAYS_P1 = /\bp1\b|urgen|\basap\b|as soon as possible|immediately|emergency|critical/i;

/** A conversation that was put through the ticket workflow, and what is stored of it. */
interface Ticket {
  readonly conversation: Conversation;
  readonly task: TaskDescription;
  /** The moves between the stored checkpoints, from the first to the head. */
  readonly moves: readonly string[];
}

/** Puts what the users said through the ticket workflow, each conversation as a task of its own. */
async function runTickets(
  conversations: readonly Conversation[],
  modelFor: () => BaseChatModel,
): Promise<readonly Ticket[]> {
  const store = sqliteStore(":memory:");
  const tickets: Ticket[] = [];
  for (const conversation of conversations) {
    const graph = compile(ticket, { model: modelFor(), store });
    const config = { configurable: { thread_id: conversation.name } };
    const [message, ...answers] = conversation.userTurns;
    let result = await graph.invoke({ message }, config);
    for (const text of answers) {
      if (!result[INTERRUPT]) break;
      result = await graph.invoke(answer(result, text), config);
    }
    const task = await describeTask(store, conversation.name);
    tickets.push({ conversation, task, moves: await storedMoves(store, conversation.name) });
  }
  return tickets;
}

/** Reads the moves back from the stored checkpoints, along the parents from the head to the first. */
async function storedMoves(store: TaskStore, taskId: string): Promise<readonly string[]> {
  const byId = new Map<string, { execution: Execution; parent: string | undefined }>();
  for await (const tuple of store.checkpointer.list({ configurable: { thread_id: taskId, checkpoint_ns: "" } })) {
    const execution = tuple.checkpoint.channel_values.execution as Execution;
    const parent = tuple.parentConfig?.configurable?.checkpoint_id as string | undefined;
    byId.set(tuple.checkpoint.id, { execution, parent });
  }
  const moves: string[] = [];
  let after: Execution | undefined;
  for (let id = (await store.head(taskId))?.checkpointId; id !== undefined; id = byId.get(id)?.parent) {
    const stored = byId.get(id)?.execution;
    if (!stored) throw new Error(`task ${taskId}: checkpoint ${id} is not stored`);
    if (after && !staysWhereItIs(stored, after)) moves.unshift(`${stored.step} > ${after.step}`);
    after = stored;
  }
  return [`start > ${after?.step}`, ...moves];
}

/** A checkpoint that only records the input, a question or its answer is no move. */
function staysWhereItIs(before: Execution, after: Execution): boolean {
  const records = after.revision === before.revision || after.pending !== null || after.last?.kind === "result";
  return records && before.step === after.step;
}

/** Everything that is wrong with how these tickets ended; empty where nothing is. */
function problemsOf(tickets: readonly Ticket[]): readonly string[] {
  const problems = tickets.flatMap((each) => problemsOfOne(each).map((problem) => `${each.task.taskId}: ${problem}`));
  const finished = tickets.filter(({ task }) => task.status === "completed").length;
  if (finished < (LEAST_FINISHED / 100) * tickets.length) problems.push(`only ${finished} finished`);
  const distinct = new Set(tickets.map(({ task }) => task.state.ticketType)).size;
  if (distinct < LEAST_DISTINCT_SHARE * tickets.length) problems.push(`only ${distinct} different ticket types`);
  return problems;
}

function problemsOfOne({ conversation, task, moves }: Ticket): readonly string[] {
  const { ticketType, priority, solution, result } = task.state;
  const { userTurns } = conversation;
  const problems: string[] = [];
  const require = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem);
  };
  require(task.status === "completed" || task.status === "waiting_user", `ended ${task.status}`);
  require((task.status === "completed") === (task.step === "done"), `${task.status} at ${task.step}`);
  require((task.status === "waiting_user") === (task.waiting?.length === 1), `${task.waiting?.length} open questions`);
  require(moves[0] === "start > init", `the stored moves begin with ${moves[0]}`);
  require(moves.at(-1)?.split(" > ").at(-1) === task.step, `the stored moves end with ${moves.at(-1)}`);
  for (const move of moves.slice(1)) require(LEGAL_PAIRS.has(move), `an illegal move: ${move}`);
  const type = typeof ticketType === "string" ? ticketType : "";
  require(type.trim() !== "" && userTurns.some((turn) => turn.includes(type)), `"${type}" are not the user's words`);
  require(!GREETING_ONLY.test(type), `"${type}" is only a greeting`);
  require(priority !== "P1" || userTurns.some((turn) => SAYS_P1.test(turn)), "P1 without a word of the user about it");
  if (task.step === "done") {
    require([priority, solution, result].every((value) => typeof value === "string"), "done with fields missing");
  }
  return problems;
}

const missing = missingTrajectories(FILES);
const conversations = missing ? [] : FILES.flatMap((file) => readConversations(file).slice(0, CONVERSATIONS_PER_FILE));

// Enough to show that the check fails, in a fifth of the time.
const sample = conversations.filter((_each, index) => index % 5 === 0);
// A hundred conversations take seconds, but this may run on a small machine that is busy.
const PATIENCE = { timeout: 600_000 };

/** Legal decisions that are the same whatever the user says. */
const fixedAnswers = (ticketType: string) => [
  { next: "gathering_info" },
  { patch: { ticketType, priority: "P1" }, next: "deciding" },
  { patch: { analysis: "something broke", solution: "mend it" }, next: "resolving" },
  { patch: { result: "closed" }, next: "done" },
];

describe("recorded conversations as tickets", PATIENCE, () => {
  test("what the users of 100 conversations said leads through legal steps to sensible tickets", async ({ skip }) => {
    skip(missing !== null, missing ?? "");
    expect(conversations).toHaveLength(FILES.length * CONVERSATIONS_PER_FILE);
    const tickets = await runTickets(conversations, ticketRules);
    const count = (status: string) => tickets.filter(({ task }) => task.status === status).length;
    process.stdout.write(
      `recorded tickets: ${count("completed")} finished, ${count("waiting_user")} waiting, of ${tickets.length}\n`,
    );
    expect(problemsOf(tickets)).toEqual([]);
    expect(count("completed")).toBeGreaterThanOrEqual(LEAST_FINISHED);
  });

  test.for([
    ["a fixed word", "something"],
    ["one user's words", conversations[60]?.userTurns[0] ?? "something"],
    ["a greeting", "Hi"],
  ] as const)("a model that always writes %s fails the same check", async ([, ticketType], { skip }) => {
    skip(missing !== null, missing ?? "");
    const tickets = await runTickets(sample, () => scriptedModel(fixedAnswers(ticketType)));
    expect(tickets.every(({ task }) => task.status === "completed")).toBe(true);
    const problems = problemsOf(tickets);
    expect(problems.filter((problem) => /not the user's words|only a greeting/.test(problem)).length).toBeGreaterThan(
      0.9 * sample.length,
    );
    expect(problems).toContain("only 1 different ticket types");
    expect(
      problems.filter((problem) => problem.endsWith("P1 without a word of the user about it")).length,
    ).toBeGreaterThan(0.5 * sample.length);
  });

  test("a model that only ever asks fails the same check", async ({ skip }) => {
    skip(missing !== null, missing ?? "");
    const asksOn = () => scriptedModel(Array.from({ length: 20 }, () => ({ ask: "What else?" })));
    const problems = problemsOf(await runTickets(sample, asksOn));
    expect(problems).toContain("only 0 finished");
  });

  test("no message of a recorded user is refused as not text", ({ skip }) => {
    const files = [...FILES, ...OTHER_FILES];
    const absent = missingTrajectories(files);
    skip(absent !== null, absent ?? "");
    const turns = files.flatMap((file) => readConversations(file).flatMap(({ userTurns }) => userTurns));
    expect(turns.length).toBeGreaterThan(2000);
    for (const turn of turns) expect(checkText(turn)).toBe(turn);
  });
});
