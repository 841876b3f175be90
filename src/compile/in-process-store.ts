import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import type { ConsentFilter, ConsentRow, TenantConsentRow } from "../people/consent.ts";
import type { OwnerState, Request, RequestPlace, RequestRow, Vote } from "../people/requests.ts";
import { executionSchema, type CallResult } from "../state/execution.ts";
import { stateIn } from "../state/fields.ts";
import { GRACE_MS, type Holder, type Intent, type IntentState, type NewArtifact } from "../tools/journal.ts";
import type { Artifact, ArtifactInfo } from "../workflow/artifact.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { InProcessConsents } from "./in-process-consents.ts";
import { pageOfOpen, pageOfTasks, pageOfUntouched } from "./in-process-lists.ts";
import { InProcessRequests } from "./in-process-requests.ts";
import { judge, migratingSaver, workflowOf } from "./releases.ts";
import { tenantOf } from "./task-id.ts";
import type {
  Lease,
  LookedAt,
  OpenFilter,
  OpenRequest,
  ParentPause,
  TaskEvent,
  TaskFilter,
  TaskHead,
  TaskRow,
  TaskStore,
  UntouchedFilter,
  UntouchedTask,
} from "./store.ts";

interface TaskMemory {
  token: number;
  held: "running" | "closing" | null;
  forks: number;
  forkedFrom: string | null;
  readonly requests: InProcessRequests;
  events: TaskEvent[];
  journal: Map<string, { attempt: number; token: number; deadline: number; result: CallResult | null }>;
  pauses: Map<number, ParentPause>;
  artifacts: Map<string, Artifact>;
}

/**
 * The port over any LangGraph checkpointer: checkpoints go there, everything else is kept in this
 * process. What has to survive a restart is in the checkpoint's execution record; leases and the
 * event log hold within the process only.
 */
export class InProcessStore implements TaskStore {
  readonly guarantees = "in-process";
  readonly checkpointer: BaseCheckpointSaver;
  /** The checkpointer as it was given. */
  private readonly saver: BaseCheckpointSaver;
  private readonly clock: Clock;
  private readonly memory = new Map<string, TaskMemory>();
  private readonly workflows = new Map<string, AnyWorkflow>();
  private readonly decided = new InProcessConsents();

  constructor(checkpointer: BaseCheckpointSaver, clock: Clock) {
    this.saver = checkpointer;
    this.checkpointer = migratingSaver(checkpointer, this.workflows);
    this.clock = clock;
  }

  bind(workflow: AnyWorkflow): void {
    this.workflows.set(workflow.name, workflow);
  }

  private of(taskId: string): TaskMemory {
    let memory = this.memory.get(taskId);
    if (!memory) {
      memory = {
        token: 0,
        held: null,
        forks: 0,
        forkedFrom: null,
        requests: new InProcessRequests(),
        events: [],
        journal: new Map(),
        pauses: new Map(),
        artifacts: new Map(),
      };
      this.memory.set(taskId, memory);
    }
    return memory;
  }

  async head(taskId: string): Promise<TaskHead | null> {
    const tuple = await this.checkpointer.getTuple({ configurable: { thread_id: taskId, checkpoint_ns: "" } });
    const execution = executionSchema.safeParse(tuple?.checkpoint.channel_values.execution);
    if (!tuple || !execution.success) return null;
    const { id: checkpointId, ts } = tuple.checkpoint;
    return { checkpointId, execution: execution.data, forks: this.of(taskId).forks, updatedAt: Date.parse(ts) };
  }

  async look(taskId: string): Promise<LookedAt | null> {
    const tuple = await this.saver.getTuple({ configurable: { thread_id: taskId, checkpoint_ns: "" } });
    const execution = executionSchema.safeParse(tuple?.checkpoint.channel_values.execution);
    if (!tuple || !execution.success) return null;
    const workflow = workflowOf(tuple, this.workflows);
    const verdict = workflow && judge(workflow, tuple.checkpoint);
    const migrated = verdict?.kind === "migrated" ? verdict.task : null;
    return {
      checkpointId: tuple.checkpoint.id,
      forks: this.of(taskId).forks,
      updatedAt: Date.parse(tuple.checkpoint.ts),
      execution: migrated?.execution ?? execution.data,
      state: stateIn(migrated?.values ?? tuple.checkpoint.channel_values),
      quarantine: verdict?.kind === "quarantined" ? verdict.reason : null,
    };
  }

  async acquire(taskId: string): Promise<Lease> {
    const memory = this.of(taskId);
    if (memory.held) {
      throw new WorkflowError(
        "TASK_BUSY",
        `task ${taskId} is being run in this process; wait until it pauses or ends`,
        { retryable: true },
      );
    }
    memory.held = "closing";
    memory.token++;
    return { taskId, token: memory.token };
  }

