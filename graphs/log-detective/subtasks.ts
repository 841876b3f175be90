import { z } from "zod";
import { dueSubtasks, subtaskShape } from "../subtasks.ts";

export const subtaskSchema = z.object({
  about: z.string().min(1).max(300),
  ...subtaskShape,
});
/** One thing to find out. */
export type Subtask = z.infer<typeof subtaskSchema>;

interface Known {
  readonly subtasks: readonly Subtask[] | null;
  readonly lines: readonly string[] | null;
  /** The priority that was looked for; null the first time, which is for the highest. */
  readonly lookedFor: number | null;
}

/**
 * The self-check after each round of looking: nothing is known where nothing was read, what was looked for and
 * stays open is unknown, and what comes next in priority follows without anybody asking for it.
 */
export function check({ subtasks, lines, lookedFor }: Known) {
  const all = subtasks ?? [];
  const priority = lookedFor ?? Math.min(...all.map((subtask) => subtask.priority));
  const hasRead = (lines ?? []).length > 0;
  const checked = all.map((subtask): Subtask => {
    const isLeft = subtask.status === "open" && subtask.priority <= priority;
    // Without a log to read, the others would end as the first did.
    return isLeft || !hasRead ? { ...subtask, status: "unknown" } : { ...subtask };
  });
  const [due] = dueSubtasks(checked);
  if (due === undefined) {
    return { because: "nothing is left to look for", patch: { subtasks: checked }, next: "reporting" as const };
  }
  const patch = { subtasks: checked, lookedFor: due.priority };
  return { because: `subtasks of priority ${due.priority} are open`, patch, next: "looking" as const };
}
