import type { Observation } from "../../state/execution.ts";
import type { StatusBarInput } from "./input.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** From this gap on, what was known before may not be true any more. */
const LONG_GAP_MS = HOUR_MS;

/** A time as the model is told it: UTC, to the minute. */
function timeText(at: number): string {
  return `${new Date(at).toISOString().slice(0, -8).replace("T", " ")} UTC`;
}

/** A length of time in its largest fitting unit, rounded down: `4 min`, `3 h`, `2 days`. */
function durationText(ms: number): string {
  if (ms < MINUTE_MS) return "less than 1 min";
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} days`;
}

/**
 * When the observation came, and what a long gap before it means. A bare time hardly helps a model and makes every
 * prompt another one, so it is told only where the gap is long, unless it is asked for.
 */
export function observationTimes({ observation, previousAt, options }: StatusBarInput): readonly string[] {
  const at = arrivalOf(observation);
  if (at === null) return [];
  const gap = isTime(previousAt) && previousAt <= at ? at - previousAt : null;
  if (gap !== null && gap >= LONG_GAP_MS) {
    const rule = "what was true before may have changed, check it before you rely on it";
    return [`came ${timeText(at)}, ${durationText(gap)} after what came before: ${rule}`];
  }
  if (options?.timestamps !== true) return [];
  return [`came ${timeText(at)}${gap === null ? "" : `, ${durationText(gap)} after what came before`}`];
}

/** What time demands of this decision: nothing most of the time. */
export function timeReadings({ workflow, snapshot, observation, now }: StatusBarInput): readonly string[] {
  const { deadline } = workflow.steps[snapshot.execution.step] ?? {};
  const at = arrivalOf(observation);
  const age = at === null || !isTime(now) ? 0 : now - at;
  return [
    ...(age >= LONG_GAP_MS
      ? [`time: ${timeText(now)}, the observation is ${durationText(age)} old: check what it says before you act on it`]
      : []),
    ...(deadline
      ? [
          `deadline: a question or approval asked in this step waits ${durationText(deadline.afterMs)}, then the task goes to ${deadline.to}`,
        ]
      : []),
  ];
}

function arrivalOf(observation: Observation | null): number | null {
  const at = observation && "at" in observation ? observation.at : null;
  return isTime(at) ? at : null;
}

function isTime(at: number | null | undefined): at is number {
  return typeof at === "number" && !Number.isNaN(new Date(at).getTime());
}
