import { targets } from "../../workflow/next-step.ts";
import type { AnyWorkflow, Snapshot } from "../../workflow/define.ts";

const SHOWN_STEPS = 3;

/**
 * How far a task has come. "of N" is the number of steps on the shortest way from here to an end, the final
 * step not counted, added to those that are behind it; where the table leaves a choice on that way, it says "at
 * least". Nothing before the first step is done. Pure.
 *
 * @example progress: step 2 of 3 (done: read_log; now: knowledge_base): do this step's part, no more
 */
export function progressReading(workflow: AnyWorkflow, { execution }: Snapshot): string | null {
  const { step } = execution;
  if (!Object.hasOwn(workflow.steps, step)) return null;
  const done = execution.completedSteps.filter((name) => name !== step && Object.hasOwn(workflow.steps, name));
  const way = wayToAnEnd(workflow, step);
  if (done.length === 0 || !way) return null;
  const total = `${way.isForced ? "" : "at least "}${done.length + way.steps}`;
  const earlier = done.length > SHOWN_STEPS ? `${done.length - SHOWN_STEPS} more, ` : "";
  const names = `${earlier}${done.slice(-SHOWN_STEPS).join(", ")}`;
  return `progress: step ${done.length + 1} of ${total} (done: ${names}; now: ${step}): do this step's part, no more`;
}

/** The steps still to be made, this one included; null where no end can be reached. */
function wayToAnEnd(workflow: AnyWorkflow, start: string): { steps: number; isForced: boolean } | null {
  let reached = [start];
  const seen = new Set(reached);
  let isForced = true;
  for (let steps = 0; reached.length > 0; steps++) {
    if (reached.some((name) => workflow.steps[name]?.final)) return steps > 0 ? { steps, isForced } : null;
    // A step that may repeat itself leaves no choice of the way.
    const choices = new Set(reached.flatMap((name) => targets(workflow.steps[name]).filter((to) => to !== name)));
    isForced &&= choices.size === 1;
    reached = [...choices].filter((name) => !seen.has(name));
    for (const name of reached) seen.add(name);
  }
  return null;
}
