import type { Observation } from "../state/execution.ts";
import { withFacts } from "../view/status-bar/told.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import { isModelStep } from "../workflow/next-step.ts";
import type { Update } from "../workflow/advance.ts";
import type { Runtime } from "./runtime.ts";

/**
 * An observation with what code tells the model about it: when it came, which call of how many it was, what
 * helps after an error. Kept with the observation, so that it reads the same in every later prompt.
 *
 * @param snapshot the task as it is with the observation.
 * @param previous what was observed before.
 */
export function keepFacts(
  { workflow, view, clock }: Runtime,
  snapshot: Snapshot,
  observation: Observation,
  previous: Observation | null,
): Observation {
  // Facts are for models; code reads the record.
  if (!hasModelStep(workflow)) return observation;
  const previousAt = previous && "at" in previous ? (previous.at ?? null) : null;
  const { statusBar: options = {} } = view;
  return withFacts({ workflow, snapshot, observation, previousAt, now: clock.now(), options });
}

/** An update whose observation has its facts. */
export function updateWithFacts(runtime: Runtime, before: Snapshot, update: Update): Update {
  const { execution, changes } = update;
  if (!execution.observation || !execution.last?.observation) return update;
  const after = { execution, state: { ...before.state, ...changes } };
  const observation = keepFacts(runtime, after, execution.observation, before.execution.observation);
  return { changes, execution: { ...execution, observation, last: { ...execution.last, observation } } };
}

const known = new WeakMap<AnyWorkflow, boolean>();

function hasModelStep(workflow: AnyWorkflow): boolean {
  let has = known.get(workflow);
  if (has === undefined) {
    has = Object.values(workflow.steps).some(isModelStep);
    known.set(workflow, has);
  }
  return has;
}
