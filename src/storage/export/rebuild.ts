import type { TaskEvent } from "../../compile/store.ts";
import { isPlainObject } from "../../internal/json.ts";
import type { Answer, Request } from "../../people/requests.ts";
import type { CallResult } from "../../state/execution.ts";
import { replay } from "../../workflow/replay.ts";
import type { ExportedCall, ExportedRequest, ExportedTask } from "./format.ts";

/** A task as its log alone tells it. */
export interface Rebuilt {
  /** The likeliest first, see `replay`; none where the log tells of no task. */
  readonly tasks: readonly ExportedTask[];
  /** An entry of an older format, from which on the log tells too little. */
  readonly older: number | null;
}

/**
 * Rebuilds everything that an export holds from its log. Pure.
 *
 * @throws INVALID_EXPORT where an entry does not follow from those before it.
 */
export function rebuild(events: readonly TaskEvent[]): Rebuilt {
  const { tasks, older } = replay(null, events);
  const beside = {
    forks: forksIn(events),
    requests: requestsIn(events),
    journal: callsIn(events),
  };
  return {
    tasks: tasks.map((task) => ({
      ...task,
      message: task.execution.revision === 0 ? openingMessage(events) : null,
      ...beside,
    })),
    older,
  };
}

/** An imported task goes on counting where the exported one was. */
function forksIn(events: readonly TaskEvent[]): number {
  return events.filter(({ kind }) => kind === "forked").length;
}

function openingMessage(events: readonly TaskEvent[]): string | null {
  const input = events.findLast(({ kind }) => kind === "started")?.data.input;
  return isPlainObject(input) && typeof input.message === "string" ? input.message : null;
}

function requestsIn(events: readonly TaskEvent[]): readonly ExportedRequest[] {
  const known = new Map<string, ExportedRequest>();
  for (const { kind, at, data } of events) {
    if (kind === "asked") {
      const { request, decision, forks } = data as { request: Request; decision: number; forks: number };
      const nothing = { answer: null, answeredBy: null, answeredAt: null, votes: [] };
      known.set(request.id, { decision, forks, request, ...nothing });
    } else if (kind === "withdrawn") {
      known.delete(String(data.id));
    } else if (kind === "answered") {
      const row = known.get(String(data.id));
      if (row) known.set(row.request.id, withAnswer(row, data as unknown as Answered, at));
    }
  }
  return [...known.values()].toSorted(byId);
}

interface Answered {
  readonly who: string | null;
  readonly answer: Answer;
  /** Set where it was one approval of several and not the last. */
  readonly counts?: number;
}

function withAnswer(row: ExportedRequest, { who, answer, counts }: Answered, at: number): ExportedRequest {
  const several = (row.request.count ?? 1) > 1;
  const others = row.votes.filter((vote) => vote.who !== (who ?? ""));
  const votes = several ? [...others, { who: who ?? "", answer, at }].toSorted(byTime) : row.votes;
  return counts === undefined ? { ...row, votes, answer, answeredBy: who, answeredAt: at } : { ...row, votes };
}

function callsIn(events: readonly TaskEvent[]): readonly ExportedCall[] {
  const known = new Map<string, ExportedCall>();
  for (const { kind, data } of events) {
    if (kind !== "call" && kind !== "returned") continue;
    const { key, digest, tool, result } = data as { key: string; digest: string; tool: string; result: CallResult };
    const id = `${key} ${digest}`;
    const before = known.get(id);
    if (kind === "returned") {
      if (before) known.set(id, { ...before, result });
    } else if (!before?.result) {
      const attempt = (before?.attempt ?? 0) + 1;
      known.set(id, { key, digest, decision: Number.parseInt(key, 10), tool, attempt, result: null });
    }
  }
  return [...known.values()].toSorted(byKey);
}

// The order of code units, which is the same everywhere; a database's may differ.
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
export const byId = (a: ExportedRequest, b: ExportedRequest) => compare(a.request.id, b.request.id);
export const byKey = (a: ExportedCall, b: ExportedCall) => compare(a.key, b.key) || compare(a.digest, b.digest);
export const byTime = (a: { at: number; who: string }, b: { at: number; who: string }) =>
  a.at - b.at || compare(a.who, b.who);
