import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import type { OutputMode } from "../decision/providers.ts";
import type { SchemaScope, ToolArguments } from "../decision/schema.ts";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import type { ViewOptions } from "../view/options.ts";
import type { Memories } from "../memory/memories.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { dueNode } from "../workflow/next-step.ts";
import { LEASE_TOKEN, type Lease, type TaskStore } from "./store.ts";
import type { Execution } from "../state/execution.ts";
import type { ChildRunner } from "./child.ts";
import type { ConsentOptions } from "./consent.ts";

/** What all nodes of one compiled workflow share. */
export interface Runtime {
  readonly workflow: AnyWorkflow;
  readonly store: TaskStore;
  readonly model: BaseChatModel | undefined;
  /** Makes the plans of steps that have no planner of their own. */
  readonly planner: BaseChatModel | undefined;
  readonly outputMode: OutputMode | undefined;
  readonly toolArguments: ToolArguments | undefined;
  readonly schemaScope: SchemaScope | undefined;
  readonly modelTimeoutMs: number;
  readonly view: ViewOptions;
  /** Whose memory block each prompt shows; none unless set. */
  readonly memories: Memories | undefined;
  /** Those of the workflows that are steps of this one, by their name. */
  readonly childMemories: Readonly<Record<string, Memories>> | undefined;
  readonly clients: Readonly<Record<string, unknown>>;
  /** What is settled about sensitive data before anybody is asked. */
  readonly consent: ConsentOptions;
  readonly clock: Clock;
  /** Runs the workflows that are steps of this one, by step. */
  readonly children: Readonly<Record<string, ChildRunner>>;
  /** Tasks of child workflows that have ended in a run that goes on, by parent task. */
  readonly endedChildren: Map<string, string[]>;
}

/** Set by a run whose caller wants the text of replies as they are written. */
export const STREAM_REPLIES = "__statecard_stream_replies";

/** What an earlier run paid at the same revision before it failed: `{revision, usage}`. */
export const SPENT = "__statecard_spent";

/** How often the task had been forked when the run began: a question asked again is another request. */
export const FORKS = "__statecard_forks";

/** Set by a parent that has taken in text from outside: then its child's inputs may come from there. */
export const UNTRUSTED = "__statecard_untrusted";

/** The lower limit of decisions that a task was started with, until its record holds it. */
export const TASK_DECISIONS = "__statecard_task_decisions";

/** Set where an input may only start a task: on one that exists it is `TASK_EXISTS`, never an answer. */
export const MUST_BE_NEW = "__statecard_must_be_new";

/** An AbortSignal: once aborted, the run ends before its next superstep; the one that runs commits. */
export const STOP = "__statecard_stop";

/** Marks a call from inside another graph's node that names a task of its own. */
export const OWN_TASK = "__statecard_own_task";

/**
 * The entry check of every node: it runs only under a lease, and only when the committed record
 * names it. So `goto`, `Send`, `updateState(asNode)` and replays cannot start a body out of turn.
 *
 * @returns the lease under which the node runs.
 * @throws NO_LEASE, ILLEGAL_ENTRY, and TASK_STOPPED where the run is to end here.
 */
export function enter(runtime: Runtime, node: string, execution: Execution, config: LangGraphRunnableConfig): Lease {
  const token: unknown = config.configurable?.[LEASE_TOKEN];
  const taskId: unknown = config.configurable?.thread_id;
  if (typeof token !== "number" || typeof taskId !== "string") {
    throw new WorkflowError(
      "NO_LEASE",
      `${node} runs only in the graph that compile() returned, which takes the task's lease`,
    );
  }
  const due = dueNode(runtime.workflow, execution);
  if (due !== node) {
    throw new WorkflowError(
      "ILLEGAL_ENTRY",
      `${node} may not run: task ${taskId} is at ${due}; only the transition table moves a task`,
      {
        details: { taskId, node, due },
      },
    );
  }
  const stop: unknown = config.configurable?.[STOP];
  if (stop instanceof AbortSignal && stop.aborted) {
    throw new WorkflowError("TASK_STOPPED", `task ${taskId} was stopped before ${node}; nothing is lost, resume it`);
  }
  return { taskId, token };
}
