import type { TaskDescription } from "../compile/describe.ts";
import type { TaskStore } from "../compile/store.ts";
import { turnTokens } from "../compile/turns.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { howToResume, type SameTask } from "./hints.ts";
import { isOffline } from "./interruptible.ts";
import { count, emphasise, fieldTable, printable, printableLines, progressLine, type Terminal } from "./terminal.ts";
import { waitingLines } from "./waiting.ts";

/** Where a task stands after a run, for people: progress, fields, and how to go on. */
export async function printOutcome(
  terminal: Terminal,
  graph: WorkflowGraph,
  store: TaskStore,
  task: TaskDescription,
  before: Pick<TaskDescription, "state" | "revision">,
  options: SameTask,
): Promise<void> {
  const goOn = howToResume(terminal, task.taskId, options);
  const { dot } = terminal.marks;
  const { workflow } = graph.runtime;
  const lines = [
    `${printable(task.taskId)} ${dot} ${workflow.name} v${task.version}${isOffline(graph) ? ` ${dot} offline rules` : ""}`,
  ];
  lines.push(`  ${progressLine(terminal, workflow, task)}`);
  const table = fieldTable(terminal, workflow, task, before.state);
  if (table) lines.push(table);
  for (const reply of await repliesSince(store, task.taskId, before.revision))
    lines.push(`${terminal.marks.said}${printableLines(reply)}`);
  if (task.waiting) {
    lines.push(...waitingLines(terminal, task.taskId, options, task.waiting));
  } else if (task.status === "completed") {
    lines.push(await closingLine(graph, store, task));
  } else if (task.lastError) {
    lines.push(emphasise(terminal, "red", `${task.lastError.code}: ${printable(task.lastError.message)}`));
    lines.push(`Failed at ${task.step}. Try again with:  ${goOn}`);
  } else {
    lines.push(`Stopped at ${task.step}. Go on with:  ${goOn}`);
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** What the workflow said to the user after a revision. */
async function repliesSince(store: TaskStore, taskId: string, revision: number): Promise<readonly string[]> {
  return (await store.events(taskId)).flatMap(({ kind, revision: at, data }) => {
    const reply =
      kind === "decision" && at > revision ? (data.decision as { reply?: unknown } | null)?.reply : undefined;
    return typeof reply === "string" ? [reply] : [];
  });
}

/** The last line of a finished task: decisions, refusals, and what the model read. */
export async function closingLine(graph: WorkflowGraph, store: TaskStore, task: TaskDescription): Promise<string> {
  const head = await store.head(task.taskId);
  const decisions = head?.execution.decisions ?? 0;
  const turns = await turnTokens(store, graph.runtime.workflow, graph.runtime.view, task.taskId, "all");
  const sum = (pick: (turn: (typeof turns)[number]) => number) =>
    count(turns.reduce((total, turn) => total + pick(turn), 0));
  const tokens =
    turns.length === decisions && decisions > 0
      ? ` Model input ${sum((turn) => turn.seen)} tokens; as one conversation ${sum((turn) => turn.wholeConversation)}.`
      : "";
  return `Done in ${decisions} ${decisions === 1 ? "decision" : "decisions"}, ${head?.execution.refused ?? 0} refused.${tokens}`;
}
