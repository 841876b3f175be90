import { interrupt, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { pauseValue } from "../people/pause.ts";
import type { Request } from "../people/requests.ts";
import { NO_USAGE, type Observation } from "../state/execution.ts";
import type { Settlement } from "../workflow/settle.ts";
import type { Snapshot } from "../workflow/define.ts";
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

/** Pauses for these requests; returns where an answer came in the last moment. */
export async function pause(action: Action, requests: readonly Request[]): Promise<void> {
  const ids = requests.map((request) => request.id);
  if (await action.runtime.store.closing(action.lease, ids)) interrupt(pauseValue(requests));
}

/** The outcome of an action whose time was over: the declared way on. */
export function expired(to: string, observation: Observation): Settlement {
  return { observation, result: { next: to }, usage: NO_USAGE };
}
