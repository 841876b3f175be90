import { emptyState, pickState } from "../state/fields.ts";
import { newExecution, NO_USAGE, type Execution, type Observation } from "../state/execution.ts";
import { DEFAULT_VIEW, POLICIES, type Policy, type ViewOptions } from "../view/options.ts";
import { renderView, viewTokens, type View } from "../view/render.ts";
import { transcript } from "../view/transcript.ts";
import { settle } from "../workflow/advance.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import type { TaskEvent, TaskStore } from "./store.ts";
import { standingIn } from "./view-of.ts";

/** What one model decision was shown, in tokens (o200k), beside what the whole conversation would have been. */
export interface TurnTokens {
  readonly step: string;
  readonly revision: number;
  readonly seen: number;
  readonly wholeConversation: number;
}

/**
 * Compares, for each model decision of a task, the prompt that was sent with the one that full
 * history would have needed in the same turn: same instructions, the conversation in place of the
 * state. Decisions whose checkpoint has been pruned are left out.
 *
 * @param which the latest decision only, or all.
 */
export async function turnTokens(
  store: TaskStore,
  workflow: AnyWorkflow,
  options: ViewOptions,
  taskId: string,
  which: "latest" | "all",
): Promise<readonly TurnTokens[]> {
  const events = await store.events(taskId);
  const snapshots = await snapshotsByRevision(store, workflow, taskId);
  const latest = events.findLastIndex((event) => event.kind === "decision");
  return events.flatMap((event, index): TurnTokens[] => {
    if (which === "latest" && index !== latest) return [];
    const before = snapshots.get(event.revision - 1);
    if (event.kind !== "decision" || !event.data.measures || !before) return [];
    const said = (event.data.observation as Observation | null) ?? before.execution.observation;
    const tokensUnder = (view: ViewOptions) =>
      viewTokens(viewUnder(view, workflow, before, said, events.slice(0, index)));
    const wholeConversation = tokensUnder(WHOLE_CONVERSATION);
    return [{ step: before.execution.step, revision: event.revision, seen: tokensUnder(options), wholeConversation }];
  });
}

/** As an agent sees it that never leaves anything out. */
const WHOLE_CONVERSATION: ViewOptions = {
  policy: "history",
  rawMessages: 0,
  maxTokens: Infinity,
  maxResultTokens: Infinity,
};

async function snapshotsByRevision(
  store: TaskStore,
  workflow: AnyWorkflow,
  taskId: string,
): Promise<ReadonlyMap<number, Snapshot>> {
  const snapshots = new Map<number, Snapshot>();
  for await (const tuple of store.checkpointer.list({ configurable: { thread_id: taskId, checkpoint_ns: "" } })) {
    const values = tuple.checkpoint.channel_values;
    const execution = values.execution as Execution | undefined;
    if (execution && !snapshots.has(execution.revision))
      snapshots.set(execution.revision, { execution, state: pickState(workflow.state, values) });
  }
  return snapshots;
}

/** The prompt of a task's next decision, as the runtime renders it. Pure. */
function viewUnder(
  options: ViewOptions,
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  said: Observation | null,
  events: readonly TaskEvent[],
): View {
  const standing = standingIn(events);
  return renderView({ workflow, snapshot, observation: said, turns: transcript(events), options, standing });
}

/** The prompt that the next decision would get, by policy. */
export interface Preview {
  readonly policy: Policy;
  readonly view: View;
  readonly tokens: number;
}

/**
 * Renders what the model would be sent for a task's next decision under each policy; for a task that
 * does not exist yet, for its first. Needs no model.
 *
 * @param message what the user would say next.
 */
export async function previews(
  store: TaskStore | null,
  workflow: AnyWorkflow,
  taskId: string | null,
  message: string | null,
): Promise<readonly Preview[]> {
  const stored = store && taskId !== null ? await latestSnapshot(store, workflow, taskId) : null;
  const snapshot = stored ?? { execution: newExecution(workflow), state: emptyState(workflow.state) };
  const events = store && stored && taskId !== null ? await store.events(taskId) : [];
  const said = message === null ? snapshot.execution.observation : observe(snapshot, message);
  const next = answered(workflow, snapshot, said);
  return POLICIES.map((policy) => {
    const view = viewUnder({ ...DEFAULT_VIEW, policy }, workflow, next, said, events);
    return { policy, view, tokens: viewTokens(view) };
  });
}

function observe({ execution: { pending } }: Snapshot, text: string): Observation {
  return pending?.kind === "question"
    ? { kind: "answer", question: pending.question, text }
    : { kind: "message", text };
}

/** The task as it will be once its open question is answered. */
function answered(workflow: AnyWorkflow, snapshot: Snapshot, said: Observation | null): Snapshot {
  if (!snapshot.execution.pending || !said) return snapshot;
  const settled = settle(workflow, snapshot, { observation: said, result: null, usage: NO_USAGE });
  return settled.ok ? { ...snapshot, execution: settled.update.execution } : snapshot;
}

async function latestSnapshot(store: TaskStore, workflow: AnyWorkflow, taskId: string): Promise<Snapshot | null> {
  const head = await store.head(taskId);
  if (!head) return null;
  const configurable = { thread_id: taskId, checkpoint_ns: "", checkpoint_id: head.checkpointId };
  const tuple = await store.checkpointer.getTuple({ configurable });
  return { execution: head.execution, state: pickState(workflow.state, tuple?.checkpoint.channel_values ?? {}) };
}
