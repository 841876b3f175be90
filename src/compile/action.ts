import { interrupt, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { distinctRequests } from "../people/consent-request.ts";
import { pauseValue } from "../people/pause.ts";
import type { Request } from "../people/requests.ts";
import { NO_USAGE, type Observation } from "../state/execution.ts";
import type { Settlement } from "../workflow/settle.ts";
import type { Snapshot } from "../workflow/define.ts";
import { undecided } from "./decided-consents.ts";
import type { Runtime } from "./runtime.ts";
import type { Lease } from "./store.ts";

/** What carrying out a recorded action needs. */
export interface Action {
  readonly runtime: Runtime;
  readonly snapshot: Snapshot;
  readonly lease: Lease;
  readonly forks: number;
  /** The checkpoint that the action was recorded in. */
  readonly checkpointId: string;
  readonly config: LangGraphRunnableConfig;
}

/** Pauses for these requests; returns where an answer came in the last moment, to another task's same question too. */
export async function pause({ runtime, lease }: Action, requests: readonly Request[]): Promise<void> {
  const asked = distinctRequests(requests);
  if ((await undecided(runtime.store, lease.taskId, asked)).length < asked.length) return;
  const ids = requests.map((request) => request.id);
  if (await runtime.store.closing(lease, ids)) interrupt(pauseValue(asked));
}

/** The outcome of an action whose time was over: the declared way on. */
export function expired(to: string, observation: Observation): Settlement {
  return { observation, result: { next: to }, usage: NO_USAGE };
}
