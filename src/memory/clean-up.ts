import type { MemoryStore } from "./store.ts";

/** Beside the memories, so that no owner's namespace can be this one. */
const NAMESPACE = ["statecard", "memory-clean-up"];

/**
 * Cleans a store up unless that was done today: whoever writes the day's item first does it. Should that process end
 * before it is done, the next day's does its work too.
 *
 * @returns how many memories were deleted; null where the day's item was there.
 */
export async function cleanUpOnce(store: MemoryStore): Promise<number | null> {
  const today = new Date(store.now()).toISOString().slice(0, "2026-11-30".length);
  if (await store.get(NAMESPACE, today)) return null;
  if (!(await store.write(NAMESPACE, today, {})).isNew) return null;
  for (const { key } of await store.list(NAMESPACE, { order: "newest", limit: 100 })) {
    if (key < today) await store.remove(NAMESPACE, key);
  }
  return store.cleanUp();
}
