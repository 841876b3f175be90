import { isPlainObject } from "../internal/json.ts";
import type { State } from "../state/fields.ts";

/** One thing to do, wherever a state keeps it: a todo, a step of a plan, a subtask. */
export interface WorkItem {
  /** The field that it is kept in. */
  readonly field: string;
  readonly status: "pending" | "running" | "done" | "failed";
  readonly text: string;
}

/** The words that lists of work use for how far something is. */
const STATUSES: Readonly<Record<string, WorkItem["status"]>> = {
  pending: "pending",
  open: "pending",
  running: "running",
  in_progress: "running",
  done: "done",
  completed: "done",
  ok: "done",
  known: "done",
  failed: "failed",
  cancelled: "failed",
  unknown: "failed",
  error: "failed",
};

/** What a state says about work: the items of all its lists whose items have a status. Pure. */
export function workIn(state: State): readonly WorkItem[] {
  return Object.entries(state).flatMap(([field, value]) => {
    const items: readonly unknown[] = Array.isArray(value) ? value : [];
    return items.flatMap((item): WorkItem[] => {
      if (!isPlainObject(item) || typeof item.status !== "string") return [];
      const status = STATUSES[item.status];
      return status === undefined ? [] : [{ field, status, text: textOf(item) }];
    });
  });
}

/** What a state says is worked on now: its field of that name, else what is running. Null where it says nothing. Pure. */
export function focusIn(state: State): string | null {
  if (typeof state.focus === "string" && state.focus.trim() !== "") return state.focus;
  return workIn(state).find(({ status }) => status === "running")?.text ?? null;
}

/** The texts of an item in the order in which it has them, without its id and status. */
function textOf(item: Readonly<Record<string, unknown>>): string {
  const texts = Object.entries(item).filter(
    ([name, value]) => name !== "status" && name !== "id" && typeof value === "string",
  );
  return texts.map(([, value]) => String(value)).join(" - ") || String(item.id ?? "");
}
