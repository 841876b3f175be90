import { isWorkflowError } from "../errors.ts";
import { isPlainObject } from "../internal/json.ts";
import { askedConsent } from "../people/consent-request.ts";
import type { Observation } from "../state/execution.ts";
import { briefOf, type Brief, type BriefRequest } from "../view/brief.ts";
import { HIDDEN, hideDeep } from "../view/hidden-values.ts";
import { transcript } from "../view/transcript.ts";
import { withhold, type Withheld } from "../view/withhold.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { unknownTask } from "./admit-input.ts";
import { describeTask, type WaitingRequest } from "./describe.ts";
import type { LookedAt, TaskStore } from "./store.ts";

/** What of a task may not be shown. */
export interface HiddenParts {
  /** Kinds of data of its own; they need the workflow. */
  readonly withheld?: readonly string[];
  /** True where there are such kinds in workflows within it: then what those ask and fail with is not shown. */
  readonly hidesInner?: boolean;
}

export interface BriefTaskOptions extends HiddenParts {
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
  { withheld = [], hidesInner = false, latestTokens }: BriefTaskOptions = {},
): Promise<Brief> {
  const task = await describeTask(store, taskId);
  const looked = await store.look(taskId);
  if (!looked) throw unknownTask(taskId);
  const { status, waiting = [], lastError = null } = task;
  // Typed as any workflow with a name, so that callers need no cast.
  const known = workflow as AnyWorkflow | null;
  const shown = await shownOf(store, looked, { taskId, workflow: known, withheld });
  const { hide } = shown;
  const isHidden = lastError?.code === INNER_FAILURE && hidesInner;
  return briefOf({
    workflow: known,
    execution: shown.snapshot.execution,
    state: shown.snapshot.state,
    ...(shown.snapshot.moves ? { moves: shown.snapshot.moves } : {}),
    status,
    requests: waiting.map((request) => shownRequest(request, { hide, isPart: withheld.length > 0, hidesInner })),
    lastError: lastError && { ...lastError, message: isHidden ? HIDDEN : hide(lastError.message) },
    observation: shown.observation,
    updatedAt: looked.updatedAt,
    ...(latestTokens === undefined ? {} : { latestTokens }),
  });
}

/** The code that the failure of a workflow within a task has in the task. */
const INNER_FAILURE = "STEP_FAILED";

/**
 * Takes what may not be shown of a task out of the message of an error about it.
 *
 * @returns the same error.
 */
export async function withoutHidden(
  store: TaskStore,
  taskId: string,
  workflow: AnyWorkflow,
  error: unknown,
  { withheld = [], hidesInner = false }: HiddenParts,
): Promise<unknown> {
  if (!(error instanceof Error)) return error;
  const looked = await store.look(taskId);
  if (hidesInner && isWorkflowError(error, INNER_FAILURE)) error.message = HIDDEN;
  else if (looked) error.message = (await shownOf(store, looked, { taskId, workflow, withheld })).hide(error.message);
  return error;
}

/** A task without what is withheld. */
async function shownOf(
  store: TaskStore,
  { execution, state }: LookedAt,
  { taskId, workflow, withheld }: { taskId: string; workflow: AnyWorkflow | null; withheld: readonly string[] },
): Promise<Withheld> {
  const isWhole = !workflow || withheld.length === 0;
  const whole: Withheld = {
    hide: (text) => text,
    seen: (observation) => observation,
    snapshot: { execution: { ...execution, taskId }, state },
    observation: execution.observation ?? (await openingMessage(store, taskId)),
    // What calls were made with tells which kinds of data their results hold.
    turns: isWhole ? [] : transcript(await store.events(taskId, LOG_ENTRIES)),
  };
  return isWhole ? whole : withhold(workflow, withheld, whole);
}

/** A request as a brief may show it; of a workflow within the task, no more than its kind where that has something to hide. */
function shownRequest(
  request: WaitingRequest,
  { hide, isPart, hidesInner }: Pick<Withheld, "hide"> & { readonly isPart: boolean; readonly hidesInner: boolean },
): BriefRequest {
  const { id, kind, question, tool, args, expiresAt } = request;
  const until = expiresAt === undefined ? {} : { expiresAt };
  // A consent tells of kinds of data, and holds none.
  if (hidesInner && id.includes("/") && !askedConsent(request)) return { id, kind, question: HIDDEN, ...until };
  return {
    id,
    kind,
    // Of a text that was cut, values are no longer found whole; the arguments stand beside it.
    question: isPart && question.includes("…") ? HIDDEN : hide(question),
    ...(tool === undefined ? {} : { tool }),
    ...(args === undefined ? {} : { args: hideDeep(args, hide) }),
    ...until,
  };
}

/** What a task was started with, before its first decision has taken it in. */
async function openingMessage(store: TaskStore, taskId: string): Promise<Observation | null> {
  const input = (await store.firstEvent(taskId, "started"))?.data.input;
  const message = isPlainObject(input) ? input.message : undefined;
  return typeof message === "string" ? { kind: "message", text: message } : null;
}
