import { z } from "zod";
import { digest } from "../internal/digest.ts";
import { MEMORY_TYPES, type Memorable, type MemoryType } from "../workflow/memorable.ts";

/** The first label of every namespace of memories: other items of a LangGraph store stay out of them. */
export const MEMORY_ROOT = "memory";

const DEFAULT_PRIORITY: Readonly<Record<MemoryType, number>> = { preference: 5, task_result: 3, fact: 1, snapshot: 1 };
/** What is longer is condensed. */
export const MAX_TEXT = 1000;

/** The latest time that a date can have. */
export const MAX_TIME = 8.64e15;

const priority = z.number().int().min(0).max(5);
const time = z.number().int().nonnegative();

/** A memory as it is stored: the value of an item in a LangGraph store. */
const valueSchema = z.object({
  type: z.enum(MEMORY_TYPES),
  text: z.string().min(1),
  priority,
  expiresAt: time.optional(),
  taskId: z.string().optional(),
  step: z.string().optional(),
  skill: z.string().optional(),
});
export type MemoryValue = z.infer<typeof valueSchema>;

export interface NewMemory extends Memorable {
  /** Milliseconds since the epoch: from then on it is gone. */
  readonly expiresAt?: number;
  /** The same from now on, in milliseconds. */
  readonly timeToLiveMs?: number;
  /** The task and step that wrote it. */
  readonly taskId?: string;
  readonly step?: string;
}

/** A memory that is read back. */
export interface MemoryItem extends Readonly<MemoryValue> {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A memory that was looked for. */
export interface RecalledMemory extends MemoryItem {
  /** How well it fits the query, from 0 to 1. */
  readonly match: number;
}

/** Reads an item's value as a memory; null where it is something else. Pure. */
export function memoryIn(value: unknown): MemoryValue | null {
  return valueSchema.safeParse(value).data ?? null;
}

/** The value that is stored for a memory whose text is ready. Pure. */
export function toValue(memory: NewMemory, now: number): MemoryValue {
  const { type, text, taskId, step, skill, timeToLiveMs } = memory;
  const expiresAt =
    memory.expiresAt ?? (timeToLiveMs === undefined ? undefined : Math.min(now + timeToLiveMs, MAX_TIME));
  return valueSchema.parse({
    type,
    text,
    priority: memory.priority ?? DEFAULT_PRIORITY[type],
    ...(expiresAt === undefined ? {} : { expiresAt: Math.round(expiresAt) }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(step === undefined ? {} : { step }),
    ...(skill === undefined ? {} : { skill }),
  });
}

/**
 * The id of a memory: a digest of what it says. Whoever writes the same again, at the same time or later,
 * writes the same memory. Pure.
 */
export function memoryId({ type, text }: Pick<MemoryValue, "type" | "text">): string {
  return digest({ type, text: text.normalize("NFKC").toLowerCase().split(/\s+/).join(" ").trim() });
}
