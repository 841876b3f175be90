import { uuid6, type Checkpoint, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../../errors.ts";
import type { Execution } from "../../state/execution.ts";
import { emptyState, stateIn } from "../../state/fields.ts";
import type { AnyWorkflow } from "../../workflow/define.ts";
import { dueNode, END_OF_TASK } from "../../workflow/next-step.ts";
import { schemaDigest } from "../../workflow/schema-digest.ts";
import { putArtifact } from "../artifacts.ts";
import { appendEvent } from "../events.ts";
import { checkLegal } from "../legal.ts";
import { thisProcess } from "../owner.ts";
import { insertRequest, putAnswer } from "../requests.ts";
import { first, type Sql } from "../sql.ts";
import type { ExportedTask } from "./format.ts";
import { secondOf } from "../task-list.ts";
import { tenantOf } from "../../compile/task-id.ts";
import { childTaskId } from "../../compile/child.ts";
import type { VerifiedExport } from "./verify.ts";

/** Where LangGraph's checkpoints begin to hold what `Send`s lead to; the format of today. */
const CHECKPOINT_FORMAT = 4;

/**
 * Writes an exported task into the database, within one transaction: a checkpoint from which LangGraph
 * goes on, the log, requests with answers and votes, the journal, and artifacts.
 *
 * @param taskId the task's id here.
 * @throws TASK_EXISTS, WRONG_WORKFLOW, ILLEGAL_STATE, INVALID_EXPORT where its child task is missing.
 */
export async function restoreTask(
  sql: Sql,
  serde: SerializerProtocol,
  { workflow, taskId, at }: { workflow: AnyWorkflow; taskId: string; at: number },
  exported: VerifiedExport,
): Promise<void> {
  const { log, from } = exported;
  const task = renamed(exported.task, taskId);
  const { execution, message, state } = task;
  if (execution.workflow !== workflow.name) {
    const why = `the exported task belongs to workflow "${execution.workflow}", not to "${workflow.name}"; name its graph with --graph`;
    throw new WorkflowError("WRONG_WORKFLOW", why, { details: { taskId } });
  }
  await refuseTaken(sql, taskId);
  await requireChild(sql, taskId, exported.child, task);
  const values = channelsOf(workflow, task);
  // An older version's task is checked when it is migrated, as it is read for the first time.
  const isCurrent = execution.version === workflow.version;
  if (isCurrent) checkFits(workflow, execution, values);
  const id = uuid6(0);
  await putCheckpoint(sql, serde, taskId, checkpointOf(id, values, at), execution);
  await sql.run(
    `insert into statecard_heads (task_id, namespace, checkpoint_id, workflow, revision, step, execution, forks, updated_at, schema, tenant, pending, updated_second)
     values (?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    taskId,
    id,
    execution.workflow,
    execution.revision,
    execution.step,
    JSON.stringify(execution),
    task.forks,
    at,
    isCurrent ? schemaDigest(workflow) : null,
    tenantOf(taskId),
    execution.pending?.decision ?? null,
    secondOf(at),
  );
  await putLog(sql, taskId, exported);
  await putRequests(sql, taskId, task);
  await putJournal(sql, taskId, task);
  for (const artifact of exported.artifacts) await putArtifact(sql, taskId, artifact);
  // The task's id may differ from here on, and older entries may tell too little: it starts a new count.
  const snapshot = { execution, state, message };
  const data = { from: exported.taskId, hash: log.hash, count: log.count, by: from, snapshot };
  await appendEvent(sql, taskId, { revision: execution.revision, kind: "imported", at, data });
}

function renamed(task: ExportedTask, taskId: string): ExportedTask {
  const { execution } = task;
  return { ...task, execution: execution.taskId === "" ? execution : { ...execution, taskId } };
}

async function refuseTaken(sql: Sql, taskId: string): Promise<void> {
  const taken = [
    `select 1 as found from statecard_heads where task_id = ? limit 1`,
    `select 1 as found from checkpoints where thread_id = ? limit 1`,
    `select 1 as found from statecard_events where task_id = ? limit 1`,
  ];
  for (const statement of taken) {
    if (!(await first(sql, statement, taskId))) continue;
    const message = `there is a task ${taskId} already, and an import never writes over one; name another id with --as-task`;
    throw new WorkflowError("TASK_EXISTS", message, { details: { taskId } });
  }
}

/** A task that waits for a child workflow would run it anew, with all its effects, if the child were not there. */
async function requireChild(sql: Sql, taskId: string, child: string | null, task: ExportedTask): Promise<void> {
  const here = childTaskId(taskId, task.execution, task.forks);
  if (child === null || here === null) return;
  if (await first(sql, `select 1 as found from statecard_heads where task_id = ? limit 1`, here)) return;
  throw new WorkflowError(
    "INVALID_EXPORT",
    `the task waits for its child task ${child}, which is not in this database; export that too, and import it first, as ${here}`,
    { details: { taskId, child: here } },
  );
}

function channelsOf(workflow: AnyWorkflow, { execution, state, message }: ExportedTask): Record<string, unknown> {
  const due = dueNode(workflow, execution);
  return {
    ...emptyState(workflow.state),
    // No field can be named like a channel of the runtime, whatever the export says.
    ...stateIn(state),
    execution,
    message,
    ...(due === END_OF_TASK ? {} : { [`branch:to:${due}`]: null }),
  };
}

function checkFits(workflow: AnyWorkflow, execution: Execution, values: Readonly<Record<string, unknown>>): void {
  const unknown = Object.keys(stateIn(values)).find((name) => !Object.hasOwn(workflow.state, name));
  const why = !Object.hasOwn(workflow.steps, execution.step)
    ? `it has no step "${execution.step}"`
    : unknown === undefined
      ? null
      : `it has no field "${unknown}"`;
  if (why !== null) {
    const message = `the exported task does not fit workflow "${workflow.name}" v${workflow.version}: ${why}; name the graph that it was exported from with --graph`;
    throw new WorkflowError("ILLEGAL_STATE", message, { details: { step: execution.step } });
  }
  // Compared with itself the record is legal, so what is left is the state and where the graph would go on.
  checkLegal(workflow, { source: "loop", from: execution, execution, values });
}

function checkpointOf(id: string, values: Readonly<Record<string, unknown>>, at: number): Checkpoint {
  return {
    v: CHECKPOINT_FORMAT,
    id,
    ts: new Date(at).toISOString(),
    channel_values: { ...values },
    channel_versions: Object.fromEntries(Object.keys(values).map((name) => [name, 1])),
    versions_seen: {},
  };
}

async function putCheckpoint(
  sql: Sql,
  serde: SerializerProtocol,
  taskId: string,
  checkpoint: Checkpoint,
  { workflow, version, revision }: Execution,
): Promise<void> {
  const [type, body] = await serde.dumpsTyped(checkpoint);
  const [, metadata] = await serde.dumpsTyped({ source: "loop", step: revision, parents: {}, workflow, version });
  await sql.run(
    `insert into checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
     values (?, '', ?, null, ?, ?, ?)`,
    taskId,
    checkpoint.id,
    type,
    body,
    metadata,
  );
}

async function putLog(sql: Sql, taskId: string, { events }: VerifiedExport): Promise<void> {
  for (const { sequence, revision, kind, at, data } of events) {
    await sql.run(
      `insert into statecard_events (task_id, sequence, revision, kind, at, data) values (?, ?, ?, ?, ?, ?)`,
      taskId,
      sequence,
      revision,
      // It names a file that `resume` would run: what comes from elsewhere must not choose one here.
      kind === "source" ? "source elsewhere" : kind,
      at,
      JSON.stringify(data),
    );
  }
}

async function putRequests(sql: Sql, taskId: string, { requests }: ExportedTask): Promise<void> {
  for (const { request, decision, forks, answer, answeredBy, answeredAt, votes } of requests) {
    await insertRequest(sql, taskId, { decision, forks }, request);
    if (answer) await putAnswer(sql, taskId, request.id, { answer, who: answeredBy, at: answeredAt });
    for (const vote of votes) {
      await sql.run(
        `insert into statecard_votes (task_id, request_id, who, answer, at) values (?, ?, ?, ?, ?)`,
        taskId,
        request.id,
        vote.who,
        JSON.stringify(vote.answer),
        vote.at,
      );
    }
  }
}

/**
 * A call without a result was begun and may have happened or not. Its attempt is none of this database's,
 * so nobody waits for it: what is repeatable runs again, else its tool or a person is asked.
 */
async function putJournal(sql: Sql, taskId: string, { journal }: ExportedTask): Promise<void> {
  const { host, pid, started } = thisProcess;
  for (const { key, digest, decision, tool, attempt, result } of journal) {
    await sql.run(
      `insert into statecard_journal (task_id, key, digest, decision, tool, attempt, token, host, pid, started, deadline, result)
       values (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, 0, ?)`,
      taskId,
      key,
      digest,
      decision,
      tool,
      attempt,
      host,
      pid,
      started,
      result && JSON.stringify(result),
    );
  }
}
