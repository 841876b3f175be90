import type { Execution, Observation, Pending } from "../state/execution.ts";
import { FREE, lastUpdate } from "./record.ts";
import type { Snapshot } from "./define.ts";
import type { Update } from "./advance.ts";

export type PendingConsent = Extract<Pending, { kind: "consent" }>;

/** What a task needs a person's consent for before its next decision. */
export type NeededConsent = Pick<PendingConsent, "destination" | "model" | "kinds">;

/** What was decided about it. */
export interface GivenConsent {
  readonly destination: string;
  readonly allowed: readonly string[];
  readonly withheld: readonly string[];
  /** Null where nobody was signed in, or several have decided. */
  readonly by: string | null;
}

/**
 * Records that a person has to be asked before the model is; no decision is made and counted. The message that the
 * decision would have answered is taken in. Pure.
 */
export function awaitConsent(snapshot: Snapshot, needed: NeededConsent, observation: Observation | null): Update {
  const { execution } = snapshot;
  const pending: Pending = { kind: "consent", decision: -(execution.revision + 1), ...needed };
  return {
    changes: {},
    execution: {
      ...execution,
      revision: execution.revision + 1,
      status: "waiting_user",
      pending,
      observation: observation ?? execution.observation,
      last: lastUpdate("consent", execution.step, null, observation, FREE),
    },
  };
}

/** The record once it is decided what may be sent; the step decides next. Pure. */
export function settleConsent(execution: Execution, given: GivenConsent): Execution {
  return {
    ...execution,
    revision: execution.revision + 1,
    status: "running",
    pending: null,
    last: { ...lastUpdate("consent", execution.step, null, null, FREE), decision: { ...given } },
  };
}
