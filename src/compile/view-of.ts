import type { Observation } from "../state/execution.ts";
import { needsTurns, renderView, type View } from "../view/render.ts";
import { transcript } from "../view/transcript.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { Runtime } from "./runtime.ts";

/** What the model is shown for the next decision of a task; reads the log only where the policy needs it. */
export async function viewOf(runtime: Runtime, snapshot: Snapshot, observation: Observation | null): Promise<View> {
  const { workflow, view: options, store } = runtime;
  let turns = needsTurns(options) ? transcript(await store.events(snapshot.execution.taskId)) : [];
  // The latest observation stands at the end of the view already.
  if (turns.at(-1)?.role === "user") turns = turns.slice(0, -1);
  return renderView({ workflow, snapshot, observation: observation ?? snapshot.execution.observation, turns, options });
}
