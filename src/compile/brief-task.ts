import { isPlainObject } from "../internal/json.ts";
import type { Observation } from "../state/execution.ts";
import { briefOf, type Brief } from "../view/brief.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { unknownTask } from "./admit-input.ts";
import { describeTask } from "./describe.ts";
import type { TaskStore } from "./store.ts";

/**
 * The hand-off of a task, for a new session or another agent. Reads the store alone.
 *
 * @param workflow the task's workflow, for its goal and the moves that are open; null where it is not at hand.
 * @throws UNKNOWN_TASK.
 * @example console.log(renderBrief(await briefTask(store, "refactor-k3f9", refactor)))
 */
export async function briefTask(
  store: TaskStore,
  taskId: string,
  workflow: Pick<AnyWorkflow, "name"> | null = null,
): Promise<Brief> {
  const task = await describeTask(store, taskId);
  const looked = await store.look(taskId);
  if (!looked) throw unknownTask(taskId);
  const { status, state, waiting = [], lastError = null } = task;
  return briefOf({
    // Typed as any workflow with a name, so that callers need no cast.
    workflow: workflow as AnyWorkflow | null,
    execution: { ...looked.execution, taskId },
    state,
    status,
    requests: waiting.map(({ id, kind, question, tool, args, expiresAt }) => ({
      id,
      kind,
      question,
      ...(tool === undefined ? {} : { tool }),
      ...(args === undefined ? {} : { args }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    })),
    lastError,
    observation: looked.execution.observation ?? (await openingMessage(store, taskId)),
    updatedAt: looked.updatedAt,
  });
}

/** What a task was started with, before its first decision has taken it in. */
async function openingMessage(store: TaskStore, taskId: string): Promise<Observation | null> {
  const input = (await store.firstEvent(taskId, "started"))?.data.input;
  const message = isPlainObject(input) ? input.message : undefined;
  return typeof message === "string" ? { kind: "message", text: message } : null;
}
