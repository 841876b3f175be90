import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { INTERRUPT, interrupt } from "@langchain/langgraph";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { redactDeep } from "../internal/redact.ts";
import { isPlainObject } from "../internal/json.ts";
import { pauseValue } from "../people/pause.ts";
import { readReplies } from "../people/replies.ts";
import type { Request } from "../people/requests.ts";
import { isFinished } from "../workflow/next-step.ts";
import { personOf } from "./identity.ts";
import { openRequests } from "./open-requests.ts";
import type { RunOptions } from "./run.ts";
import { OWN_TASK, type Runtime } from "./runtime.ts";

interface NestedRun {
  readonly runtime: Runtime;
  readonly input: unknown;
  readonly options: RunOptions;
  readonly run: (input: unknown, options: RunOptions, taskId: string) => AsyncGenerator<unknown>;
}

type Configurable = Readonly<Record<string, unknown>>;
type StreamChunk = readonly [namespace: readonly string[], mode: string, value: unknown];

// LangGraph's task id for writes that belong to the whole superstep.
const NULL_TASK = "00000000-0000-0000-0000-000000000000";
const USED = "__statecard_used";

/**
 * Runs a workflow inside a foreign graph. It is a task of its own in our store, named by the
 * parent's thread and the node's namespace. Its pauses are raised again in the parent, each bound to
 * the list that was then shown; a finished task returns its output to the parent.
 */
export async function* runNested(nested: NestedRun): AsyncGenerator<unknown> {
  const outer: Configurable = nested.options.configurable ?? {};
  const explicit = outer[OWN_TASK] === true;
  const taskId = nestedTaskId(outer, explicit);
  const inner = { ...nested.options, configurable: { ...innerConfig(outer, explicit), thread_id: taskId } };
  if (explicit) {
    yield* withoutParent(nested.run(nested.input, inner, taskId), inner);
    return;
  }
  if (!outer.__pregel_checkpointer) {
    throw new WorkflowError(
      "MISSING_CHECKPOINTER",
      "a workflow inside another graph can pause, so that graph needs a checkpointer: compile it with one",
    );
  }
  const { runtime } = nested;
  const parent = new ParentPauses(runtime, taskId, nested.options);
  for (let round = 0; ; round++) {
    if (await isToRun(runtime, taskId, round)) {
      const isNew = (await runtime.store.head(taskId)) === null;
      for await (const chunk of withoutParent(
        nested.run(isNew ? ownInput(runtime, nested.input) : null, inner, taskId),
        inner,
      )) {
        if (!holdsInterrupt(chunk)) yield chunk;
      }
    }
    const head = await runtime.store.head(taskId);
    const open = await openRequests(runtime.store, taskId, head);
    if (open.length === 0) {
      if (head?.execution.status !== "failed") return;
      const { lastError } = head.execution;
      throw new WorkflowError("STEP_FAILED", `task ${taskId} failed: ${lastError?.message ?? "unknown"}`, {
        details: { taskId, lastError },
      });
    }
    await parent.ask(open);
  }
}

/** The part of the parent's state that is an input of this workflow. */
function ownInput(runtime: Runtime, values: unknown): unknown {
  if (!isPlainObject(values)) return values;
  const names = new Set(["message", ...runtime.workflow.input]);
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)));
}

/** A waiting task is not run before its parent's answer was looked at; a finished one only to give its output. */
async function isToRun(runtime: Runtime, taskId: string, round: number): Promise<boolean> {
  const head = await runtime.store.head(taskId);
  if (!head) return true;
  const waiting = (await openRequests(runtime.store, taskId, head)).length > 0;
  const finished = isFinished(runtime.workflow, head.execution);
  return !(waiting && round === 0) && !(finished && round > 0);
}

function nestedTaskId(outer: Configurable, explicit: boolean): string {
  if (outer.thread_id === undefined) return crypto.randomUUID();
  return explicit ? String(outer.thread_id) : `${String(outer.thread_id)}|${String(outer.checkpoint_ns)}`;
}

