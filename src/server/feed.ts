import { describeTask, type TaskDescription } from "../compile/describe.ts";
import { shownEvent, shownTask } from "../compile/iso-times.ts";
import type { TaskEvent } from "../compile/store.ts";
import { isWorkflowError } from "../errors.ts";
import type { SqlStore } from "../storage/sql-store.ts";

/** A piece of the stream, and the entry of the log up to which it tells. */
export interface Frame {
  readonly sequence: number;
  readonly text: string;
}

/** How much of what was read is kept for all clients of a task; whoever is further behind reads it again. */
const KEPT_BYTES = 512 * 1024;
const PAGE = 100;
const POLLS_PER_LOOK = 40;
/** Entries that are about the server's files and not about the task. */
const HIDDEN: ReadonlySet<string> = new Set(["source"]);

/**
 * What happens to one task. However many clients follow it, its log is asked once for what is new, and what
 * is read is kept once; a client keeps nothing but its place.
 */
export class TaskFeed {
  readonly taskId: string;
  private readonly store: SqlStore;
  private readonly write: (value: unknown) => string;
  private readonly frames: (Frame & { readonly index: number })[] = [];
  private readonly listeners = new Set<() => void>();
  private bytes = 0;
  private nextIndex = 0;
  /** The last entry that was read. */
  private position = 0;
  private standing = "";
  private latest: Frame | null = null;
  private polling: Promise<void> | null = null;
  private polls = 0;
  /** Grows with whatever is new. */
  version = 0;
  /** Why there is no more; null while there may be. */
  ended: TaskDescription["status"] | "deleted" | null = null;

  /** @param write a value as the task's tenant may see it. */
  constructor(store: SqlStore, taskId: string, write: (value: unknown) => string) {
    this.store = store;
    this.taskId = taskId;
    this.write = write;
  }

  /** Begins at the end of the log; what polls meanwhile waits for it. */
  open(): Promise<void> {
    this.polling ??= this.begin().finally(() => (this.polling = null));
    return this.polling;
  }

  private async begin(): Promise<void> {
    this.position = (await this.store.events(this.taskId, 1)).at(-1)?.sequence ?? 0;
    await this.look();
  }

  /** Reads what is new, and tells the clients; several calls at once are one. */
  poll(): Promise<void> {
    this.polling ??= this.read().finally(() => (this.polling = null));
    return this.polling;
  }

  /** Resolves when there is more than there was at a version, and in any case after so many milliseconds. */
  changed(version: number, ms: number): Promise<void> {
    if (version !== this.version) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.listeners.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.listeners.add(done);
    });
  }

  /** Lets every client look again. */
  notify(): void {
    this.version++;
    for (const listener of this.listeners) listener();
  }

  /**
   * What follows a place, at most a page of it.
   *
   * @returns the frames, and the place behind them.
   */
  async after(place: Place): Promise<{ readonly frames: readonly Frame[]; readonly place: Place }> {
    const { sequence, index } = place;
    const first = this.frames[0];
    if (index !== null && (this.nextIndex === index || (first && first.index <= index))) {
      const frames = this.frames.slice(first ? index - first.index : 0);
      return { frames, place: { sequence: frames.at(-1)?.sequence ?? sequence, index: this.nextIndex } };
    }
    if (sequence < this.position) {
      const events = (await this.store.eventsAfter(this.taskId, sequence, PAGE)).filter(
        (event) => event.sequence <= this.position,
      );
      const last = events.at(-1)?.sequence ?? this.position;
      return { frames: this.framesOf(events), place: { sequence: last, index: null } };
    }
    // Everything is told; from now on what all clients get, beginning with where the task stands.
    return { frames: this.latest ? [this.latest] : [], place: { sequence, index: this.nextIndex } };
  }

  private async read(): Promise<void> {
    const before = this.nextIndex;
    for (;;) {
      const events = await this.store.eventsAfter(this.taskId, this.position, PAGE);
      this.position = events.at(-1)?.sequence ?? this.position;
      for (const frame of this.framesOf(events)) this.add(frame);
      if (events.length < PAGE) break;
    }
    // Whatever changes where a task stands is in its log, but for its removal.
    if (this.nextIndex !== before || ++this.polls % POLLS_PER_LOOK === 0) await this.look();
    if (this.nextIndex !== before || this.ended !== null) this.notify();
  }

  /** Where the task stands, told when that has changed. */
  private async look(): Promise<void> {
    try {
      const task = await describeTask(this.store, this.taskId);
      const text = this.write(shownTask(task));
      if (text !== this.standing) {
        this.standing = text;
        this.latest = { sequence: this.position, text: `event: task\ndata: ${text}\n\n` };
        this.add(this.latest);
      }
      if (task.status === "completed" || task.status === "cancelled") this.ended = task.status;
    } catch (error) {
      if (!isWorkflowError(error, "UNKNOWN_TASK")) throw error;
      this.ended = "deleted";
    }
  }

  private framesOf(events: readonly TaskEvent[]): readonly Frame[] {
    return events
      .filter(({ kind }) => !HIDDEN.has(kind))
      .map((event) => ({
        sequence: event.sequence,
        text: `id: ${event.sequence}\nevent: log\ndata: ${this.write(shownEvent(event))}\n\n`,
      }));
  }

  private add(frame: Frame): void {
    this.frames.push({ ...frame, index: this.nextIndex++ });
    this.bytes += frame.text.length;
    while (this.bytes > KEPT_BYTES && this.frames.length > 1) this.bytes -= this.frames.shift()?.text.length ?? 0;
  }
}

/** How far a client is: the entry of the log that it has, and its place among what is kept, once it is there. */
export interface Place {
  readonly sequence: number;
  readonly index: number | null;
}