  takeOver(taskId: string): Promise<Lease> {
    return this.acquire(taskId);
  }

  async running(lease: Lease): Promise<void> {
    const memory = this.of(lease.taskId);
    if (memory.token === lease.token && memory.held) memory.held = "running";
  }

  async renew(_lease: Lease): Promise<void> {}

  async release(lease: Lease): Promise<void> {
    const memory = this.of(lease.taskId);
    if (memory.token === lease.token) memory.held = null;
  }

  async closing(lease: Lease, requestIds: readonly string[]): Promise<boolean> {
    const memory = this.of(lease.taskId);
    if (requestIds.some((id) => memory.requests.get(id)?.answer)) return false;
    memory.held = "closing";
    return true;
  }

  async fork(lease: Lease, from: string): Promise<void> {
    const memory = this.of(lease.taskId);
    memory.forks++;
    memory.forkedFrom = from;
    await this.append(lease.taskId, -1, "forked", { from });
  }

  async lastFork(taskId: string): Promise<string | null> {
    return this.of(taskId).forkedFrom;
  }

  async addRequests(taskId: string, decision: number, forks: number, requests: readonly Request[]): Promise<void> {
    this.of(taskId).requests.add({ decision, forks }, requests);
  }

  async requests(taskId: string, decision: number, forks: number, prefix = ""): Promise<readonly RequestRow[]> {
    return this.of(taskId).requests.at({ decision, forks, prefix });
  }

  async request(taskId: string, id: string): Promise<RequestRow | null> {
    return this.of(taskId).requests.get(id);
  }

  async replaceRequests({ taskId, token }: Holder, place: RequestPlace, requests: readonly Request[]): Promise<void> {
    const memory = this.of(taskId);
    if (memory.token !== token || !memory.held) throw staleHolder(taskId);
    memory.requests.replace(place, requests);
  }

  async answer(taskId: string, id: string, vote: Vote): Promise<OwnerState> {
    const memory = this.of(taskId);
    memory.requests.vote(taskId, id, vote, this.clock.now());
    const { who, answer, reason } = vote;
    await this.append(taskId, -1, "answered", { id, who, answer, ...(reason === undefined ? {} : { reason }) });
    return memory.held ?? "free";
  }

  consents(taskId: string, workflow: string): Promise<readonly ConsentRow[]> {
    return this.decided.consents(taskId, workflow);
  }

  keepConsents(taskId: string, rows: readonly ConsentRow[]): Promise<void> {
    return this.decided.keepConsents(taskId, rows);
  }

  allConsents(tenant?: string): Promise<readonly TenantConsentRow[]> {
    return this.decided.allConsents(tenant);
  }

  withdrawConsents(filter: ConsentFilter): Promise<number> {
    return this.decided.withdrawConsents(filter);
  }

  async intend(holder: Holder, _checkpointId: string, intent: Intent): Promise<IntentState> {
    const { journal, token } = this.of(holder.taskId);
    if (token !== holder.token) throw staleHolder(holder.taskId);
    const key = `${intent.key} ${intent.digest}`;
    const known = journal.get(key);
    if (known?.result) return { state: "done", result: known.result };
    // A body of this process that an aborted run has left behind may still end.
    if (known && known.token !== token && this.clock.now() < known.deadline) return { state: "alive" };
    if (known && !intent.repeat) return { state: "begun", attempt: known.attempt };
    journal.set(key, {
      attempt: (known?.attempt ?? 0) + 1,
      token,
      deadline: this.clock.now() + intent.timeoutMs + GRACE_MS,
      result: null,
    });
    await this.append(holder.taskId, -1, "call", { key: intent.key, tool: intent.tool });
    return { state: "new" };
  }

  async recordResult(
    holder: Holder,
    intent: Intent,
    result: CallResult,
    artifact: NewArtifact | null = null,
  ): Promise<boolean> {
    const { journal, artifacts } = this.of(holder.taskId);
    const key = `${intent.key} ${intent.digest}`;
    const known = journal.get(key);
    if (!known || known.result || known.token !== holder.token) return false;
    journal.set(key, { ...known, result });
    if (artifact) artifacts.set(artifact.id, { ...artifact, at: this.clock.now() });
    await this.append(holder.taskId, -1, "returned", { key: intent.key, result });
    return true;
  }

  async resultOf(taskId: string, { key, digest }: Pick<Intent, "key" | "digest">): Promise<CallResult | null> {
    return this.of(taskId).journal.get(`${key} ${digest}`)?.result ?? null;
  }

