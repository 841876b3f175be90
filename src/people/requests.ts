import { digest } from "../internal/digest.ts";
import type { Pending } from "../state/execution.ts";

/** What a task asks a person for. A row of its own, keyed by task and id. */
export interface Request {
  readonly id: string;
  /**
   * `question`: a text is asked for. `approval`: may this call run? `unknown`: a call was begun and left
   * no result; approving says that it happened, rejecting that it did not.
   */
  readonly kind: "question" | "approval" | "unknown";
  /** What a person reads. */
  readonly question: string;
  /** Binds an answer to what was shown: a question's text, or a call's tool and arguments. */
  readonly digest: string;
  readonly tool?: string;
  readonly args?: Readonly<Record<string, unknown>>;
  /** Names of the people who may approve; anybody unless set. */
  readonly approvers?: readonly string[];
  /** How many different people have to approve; 1 unless set. */
  readonly count?: number;
  /** Milliseconds since the epoch; after that it takes no answer. */
  readonly expiresAt?: number;
}

/** A person's answer as it is stored. */
export type Answer =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "approve" }
  | { readonly type: "reject"; readonly reason: string }
  | { readonly type: "edit"; readonly args: Readonly<Record<string, unknown>> };

/** A request with its answer, where it has one. */
export interface RequestRow {
  readonly request: Request;
  /** The decision that asked, and the task's fork count then: a question asked again is another request. */
  readonly decision: number;
  readonly forks: number;
  readonly answer: Answer | null;
  readonly answeredBy: string | null;
  /** Who has approved so far, where several have to. */
  readonly approvedBy: readonly string[];
}

/** An answer on its way to a request. */
export interface Vote {
  readonly answer: Answer;
  /** The name of the person, as it was established; null where nobody is signed in. */
  readonly who: string | null;
  /** The digest of what the person was shown. */
  readonly shown?: string;
  /** Why, for the log. */
  readonly reason?: string;
  /** True where it was judged in time already, at the request that a parent asked in this one's place. */
  readonly inTime?: true;
}

/** What the owner of a task was doing when an answer was stored; `closing` and `free` need a wake-up. */
export type OwnerState = "running" | "closing" | "free";

/** Whoever runs a task, by its lease. */
interface Holder {
  readonly taskId: string;
  readonly token: number;
}

/** The requests of one decision whose ids begin alike. */
export interface RequestPlace extends Pick<RequestRow, "decision" | "forks"> {
  readonly prefix: string;
}

/** Where requests and answers are kept. */
export interface RequestStore {
  /** Adds requests that are not there yet. */
  addRequests(taskId: string, decision: number, forks: number, requests: readonly Request[]): Promise<void>;
  /** The requests of one decision, by id; of those that begin with a prefix, where one is given. */
  requests(taskId: string, decision: number, forks: number, prefix?: string): Promise<readonly RequestRow[]>;
  request(taskId: string, id: string): Promise<RequestRow | null>;
  /**
   * Makes these the requests without an answer at a place, at once: adds what is missing, and takes back what is not
   * among them, with the approvals of some that it has. What was answered stays as it is.
   *
   * @param holder who runs the task.
   * @throws STALE_WRITE where somebody else does.
   */
  replaceRequests(holder: Holder, place: RequestPlace, requests: readonly Request[]): Promise<void>;
  /**
   * Stores an answer; the first one wins. Where several people have to approve, it counts one of them
   * until there are enough. Needs no lease.
   *
   * @throws whatever `countVote` refuses.
   */
  answer(taskId: string, id: string, vote: Vote): Promise<OwnerState>;
  hasAnswers(taskId: string): Promise<boolean>;
}

/** Whether a request is one that a workflow within the task's asks, from where it may have been withdrawn. Pure. */
export function isPassedOn(id: string): boolean {
  return /^w[\d.]+\//.test(id);
}

/** The digest that binds an answer to a request's content. Pure. */
export function requestDigest(content: Pick<Request, "kind" | "question" | "tool" | "args">): string {
  return content.tool === undefined
    ? digest(["question", content.question])
    : digest([content.tool, content.args ?? {}]);
}

/** The request that a pending question makes. The fork count tells a question asked again from the first. */
export function questionRequest(
  pending: Extract<Pending, { kind: "question" }>,
  forks: number,
  expiresAt?: number,
): Request {
  const { question } = pending;
  return {
    id: `q${pending.decision}.${forks}`,
    kind: "question",
    question,
    digest: requestDigest({ kind: "question", question }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}
