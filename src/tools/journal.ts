import type { CallResult } from "../state/execution.ts";
import type { Artifact } from "../workflow/artifact.ts";

/** How long after its time limit a call's result may still be written down, in milliseconds. */
export const GRACE_MS = 5000;

/** The right to run a task, as the journal needs it. */
export interface Holder {
  readonly taskId: string;
  readonly token: number;
}

/** A large value as it is to be stored; the store adds the time. */
export type NewArtifact = Omit<Artifact, "at">;

/** A call that is about to run. */
export interface Intent {
  /** Decision number and position: `12.0`. */
  readonly key: string;
  /** Of tool and arguments: a result is reused for the same call only. */
  readonly digest: string;
  readonly decision: number;
  readonly tool: string;
  readonly timeoutMs: number;
  /** True where the call may run although an earlier attempt left no result. */
  readonly repeat: boolean;
}

/**
 * What the journal knows of a call. `new`: written down, run it. `done`: here is its result. `alive`:
 * another attempt may still end; look again. `begun`: an attempt, the first, second or later, left no
 * result and never will.
 */
export type IntentState =
  | { readonly state: "new" }
  | { readonly state: "done"; readonly result: CallResult }
  | { readonly state: "alive" }
  | { readonly state: "begun"; readonly attempt: number };

/**
 * Where calls are written down before and after they run, so that a resume neither repeats nor
 * forgets one. The part of the event log that a resume reads.
 */
export interface Journal {
  /**
   * Writes the intent down, in a transaction that requires the lease and that `checkpointId` is the
   * task's head.
   *
   * @throws STALE_WRITE.
   */
  intend(holder: Holder, checkpointId: string, intent: Intent): Promise<IntentState>;
  /**
   * Writes a call's result down. It needs no lease: the intent, written under the holder's token, is its
   * own ticket, until its deadline has passed or another attempt took its place.
   *
   * @param artifact the result's whole value, where it was set aside: stored with the result or not at all.
   * @returns false where the result came too late and was not taken.
   */
  recordResult(holder: Holder, intent: Intent, result: CallResult, artifact?: NewArtifact | null): Promise<boolean>;
  /** The result of a call, where it has one. */
  resultOf(taskId: string, intent: Pick<Intent, "key" | "digest">): Promise<CallResult | null>;
  /** Says that an attempt has ended without a result, so that nobody waits for it until its deadline. */
  letGo(holder: Holder, intent: Intent): Promise<void>;
}
