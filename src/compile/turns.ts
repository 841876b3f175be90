import { emptyState, pickState } from "../state/fields.ts";
import { newExecution, NO_USAGE, type Execution, type Observation } from "../state/execution.ts";
import type { Memories } from "../memory/memories.ts";
import { POLICIES, type Policy, type ViewOptions } from "../view/options.ts";
import { cacheRule } from "../view/cache-rules.ts";
import { paidTokens, type Paid } from "../view/cost.ts";
import { promptOf, renderView, viewTokens, type View } from "../view/render.ts";
import { statusBar, statusTokens } from "../view/status-bar.ts";
import { NO_STATUS_BAR, type StatusBarInput } from "../view/status-bar/input.ts";
import { barModeIn, type BarModeChoice } from "../view/status-bar/mode.ts";
import { switched, techniqueShares, type Switches, type TechniqueShare } from "../view/status-bar/preview.ts";
import { withFacts } from "../view/status-bar/told.ts";
import { isSameObservation, transcript, type Turn } from "../view/transcript.ts";
import { settle } from "../workflow/settle.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import { rememberedFor } from "./remembered.ts";
import type { TaskEvent, TaskStore } from "./store.ts";
import { promptFrom, type PromptSource } from "./view-of.ts";

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
 * state; both without memories, and as if nothing were withheld. Decisions whose checkpoint has been pruned are left out.
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
    const earlier = events.slice(0, index);
    const told = { workflow, snapshot: before, observation: said, now: event.at, options: options.statusBar ?? {} };
    return [
      {
        step: before.execution.step,
        revision: event.revision,
        seen: viewTokens(viewUnder(options, told, earlier, PLAIN)),
        wholeConversation: viewTokens(viewUnder(WHOLE_CONVERSATION, told, earlier, PLAIN)),
      },
    ];
  });
}

/** As an agent sees it that never leaves anything out. */
const WHOLE_CONVERSATION: ViewOptions = {
  policy: "history",
  rawMessages: 0,
  maxTokens: Infinity,
  maxResultTokens: Infinity,
  maxSaidTokens: Infinity,
  statusBar: NO_STATUS_BAR,
};

const PLAIN = { memory: [], withheld: [] };

/** The prompt of a task's next decision, as the runtime renders it. Pure. */
function viewUnder(
  options: ViewOptions,
  told: StatusBarInput,
  events: readonly TaskEvent[],
  rest: Pick<PromptSource, "memory" | "withheld">,
): View {
  return renderView(promptFrom({ told, events, options, ...rest }).input);
}

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

/** The prompt that the next decision would get, by policy. */
export interface Preview {
  readonly policy: Policy;
  readonly view: View;
  readonly tokens: number;
  /** What the provider's cache makes of it, after the prompt of the decision before. */
  readonly cost: Paid;
}

/** Under which options a preview renders. */
export interface PreviewOptions {
  readonly view: ViewOptions;
  readonly now: number;
  /** Whose memory block the prompts show; none unless set. */
  readonly memories?: Memories | undefined;
  /** The kinds of data that the model may not be shown. */
  readonly withheld?: readonly string[];
  /** What the user would say next; null for nothing. */
  readonly message: string | null;
  /** Run-time facts that are switched for this preview. */
  readonly switches?: Switches;
}

/** The prompts of the next decision, and what run-time facts have to do with them. */
export interface Previews {
  readonly all: readonly Preview[];
  readonly shares: readonly TechniqueShare[];
  readonly bar: BarModeChoice;
}

/**
 * Renders what the model would be sent for a task's next decision under each policy; for a task that
 * does not exist yet, for its first. Needs no model.
 */
