import { z } from "zod";
import { dueSubtasks, subtaskShape } from "../subtasks.ts";

export const subtaskSchema = z.object({
  company: z.string().min(1).max(60),
  about: z.enum(["revenue", "news"]),
  ...subtaskShape,
});
/** One thing to find out. */
export type Subtask = z.infer<typeof subtaskSchema>;

interface Found {
  readonly subtasks: readonly Subtask[] | null;
  readonly revenue: Readonly<Record<string, unknown>> | null;
  readonly news: Readonly<Record<string, unknown>> | null;
  readonly answer: string | null;
}

/**
 * The self-check after each round of looking: what was due is known or not, whatever the model says, and
 * what comes next in priority follows. The answer names what was not found out.
 */
export function check({ subtasks, revenue, news, answer }: Found) {
  const due = dueSubtasks(subtasks ?? []);
  const checked = (subtasks ?? []).map((subtask): Subtask => {
    if (!due.includes(subtask)) return { ...subtask };
    const found = { revenue, news }[subtask.about] ?? {};
    return { ...subtask, status: Object.hasOwn(found, subtask.company) ? "known" : "unknown" };
  });
  const open = checked.filter(({ status }) => status === "open");
  if (open.length > 0) {
    return {
      because: `${open.length} subtasks of lower priority are open`,
      patch: { subtasks: checked },
      next: "looking" as const,
    };
  }
  const unknown = checked
    .filter(({ status }) => status === "unknown")
    .map(({ company, about }) => `${about} of ${company}`);
  const told = [answer ?? "", unknown.length > 0 ? `Not found out: ${unknown.join(", ")}.` : ""]
    .filter(Boolean)
    .join(" ");
  return {
    because: unknown.length > 0 ? `${unknown.length} subtasks stay unknown` : "all is known",
    patch: { subtasks: checked, answer: told },
    reply: told,
    next: "done" as const,
  };
}
