import type { TaskEvent } from "../compile/store.ts";
import type { TakenUpBy } from "./batch.ts";
import { NO_USAGE, type Measures, type Usage } from "../state/execution.ts";

/** What one decision of a model took; several calls where answers were refused first. */
interface DecisionMeasures extends Usage {
  readonly step: string;
  /** Milliseconds from the request to the whole answer, over all its calls. */
  readonly latencyMs: number;
  /** Milliseconds to the first piece of the first answer; equals the latency where nothing streams. */
  readonly firstTokenMs: number;
}

/** What a task's log tells about its runs. */
export interface TaskMeasures {
  readonly decisions: readonly DecisionMeasures[];
  /** How often it was begun or taken up by a batch or a worker, over all commands so far. */
  readonly attempts: number;
  /** True where it went on after a failure, a stop or a pause. */
  readonly resumed: boolean;
}

const BY: readonly TakenUpBy[] = ["batch", "worker"];

/** Reads a task's measures from its log. Pure. */
export function measuresOf(events: readonly TaskEvent[]): TaskMeasures {
  const count = (wanted: (event: TaskEvent) => boolean) => events.filter(wanted).length;
  const takenUp = count(({ kind, data }) => kind === "resumed" && BY.some((by) => by === data.by));
  return {
    decisions: events.flatMap(({ data }): DecisionMeasures[] => {
      const measures = data.measures as Measures | null | undefined;
      if (!measures) return [];
      const { latencyMs, firstTokenMs } = measures;
      return [{ step: String(data.step), ...((data.usage as Usage | undefined) ?? NO_USAGE), latencyMs, firstTokenMs }];
    }),
    attempts: Math.min(1, events.length) + takenUp,
    resumed: events.some(({ kind }) => kind === "resumed" || kind === "answered" || kind === "retry"),
  };
}

/** The middle of some numbers and what a twentieth of them exceeds; null where there are none. Pure. */
export function spread(values: readonly number[]): { readonly median: number; readonly p95: number } | null {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
  const [median, p95] = [at(0.5), at(0.95)];
  return median === undefined || p95 === undefined ? null : { median, p95 };
}
