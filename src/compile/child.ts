import type { RunnableConfig } from "@langchain/core/runnables";
import type { Request } from "../people/requests.ts";
import type { Execution, Usage } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { Cancellation } from "../workflow/record.ts";

/** Where a child workflow's task stands after it was run as far as it goes. */
export type ChildStanding =
  | { readonly kind: "waiting"; readonly requests: readonly Request[] }
  | {
      readonly kind: "ended";
      readonly status: "completed" | "failed";
      readonly state: State;
      readonly error: string | null;
      readonly usage: Usage;
      /** True where it has taken in text from outside. */
      readonly untrusted: boolean;
    };

/** Runs a workflow that is a step of another, as a task of its own. */
export interface ChildRunner {
  /** Starts the child where it is new, wakes it where it can go on, and says where it stands. */
  run(
    taskId: string,
    input: Readonly<Record<string, unknown>>,
    config: RunnableConfig,
    hasNews: boolean,
    untrusted: boolean,
  ): Promise<ChildStanding>;
  /** Ends the child for good, where it has begun and not ended. */
  cancel(taskId: string, by: Cancellation): Promise<void>;
}

/** The task of the child workflow that a task waits for, whether it has begun or not. Pure. */
export function childTaskId(taskId: string, execution: Execution, forks: number): string | null {
  return execution.pending?.kind === "workflow" ? (childTaskIds(taskId, execution, forks)[0] ?? null) : null;
}

/** The task that a task with such an id would be the child of; null where the id is none of a child's. Pure. */
export function parentTaskId(taskId: string): string | null {
  return /^(.+)\/[^/]+\/\d+\.\d+(?:\.\d+)?$/s.exec(taskId)?.[1] ?? null;
}

/** The tasks of all child workflows that a task waits for: one, or one for each item of a list. Pure. */
export function childTaskIds(taskId: string, { step, pending }: Execution, forks: number): readonly string[] {
  if (pending?.kind !== "workflow" && pending?.kind !== "workflows") return [];
  const id = `${taskId}/${pending.startedAt ?? step}/${pending.decision}.${forks}`;
  return pending.kind === "workflow" ? [id] : pending.inputs.map((_, index) => `${id}.${index}`);
}
