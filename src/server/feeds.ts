import { WorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { TaskFeed, type Place } from "./feed.ts";

export interface FeedsOptions {
  readonly store: SqlStore;
  /** How often a followed task is asked for what is new, in milliseconds. */
  readonly pollMs: number;
  /** How often a silent stream shows that it is alive. */
  readonly heartbeatMs: number;
  /** Whoever has read nothing for so long is dropped. */
  readonly stallMs: number;
  /** How many streams one identity may have open. */
  readonly perIdentity: number;
  readonly log: (message: string) => void;
}

/** One client's stream. */
export interface FollowOptions {
  readonly taskId: string;
  /** Who follows, for the limit. */
  readonly identity: string;
  /** The entry of the log that the client has already. */
  readonly after: number;
  /** A value as the client may see it. */
  readonly write: (value: unknown) => string;
  /** Cuts the client's connection. */
  readonly cut: () => void;
}

interface Followed {
  readonly feed: TaskFeed;
  readonly ready: Promise<void>;
  readonly timer: NodeJS.Timeout;
  clients: number;
}

const RETRY = "retry: 1000\n\n";
/** A server that stops may take a moment to come back. */
const GOODBYE = "retry: 3000\nevent: stopping\ndata: {}\n\n";

/** What a client gets next. */
interface Piece {
  readonly text: string;
  readonly place: Place;
  readonly isLast: boolean;
}

/** The streams of events of all tasks that are followed. */
export class Feeds {
  readonly options: FeedsOptions;
  private readonly followed = new Map<string, Followed>();
  private readonly streams = new Map<string, number>();
  private isClosing = false;

  constructor(options: FeedsOptions) {
    this.options = options;
  }

  /** How many clients follow how many tasks now. */
  get size(): { readonly clients: number; readonly tasks: number } {
    const clients = [...this.followed.values()].reduce((sum, each) => sum + each.clients, 0);
    return { clients, tasks: this.followed.size };
  }

  /**
   * A stream of what happens to a task. It reads only when the client has taken what there was, so a slow
   * client costs no memory, and one that takes nothing any more is dropped.
   *
   * @throws RATE_LIMITED.
   */
  follow(options: FollowOptions): ReadableStream<Uint8Array> {
    const { perIdentity } = this.options;
    if ((this.streams.get(options.identity) ?? 0) >= perIdentity) {
      throw new WorkflowError("RATE_LIMITED", `${perIdentity} streams are open already; close one`, {
        details: { retryAfter: 5 },
      });
    }
    // Nothing is read, and nobody counted as following, before somebody takes it.
    return new ReadableStream(new Follower(this, options), { highWaterMark: 0 });
  }

  /** Something may have happened to a task in this process: its clients need not wait for the next poll. */
  nudge(taskId: string): void {
    const followed = this.followed.get(taskId);
    if (followed) void this.poll(followed.feed);
  }

  /** Ends all streams; clients come back where they were. */
  close(): void {
    this.isClosing = true;
    for (const { feed } of this.followed.values()) feed.notify();
  }

  /** The next piece for a client: what is new, as soon as there is anything, else a sign of life. */
  async read(feed: TaskFeed, place: Place): Promise<Piece> {
    const deadline = Date.now() + this.options.heartbeatMs;
    for (;;) {
      // Asked before the frames: what comes in between makes another round.
      const { ended, version } = feed;
      const step = await feed.after(place);
      const text = step.frames.map((frame) => frame.text).join("");
      const isAtEnd = step.place.index !== null;
      if (ended !== null && isAtEnd) {
        return {
          text: `${text}event: end\ndata: ${JSON.stringify({ status: ended })}\n\n`,
          place: step.place,
          isLast: true,
        };
      }
      if (text !== "") return { text, place: step.place, isLast: false };
      if (this.isClosing) return { text: GOODBYE, place: step.place, isLast: true };
      const left = deadline - Date.now();
      if (left <= 0) return { text: ": still here\n\n", place: step.place, isLast: false };
      if (!isAtEnd) {
        place = step.place;
        continue;
      }
      place = step.place;
      await feed.changed(version, left);
    }
  }

  /** Adds a client to a task. */
  async join({ taskId, identity, write }: FollowOptions): Promise<TaskFeed> {
    let followed = this.followed.get(taskId);
    if (!followed) {
      const feed = new TaskFeed(this.options.store, taskId, write);
      const timer = setInterval(() => void this.poll(feed), this.options.pollMs);
      timer.unref();
      followed = { feed, ready: feed.open(), timer, clients: 0 };
      this.followed.set(taskId, followed);
    }
    followed.clients++;
    this.count(identity, 1);
    await followed.ready;
    return followed.feed;
  }

  /** Takes away a client that has been added. */
  leave({ taskId, identity }: FollowOptions): void {
    this.count(identity, -1);
    const followed = this.followed.get(taskId);
    if (!followed || --followed.clients > 0) return;
    clearInterval(followed.timer);
    this.followed.delete(taskId);
  }

  private async poll(feed: TaskFeed): Promise<void> {
    try {
      await feed.poll();
    } catch (error) {
      // The next poll tries again; streams go on.
      this.options.log(`events of ${feed.taskId}: ${redact(error instanceof Error ? error.message : "failed")}`);
    }
  }

  private count(identity: string, change: 1 | -1): void {
    const open = (this.streams.get(identity) ?? 0) + change;
    if (open > 0) this.streams.set(identity, open);
    else this.streams.delete(identity);
  }
}

/** The source of one client's stream. */
class Follower {
  private readonly feeds: Feeds;
  private readonly options: FollowOptions;
  private readonly encoder = new TextEncoder();
  private feed: TaskFeed | null = null;
  private place: Place;
  private state: "new" | "following" | "gone" = "new";
  private stalled: NodeJS.Timeout | undefined;

  constructor(feeds: Feeds, options: FollowOptions) {
    this.feeds = feeds;
    this.options = options;
    this.place = { sequence: options.after, index: null };
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    clearTimeout(this.stalled);
    try {
      const piece = await this.next();
      // The client may have gone meanwhile.
      if (this.isGone()) return;
      controller.enqueue(this.encoder.encode(piece.text));
      if (piece.isLast) {
        this.cancel();
        controller.close();
        return;
      }
      this.watch();
    } catch (error) {
      const { log } = this.feeds.options;
      log(`events of ${this.options.taskId}: ${redact(error instanceof Error ? error.message : "failed")}`);
      this.cancel();
      controller.error(error);
    }
  }

  cancel(): void {
    clearTimeout(this.stalled);
    if (this.state === "following") this.feeds.leave(this.options);
    this.state = "gone";
  }

  private isGone(): boolean {
    return this.state === "gone";
  }

  private async next(): Promise<Pick<Piece, "text" | "isLast">> {
    if (!this.feed) {
      this.state = "following";
      this.feed = await this.feeds.join(this.options);
      return { text: RETRY, isLast: false };
    }
    const piece = await this.feeds.read(this.feed, this.place);
    this.place = piece.place;
    return piece;
  }

  /** Drops the client if it takes nothing any more. */
  private watch(): void {
    this.stalled = setTimeout(() => {
      this.cancel();
      this.options.cut();
    }, this.feeds.options.stallMs);
    this.stalled.unref();
  }
}
