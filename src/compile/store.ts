import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Execution } from "../state/execution.ts";
import type { ConsentStore } from "../people/consent.ts";
import type { Request, RequestStore } from "../people/requests.ts";
import type { Journal } from "../tools/journal.ts";
import type { Artifact, ArtifactInfo } from "../workflow/artifact.ts";
import type { AnyWorkflow } from "../workflow/define.ts";

/** The latest checkpoint of a task. */
export interface TaskHead {
  readonly checkpointId: string;
  readonly execution: Execution;
  /** How often the task has been forked. */
  readonly forks: number;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** A task for whoever only looks. */
export interface LookedAt extends TaskHead {
  readonly state: Readonly<Record<string, unknown>>;
  /** Why its workflow's present release cannot run it; then the rest is as it is stored. */
  readonly quarantine: string | null;
}

/** The right to run a task, held by one owner at a time. Tokens only ever grow. */
export interface Lease {
  readonly taskId: string;
  readonly token: number;
}

/** The process that runs a task. */
export interface TaskOwner {
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since the epoch; null where an older version has begun. */
  readonly since: number | null;
}

/** One entry of a task's append-only log. */
export interface TaskEvent {
  readonly sequence: number;
  readonly revision: number;
  /** `started`, `source`, `asked`, `withdrawn`, `decision`, `call`, `returned`, `result`, `failure`, `retry`, `refused`, `answered`, `edited`, `forked`, `migrated`, `imported`, `override`, `cancelled`, `resumed`, `review`, `snapshot`, `proposed`, `doubted`, `consent`, `consented` or `error`. */
  readonly kind: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A row of the list of tasks. */
export interface TaskRow {
  readonly taskId: string;
  readonly execution: Execution;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  readonly waiting: readonly Request[];
  /** Why its workflow's present release cannot run it, where that is known. */
  readonly quarantine?: string;
}

/** Which tasks are listed; all unless something is set. */
export interface TaskFilter {
  /** Those of a tenant; with an empty text, those of none. */
  readonly tenant?: string;
  readonly workflow?: string;
  /** Those that come behind this one in the list. */
  readonly after?: { readonly updatedAt: number; readonly taskId: string };
  readonly limit?: number;
}

/** A request that waits for an answer, with the task that asks. */
export interface OpenRequest {
  readonly taskId: string;
  readonly workflow: string;
  readonly request: Request;
}

/** Which open requests are listed. */
export interface OpenFilter {
  /** Those of a tenant's tasks; with an empty text, of those of none. */
  readonly tenant?: string;
  readonly workflow?: string;
  /** True for those that are no questions. */
  readonly approvals?: boolean;
  /** Those whose time to answer is over then, in milliseconds since the epoch. */
  readonly dueBy?: number;
  /** Those that come behind this one in the list. */
  readonly after?: OpenPlace;
  readonly limit: number;
}

/** A place in the list of open requests. */
export interface OpenPlace extends Pick<Request, "id" | "expiresAt"> {
  readonly taskId: string;
}

/** Which tasks of a workflow have been left alone. */
export interface UntouchedFilter {
  readonly workflow: string;
  /** Those that nothing has happened to since then, in milliseconds since the epoch. */
  readonly since: number;
  /** Those that come behind this one in the list. */
  readonly after?: UntouchedTask;
  readonly limit: number;
}

/** A task that nothing has happened to since. */
export interface UntouchedTask {
  readonly taskId: string;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** A pause that a task inside a foreign graph has raised in its parent. */
export interface ParentPause {
  readonly ordinal: number;
  readonly requests: readonly Request[];
  readonly used: boolean;
}

/**
 * Everything that the runtime keeps outside the graph's channels. `compile` is written against this
 * port; the stores implement it.
 */
export interface TaskStore extends RequestStore, ConsentStore, Journal {
  readonly checkpointer: BaseCheckpointSaver;
  /** `store`: every write is checked in its transaction. `in-process`: only what runs in this process is checked. */
  readonly guarantees: "store" | "in-process";
  /** Tells the store a workflow's rules, before a task of it runs. */
  bind(workflow: AnyWorkflow): void;
  /** @throws TASK_QUARANTINED where the task does not fit its workflow's present release. */
  head(taskId: string): Promise<TaskHead | null>;
  /** The same for whoever only looks: never refused. */
  look(taskId: string): Promise<LookedAt | null>;

  /**
   * Takes the lease. Until `running`, its owner looks at no answers: whoever answers has to wait for
   * the lease and wake the task.
   *
   * @throws TASK_BUSY while another owner holds the task.
   */
  acquire(taskId: string): Promise<Lease>;
  /**
   * Takes the lease from whoever holds it, who can commit nothing any more.
   *
   * @throws TASK_BUSY where the guarantees are `in-process` and the task runs: nothing could stop it.
   */
  takeOver(taskId: string): Promise<Lease>;
  /** From now on the owner sees every answer that comes. */
  running(lease: Lease): Promise<void>;
  renew(lease: Lease): Promise<void>;
  release(lease: Lease): Promise<void>;
  /**
   * The owner announces that it is about to pause for these requests.
   *
   * @returns false where an answer to one of them has come: then it must go on.
   */
  closing(lease: Lease, requestIds: readonly string[]): Promise<boolean>;
  /** Counts a fork from an older checkpoint; requests of the branch that is left are no longer open. */
  fork(lease: Lease, from: string): Promise<void>;
  /** The checkpoint that the latest fork started from. */
  lastFork(taskId: string): Promise<string | null>;

  append(taskId: string, revision: number, kind: string, data: Readonly<Record<string, unknown>>): Promise<void>;
  /** Logs a correction by hand, where the store has not done it in the transaction of its checkpoint. */
  noteEdit(taskId: string, revision: number, changes: Readonly<Record<string, unknown>>): Promise<void>;
  /** The log, oldest first; with `latest`, only so many of its last entries. */
  events(taskId: string, latest?: number): Promise<readonly TaskEvent[]>;
  /** The first entry of a kind. */
  firstEvent(taskId: string, kind: string): Promise<TaskEvent | null>;
  /** A large result of the task, kept whole; null where it has none with this id. */
  artifact(taskId: string, id: string): Promise<Artifact | null>;
  /** What was set aside, oldest first. */
  artifacts(taskId: string): Promise<readonly ArtifactInfo[]>;
  /** The latest changed task first; all of them, or those that a filter leaves. */
  tasks(filter?: TaskFilter): Promise<readonly TaskRow[]>;
  /** Requests that wait for an answer; what expires first comes first. */
  openRequests(filter: OpenFilter): Promise<readonly OpenRequest[]>;
  /** The longest untouched task first. */
  untouchedTasks(filter: UntouchedFilter): Promise<readonly UntouchedTask[]>;
  /** Removes a task and everything that belongs to it. */
  deleteTask(taskId: string): Promise<void>;

  parentPauses(taskId: string): Promise<readonly ParentPause[]>;
  setParentPause(taskId: string, pause: ParentPause): Promise<void>;
}

/** Keys in LangGraph's `configurable` that carry the lease and how a checkpoint was loaded. */
export const LEASE_TOKEN = "__statecard_token";
export const LOADED = "__statecard_loaded";
