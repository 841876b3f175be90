import { setMaxListeners } from "node:events";
import { MUST_BE_NEW, STOP } from "../compile/runtime.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { WorkflowError } from "../errors.ts";

/** How long a task may take; no limit unless set. */
export interface TimeLimits {
  /** Between two commits of a task, in milliseconds. */
  readonly stepMs?: number;
  /** For one attempt at a task, in milliseconds. */
  readonly taskMs?: number;
}

export interface Attempt {
  readonly graph: WorkflowGraph;
  readonly taskId: string;
  /** What starts the task; null to let one go on. */
  readonly input: Readonly<Record<string, unknown>> | null;
  readonly limits: TimeLimits;
  /** Once aborted, the run ends before its next step. */
  readonly stop: AbortSignal;
  /** Once aborted, the run ends at once. */
  readonly cut: AbortSignal;
  /** Called when the first step of this attempt has been committed. */
  readonly onTakenUp: () => void;
}

/**
 * Runs a task once, as far as it goes. What hangs is left behind at its time limit: it may go on in this process,
 * but it holds the task no longer and can commit nothing.
 *
 * @throws TASK_TIMEOUT, TASK_STOPPED, TASK_BUSY, TASK_EXISTS, and whatever ends the run.
 */
export async function attempt({ graph, taskId, input, limits, stop, cut, onTakenUp }: Attempt): Promise<void> {
  // Not AbortSignal.any: what it makes is kept as long as anybody listens, and whoever runs graphs listens for ever.
  const ending = new AbortController();
  const { signal } = ending;
  const pass = () => ending.abort(cut.reason);
  // All attempts of a process share it, and each listens while it runs.
  setMaxListeners(0, cut);
  cut.addEventListener("abort", pass, { once: true });
  if (cut.aborted) pass();
  const timers = new Timers(ending, taskId, limits);
  const run = async () => {
    const configurable = { thread_id: taskId, [STOP]: stop, ...(input === null ? {} : { [MUST_BE_NEW]: true }) };
    const chunks = await graph.stream(input as never, { configurable, signal, streamMode: "updates" });
    let isFirst = true;
    for await (const _chunk of chunks) {
      if (isFirst) onTakenUp();
      isFirst = false;
      timers.step();
    }
  };
  const running = run();
  const aborted = untilAborted(signal);
  try {
    await Promise.race([running, aborted.promise]);
  } catch (error) {
    // What an abort makes of the run tells less than why it was aborted.
    signal.throwIfAborted();
    throw error;
  } finally {
    timers.end();
    aborted.end();
    cut.removeEventListener("abort", pass);
    running.catch(() => {});
  }
}

/** The two clocks that run beside an attempt. */
class Timers {
  private readonly late: AbortController;
  private readonly taskId: string;
  private readonly limits: TimeLimits;
  private readonly whole: NodeJS.Timeout | undefined;
  private current: NodeJS.Timeout | undefined;

  constructor(late: AbortController, taskId: string, limits: TimeLimits) {
    this.late = late;
    this.taskId = taskId;
    this.limits = limits;
    this.whole = this.start(limits.taskMs, (ms) => `was not done within ${ms / 1000} s, its limit`);
    this.step();
  }

  /** A step has been committed: the next one has its full time. */
  step(): void {
    clearTimeout(this.current);
    this.current = this.start(this.limits.stepMs, (ms) => `committed nothing for ${ms / 1000} s, the limit of a step`);
  }

  end(): void {
    clearTimeout(this.whole);
    clearTimeout(this.current);
  }

  private start(ms: number | undefined, say: (ms: number) => string): NodeJS.Timeout | undefined {
    if (ms === undefined) return undefined;
    return setTimeout(() => {
      const message = `task ${this.taskId} ${say(ms)}; what was committed stays, resume it to go on from there`;
      const details = { taskId: this.taskId, limitMs: ms };
      this.late.abort(new WorkflowError("TASK_TIMEOUT", message, { retryable: true, details }));
    }, ms);
  }
}

function untilAborted(signal: AbortSignal): { readonly promise: Promise<never>; readonly end: () => void } {
  let onAbort = () => {};
  const promise = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  promise.catch(() => {});
  return { promise, end: () => signal.removeEventListener("abort", onAbort) };
}
