import type {
  Lease,
  LookedAt,
  OpenFilter,
  OpenRequest,
  ParentPause,
  TaskEvent,
  TaskFilter,
  TaskHead,
  TaskOwner,
  TaskRow,
  TaskStore,
  UntouchedFilter,
  UntouchedTask,
} from "../compile/store.ts";
import { tenantOf } from "../compile/task-id.ts";
import type { Clock } from "../internal/clock.ts";
import { faultPoint } from "../internal/fault-point.ts";
import type { ConsentFilter, ConsentRow, TenantConsentRow } from "../people/consent.ts";
import type { OwnerState, Request, RequestPlace, RequestRow, Vote } from "../people/requests.ts";
import type { CallResult } from "../state/execution.ts";
import type { Holder, Intent, IntentState, NewArtifact } from "../tools/journal.ts";
import type { Artifact, ArtifactInfo } from "../workflow/artifact.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { taskIn } from "../workflow/replay.ts";
import { readArtifact, readArtifactInfos } from "./artifacts.ts";
import { appendEvent, readEvents, readEventsAfter, readFirstEvent } from "./events.ts";
import { countFork } from "./forks.ts";
import { readHead } from "./checkpoints.ts";
import { keepConsents, readConsents, readConsentsOf, withdrawConsents } from "./consents.ts";
import { readTask, type TaskWithLog } from "./export/read-task.ts";
import { restoreTask } from "./export/restore.ts";
import type { VerifiedExport } from "./export/verify.ts";
import { GuardedSaver } from "./guarded-saver.ts";
import { Leases, requireLease } from "./leases.ts";
import { intend, letGo, recordResult, resultOf } from "./journal.ts";
import { SqlMemoryStore, type MemoryStoreOptions } from "./memory-store.ts";
import type { StoredVerdict } from "./migrate-stored.ts";
import { putParentPause, readParentPauses } from "./parent-pauses.ts";
import { addRequests, hasAnswers, readRequest, readRequests, replaceRequests, storeVote } from "./requests.ts";
import type { Database } from "./sql.ts";
import { addWake, readWakes, removeWake, type Wake } from "./wakes.ts";
import { claimKey, releaseKey, type ClaimedKey, type KeyClaim } from "./keys.ts";
import { readOpenRequests } from "./open-requests.ts";
import { readTasks, readUntouched, readWorkflows } from "./task-list.ts";
import { Tokens } from "./tokens.ts";

/** The task store on a SQL database; `sqliteStore` makes one. */
export class SqlStore implements TaskStore {
  readonly guarantees = "store";
  readonly checkpointer: GuardedSaver;
  readonly tokens: Tokens;
  private readonly sql: Database;
  private readonly clock: Clock;
  private readonly leases: Leases;

  constructor(sql: Database, clock: Clock) {
    this.sql = sql;
    this.clock = clock;
    this.leases = new Leases(sql, clock);
    this.checkpointer = new GuardedSaver(sql, clock);
    this.tokens = new Tokens(sql, clock);
  }

  bind(workflow: AnyWorkflow): void {
    this.checkpointer.bind(workflow);
  }

  head(taskId: string): Promise<TaskHead | null> {
    return this.checkpointer.releases.head(taskId);
  }

  look(taskId: string): Promise<LookedAt | null> {
    return this.checkpointer.releases.look(taskId);
  }

  /** What the workflows of this process make of a stored task; null where there is no such task. */
  verdict(taskId: string): Promise<StoredVerdict | null> {
    return this.checkpointer.releases.verdict(taskId);
  }

  /** Writes a task down in the form that its workflow has now, under its lease. */
  migrate(lease: Lease, unfit: "keep" | "empty"): Promise<StoredVerdict> {
    return this.checkpointer.releases.migrate(lease, unfit === "empty");
  }

  acquire(taskId: string): Promise<Lease> {
    return this.leases.acquire(taskId);
  }

  takeOver(taskId: string): Promise<Lease> {
    return this.leases.acquire(taskId, "from anybody");
  }

  running(lease: Lease): Promise<void> {
    return this.leases.running(lease);
  }

  renew(lease: Lease): Promise<void> {
    return this.leases.renew(lease);
  }

  release(lease: Lease): Promise<void> {
    return this.leases.release(lease);
  }

