/** What a memory is about, and with it how much it matters unless that is said. */
export const MEMORY_TYPES = ["preference", "fact", "task_result", "snapshot"] as const;
export type MemoryType = (typeof MEMORY_TYPES)[number];

/** Something that is worth remembering across tasks. */
export interface Memorable {
  readonly type: MemoryType;
  /** One statement; what has more than 1,000 characters is condensed. */
  readonly text: string;
  /** From 0, passing, to 5, to be kept. Unless set, a preference has 5, the result of a task 3, a fact and a snapshot 1. */
  readonly priority?: number;
  /** The skill that found it. */
  readonly skill?: string;
}
