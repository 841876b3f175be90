import { createInterface, type Interface } from "node:readline";
import { Command } from "@langchain/langgraph";
import { describeTask, type TaskDescription } from "../compile/describe.ts";
import type { TaskStore } from "../compile/store.ts";
import { turnTokens } from "../compile/turns.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { isWorkflowError } from "../errors.ts";
import { EXIT, exitCodeOfStatus } from "./exit.ts";
import { howToResume, type SameTask } from "./hints.ts";
import { Interrupted, isOffline, runInterruptibly } from "./interruptible.ts";
import { closingLine } from "./outcome.ts";
import {
  detectTerminal,
  emphasise,
  fieldTable,
  printable,
  progressLine,
  tokenLine,
  type Terminal,
} from "./terminal.ts";

interface Chat {
  readonly graph: WorkflowGraph;
  readonly store: TaskStore;
  readonly taskId: string;
  /** How to start the task; null where it is there already. */
  readonly start: Readonly<Record<string, unknown>> | null;
  readonly options: SameTask;
}

/**
 * Converses with a person until the task ends: at a terminal with prompts, else one line of the
 * input for each question. The end of the input and Ctrl-C leave a paused task.
 */
export async function chat({ graph, store, taskId, start, options }: Chat): Promise<number> {
  const terminal = detectTerminal();
  const { dot } = terminal.marks;
  const paused = async () => {
    const asks = (await describeTask(store, taskId)).waiting !== undefined;
    say(`\nPaused, nothing lost. Go on with:  ${howToResume(terminal, taskId, options, asks)}`);
    return EXIT.waiting;
  };
  const { workflow } = graph.runtime;
  const say = (text: string) => process.stdout.write(`${text}\n`);
  const input = new LineInput();
  let before: TaskDescription["state"] = {};
  try {
    say(`${workflow.name} v${workflow.version} ${dot} task ${printable(taskId)} ${dot} ${describeModel(graph)}\n`);
    say(`  ${progressLine(terminal, workflow, { step: workflow.initial, completedSteps: [], status: "created" })}\n`);
    if (start) await runTurn(terminal, graph, taskId, start);
    for (let turn = 0; ; turn++) {
      const task = await describeTask(store, taskId);
      if (turn > 0 || !start || task.status !== "waiting_user") {
        say(await turnText(terminal, graph, store, task, before));
        before = task.state;
      }
      const [request] = task.waiting ?? [];
      if (!request) {
        say(
          task.status === "completed"
            ? await closingLine(graph, store, task)
            : `${task.lastError?.code ?? task.status}: ${printable(task.lastError?.message ?? "")}`,
        );
        return exitCodeOfStatus(task.status);
      }
      say(emphasise(terminal, "bold", printable(request.question)));
      const line = await input.next(terminal);
      if (line === null) return await paused();
      await answerTurn(terminal, graph, taskId, request.id, line);
    }
  } catch (error) {
    if (error instanceof Interrupted) return await paused();
    throw error;
  } finally {
    input.close();
  }
}

async function answerTurn(
  terminal: Terminal,
  graph: WorkflowGraph,
  taskId: string,
  requestId: string,
  line: string,
): Promise<void> {
  try {
    await runTurn(terminal, graph, taskId, new Command({ resume: { [requestId]: line } }));
  } catch (error) {
    // A line that is no answer is said so and asked for again; nothing was written.
    if (!isWorkflowError(error, "INVALID_MESSAGE", "MESSAGE_TOO_LARGE")) throw error;
    process.stdout.write(`${error.code}: ${error.message}\n`);
  }
}

async function runTurn(terminal: Terminal, graph: WorkflowGraph, taskId: string, input: unknown): Promise<void> {
  let replied = false;
  await runInterruptibly(graph, taskId, input, (delta) => {
    process.stdout.write(`${replied ? "" : `\n${terminal.marks.said}`}${delta.replaceAll("\r", "")}`);
    replied = true;
  });
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

const MAX_LINE = 100_000;

/** Lines of the standard input, one at a time; null at its end or on Ctrl-C. */
class LineInput {
  private readonly reader: Interface;
  private readonly lines: string[] = [];
  private waiting: ((line: string | null) => void) | null = null;
  private ended = false;
  private readonly interactive = process.stdin.isTTY;

  constructor() {
    this.reader = createInterface({
      input: process.stdin,
      output: this.interactive ? process.stdout : undefined,
      terminal: this.interactive,
    });
    this.reader.on("line", (line) => this.deliver(line.slice(0, MAX_LINE)));
    this.reader.on("close", () => this.end());
    // A terminal in raw mode sends no signal: pass Ctrl-C on to whatever runs.
    this.reader.on("SIGINT", () => {
      process.emit("SIGINT", "SIGINT");
      this.end();
    });
  }

  next(terminal: Terminal): Promise<string | null> {
    if (this.interactive) {
      this.reader.setPrompt(terminal.marks.prompt);
      this.reader.prompt();
    }
    const line = this.lines.shift();
    if (line !== undefined) {
      if (!this.interactive) process.stdout.write(`> ${printable(line.slice(0, 200))}\n`);
      return Promise.resolve(line);
    }
    if (this.ended) return Promise.resolve(null);
    return new Promise((resolve) => (this.waiting = resolve));
  }

  close(): void {
    this.reader.close();
  }

  private deliver(line: string): void {
    if (this.waiting) {
      if (!this.interactive) process.stdout.write(`> ${printable(line.slice(0, 200))}\n`);
      this.waiting(line);
      this.waiting = null;
    } else this.lines.push(line);
  }

  private end(): void {
    this.ended = true;
    this.waiting?.(null);
    this.waiting = null;
  }
}
