import type { BaseChannel, Interrupt, LangGraphRunnableConfig, StateSnapshot } from "@langchain/langgraph";
import { CompiledStateGraph, getConfig, INTERRUPT } from "@langchain/langgraph";
import type { PauseValue } from "../people/pause.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import type { Execution } from "../state/execution.ts";
import type { Fields, ValueOf } from "../state/fields.ts";
import { retry } from "../workflow/record.ts";
import { ACT } from "../workflow/next-step.ts";
import { checkEdit } from "./admit-edit.ts";
import { cancelTask } from "./cancel.ts";
import { unknownTask } from "./admit-input.ts";
import { drawTable } from "./drawing.ts";
import { personOf } from "./identity.ts";
import { runNested } from "./nested.ts";
import { overridden, permissionIn, permitOverride, type Override } from "./override.ts";
import { requireCheckpoint, runTask, type RunOptions } from "./run.ts";
import { OWN_TASK, STREAM_REPLIES, type Runtime } from "./runtime.ts";
import { LEASE_TOKEN, LOADED, type Lease } from "./store.ts";
import { checkTaskId } from "./task-id.ts";

/** A task's values: every field, or null where it has no value, and the execution record. */
export type WorkflowValues<F extends Fields> = { -readonly [K in keyof F]: ValueOf<F[K]> | null } & {
  execution: Execution;
};

/** What `invoke` gives: the values and, on a pause, the interrupt that lists what is asked. */
export type WorkflowResult<F extends Fields> = WorkflowValues<F> & { [INTERRUPT]?: Interrupt<PauseValue>[] };

// LangGraph derives the types of invoke and stream from records of channels.
type InputChannels<F extends Fields, I extends keyof F & string> = {
  message: BaseChannel<string | null, string | null | undefined>;
} & { [K in I]: BaseChannel<ValueOf<F[K]> | null, ValueOf<F[K]> | null | undefined> };
type OutputChannels<F extends Fields> = { [K in keyof F]: BaseChannel<ValueOf<F[K]> | null> } & {
  execution: BaseChannel<Execution>;
} & { [INTERRUPT]?: BaseChannel<Interrupt<PauseValue>[]> };

type StreamOptions = RunOptions & Readonly<Record<string, unknown>>;

/** What the constructor takes: a plain compiled graph's parts and our runtime. */
export type WorkflowGraphParts = ConstructorParameters<typeof CompiledStateGraph>[0] & { readonly runtime: Runtime };

/**
 * A compiled workflow: a normal compiled LangGraph graph, to invoke, stream, and put into other
 * graphs, in which every run holds its task's lease. A task is a LangGraph thread.
 */
export class WorkflowGraph<F extends Fields = Fields, I extends keyof F & string = never> extends CompiledStateGraph<
  WorkflowValues<F>,
  Partial<WorkflowValues<F>>,
  string,
  InputChannels<F, I>,
  OutputChannels<F>
