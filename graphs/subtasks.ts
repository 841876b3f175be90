import { z } from "zod";

/** What every subtask has, whatever it is about: to be spread into a schema. */
export const subtaskShape = {
  /** 1 comes first. */
  priority: z.number().int().min(1).max(3),
  status: z.enum(["open", "known", "unknown"]),
};

interface Prioritised {
  readonly priority: number;
  readonly status: "open" | "known" | "unknown";
}

/** The open subtasks of the highest priority. */
export function dueSubtasks<T extends Prioritised>(subtasks: readonly T[]): readonly T[] {
  const open = subtasks.filter(({ status }) => status === "open");
  const first = Math.min(...open.map(({ priority }) => priority));
  return open.filter(({ priority }) => priority === first);
}