export async function previews(
  store: TaskStore | null,
  workflow: AnyWorkflow,
  taskId: string | null,
  { view, now, memories, message, withheld = [], switches = NOT_SWITCHED }: PreviewOptions,
): Promise<Previews> {
  const stored = store && taskId !== null ? await latestSnapshot(store, workflow, taskId) : null;
  const before = stored ?? { execution: newExecution(workflow), state: emptyState(workflow.state) };
  const events = store && stored && taskId !== null ? await store.events(taskId) : [];
  const said = message === null ? before.execution.observation : observe(before, message, now);
  const snapshot = answered(workflow, before, said);
  const options = switched(view.statusBar ?? {}, switches);
  const turns = transcript(events);
  const input = { workflow, snapshot, now, options, previousAt: timeBefore(turns, said) };
  // What was kept with an observation is shown as it was, unless it is looked at under other switches.
  const isRetold = message !== null || switches.on.length + switches.off.length > 0;
  const told = { ...input, observation: said && isRetold ? withFacts({ ...input, observation: said }) : said };
  const earlier = stored && store && taskId !== null ? await decisionBefore(store, workflow, taskId, events) : null;
  const memory = memories ? await rememberedFor(memories, { taskId: taskId ?? "", state: snapshot.state }) : [];
  const rule = cacheRule(view.provider ?? "unknown");
  return {
    all: POLICIES.map((policy) => {
      const under = { ...view, policy, statusBar: options };
      const shown = viewUnder(under, told, events, { memory, withheld });
      const sent = earlier ? [promptOf(viewUnder(under, earlier.told, earlier.events, { memory, withheld }))] : [];
      return { policy, view: shown, tokens: viewTokens(shown), cost: paidTokens(rule, sent, promptOf(shown)) };
    }),
    shares: techniqueShares({ ...input, observation: said }),
    bar: barModeIn(view, options.mode, statusTokens(statusBar(told).bar), snapshot.execution),
  };
}

/** What the latest model decision was rendered from; null where its checkpoint has been pruned. */
async function decisionBefore(
  store: TaskStore,
  workflow: AnyWorkflow,
  taskId: string,
  events: readonly TaskEvent[],
): Promise<{ told: StatusBarInput; events: readonly TaskEvent[] } | null> {
  const at = events.findLastIndex(({ kind, data }) => kind === "decision" && data.measures);
  const event = events[at];
  if (!event) return null;
  const snapshot = (await snapshotsByRevision(store, workflow, taskId)).get(event.revision - 1);
  if (!snapshot) return null;
  const observation = (event.data.observation as Observation | undefined) ?? snapshot.execution.observation;
  return { told: { workflow, snapshot, observation, now: event.at }, events: events.slice(0, at) };
}

const NOT_SWITCHED: Switches = { on: [], off: [] };

/** When the observation before this one came. */
function timeBefore(turns: readonly Turn[], said: Observation | null): number | null {
  const before = turns.findLast(({ observation }) => observation && !isSameObservation(observation, said))?.observation;
  return before && "at" in before ? (before.at ?? null) : null;
}

function observe({ execution: { pending } }: Snapshot, text: string, at: number): Observation {
  return pending?.kind === "question"
    ? { kind: "answer", question: pending.question, text, at }
    : { kind: "message", text, at };
}

/** The task as it will be once its open question is answered. */
function answered(workflow: AnyWorkflow, snapshot: Snapshot, said: Observation | null): Snapshot {
  if (!snapshot.execution.pending || !said) return snapshot;
  const settled = settle(workflow, snapshot, { observation: said, result: null, usage: NO_USAGE });
  return settled.ok ? { ...snapshot, execution: settled.update.execution } : snapshot;
}

/** A task as it was last committed; null where there is none. */
export async function latestSnapshot(
  store: TaskStore,
  workflow: AnyWorkflow,
  taskId: string,
): Promise<Snapshot | null> {
  const head = await store.head(taskId);
  if (!head) return null;
  const configurable = { thread_id: taskId, checkpoint_ns: "", checkpoint_id: head.checkpointId };
  const tuple = await store.checkpointer.getTuple({ configurable });
  return { execution: head.execution, state: pickState(workflow.state, tuple?.checkpoint.channel_values ?? {}) };
}
