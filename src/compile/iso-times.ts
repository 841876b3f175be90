import type { ListedTask, TaskDescription, WaitingRequest } from "./describe.ts";
import type { TaskEvent } from "./store.ts";

/** The latest time that a date can have. */
const MAX_TIME = 8.64e15;

/** A request as JSON shows it to people and programs outside. */
export type ShownRequest = Omit<WaitingRequest, "expiresAt"> & { readonly expiresAt?: string };

/** A task as JSON shows it to people and programs outside. */
export type ShownTask = Omit<TaskDescription, "waiting"> & { readonly waiting?: readonly ShownRequest[] };

/** Milliseconds since the epoch in ISO 8601, as every time is that leaves the library as JSON. */
export function isoTime(ms: number): string {
  return new Date(Math.min(ms, MAX_TIME)).toISOString();
}

export function shownRequest({ expiresAt, ...request }: WaitingRequest): ShownRequest {
  return expiresAt === undefined ? request : { ...request, expiresAt: isoTime(expiresAt) };
}

export function shownTask({ waiting, ...task }: TaskDescription): ShownTask {
  return waiting ? { ...task, waiting: waiting.map(shownRequest) } : task;
}

/** A task of a list as JSON shows it to people and programs outside. */
export type ShownRow = Omit<ListedTask, "updatedAt" | "waiting" | "lastError"> &
  Pick<ShownTask, "waiting" | "lastError"> & { readonly updatedAt: string };

export function shownRow({ updatedAt, waiting, lastError, ...task }: ListedTask): ShownRow {
  return {
    ...task,
    updatedAt: isoTime(updatedAt),
    ...(waiting.length > 0 ? { waiting: waiting.map(shownRequest) } : {}),
    ...(lastError ? { lastError } : {}),
  };
}

export function shownEvent(event: TaskEvent): Omit<TaskEvent, "at"> & { readonly at: string } {
  return { ...event, at: isoTime(event.at) };
}
