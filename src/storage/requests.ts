import { tenantOf } from "../compile/task-id.ts";
import type { Answer, Request, RequestPlace, RequestRow, Vote } from "../people/requests.ts";
import { countVote } from "../people/votes.ts";
import { appendEvent } from "./events.ts";
import { expiryOf, OPENS } from "./open-requests.ts";
import { first, type Sql } from "./sql.ts";

interface StoredRequest {
  readonly decision: number;
  readonly forks: number;
  readonly request: string;
  readonly answer: string | null;
  readonly answered_by: string | null;
}

const REQUEST_COLUMNS = "decision, forks, request, answer, answered_by";

/** Adds the requests that are not there yet, within a transaction; the log gets them too. */
export async function addRequests(
  sql: Sql,
  taskId: string,
  { decision, forks }: Pick<RequestRow, "decision" | "forks">,
  requests: readonly Request[],
  at: number,
): Promise<void> {
  for (const request of requests) {
    const isNew = await insertRequest(sql, taskId, { decision, forks }, request);
    if (isNew) await appendEvent(sql, taskId, { revision: -1, kind: "asked", at, data: { decision, forks, request } });
  }
}

/**
 * Writes a request down that has no answer yet, within a transaction.
 *
 * @returns false where there is one with its id.
 */
export async function insertRequest(
  sql: Sql,
  taskId: string,
  { decision, forks }: Pick<RequestRow, "decision" | "forks">,
  request: Request,
): Promise<boolean> {
  const added = await sql.run(
    `insert into statecard_requests (task_id, id, decision, forks, request, tenant, kind, expires_at, is_open, workflow)
     values (?, ?, ?, ?, ?, ?, ?, ?, ${OPENS}) on conflict (task_id, id) do nothing`,
    taskId,
    request.id,
    decision,
    forks,
    JSON.stringify(request),
    tenantOf(taskId),
    request.kind,
    expiryOf(request),
    taskId,
    decision,
    forks,
    taskId,
  );
  return added > 0;
}

/** Makes these the requests without an answer at a place, within a transaction; the log gets what changes too. */
export async function replaceRequests(
  sql: Sql,
  taskId: string,
  place: RequestPlace,
  requests: readonly Request[],
  at: number,
): Promise<void> {
  const asked = new Set(requests.map(({ id }) => id));
  for (const { answer, request } of await readRequests(sql, taskId, place)) {
    const { id } = request;
    if (answer !== null || asked.has(id)) continue;
    await sql.run(`delete from statecard_requests where task_id = ? and id = ?`, taskId, id);
    await sql.run(`delete from statecard_votes where task_id = ? and request_id = ?`, taskId, id);
    await appendEvent(sql, taskId, { revision: -1, kind: "withdrawn", at, data: { id } });
  }
  await addRequests(sql, taskId, place, requests, at);
}

/** The requests at a place, by id. */
export async function readRequests(
  sql: Sql,
  taskId: string,
  { decision, forks, prefix }: RequestPlace,
): Promise<readonly RequestRow[]> {
  const rows = await sql.all<StoredRequest>(
    `select ${REQUEST_COLUMNS} from statecard_requests
     where task_id = ? and decision = ? and forks = ? and substr(id, 1, ?) = ? order by id`,
    taskId,
    decision,
    forks,
    prefix.length,
    prefix,
  );
  return Promise.all(rows.map((row) => toRequestRow(sql, taskId, row)));
}

export async function readRequest(sql: Sql, taskId: string, id: string): Promise<RequestRow | null> {
  const row = await first<StoredRequest>(
    sql,
    `select ${REQUEST_COLUMNS} from statecard_requests where task_id = ? and id = ?`,
    taskId,
    id,
  );
  return row && toRequestRow(sql, taskId, row);
}

async function toRequestRow(sql: Sql, taskId: string, row: StoredRequest): Promise<RequestRow> {
  const request = JSON.parse(row.request) as Request;
  return {
    request,
    decision: row.decision,
    forks: row.forks,
    answer: row.answer === null ? null : readAnswer(row.answer),
    answeredBy: row.answered_by,
    approvedBy: (request.count ?? 1) > 1 ? await readVoters(sql, taskId, request.id) : [],
  };
}

/** Answers of the first format were texts only and had no type. */
export function readAnswer(stored: string): Answer {
  const answer = JSON.parse(stored) as Answer | { type?: undefined; text: string };
  return answer.type === undefined ? { type: "text", text: answer.text } : answer;
}

async function readVoters(sql: Sql, taskId: string, id: string): Promise<readonly string[]> {
  const rows = await sql.all<{ who: string }>(
    `select who from statecard_votes where task_id = ? and request_id = ? order by at, who`,
    taskId,
    id,
  );
  return rows.map((row) => row.who);
}

/** Stores an answer, or one approval of several, within a transaction; the log gets it too. */
export async function storeVote(sql: Sql, taskId: string, id: string, vote: Vote, at: number): Promise<void> {
  const row = await readRequest(sql, taskId, id);
  const counted = countVote(taskId, id, row, vote, at);
  const answer = JSON.stringify(vote.answer);
  if ((row?.request.count ?? 1) > 1) {
    await sql.run(
      `insert into statecard_votes (task_id, request_id, who, answer, at) values (?, ?, ?, ?, ?)
       on conflict (task_id, request_id, who) do update set answer = excluded.answer, at = excluded.at`,
      taskId,
      id,
      vote.who ?? "",
      answer,
      at,
    );
  }
  if ("final" in counted) {
    await putAnswer(sql, taskId, id, { answer: vote.answer, who: vote.who, at });
  }
  const { who, reason } = vote;
  await appendEvent(sql, taskId, {
    revision: -1,
    kind: "answered",
    at,
    data: {
      id,
      who,
      answer: vote.answer,
      ...(reason === undefined ? {} : { reason }),
      ...("final" in counted ? {} : { counts: 1 }),
    },
  });
}

/** Writes down what settles a request, where nothing has yet. */
export async function putAnswer(
  sql: Sql,
  taskId: string,
  id: string,
  { answer, who, at }: { readonly answer: Answer; readonly who: string | null; readonly at: number | null },
): Promise<void> {
  await sql.run(
    `update statecard_requests set answer = ?, answered_by = ?, answered_at = ?, is_open = 0 where task_id = ? and id = ? and answer is null`,
    JSON.stringify(answer),
    who,
    at,
    taskId,
    id,
  );
}

export async function hasAnswers(sql: Sql, taskId: string): Promise<boolean> {
  const statement = `select 1 from statecard_requests where task_id = ? and answer is not null limit 1`;
  return (await first(sql, statement, taskId)) !== null;
}
