import { describeTask, type TaskDescription, type WaitingRequest } from "../compile/describe.ts";
import { replyTo, type PersonsReply } from "../compile/reply-to.ts";
import type { TaskStore } from "../compile/store.ts";
import { turnTokens } from "../compile/turns.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError } from "../errors.ts";
import { EXIT, exitCodeOfStatus } from "./exit.ts";
import { howToAnswer, type SameTask } from "./hints.ts";
import { Interrupted, isOffline, runInterruptibly } from "./interruptible.ts";
import { LineInput } from "./line-input.ts";
import { closingLine } from "./outcome.ts";
import { ON_COMMAND_LINE, verdictOf } from "./replies.ts";
import {
  detectTerminal,
  emphasise,
  fieldTable,
  printable,
  printableLines,
  progressLine,
  tokenLine,
  type Terminal,
} from "./terminal.ts";
import { isExpired } from "../people/expiry.ts";
import { asksLine } from "./waiting.ts";

interface Chat {
  readonly graph: WorkflowGraph;
  readonly store: TaskStore;
  readonly taskId: string;
  /** How to start the task; null where it is there already. */
  readonly start: Readonly<Record<string, unknown>> | null;
  readonly options: SameTask;
  /** The person who converses. */
  readonly who: string;
}

/**
 * Converses with a person until the task ends: at a terminal with prompts, else one line of the
 * input for each request. The end of the input and Ctrl-C leave a paused task.
 */