/** The parent's configurable without what ties a run to the parent's loop, but with its stream. */
function innerConfig(outer: Configurable, explicit: boolean): Record<string, unknown> {
  const keep = Object.entries(outer).filter(
    ([key]) => !key.startsWith("__pregel") && !key.startsWith("checkpoint_") && key !== OWN_TASK,
  );
  const configurable: Record<string, unknown> = Object.fromEntries(keep);
  const stream = outer.__pregel_stream as { modes: unknown; push: (chunk: StreamChunk) => void } | undefined;
  if (stream && !explicit) {
    const prefix = String(outer.checkpoint_ns).split("|");
    configurable.__pregel_stream = {
      modes: stream.modes,
      // The pause is raised again in the parent, so the inner one is not shown.
      push: ([namespace, mode, value]: StreamChunk) => {
        if ((mode === "values" || mode === "updates") && holdsInterrupt(value)) return;
        stream.push([[...prefix, ...namespace.filter(Boolean)], mode, value]);
      },
    };
  }
  return configurable;
}

function holdsInterrupt(chunk: unknown): boolean {
  const value: unknown = Array.isArray(chunk) ? chunk.at(-1) : chunk;
  return isPlainObject(value) && INTERRUPT in value;
}

/** Runs a generator outside the parent's ambient config, or LangGraph would take it for part of the parent. */
async function* withoutParent(
  generator: AsyncGenerator<unknown>,
  options: RunOptions & Readonly<Record<string, unknown>>,
): AsyncGenerator<unknown> {
  const bare = { callbacks: options.callbacks, tags: options.tags, metadata: options.metadata, configurable: {} };
  try {
    for (;;) {
      const next: Promise<IteratorResult<unknown>> = AsyncLocalStorageProviderSingleton.runWithConfig(
        bare,
        () => generator.next(),
        true,
      );
      const result = await next;
      if (result.done) return;
      yield result.value;
    }
  } finally {
    await generator.return(undefined);
  }
}

/** The interrupts that a nested task has raised in its parent's node, in their order. */
class ParentPauses {
  private readonly runtime: Runtime;
  private readonly taskId: string;
  private readonly options: RunOptions;
  private replayed = 0;

  constructor(runtime: Runtime, taskId: string, options: RunOptions) {
    this.runtime = runtime;
    this.taskId = taskId;
    this.options = options;
  }

  /** Pauses the parent for these requests; returns once an answer to them, or to what was shown before, is stored. */
  async ask(open: readonly Request[]): Promise<void> {
    const { store } = this.runtime;
    const earlier = await store.parentPauses(this.taskId);
    const used = earlier.filter((pause) => pause.used);
    // LangGraph gives resume values to the interrupts of a node by position: raise the old ones first.
    for (const pause of used.slice(this.replayed)) {
      this.raise(pause.requests);
      this.replayed++;
    }
    const ordinal = used.length;
    const pending = earlier.find((pause) => pause.ordinal === ordinal && !pause.used);
    let reply: unknown;
    try {
      reply = this.raise(open);
    } catch (pauseSignal) {
      await store.setParentPause(this.taskId, { ordinal, requests: open, used: false });
      throw pauseSignal;
    }
    await store.setParentPause(this.taskId, { ordinal, requests: pending?.requests ?? open, used: true });
    this.replayed++;
    await this.markUsed();
    if (pending && !(isPlainObject(reply) && reply[USED])) await this.store(readReplies(reply, pending.requests));
  }

  private raise(requests: readonly Request[]): unknown {
    return AsyncLocalStorageProviderSingleton.runWithConfig(this.options, () => interrupt(pauseValue(requests)));
  }

  private async store(replies: ReturnType<typeof readReplies>): Promise<void> {
    for (const reply of replies) {
      try {
        const seen = reply.shown === undefined ? {} : { shown: reply.shown };
        await this.runtime.store.answer(this.taskId, reply.id, {
          answer: redactDeep(reply.answer),
          who: personOf(this.options.configurable),
          ...seen,
        });
      } catch (error) {
        // Answered under the task's own id meanwhile: the first answer counts.
        if (!isWorkflowError(error, "STALE_RESUME")) throw error;
      }
    }
  }

  /** Marks the parent's resume value as taken, else a bare wake-up would give it to the next pause too. */
  private async markUsed(): Promise<void> {
    const outer: Configurable = this.options.configurable ?? {};
    const saver = outer.__pregel_checkpointer as
      | { putWrites?: (config: object, writes: unknown[], task: string) => Promise<void> }
      | undefined;
    const namespace = String(outer.checkpoint_ns).split("|").slice(0, -1).join("|");
    const map = (outer.checkpoint_map ?? {}) as Readonly<Record<string, unknown>>;
    const configurable = { thread_id: outer.thread_id, checkpoint_ns: namespace, checkpoint_id: map[namespace] };
    await saver?.putWrites?.({ configurable }, [["__resume__", { [USED]: true }]], NULL_TASK);
  }
}
