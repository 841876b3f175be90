import type { BaseStore, Item, SearchItem } from "@langchain/langgraph-checkpoint";
import type { MemoryType } from "../workflow/memorable.ts";

/** Which memories of a namespace to read, and in which order. */
export interface MemoryList {
  /** `newest`: the latest written first. `priority`: the highest first, then the newest. */
  readonly order: "newest" | "priority";
  readonly limit: number;
  readonly type?: MemoryType;
}

/** What to look for in a namespace. */
export interface MemoryQuery {
  readonly query: string;
  readonly limit: number;
  /** The least match, from 0 to 1. */
  readonly threshold: number;
  readonly type?: MemoryType;
}

/**
 * A LangGraph store that also keeps what memories need: orders, expiry, and search by words. All that
 * is said of a namespace means exactly this one, never one below it. What has expired is not there.
 */
export interface MemoryStore extends BaseStore {
  /** Writes one item in one transaction; says whether there was none with this key. */
  write(namespace: string[], key: string, value: Record<string, unknown>): Promise<{ readonly isNew: boolean }>;
  list(namespace: string[], list: MemoryList): Promise<readonly Item[]>;
  /** The best match first, then the highest priority, then the newest; each with its match as score. */
  recall(namespace: string[], query: MemoryQuery): Promise<readonly SearchItem[]>;
  /** @returns false where there was none. */
  remove(namespace: string[], key: string): Promise<boolean>;
  /**
   * Deletes what has expired, and memories of priority 0 and 1 that were last written a day ago.
   *
   * @param namespace only this one; all of them unless set.
   * @returns how many were deleted.
   */
  cleanUp(namespace?: string[]): Promise<number>;
  /** Milliseconds since the epoch, by the store's clock. */
  now(): number;
}