  /** Who runs a task now, for whoever only looks; null where nobody does. */
  owner(taskId: string): Promise<TaskOwner | null> {
    return this.leases.owner(taskId);
  }

  closing(lease: Lease, requestIds: readonly string[]): Promise<boolean> {
    return this.sql.transaction(async (sql) => {
      await requireLease(sql, lease.taskId, lease.token);
      for (const id of requestIds) {
        const row = await readRequest(sql, lease.taskId, id);
        if (row?.answer) return false;
      }
      await this.leases.markClosing(sql, lease);
      return true;
    }, lease.taskId);
  }

  async fork(lease: Lease, from: string): Promise<void> {
    const configurable = { thread_id: lease.taskId, checkpoint_ns: "", checkpoint_id: from };
    const tuple = await this.checkpointer.getTuple({ configurable });
    const snapshot = taskIn(tuple?.checkpoint.channel_values ?? {});
    const fork = { from, snapshot, at: this.clock.now() };
    await this.sql.transaction((sql) => countFork(sql, lease, fork), lease.taskId);
  }

  async lastFork(taskId: string): Promise<string | null> {
    return (await readHead(this.sql, taskId, ""))?.last_fork ?? null;
  }

  addRequests(taskId: string, decision: number, forks: number, requests: readonly Request[]): Promise<void> {
    const at = this.clock.now();
    return this.sql.transaction((sql) => addRequests(sql, taskId, { decision, forks }, requests, at), taskId);
  }

  requests(taskId: string, decision: number, forks: number, prefix = ""): Promise<readonly RequestRow[]> {
    return readRequests(this.sql, taskId, { decision, forks, prefix });
  }

  request(taskId: string, id: string): Promise<RequestRow | null> {
    return readRequest(this.sql, taskId, id);
  }

  replaceRequests({ taskId, token }: Lease, place: RequestPlace, requests: readonly Request[]): Promise<void> {
    const at = this.clock.now();
    return this.sql.transaction(async (sql) => {
      await requireLease(sql, taskId, token);
      await replaceRequests(sql, taskId, place, requests, at);
    }, taskId);
  }

  async answer(taskId: string, id: string, vote: Vote): Promise<OwnerState> {
    faultPoint("before-answer");
    const owner = await this.sql.transaction(async (sql) => {
      // The task is locked for the whole transaction, so the owner cannot begin to pause in between.
      const owner = await this.leases.ownerState(sql, taskId);
      await storeVote(sql, taskId, id, vote, this.clock.now());
      faultPoint("inside-answer");
      return owner;
    }, taskId);
    faultPoint("after-answer");
    return owner;
  }

  hasAnswers(taskId: string): Promise<boolean> {
    return hasAnswers(this.sql, taskId);
  }

  consents(taskId: string, workflow: string): Promise<readonly ConsentRow[]> {
    return readConsentsOf(this.sql, tenantOf(taskId), workflow);
  }

  keepConsents(taskId: string, rows: readonly ConsentRow[]): Promise<void> {
    return this.sql.transaction((sql) => keepConsents(sql, tenantOf(taskId), rows), taskId);
  }

  allConsents(tenant?: string): Promise<readonly TenantConsentRow[]> {
    return readConsents(this.sql, tenant === undefined ? {} : { tenant });
  }

  withdrawConsents(filter: ConsentFilter): Promise<number> {
    return withdrawConsents(this.sql, filter);
  }

  intend(holder: Holder, checkpointId: string, intent: Intent): Promise<IntentState> {
    return this.sql.transaction((sql) => intend(sql, holder, checkpointId, intent, this.clock.now()), holder.taskId);
  }

  recordResult(
    holder: Holder,
    intent: Intent,
    result: CallResult,
    artifact: NewArtifact | null = null,
  ): Promise<boolean> {
    const what = { result, artifact };
    return this.sql.transaction((sql) => recordResult(sql, holder, intent, what, this.clock.now()), holder.taskId);
  }

  resultOf(taskId: string, intent: Pick<Intent, "key" | "digest">): Promise<CallResult | null> {
    return resultOf(this.sql, taskId, intent);
  }

  letGo(holder: Holder, intent: Intent): Promise<void> {
    return letGo(this.sql, holder, intent);
  }