> {
  /** What the nodes share; for the command line and servers of this package. */
  declare readonly runtime: Runtime;

  constructor(parts: WorkflowGraphParts) {
    // Whatever a caller binds by withConfig, every run is durable step by step.
    const {
      checkpointDuring: _during,
      durability: _durability,
      ...config
    } = (parts as { config?: StreamOptions }).config ?? {};
    super({ ...parts, config } as never);
    Object.defineProperty(this, "runtime", { value: parts.runtime, enumerable: true });
    const { checkpointer } = parts.runtime.store;
    // The LangGraph server replaces every graph's checkpointer by its own; tasks live in our store.
    Object.defineProperty(this, "checkpointer", { get: () => checkpointer, set() {}, enumerable: true });
    const inherited = this.stream.bind(this) as unknown as (input: unknown, options?: StreamOptions) => unknown;
    Object.defineProperty(this, "stream", {
      value: (input: unknown, options?: StreamOptions) => inherited(input, markOwnTask(options)),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }

  override _streamIterator(input: never, options?: never): AsyncGenerator<never> {
    const passed = (options ?? {}) as StreamOptions;
    const given = {
      ...passed,
      configurable: { ...this.config?.configurable, ...passed.configurable },
    } as StreamOptions;
    if (given.configurable?.__pregel_read === undefined) {
      return this.runOwn(input, given, taskIdOf(given.configurable)) as AsyncGenerator<never>;
    }
    const run = (nestedInput: unknown, nestedOptions: RunOptions, taskId: string) =>
      this.runOwn(nestedInput, nestedOptions as StreamOptions, taskId);
    return runNested({ runtime: this.runtime, input, options: given, run }) as AsyncGenerator<never>;
  }

  private runOwn(input: unknown, options: StreamOptions, taskId: string): AsyncGenerator<unknown> {
    return runTask({
      runtime: this.runtime,
      taskId,
      input,
      options,
      loop: (admitted, runOptions, lease) => this.loop(admitted, runOptions as StreamOptions, lease),
      retry: (lease) => this.retryFailed(lease),
    });
  }

  /** LangGraph's own loop, with the settings that the promises need. */
  private loop(input: unknown, options: StreamOptions, lease: Lease): AsyncGenerator<unknown> {
    const { checkpointDuring: _ignored, ...rest } = options;
    const settings = {
      ...rest,
      // Under "async" the next steps run on after a refused checkpoint.
      durability: "sync",
      configurable: {
        ...options.configurable,
        thread_id: lease.taskId,
        [LEASE_TOKEN]: lease.token,
        [STREAM_REPLIES]: wantsReplies(options),
      },
    };
    return super._streamIterator(input, settings as never);
  }

  private async retryFailed(lease: Lease): Promise<void> {
    const head = await this.runtime.store.head(lease.taskId);
    if (!head) throw unknownTask(lease.taskId);
    const values = { execution: retry(head.execution) };
    const configurable = { thread_id: lease.taskId, checkpoint_ns: "", [LEASE_TOKEN]: lease.token };
    await super.bulkUpdateState({ configurable }, [{ updates: [{ values, asNode: ACT }] }]);
  }

  /**
   * Puts a task at a step or corrects fields past the table, for repairs. Whoever does it needs a name
   * (`signedIn`) and a reason; both are logged. The schema still holds.
   *
   * @throws OVERRIDE_REFUSED, INVALID_UPDATE, UNKNOWN_TASK, TASK_BUSY.
   * @example await graph.override({ configurable: { thread_id: "t-1", ...signedIn("ada") } }, { step: "review", reason: "sent by mistake" })
   */
  async override(config: RunOptions, change: Override): Promise<void> {
    const { store, workflow } = this.runtime;
    const taskId = taskIdOf(config.configurable);
    const permit = permitOverride(personOf(config.configurable), redact(change.reason));
    if ((await store.head(taskId)) === null) throw unknownTask(taskId);
    const lease = await store.acquire(taskId);
    try {
      const head = await store.head(taskId);
      if (!head) throw unknownTask(taskId);
      const execution = overridden(workflow, head.execution, change);
      if (await holdsInput(this.runtime, taskId, undefined)) {
        const message = `task ${taskId} has not taken its input in yet, and an override would lose it; wake the task first`;
        throw new WorkflowError("INVALID_UPDATE", message, { details: { taskId } });
      }
      const configurable = { thread_id: taskId, checkpoint_ns: "", [LEASE_TOKEN]: lease.token, ...permit };
      const values = { ...redactDeep(change.values ?? {}), execution };
      await super.bulkUpdateState({ configurable }, [{ updates: [{ values, asNode: ACT }] }]);
      if (store.guarantees === "in-process") {
        const { who, reason } = permissionIn(permit) ?? {};
        const data = { who, reason, from: head.execution.step, to: execution.step };
        await store.append(taskId, execution.revision, "override", data);
      }
    } finally {
      await store.release(lease);
    }
  }

  /**
   * Ends a task for good, whoever runs it: that process loses its lease and can commit nothing more. What
   * was done stays done; a call that has begun is not undone. Who did it (`signedIn`) and why are logged.
   *
   * @throws UNKNOWN_TASK, TASK_FINISHED, TASK_CANCELLED; with another LangGraph checkpointer also TASK_BUSY,
   * since there nothing could stop a run.
   * @example await graph.cancel({ configurable: { thread_id: "t-1", ...signedIn("ada") } }, "asked twice")
   */
  async cancel(config: RunOptions, reason = ""): Promise<void> {
    const by = { who: personOf(config.configurable), reason: redact(reason.trim()) };
    await cancelTask(this.runtime, taskIdOf(config.configurable), by);
  }

  /**
   * LangGraph's state update, for correcting domain fields by hand. It takes the lease, keeps to the
   * schema, and can move nothing.
   *
   * @throws ILLEGAL_STATE, INVALID_UPDATE, UNKNOWN_TASK, TASK_BUSY.
   */
  override async bulkUpdateState(
    ...[config, given]: Parameters<CompiledStateGraph<never, never>["bulkUpdateState"]>
  ): Promise<LangGraphRunnableConfig> {
    const steps = redactDeep(given);
    const { store, workflow } = this.runtime;
    const taskId = taskIdOf(config.configurable);
    const head = await store.head(taskId);
    if (!head) throw unknownTask(taskId);
    const lease = await store.acquire(taskId);
    try {
      const address: unknown = config.configurable?.checkpoint_id;
      const isFork = typeof address === "string" && address !== head.checkpointId;
      if (isFork) await requireCheckpoint(this.runtime, taskId, address);
      let base = (await super.getState({ configurable: { ...config.configurable, thread_id: taskId } }))
        .values as Record<string, unknown>;
      if (await holdsInput(this.runtime, taskId, address)) {
        const message = `task ${taskId} has not taken its input in at this checkpoint, and an update would lose it; wake the task first, or edit a later checkpoint`;
        throw new WorkflowError("INVALID_UPDATE", message, { details: { taskId } });
      }
      for (const update of steps.flatMap(({ updates }) => updates)) base = checkEdit(workflow, base, update);
      if (isFork) await store.fork(lease, address);
      const updated = await super.bulkUpdateState(
        { ...config, configurable: { ...config.configurable, [LEASE_TOKEN]: lease.token } },
        steps,
      );
      const values = steps.flatMap(({ updates }) => updates.map((update) => update.values)).filter(isPlainObject);
      await store.noteEdit(taskId, head.execution.revision, Object.assign({}, ...values) as Record<string, unknown>);
      // The lease token must not leave the process: the server sends this config to its clients.
      const { [LEASE_TOKEN]: _token, [LOADED]: _loaded, ...configurable } = updated.configurable ?? {};
      return { configurable };
    } catch (error) {
      if (isWorkflowError(error)) throw error;
      const said = shorten(error instanceof Error ? error.message : String(error), 500);
      throw new WorkflowError("INVALID_UPDATE", `the state of task ${taskId} was not changed: ${said}`, {
        cause: error,
      });
    } finally {
      await store.release(lease);
    }
  }

  /** Draws the table: each step with the steps that may follow, and the shared action node. */
  override async getGraphAsync(_options?: object): Promise<ReturnType<typeof drawTable>> {
    const bodies = this.nodes as Readonly<Record<string, { bound: unknown }>>;
    return drawTable(this.runtime.workflow, (name) => bodies[name]?.bound);
  }

  override async getState(config: LangGraphRunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot> {
    const { checkpoint_ns: namespace, thread_id: thread, __pregel_checkpointer: foreign } = config.configurable ?? {};
    // A foreign graph asks for the state of its node; ours is a task of its own.
    if (namespace && foreign)
      return super.getState({ configurable: { thread_id: `${String(thread)}|${String(namespace)}` } }, options);
    return super.getState(config, options);
  }
}

/** Whether a checkpoint still has the task's input in the channel that LangGraph starts with. */
async function holdsInput({ store }: Runtime, taskId: string, address: unknown): Promise<boolean> {
  const at = typeof address === "string" ? { checkpoint_id: address } : {};
  const tuple = await store.checkpointer.getTuple({ configurable: { thread_id: taskId, checkpoint_ns: "", ...at } });
  return tuple?.checkpoint.channel_values.__start__ !== undefined;
}

function taskIdOf(configurable: Readonly<Record<string, unknown>> | undefined): string {
  const id = configurable?.thread_id;
  if (id === undefined || id === null || id === "") {
    throw new WorkflowError("MISSING_TASK_ID", 'no task id: pass { configurable: { thread_id: "…" } }');
  }
  return checkTaskId(String(id));
}

/** Marks a call from inside another graph that names a task of its own, which is then no subgraph. */
function markOwnTask(options: StreamOptions | undefined): StreamOptions | undefined {
  const around: Readonly<Record<string, unknown>> = getConfig()?.configurable ?? {};
  const own = options?.configurable;
  const isForeignCall = around.__pregel_read !== undefined && own?.thread_id !== undefined;
  if (!isForeignCall || own?.__pregel_read !== undefined || own?.thread_id === around.thread_id) return options;
  return { ...options, configurable: { ...own, [OWN_TASK]: true } };
}

function wantsReplies(options: StreamOptions): boolean {
  const modes = new Set([options.streamMode].flat());
  if (modes.has("custom") || modes.has("messages") || "version" in options) return true;
  const callbacks = options.callbacks as { handlers?: unknown[] } | unknown[] | undefined;
  const handlers = Array.isArray(callbacks) ? callbacks : (callbacks?.handlers ?? []);
  return handlers.some((handler) => isStreamingHandler(handler));
}

function isStreamingHandler(handler: unknown): boolean {
  return (
    typeof handler === "object" &&
    handler !== null &&
    "lc_prefer_streaming" in handler &&
    Boolean(handler.lc_prefer_streaming)
  );
}
