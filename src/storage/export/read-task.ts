import { WorkflowError } from "../../errors.ts";
import type { Checkpoint, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { unknownTask } from "../../compile/admit-input.ts";
import { childTaskId } from "../../compile/child.ts";
import type { TaskEvent } from "../../compile/store.ts";
import { isPlainObject } from "../../internal/json.ts";
import type { Request } from "../../people/requests.ts";
import type { CallResult, Execution } from "../../state/execution.ts";
import type { Artifact } from "../../workflow/artifact.ts";
import { taskIn } from "../../workflow/replay.ts";
import { readArtifacts } from "../artifacts.ts";
import { readCheckpoint, readHead } from "../checkpoints.ts";
import { readEvents } from "../events.ts";
import { readAnswer } from "../requests.ts";
import { first, type Sql } from "../sql.ts";
import { load } from "../tuples.ts";
import type { ExportedCall, ExportedRequest, ExportedTask, ExportedVote } from "./format.ts";
import { byId, byKey, byTime } from "./rebuild.ts";

/** A stored task with its log. */
export interface TaskWithLog {
  readonly taskId: string;
  readonly task: ExportedTask;
  readonly child: string | null;
  readonly events: readonly TaskEvent[];
  readonly artifacts: readonly Artifact[];
}

/**
 * Reads everything of a task, within one transaction, so that a task that runs at the moment is told as
 * it was at one point between two writes.
 *
 * @throws UNKNOWN_TASK, TASK_UNFINISHED.
 */
export async function readTask(sql: Sql, serde: SerializerProtocol, taskId: string): Promise<TaskWithLog> {
  const head = await readHead(sql, taskId, "");
  const row = head?.execution ? await readCheckpoint(sql, taskId, "", head.checkpoint_id) : null;
  if (!head || !row) throw unknownTask(taskId);
  const { channel_values: values } = (await load(serde, row.type, row.checkpoint)) as Checkpoint;
  const { execution, state } = taskIn(values);
  if (execution.pending?.kind === "workflows") throw runsMany(taskId, execution.pending.inputs.length);
  const task: ExportedTask = {
    execution,
    state,
    message: messageIn(values),
    forks: head.forks,
    requests: await readAllRequests(sql, taskId),
    journal: await readJournal(sql, taskId),
  };
  return {
    taskId,
    task,
    child: await childOf(sql, taskId, execution, head.forks),
    events: await readEvents(sql, taskId),
    artifacts: await readArtifacts(sql, taskId),
  };
}

/** An export names one child task; without the others an import would run them anew, with all their effects. */
function runsMany(taskId: string, count: number): WorkflowError {
  const message = `task ${taskId} runs ${count} child workflows at the moment, and an export can go with one; let them finish first`;
  return new WorkflowError("TASK_UNFINISHED", message, { details: { taskId, children: count } });
}

function messageIn(values: Readonly<Record<string, unknown>>): string | null {
  const input = isPlainObject(values.__start__) ? values.__start__.message : undefined;
  const message = values.message ?? input;
  return typeof message === "string" ? message : null;
}

async function readAllRequests(sql: Sql, taskId: string): Promise<readonly ExportedRequest[]> {
  const rows = await sql.all<{
    decision: number;
    forks: number;
    request: string;
    answer: string | null;
    answered_by: string | null;
    answered_at: number | string | null;
  }>(
    `select decision, forks, request, answer, answered_by, answered_at from statecard_requests where task_id = ?`,
    taskId,
  );
  const votes = await readVotes(sql, taskId);
  const requests = rows.map((row): ExportedRequest => {
    const request = JSON.parse(row.request) as Request;
    return {
      decision: row.decision,
      forks: row.forks,
      request,
      answer: row.answer === null ? null : readAnswer(row.answer),
      answeredBy: row.answered_by,
      answeredAt: row.answered_at === null ? null : Number(row.answered_at),
      votes: (votes.get(request.id) ?? []).toSorted(byTime),
    };
  });
  return requests.toSorted(byId);
}

async function readVotes(sql: Sql, taskId: string): Promise<ReadonlyMap<string, readonly ExportedVote[]>> {
  const rows = await sql.all<{ request_id: string; who: string; answer: string; at: number | string }>(
    `select request_id, who, answer, at from statecard_votes where task_id = ?`,
    taskId,
  );
  const votes = new Map<string, ExportedVote[]>();
  for (const { request_id: id, who, answer, at } of rows) {
    votes.set(id, [...(votes.get(id) ?? []), { who, answer: readAnswer(answer), at: Number(at) }]);
  }
  return votes;
}

async function readJournal(sql: Sql, taskId: string): Promise<readonly ExportedCall[]> {
  const rows = await sql.all<Omit<ExportedCall, "result"> & { readonly result: string | null }>(
    `select key, digest, decision, tool, attempt, result from statecard_journal where task_id = ?`,
    taskId,
  );
  const calls = rows.map((row): ExportedCall => ({
    ...row,
    result: row.result === null ? null : (JSON.parse(row.result) as CallResult),
  }));
  return calls.toSorted(byKey);
}

async function childOf(sql: Sql, taskId: string, execution: Execution, forks: number): Promise<string | null> {
  const child = childTaskId(taskId, execution, forks);
  if (child === null) return null;
  const found = await first(sql, `select 1 as found from statecard_heads where task_id = ? limit 1`, child);
  return found ? child : null;
}
