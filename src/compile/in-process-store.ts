import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import type { Answer, OwnerState, Request, RequestRow } from "../people/requests.ts";
import { executionSchema } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { Lease, ParentPause, TaskEvent, TaskHead, TaskRow, TaskStore } from "./store.ts";

interface TaskMemory {
  token: number;
  held: "running" | "closing" | null;
  forks: number;
  forkedFrom: string | null;
  requests: Map<string, RequestRow>;
  events: TaskEvent[];
  pauses: Map<number, ParentPause>;
}

/**
 * The port over any LangGraph checkpointer: checkpoints go there, everything else is kept in this
 * process. What has to survive a restart is in the checkpoint's execution record; leases and the
 * event log hold within the process only.
 */
export class InProcessStore implements TaskStore {
  readonly guarantees = "in-process";
  readonly checkpointer: BaseCheckpointSaver;
  private readonly clock: Clock;
  private readonly memory = new Map<string, TaskMemory>();

  constructor(checkpointer: BaseCheckpointSaver, clock: Clock) {
    this.checkpointer = checkpointer;
    this.clock = clock;
  }

  bind(_workflow: AnyWorkflow): void {}

  private of(taskId: string): TaskMemory {
    let memory = this.memory.get(taskId);
    if (!memory) {
      memory = { token: 0, held: null, forks: 0, forkedFrom: null, requests: new Map(), events: [], pauses: new Map() };
      this.memory.set(taskId, memory);
    }
    return memory;
  }

  async head(taskId: string): Promise<TaskHead | null> {
    const tuple = await this.checkpointer.getTuple({ configurable: { thread_id: taskId, checkpoint_ns: "" } });
    const execution = executionSchema.safeParse(tuple?.checkpoint.channel_values.execution);
    if (!tuple || !execution.success) return null;
    return { checkpointId: tuple.checkpoint.id, execution: execution.data, forks: this.of(taskId).forks };
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
    const known = this.of(taskId).requests;
    for (const request of requests) {
      if (!known.has(request.id)) known.set(request.id, { request, decision, forks, answer: null, answeredBy: null });
    }
  }

  async requests(taskId: string, decision: number, forks: number): Promise<readonly RequestRow[]> {
    return [...this.of(taskId).requests.values()].filter((row) => row.decision === decision && row.forks === forks);
  }

  async request(taskId: string, id: string): Promise<RequestRow | null> {
    return this.of(taskId).requests.get(id) ?? null;
  }

  async answer(taskId: string, id: string, answer: Answer, who: string, shown?: string): Promise<OwnerState> {
    const memory = this.of(taskId);
    const row = memory.requests.get(id);
    checkAnswerable(taskId, id, row ?? null, shown);
    if (row) memory.requests.set(id, { ...row, answer, answeredBy: who });
    await this.append(taskId, -1, "answered", { id, who });
    return memory.held ?? "free";
  }

  async hasAnswers(taskId: string): Promise<boolean> {
    return [...this.of(taskId).requests.values()].some((row) => row.answer !== null);
  }

  async append(taskId: string, revision: number, kind: string, data: Readonly<Record<string, unknown>>): Promise<void> {
    const { events } = this.of(taskId);
    events.push({ sequence: events.length + 1, revision, kind, at: this.clock.now(), data });
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

  async tasks(): Promise<readonly TaskRow[]> {
    const rows: TaskRow[] = [];
    for (const taskId of this.memory.keys()) {
      const head = await this.head(taskId);
      if (!head) continue;
      const waiting = [...this.of(taskId).requests.values()].filter(
        (row) => row.answer === null && row.decision === head.execution.pending?.decision && row.forks === head.forks,
      );
      const updatedAt = this.of(taskId).events.at(-1)?.at ?? 0;
      rows.push({ taskId, execution: head.execution, updatedAt, waiting: waiting.map((row) => row.request) });
    }
    return rows.toSorted((a, b) => b.updatedAt - a.updatedAt);
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

/** Refuses an answer to a request that is unknown, was answered, or is not what was shown. */
export function checkAnswerable(taskId: string, id: string, row: RequestRow | null, shown: string | undefined): void {
  if (!row) {
    throw new WorkflowError(
      "UNKNOWN_REQUEST",
      `task ${taskId} has no request ${id}; read the task again to see what it asks`,
      { details: { taskId, id } },
    );
  }
  if (shown !== undefined && shown !== row.request.digest) {
    throw new WorkflowError(
      "STALE_RESUME",
      `request ${id} of task ${taskId} is not what was shown; read the task again`,
      { details: { taskId, id } },
    );
  }
  if (row.answer !== null) {
    throw new WorkflowError(
      "STALE_RESUME",
      `request ${id} of task ${taskId} was already answered; read the task again to see what it asks now`,
      { details: { taskId, id } },
    );
  }
}
