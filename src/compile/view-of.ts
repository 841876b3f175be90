import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { providerOf } from "../decision/providers.ts";
import { isPlainObject } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { Observation } from "../state/execution.ts";
import { needsTurns, type ViewOptions } from "../view/options.ts";
import { summaryCut } from "../view/policies/summary.ts";
import { renderView, type View } from "../view/render.ts";
import { barAtTheEnd } from "../view/status-bar/told.ts";
import type { StandingSnapshot } from "../view/scene.ts";
import { transcript, type Turn } from "../view/transcript.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { Runtime } from "./runtime.ts";
import type { TaskEvent } from "./store.ts";

/** The kind of log entry that says where an adaptive prompt's snapshot stands. */
const SNAPSHOT = "snapshot";
/** How far back a snapshot is looked for; where none is found, a new one is taken. */
const LOG_ENTRIES = 200;
/** What a snapshot does not survive: the task has another past or another workflow since. */
const ENDS_SNAPSHOT: ReadonlySet<string> = new Set(["forked", "migrated", "imported"]);

/**
 * What the model is shown for the next decision of a task. Reads the log only where the policy needs it,
 * and under the default policy only its latest entries, so that a prompt costs the same however long the
 * task has been running.
 *
 * @param assignment lines that say what this very decision is for.
 * @param memory lines of the memory block.
 */
export async function viewOf(
  runtime: Runtime,
  snapshot: Snapshot,
  observation: Observation | null,
  assignment: readonly string[] = [],
  memory: readonly string[] = [],
): Promise<View> {
  const { workflow, store } = runtime;
  const { taskId, step, revision } = snapshot.execution;
  const options = optionsFor(runtime.view, workflow.steps[step]?.model ?? runtime.model);
  const isAdaptive = options.policy === "adaptive";
  const events = needsTurns(options) ? await store.events(taskId, isAdaptive ? LOG_ENTRIES : undefined) : [];
  const turns = transcript(events);
  const observed = observation ?? snapshot.execution.observation;
  const { statusBar = {} } = options;
  const now = runtime.clock.now();
  const view = renderView({
    workflow,
    snapshot,
    observation: observed,
    statusBar: barAtTheEnd({ workflow, snapshot, observation: observed, now, options: statusBar }),
    turns,
    options,
    assignment,
    memory,
    standing: isAdaptive ? standingIn(events) : null,
    summary: await summaryOf(options, turns),
  });
  if (view.plan?.isNew && view.plan.choice.isKept) {
    // A state may be older than the declaration of a secret that stands in it.
    await store.append(taskId, revision, SNAPSHOT, redactDeep({ ...view.plan.standing }));
  }
  return view;
}

/** The options with the cache rule of the model that will be asked. */
export function optionsFor(options: ViewOptions, model: BaseChatModel | undefined): ViewOptions {
  return options.provider === undefined && model ? { ...options, provider: providerOf(model) } : options;
}

/** The snapshot that the latest prompts began with; null where it is not among these entries. Pure. */
export function standingIn(events: readonly TaskEvent[]): StandingSnapshot | null {
  const at = events.findLastIndex(({ kind }) => kind === SNAPSHOT);
  const found = events[at];
  if (!found || events.slice(at + 1).some(({ kind }) => ENDS_SNAPSHOT.has(kind))) return null;
  return isPlainObject(found.data.state) ? (found.data as unknown as StandingSnapshot) : null;
}

/** The summary that a caller's function makes of the turns that are left out. */
async function summaryOf({ policy, summarise, keepMessages }: ViewOptions, turns: readonly Turn[]) {
  if (policy !== "summary" || !summarise) return null;
  const cut = summaryCut(turns, keepMessages);
  return cut > 0 ? summarise(turns.slice(0, cut)) : null;
}
