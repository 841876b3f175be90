import type { RunnableConfig } from "@langchain/core/runnables";
import { LEASE_TOKEN, LOADED } from "../compile/store.ts";
import { isPlainObject } from "../internal/json.ts";

/** What LangGraph's `configurable` says about a read or write. */
export interface Address {
  readonly thread: string;
  /** Empty for a thread's root; else it names a graph that runs inside it. */
  readonly namespace: string;
  /** The checkpoint to read; for a write, the one that it is based on. */
  readonly id: string | undefined;
  readonly token: unknown;
  readonly loaded: unknown;
}

export function addressOf(config: RunnableConfig): Address {
  const configurable: Readonly<Record<string, unknown>> = isPlainObject(config.configurable) ? config.configurable : {};
  const id = text(configurable.checkpoint_id);
  return {
    thread: text(configurable.thread_id) ?? "",
    namespace: text(configurable.checkpoint_ns) ?? "",
    id: id === "" ? undefined : id,
    token: configurable[LEASE_TOKEN],
    loaded: configurable[LOADED],
  };
}

export function text(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : String(value);
}
