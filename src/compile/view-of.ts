import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { providerOf } from "../decision/providers.ts";
import { digest } from "../internal/digest.ts";
import { isPlainObject, jsonEqual } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { Observation } from "../state/execution.ts";
import { assignmentOf } from "../view/assignment.ts";
import { needsTurns, type ViewOptions } from "../view/options.ts";
import { summaryCut } from "../view/policies/summary.ts";
import { renderView, type View, type ViewInput } from "../view/render.ts";
import type { StatusBarInput } from "../view/status-bar/input.ts";
import { barAtTheEnd } from "../view/status-bar/told.ts";
import type { StandingSnapshot } from "../view/scene.ts";
import { hideDeep } from "../view/hidden-values.ts";
import { givenIn, transcript, type Turn } from "../view/transcript.ts";
import { withhold, WITHHELD_NOTE, type Withheld } from "../view/withhold.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import type { Phase } from "../workflow/plan.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import type { Runtime } from "./runtime.ts";
import type { TaskEvent } from "./store.ts";

/** The kind of log entry that says where an adaptive prompt's snapshot stands. */
const SNAPSHOT = "snapshot";
/** How far back a snapshot is looked for; where none is found, a new one is taken. */
const LOG_ENTRIES = 200;
/** What a snapshot does not survive: the task has another past or another workflow since. */
const ENDS_SNAPSHOT: ReadonlySet<string> = new Set(["forked", "migrated", "imported"]);

/** What a prompt is made from. */
export interface Shown {
  readonly snapshot: Snapshot;
  /** Who will read it: its provider's cache decides what is cheapest. */
  readonly model: BaseChatModel;
  /** What came in with this decision; null where that is in the record already. */
  readonly observation: Observation | null;
  /** Lines of the memory block. */
  readonly memory?: readonly string[];
  /** What this very decision is for, in a step that plans or loops. */
  readonly phase?: Phase | null;
  /** The kinds of data that the prompt may not show. */
  readonly withheld?: readonly string[];
}

/** A prompt, and what takes out of further texts for the same model what the prompt does not show. */
export interface ShownView {
  readonly view: View;
  /** Null where nothing is withheld. */
  readonly hide: ((text: string) => string) | null;
}

/**
 * What the model is shown for the next decision of a task. Reads the log only where the policy needs it,
 * and under the default policy only its latest entries, so that a prompt costs the same however long the
 * task has been running.
 */
export async function viewOf(runtime: Runtime, shown: Shown): Promise<ShownView> {
  const { workflow, store } = runtime;
  const { withheld = [] } = shown;
  const { taskId, revision } = shown.snapshot.execution;
  const options = optionsFor(runtime.view, shown.model);
  const isAdaptive = options.policy === "adaptive";
  // What calls were made with tells which kinds of data their results hold.
  const needsLog = needsTurns(options) || withheld.length > 0;
  const whole = needsTurns(options) && !isAdaptive;
  const events = needsLog ? await store.events(taskId, whole ? undefined : LOG_ENTRIES) : [];
  const { input, hide } = promptFrom({
    told: {
      workflow,
      snapshot: shown.snapshot,
      observation: shown.observation ?? shown.snapshot.execution.observation,
      now: runtime.clock.now(),
    },
    events,
    options,
    assignment: assignmentOf(shown.phase ?? null),
    memory: shown.memory ?? [],
    withheld,
  });
  const view = renderView({ ...input, summary: await summaryOf(options, input.turns) });
  if (view.plan?.isNew && view.plan.choice.isKept) {
    // A state may be older than the declaration of a secret that stands in it.
    const key = withheldKey(workflow, withheld);
    const standing = redactDeep({ ...view.plan.standing, ...(key.length > 0 ? { withheld: key } : {}) });
    await store.append(taskId, revision, SNAPSHOT, standing);
  }
  return { view, hide };
}

/** What a prompt is rendered from, before anything is withheld. */
export interface PromptSource {
  /** The task, and what its status bar depends on; the options of the bar are those of the view. */
  readonly told: StatusBarInput;
  readonly events: readonly TaskEvent[];
  readonly options: ViewOptions;
  readonly assignment?: readonly string[];
  readonly memory: readonly string[];
  /** The kinds of data that the prompt may not show. */
  readonly withheld: readonly string[];
}

/** What a view is rendered from, without what is withheld from it. Pure. */
export function promptFrom({ told, events, options, assignment = [], memory, withheld }: PromptSource): {
  readonly input: ViewInput;
  readonly hide: ((text: string) => string) | null;
} {
  const { workflow } = told;
  const { snapshot: whole, observation: latest } = told;
  const all = { snapshot: whole, observation: latest, turns: transcript(events), given: givenIn(events) };
  const rest = withheld.length > 0 ? withhold(workflow, withheld, all) : null;
  const { snapshot, observation, turns, given } = rest ?? all;
  const hide = rest?.hide ?? null;
  const standing = standingIn(events, withheldKey(workflow, withheld));
  const { memories } = workflow.sensitive;
  const remembered = memories !== undefined && withheld.includes(memories) ? [] : memory;
  const input: ViewInput = {
    workflow,
    snapshot,
    observation,
    statusBar: barAtTheEnd({ ...told, snapshot, observation, options: options.statusBar ?? {} }),
    turns,
    given: given ?? null,
    options,
    assignment: hide ? [...assignment.map(hide), WITHHELD_NOTE] : assignment,
    memory: hide ? remembered.map(hide) : remembered,
    // What it shows was hidden by what was known then.
    standing: standing && rest && shows(standing, rest) ? null : standing,
  };
  return { input, hide };
}

/** Whether a snapshot holds something that is hidden now. What a value could be taken for, such as a field's name, does not count. */
function shows(
  { state, shown = {}, recent, observation }: StandingSnapshot,
  { hide, seen }: Pick<Withheld, "hide" | "seen">,
): boolean {
  const parts = [Object.values(state), Object.values(shown), recent];
  if (!jsonEqual(parts, hideDeep(parts, hide))) return true;
  return observation !== undefined && !jsonEqual(observation, seen(observation));
}

/** What a snapshot leaves out: the kinds of data, and what was declared to be of them. Empty where nothing is. */
function withheldKey(workflow: AnyWorkflow, withheld: readonly string[]): readonly string[] {
  return withheld.length === 0 ? [] : [...withheld, digest([...sensitiveSources(workflow)])];
}

/** The options with the cache rule of the model that will be asked. */
export function optionsFor(options: ViewOptions, model: BaseChatModel | undefined): ViewOptions {
  return options.provider === undefined && model ? { ...options, provider: providerOf(model) } : options;
}

/**
 * The snapshot that the latest prompts began with; null where it is not among these entries, or shows more or less
 * than it may now. Pure.
 */
export function standingIn(events: readonly TaskEvent[], withheld: readonly string[] = []): StandingSnapshot | null {
  const at = events.findLastIndex(({ kind }) => kind === SNAPSHOT);
  const found = events[at];
  if (!found || events.slice(at + 1).some(({ kind }) => ENDS_SNAPSHOT.has(kind))) return null;
  if (!jsonEqual(found.data.withheld ?? [], withheld)) return null;
  return isPlainObject(found.data.state) ? (found.data as unknown as StandingSnapshot) : null;
}

/** The summary that a caller's function makes of the turns that are left out. */
async function summaryOf({ policy, summarise, keepMessages }: ViewOptions, turns: readonly Turn[]) {
  if (policy !== "summary" || !summarise) return null;
  const cut = summaryCut(turns, keepMessages);
  return cut > 0 ? summarise(turns.slice(0, cut)) : null;
}