  async letGo(holder: Holder, intent: Intent): Promise<void> {
    const { journal } = this.of(holder.taskId);
    const key = `${intent.key} ${intent.digest}`;
    const known = journal.get(key);
    if (known && known.token === holder.token) journal.set(key, { ...known, deadline: 0 });
  }

  async artifact(taskId: string, id: string): Promise<Artifact | null> {
    return this.of(taskId).artifacts.get(id) ?? null;
  }

  async artifacts(taskId: string): Promise<readonly ArtifactInfo[]> {
    return [...this.of(taskId).artifacts.values()].map(({ id, tool, bytes, at }) => ({ id, tool, bytes, at }));
  }

  async hasAnswers(taskId: string): Promise<boolean> {
    return this.of(taskId).requests.hasAnswers();
  }

  async append(taskId: string, revision: number, kind: string, data: Readonly<Record<string, unknown>>): Promise<void> {
    const { events } = this.of(taskId);
    events.push({ sequence: events.length + 1, revision, kind, at: this.clock.now(), data });
  }

  noteEdit(taskId: string, revision: number, changes: Readonly<Record<string, unknown>>): Promise<void> {
    return this.append(taskId, revision, "edited", { changes });
  }

  /** Checkpoints carry what each update did, so the log needs no hook into the saver's writes. */
  async events(taskId: string, latest?: number): Promise<readonly TaskEvent[]> {
    const events: TaskEvent[] = [...this.of(taskId).events];
    const seen = new Set<number>();
    for await (const tuple of this.checkpointer.list({ configurable: { thread_id: taskId, checkpoint_ns: "" } })) {
      const parsed = executionSchema.safeParse(tuple.checkpoint.channel_values.execution);
      const execution = parsed.success ? parsed.data : null;
      if (!execution?.last || seen.has(execution.revision)) continue;
      seen.add(execution.revision);
      const at = Date.parse(tuple.checkpoint.ts);
      events.push({ sequence: 0, revision: execution.revision, kind: execution.last.kind, at, data: execution.last });
    }
    const log = events.toSorted((a, b) => a.at - b.at).map((event, index) => ({ ...event, sequence: index + 1 }));
    return latest === undefined ? log : log.slice(-latest);
  }

  async firstEvent(taskId: string, kind: string): Promise<TaskEvent | null> {
    return this.of(taskId).events.find((event) => event.kind === kind) ?? null;
  }

  async tasks(filter: TaskFilter = {}): Promise<readonly TaskRow[]> {
    const { tenant, workflow } = filter;
    const rows: TaskRow[] = [];
    for (const taskId of this.memory.keys()) {
      const head = tenant === undefined || tenantOf(taskId) === tenant ? await this.look(taskId) : null;
      if (!head || (workflow ?? head.execution.workflow) !== head.execution.workflow) continue;
      const { pending } = head.execution;
      const asked = pending ? await this.requests(taskId, pending.decision, head.forks) : [];
      const waiting = asked.filter((row) => row.answer === null);
      const updatedAt = this.of(taskId).events.at(-1)?.at ?? 0;
      const stands = { taskId, execution: head.execution, updatedAt, waiting: waiting.map((row) => row.request) };
      rows.push(head.quarantine === null ? stands : { ...stands, quarantine: head.quarantine });
    }
    return pageOfTasks(rows, filter);
  }

  async openRequests(filter: OpenFilter): Promise<readonly OpenRequest[]> {
    const { tenant, workflow } = filter;
    const among = { ...(tenant === undefined ? {} : { tenant }), ...(workflow === undefined ? {} : { workflow }) };
    return pageOfOpen(await this.tasks(among), filter);
  }

  async untouchedTasks(filter: UntouchedFilter): Promise<readonly UntouchedTask[]> {
    const tasks: UntouchedTask[] = [];
    for (const { taskId } of await this.tasks({ workflow: filter.workflow })) {
      const head = await this.look(taskId);
      if (head) tasks.push({ taskId, updatedAt: head.updatedAt });
    }
    return pageOfUntouched(tasks, filter);
  }

  async deleteTask(taskId: string): Promise<void> {
    this.memory.delete(taskId);
    await this.checkpointer.deleteThread(taskId);
  }

  async parentPauses(taskId: string): Promise<readonly ParentPause[]> {
    return [...this.of(taskId).pauses.values()].toSorted((a, b) => a.ordinal - b.ordinal);
  }

  async setParentPause(taskId: string, pause: ParentPause): Promise<void> {
    this.of(taskId).pauses.set(pause.ordinal, pause);
  }
}

/** @returns the error of whoever no longer holds a task. */
function staleHolder(taskId: string): WorkflowError {
  return new WorkflowError("STALE_WRITE", `task ${taskId} is run by another owner now`, { details: { taskId } });
}
