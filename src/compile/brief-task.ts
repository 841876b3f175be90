import { isPlainObject } from "../internal/json.ts";
import type { Observation } from "../state/execution.ts";
import { briefOf, type Brief } from "../view/brief.ts";
import { transcript } from "../view/transcript.ts";
import { withhold } from "../view/withhold.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { unknownTask } from "./admit-input.ts";
import { describeTask } from "./describe.ts";
import type { TaskStore } from "./store.ts";

export interface BriefTaskOptions {
  /** Kinds of data that it may not show; needs the workflow. */
  readonly withheld?: readonly string[];
  /** How much is told of what came back last; enough to know what it was unless set. */
  readonly latestTokens?: number;
}

const LOG_ENTRIES = 200;

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
  { withheld = [], latestTokens }: BriefTaskOptions = {},
): Promise<Brief> {
  const task = await describeTask(store, taskId);
  const looked = await store.look(taskId);
  if (!looked) throw unknownTask(taskId);
  const { status, waiting = [], lastError = null } = task;
  // Typed as any workflow with a name, so that callers need no cast.
  const known = workflow as AnyWorkflow | null;
  const whole = {
    snapshot: { execution: { ...looked.execution, taskId }, state: task.state },
    observation: looked.execution.observation ?? (await openingMessage(store, taskId)),
    // What calls were made with tells which kinds of data their results hold.
    turns: withheld.length > 0 ? transcript(await store.events(taskId, LOG_ENTRIES)) : [],
  };
  const shown = known && withheld.length > 0 ? withhold(known, withheld, whole) : whole;
  const hide = "hide" in shown ? shown.hide : (text: string) => text;
  return briefOf({
    workflow: known,
    execution: shown.snapshot.execution,
    state: shown.snapshot.state,
    status,
    requests: waiting.map(({ id, kind, question, tool, args, expiresAt }) => ({
      id,
      kind,
      question: hide(question),
      ...(tool === undefined ? {} : { tool }),
      ...(args === undefined ? {} : { args }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    })),
    lastError: lastError && { ...lastError, message: hide(lastError.message) },
    observation: shown.observation,
    updatedAt: looked.updatedAt,
    ...(latestTokens === undefined ? {} : { latestTokens }),
  });
}

/** What a task was started with, before its first decision has taken it in. */
async function openingMessage(store: TaskStore, taskId: string): Promise<Observation | null> {
  const input = (await store.firstEvent(taskId, "started"))?.data.input;
  const message = isPlainObject(input) ? input.message : undefined;
  return typeof message === "string" ? { kind: "message", text: message } : null;
}