  artifact(taskId: string, id: string): Promise<Artifact | null> {
    return readArtifact(this.sql, taskId, id);
  }

  artifacts(taskId: string): Promise<readonly ArtifactInfo[]> {
    return readArtifactInfos(this.sql, taskId);
  }

  append(taskId: string, revision: number, kind: string, data: Readonly<Record<string, unknown>>): Promise<void> {
    const at = this.clock.now();
    return this.sql.transaction((sql) => appendEvent(sql, taskId, { revision, kind, at, data }), taskId);
  }

  /** The saver has logged it. */
  async noteEdit(): Promise<void> {}

  events(taskId: string, latest?: number): Promise<readonly TaskEvent[]> {
    return readEvents(this.sql, taskId, latest);
  }

  /** The log behind an entry, oldest first. */
  eventsAfter(taskId: string, sequence: number, limit: number): Promise<readonly TaskEvent[]> {
    return readEventsAfter(this.sql, taskId, sequence, limit);
  }

  firstEvent(taskId: string, kind: string): Promise<TaskEvent | null> {
    return readFirstEvent(this.sql, taskId, kind);
  }

  tasks(filter: TaskFilter = {}): Promise<readonly TaskRow[]> {
    return readTasks(this.sql, this.checkpointer.releases, filter);
  }

  /** The names of the workflows whose tasks are stored. */
  workflows(): Promise<readonly string[]> {
    return readWorkflows(this.sql);
  }

  openRequests(filter: OpenFilter): Promise<readonly OpenRequest[]> {
    return readOpenRequests(this.sql, filter);
  }

  untouchedTasks(filter: UntouchedFilter): Promise<readonly UntouchedTask[]> {
    return readUntouched(this.sql, filter);
  }

  /** What is remembered across tasks, as a LangGraph store in the same database. */
  memory(options: MemoryStoreOptions = {}): SqlMemoryStore {
    return new SqlMemoryStore(this.sql, this.clock, options);
  }

  /** Lets go of the database; the next call opens it again. */
  close(): Promise<void> {
    return this.sql.close();
  }

  deleteTask(taskId: string): Promise<void> {
    return this.checkpointer.deleteThread(taskId);
  }

  /**
   * Reads everything of a task at one point in time, for an export.
   *
   * @throws UNKNOWN_TASK.
   */
  exportTask(taskId: string): Promise<TaskWithLog> {
    return this.sql.transaction((sql) => readTask(sql, this.checkpointer.serde, taskId), taskId);
  }

  /**
   * Takes an exported task in, all of it or nothing.
   *
   * @throws TASK_EXISTS, WRONG_WORKFLOW, ILLEGAL_STATE, INVALID_EXPORT.
   */
  importTask(workflow: AnyWorkflow, taskId: string, exported: VerifiedExport): Promise<void> {
    const { serde } = this.checkpointer;
    const at = this.clock.now();
    return this.sql.transaction((sql) => restoreTask(sql, serde, { workflow, taskId, at }, exported), taskId);
  }

  /** Binds a key of a client to a task; the first one counts. */
  claimKey(claim: KeyClaim): Promise<ClaimedKey> {
    return this.sql.transaction((sql) => claimKey(sql, claim, this.clock.now()), claim.taskId);
  }

  releaseKey(claim: KeyClaim): Promise<void> {
    return releaseKey(this.sql, claim);
  }

  /**
   * Notes that a task is to be run, for whichever server finds it.
   *
   * @param attempts how often at most where it fails; as a note has it already, unless set.
   */
  addWake(taskId: string, attempts?: number): Promise<void> {
    return addWake(this.sql, taskId, this.clock.now(), attempts);
  }

  wakes(taskId?: string): Promise<readonly Wake[]> {
    return readWakes(this.sql, taskId);
  }

  /** Takes the note away, unless another has come since it was read. */
  removeWake(wake: Pick<Wake, "taskId" | "count" | "at">): Promise<void> {
    return removeWake(this.sql, wake);
  }

  parentPauses(taskId: string): Promise<readonly ParentPause[]> {
    return readParentPauses(this.sql, taskId);
  }

  setParentPause(taskId: string, pause: ParentPause): Promise<void> {
    return putParentPause(this.sql, taskId, pause);
  }
}
