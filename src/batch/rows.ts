import { turnTokens } from "../compile/turns.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { NO_USAGE, type Usage } from "../state/execution.ts";
import type { BatchLine } from "./lines.ts";
import { measuresOf, type TaskMeasures } from "./measures.ts";
import { completedAs, reviewIn, type Review } from "./review.ts";
import { standing, type Failure } from "./standing.ts";

/** Where a task of a batch stands; `reviewing` is a finished one whose result waits for a person. */
export type RowStatus =
  | "completed"
  | "reviewing"
  | "rejected"
  | "waiting"
  | "failed"
  | "cancelled"
  | "unfinished"
  | "not started";

/** A task of a batch with what it took. */
export interface Row extends TaskMeasures {
  readonly line: number;
  readonly id: string;
  readonly taskId: string;
  /** The view policy that it ran under, where several are compared. */
  readonly policy: string | null;
  readonly status: RowStatus;
  /** How often one command runs it at most; `attempts` counts over all of them. Null where nothing runs it. */
  readonly maxAttempts: number | null;
  readonly step: string | null;
  readonly usage: Usage;
  /** What was counted here (o200k), where the provider reports nothing; null where it does, or nothing was asked. */
  readonly counted: CountedPrompts | null;
  readonly review: Review | null;
  readonly error: Failure | null;
  /** What it waits for. */
  readonly question: string | null;
  /** The state of a finished task; null until it may be published. */
  readonly result: Readonly<Record<string, unknown>> | null;
}

/** Prompts of admitted decisions whose checkpoints are still there. */
export interface CountedPrompts {
  readonly prompts: number;
  readonly tokens: number;
}

/** What a row is made for. */
export interface RowRequest {
  readonly line: BatchLine;
  readonly taskId: string;
  readonly policy: string | null;
  /** Why the task could not even be started. */
  readonly refused: Failure | null;
  /** How often the command that reports runs it at most; null where it runs nothing. */
  readonly maxAttempts: number | null;
}

/** Reads where a task of a batch stands and what it took, from the store alone. */
export async function readRow(
  graph: Pick<WorkflowGraph, "runtime">,
  { line, taskId, policy, refused, maxAttempts }: RowRequest,
): Promise<Row> {
  const { store } = graph.runtime;
  const named = { line: line.line, id: line.id, taskId, policy, maxAttempts };
  const task = await standing(store, taskId);
  if (!task) {
    const status = refused ? "failed" : "not started";
    const nothing = { step: null, usage: NO_USAGE, counted: null, review: null, question: null, result: null };
    return { ...named, status, ...nothing, error: refused, decisions: [], attempts: refused ? 1 : 0, resumed: false };
  }
  const events = await store.events(taskId);
  const review = task.status === "completed" ? reviewIn(events, task.state) : null;
  const status = statusOf(task.status, review);
  const measures = measuresOf(events);
  return {
    ...named,
    ...measures,
    status,
    step: task.step,
    usage: task.usage,
    counted: task.usage.inputTokens > 0 || measures.decisions.length === 0 ? null : await countPrompts(graph, taskId),
    review,
    error: task.lastError ?? refused,
    question: task.waiting?.[0]?.question ?? null,
    result: status === "completed" ? task.state : null,
  };
}

function statusOf(status: string, review: Review | null): RowStatus {
  if (status === "completed") return completedAs(review);
  if (status === "waiting_user") return "waiting";
  return status === "failed" || status === "cancelled" ? status : "unfinished";
}

async function countPrompts(
  { runtime: { store, workflow, view } }: Pick<WorkflowGraph, "runtime">,
  taskId: string,
): Promise<CountedPrompts> {
  const turns = await turnTokens(store, workflow, view, taskId, "all");
  return { prompts: turns.length, tokens: turns.reduce((total, { seen }) => total + seen, 0) };
}