export async function chat({ graph, store, taskId, start, options, who }: Chat): Promise<number> {
  const terminal = detectTerminal();
  const { dot } = terminal.marks;
  const paused = async () => {
    const { waiting } = await describeTask(store, taskId);
    say(`\nPaused, nothing lost. Go on with:  ${howToAnswer(terminal, taskId, options, waiting)}`);
    return EXIT.waiting;
  };
  const { workflow, clock } = graph.runtime;
  const input = new LineInput();
  let before: TaskDescription["state"] = {};
  try {
    say(`${workflow.name} v${workflow.version} ${dot} task ${printable(taskId)} ${dot} ${describeModel(graph)}\n`);
    say(`  ${progressLine(terminal, workflow, { step: workflow.initial, completedSteps: [], status: "created" })}\n`);
    if (start) await runTurn(terminal, graph, taskId, start, who);
    for (let turn = 0; ; turn++) {
      const task = await describeTask(store, taskId);
      if (turn > 0 || !start || task.status !== "waiting_user") {
        say(await turnText(terminal, graph, store, task, before));
        before = task.state;
      }
      if (!task.waiting) {
        say(
          task.status === "completed"
            ? await closingLine(graph, store, task)
            : `${task.lastError?.code ?? task.status}: ${printable(task.lastError?.message ?? "")}`,
        );
        return exitCodeOfStatus(task.status);
      }
      if (task.waiting.some((request) => isExpired(request, clock.now()))) {
        await runTurn(terminal, graph, taskId, null, who);
        continue;
      }
      const request = task.waiting.find((each) => mayAnswer(each, who));
      if (!request) {
        for (const each of task.waiting) say(asksLine(each, clock.now()));
        return await paused();
      }
      const verdict = await askPerson(terminal, input, request, clock.now());
      if (verdict === null) return await paused();
      if (verdict !== "unclear") await answerTurn(terminal, graph, task, request, verdict, who);
    }
  } catch (error) {
    if (error instanceof Interrupted) return await paused();
    throw error;
  } finally {
    input.close();
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** False where others have to: this person is not named, or has approved already. */
function mayAnswer({ kind, approvers, approvedBy }: WaitingRequest, who: string): boolean {
  return kind === "question" || ((approvers?.includes(who) ?? true) && !approvedBy?.includes(who));
}

/** Asks until there is a line; null at the end of the input. Nothing unclear is an approval. */
async function askPerson(
  terminal: Terminal,
  input: LineInput,
  request: WaitingRequest,
  now: number,
): Promise<PersonsReply | "unclear" | null> {
  const { kind, question } = request;
  say(emphasise(terminal, "bold", kind === "question" ? printableLines(question) : asksLine(request, now)));
  if (kind !== "question") say(`a = approve, r = reject${kind === "approval" ? ", e = edit" : ""}`);
  const line = await input.next(terminal);
  if (line === null) return null;
  if (kind === "question") return { verb: "answer", text: line };
  const { verb, rest } = readVerdictLine(line);
  if (verb === "approve" && rest === "") return { verb };
  if (verb !== "reject" && verb !== "edit") {
    say(`"${printable(line.slice(0, 60))}" is none of: approve, reject REASON, edit JSON. Nothing was answered.`);
    return "unclear";
  }
  let words: string | null = rest;
  if (rest === "" && input.interactive) {
    say(verb === "reject" ? "Why?" : `Which arguments, as JSON? Now: ${printable(JSON.stringify(request.args ?? {}))}`);
    words = await input.next(terminal);
  }
  if (words === null) return null;
  return readWords(verb, words);
}

function readWords(verb: "reject" | "edit", words: string): PersonsReply | "unclear" {
  try {
    return verdictOf({ [verb]: words }) ?? "unclear";
  } catch (error) {
    if (!isWorkflowError(error, "USAGE")) throw error;
    say(`${error.message}. Nothing was answered.`);
    return "unclear";
  }
}

const VERBS: Readonly<Record<string, "approve" | "reject" | "edit">> = {
  a: "approve",
  approve: "approve",
  r: "reject",
  reject: "reject",
  e: "edit",
  edit: "edit",
};

function readVerdictLine(line: string): { verb: "approve" | "reject" | "edit" | null; rest: string } {
  const [, word = "", rest = ""] = /^\s*(\S*)\s*(.*?)\s*$/s.exec(line) ?? [];
  const verb = word.toLowerCase();
  return { verb: Object.hasOwn(VERBS, verb) ? (VERBS[verb] ?? null) : null, rest };
}

async function answerTurn(
  terminal: Terminal,
  graph: WorkflowGraph,
  task: TaskDescription,
  request: WaitingRequest,
  verdict: PersonsReply,
  who: string,
): Promise<void> {
  try {
    const reply = await replyTo(graph.runtime.store, task, verdict, request.id, ON_COMMAND_LINE);
    await runTurn(terminal, graph, task.taskId, reply, who);
  } catch (error) {
    // A line that is no answer is said so and asked for again; nothing was written.
    if (!isWorkflowError(error, "INVALID_MESSAGE", "MESSAGE_TOO_LARGE", "INVALID_REPLY", "APPROVAL_EXPIRED"))
      throw error;
    say(`${error.code}: ${error.message}`);
  }
}

async function runTurn(
  terminal: Terminal,
  graph: WorkflowGraph,
  taskId: string,
  input: unknown,
  who: string,
): Promise<void> {
  let replied = false;
  const onReply = (delta: string) => {
    process.stdout.write(`${replied ? "" : `\n${terminal.marks.said}`}${delta.replaceAll("\r", "")}`);
    replied = true;
  };
  await runInterruptibly(graph, taskId, input, { who, onReply });
  if (replied) process.stdout.write("\n");
}

async function turnText(
  terminal: Terminal,
  graph: WorkflowGraph,
  store: TaskStore,
  task: TaskDescription,
  before: TaskDescription["state"],
): Promise<string> {
  const { workflow, view } = graph.runtime;
  const turns = await turnTokens(store, workflow, view, task.taskId, "latest");
  const parts = [
    `  ${progressLine(terminal, workflow, task)}`,
    fieldTable(terminal, workflow, task, before),
    tokenLine(terminal, turns),
  ];
  return `\n${parts.filter(Boolean).join("\n")}\n`;
}

function describeModel(graph: WorkflowGraph): string {
  return isOffline(graph)
    ? "offline rules (set OPENAI_API_KEY for a live model)"
    : `model ${graph.runtime.model?.getName() ?? "none"}`;
}
