import { signedIn } from "../compile/identity.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { EXIT } from "./exit.ts";
import { onStop } from "./stop-signals.ts";

/** Set by Ctrl-C; a second Ctrl-C ends the process at once. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly taskId: string;

  constructor(taskId: string, cause?: unknown) {
    super(`interrupted; nothing is lost`, { cause });
    this.taskId = taskId;
  }
}

export interface RunSettings {
  /** Who answers, where the input is an answer. */
  readonly who?: string;
  /** Gets the text of replies as it is written. */
  readonly onReply?: (delta: string) => void;
}

/**
 * Runs a task as far as it goes. Ctrl-C aborts the run: what was committed stays, the lease is
 * released, and the task can be resumed.
 *
 * @throws Interrupted.
 */
export async function runInterruptibly(
  graph: WorkflowGraph,
  taskId: string,
  input: unknown,
  { who, onReply }: RunSettings = {},
): Promise<void> {
  const abort = new AbortController();
  const listenNoMore = onStop(() => {
    if (abort.signal.aborted) process.exit(EXIT.interrupted);
    abort.abort(new Interrupted(taskId));
  });
  const config = {
    configurable: { thread_id: taskId, ...(who === undefined ? {} : signedIn(who)) },
    signal: abort.signal,
  };
  try {
    if (onReply) {
      for await (const chunk of await graph.stream(input as never, { ...config, streamMode: "custom" })) {
        const event = chunk as { type?: unknown; delta?: unknown };
        if (event.type === "reply" && typeof event.delta === "string") onReply(event.delta);
      }
    } else {
      await graph.invoke(input as never, config);
    }
  } catch (error) {
    if (abort.signal.aborted) throw new Interrupted(taskId, error);
    throw error;
  } finally {
    listenNoMore();
  }
}

/** True where the graph runs on an example's own rules instead of a model. */
export function isOffline(graph: WorkflowGraph): boolean {
  return graph.runtime.model?._llmType() === "offline-rules";
}
