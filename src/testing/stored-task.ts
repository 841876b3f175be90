import { uuid6, type Checkpoint, type CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { z } from "zod";
import { LEASE_TOKEN, LOADED, type Lease, type TaskStore } from "../compile/store.ts";
import { newExecution, NO_USAGE, type Execution } from "../state/execution.ts";
import { field } from "../state/fields.ts";
import { anyWorkflow, defineWorkflow } from "../workflow/define.ts";
import { dueNode, END_OF_TASK } from "../workflow/next-step.ts";

/** The workflow of tasks whose checkpoints are written by hand. */
export const storedWorkflow = anyWorkflow(
  defineWorkflow({
    name: "statecard-conformance",
    version: 1,
    state: { note: field(z.string()) },
    initial: "ask",
    steps: { ask: { writes: ["note"], to: ["ask", "done"] }, done: { final: true } },
  }),
);

/** A task whose checkpoints are written one by one through the store's saver, as LangGraph's loop would. */
export class StoredTask {
  readonly store: TaskStore;
  readonly taskId: string;
  readonly lease: Lease;
  /** The checkpoint written last. */
  head: string;
  execution: Execution;
  /** What is added to the state's channels of every checkpoint. */
  extra: Readonly<Record<string, unknown>> = {};
  /** How the checkpoint that writes are based on was read. */
  loaded: "head" | "addressed" = "head";
  private token: unknown;
  private step = -1;

  private constructor(store: TaskStore, taskId: string, lease: Lease) {
    this.store = store;
    this.taskId = taskId;
    this.lease = lease;
    this.token = lease.token;
    this.head = "";
    this.execution = newExecution(storedWorkflow);
  }

  /** A new task with its lease and its first two checkpoints: the input, and the input taken. */
  static async start(store: TaskStore, taskId: string): Promise<StoredTask> {
    store.bind(storedWorkflow);
    const task = new StoredTask(store, taskId, await store.acquire(taskId));
    await task.commit(task.execution, { source: "input", values: { __start__: { message: "go" } } });
    await task.commit(task.execution);
    return task;
  }

  copy(): StoredTask {
    return Object.assign(new StoredTask(this.store, this.taskId, this.lease), this);
  }

  withToken(token: unknown): StoredTask {
    const copy = this.copy();
    copy.token = token;
    return copy;
  }

  /** Commits a decision that asks. */
  ask(question: string): Promise<void> {
    const decision = this.execution.decisions + 1;
    return this.decide({ status: "waiting_user", pending: { kind: "question", decision, question } });
  }

  /** Commits a decision that stays in the step, unless the changes say otherwise. */
  decide(changes: Partial<Execution> = {}): Promise<void> {
    const { execution } = this;
    return this.commit({
      ...execution,
      taskId: this.taskId,
      status: "running",
      revision: execution.revision + 1,
      decisions: execution.decisions + 1,
      last: {
        kind: "decision",
        step: execution.step,
        decision: {},
        observation: null,
        usage: NO_USAGE,
        measures: null,
      },
      ...changes,
    });
  }

  /** Writes the next checkpoint; what it holds is up to the caller, legal or not. */
  async commit(
    execution: Execution,
    options: { source?: "input" | "loop" | "update" | "fork"; values?: object; id?: string } = {},
  ): Promise<void> {
    const values = options.values ?? branchesOf(execution);
    const id = options.id ?? uuid6(0);
    const checkpoint = checkpointOf(id, { note: null, message: null, ...this.extra, ...values, execution });
    const metadata = { source: options.source ?? "loop", step: this.step, parents: {} };
    await this.store.checkpointer.put(this.config(""), checkpoint, metadata, {});
    this.step++;
    this.head = id;
    this.execution = execution;
  }

  /** Stores a pending write of the head. */
  async write(channel: string, value: unknown): Promise<void> {
    await this.store.checkpointer.putWrites(this.config(""), [[channel, value]], "task-1");
  }

  /** Writes as a graph inside a step does. */
  async inner(namespace: string, values: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { checkpointer } = this.store;
    const checkpoint = checkpointOf(uuid6(0), values);
    const at = await checkpointer.put(this.config(namespace), checkpoint, { source: "loop", step: 0, parents: {} }, {});
    const configurable = { ...this.config(namespace).configurable, ...at.configurable };
    await checkpointer.putWrites({ configurable }, [["note", "inner"]], "task-2");
  }

  stored(id?: string): Promise<CheckpointTuple | undefined> {
    const configurable = {
      thread_id: this.taskId,
      checkpoint_ns: "",
      ...(id === undefined ? {} : { checkpoint_id: id }),
    };
    return this.store.checkpointer.getTuple({ configurable });
  }

  private config(namespace: string) {
    const based = namespace === "" && this.head !== "" ? { checkpoint_id: this.head } : {};
    const held = this.token === undefined ? {} : { [LEASE_TOKEN]: this.token, [LOADED]: this.loaded };
    return { configurable: { thread_id: this.taskId, checkpoint_ns: namespace, ...based, ...held } };
  }
}

/** Where LangGraph would go on from a record. */
function branchesOf(execution: Execution): Readonly<Record<string, unknown>> {
  const due = dueNode(storedWorkflow, execution);
  return due === END_OF_TASK ? {} : { [`branch:to:${due}`]: null };
}

function checkpointOf(id: string, values: Readonly<Record<string, unknown>>): Checkpoint {
  return {
    v: 4,
    id,
    ts: new Date().toISOString(),
    channel_values: { ...values },
    channel_versions: {},
    versions_seen: {},
  };
}
