import { digest } from "../internal/digest.ts";
import type { Pending } from "../state/execution.ts";

/** What a task asks a person for. A row of its own, keyed by task and id. */
export interface Request {
  readonly id: string;
  readonly kind: "question";
  readonly question: string;
  /** Binds an answer to what was shown. */
  readonly digest: string;
}

/** A person's answer as it is stored. */
export interface Answer {
  readonly text: string;
}

/** A request with its answer, where it has one. */
export interface RequestRow {
  readonly request: Request;
  /** The decision that asked, and the task's fork count then: a question asked again is another request. */
  readonly decision: number;
  readonly forks: number;
  readonly answer: Answer | null;
  readonly answeredBy: string | null;
}

/** What the owner of a task was doing when an answer was stored; `closing` and `free` need a wake-up. */
export type OwnerState = "running" | "closing" | "free";

/** Where requests and answers are kept. */
export interface RequestStore {
  /** Adds requests that are not there yet. */
  addRequests(taskId: string, decision: number, forks: number, requests: readonly Request[]): Promise<void>;
  /** The requests of one decision, oldest first. */
  requests(taskId: string, decision: number, forks: number): Promise<readonly RequestRow[]>;
  request(taskId: string, id: string): Promise<RequestRow | null>;
  /**
   * Stores an answer; the first one wins. Needs no lease.
   *
   * @throws UNKNOWN_REQUEST, or STALE_RESUME where it was answered already or is not what was shown.
   */
  answer(taskId: string, id: string, answer: Answer, who: string, shown?: string): Promise<OwnerState>;
  hasAnswers(taskId: string): Promise<boolean>;
}

/** The request that a pending question makes. The fork count tells a question asked again from the first. */
export function questionRequest(pending: Extract<Pending, { kind: "question" }>, forks: number): Request {
  return {
    id: `q${pending.decision}.${forks}`,
    kind: "question",
    question: pending.question,
    digest: digest(["question", pending.question]),
  };
}
