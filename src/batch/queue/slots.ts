import type { Lease } from "../../compile/store.ts";
import { isWorkflowError } from "../../errors.ts";
import type { SqlStore } from "../../storage/sql-store.ts";

/** A limit over all workers; null where there is none. */
export interface Limit {
  /** How many tasks run at once. */
  readonly concurrency: number | null;
  /** How many runs are begun in a time. */
  readonly rate: { readonly max: number; readonly perMs: number } | null;
}

/** A limit, and what is limited: tasks of one name share its places. */
export interface NamedLimit {
  readonly name: string;
  readonly limit: Limit;
}

/** A place under each limit of a task. */
export interface Slot {
  /** The task has run. What its begin counts for a rate is counted for as long as that takes. */
  release(): void;
  /** The task was not run after all. */
  cancel(): void;
}

/** There is no place; how long to leave the task alone. */
export interface NoSlot {
  readonly againInMs: number;
}

/** Places that tasks share: each is held while its task runs, or for a fixed time from its begin. */
interface Places {
  readonly name: string;
  readonly count: number;
  readonly heldMs: number | null;
}

const RENEW_EVERY_MS = 10_000;
/** Of many places, so many are tried before a task is put off. */
const TRIES = 8;
const TURNS_MS = 100;
const SHORTEST_TURN_MS = 5;

/**
 * Limits over all workers for what BullMQ knows nothing of, or counts otherwise. Each place is a lease in the store,
 * so that a dead worker's places are free again as its tasks are. A rate has places of its own, each held for the rate's
 * time, however long the task runs: of 30 places, each held for a minute, at most 30 tasks begin in a minute.
 */
export class Slots {
  private readonly store: SqlStore;
  private readonly held = new Set<Lease>();
  private readonly later = new Set<NodeJS.Timeout>();
  private readonly renewal: NodeJS.Timeout;
  /** By name, when the last task that was put off comes back. */
  private readonly turns = new Map<string, number>();

  constructor(store: SqlStore) {
    this.store = store;
    this.renewal = setInterval(() => {
      for (const lease of this.held) void store.renew(lease).catch(() => {});
    }, RENEW_EVERY_MS);
    this.renewal.unref();
  }

  /** A place under each of the limits, where there is one. */
  async take(limits: readonly NamedLimit[]): Promise<Slot | NoSlot> {
    const taken: Slot[] = [];
    for (const places of limits.flatMap(placesOf)) {
      const slot = await this.takeOne(places);
      if (slot) taken.push(slot);
      else {
        for (const unused of taken) unused.cancel();
        return { againInMs: this.turn(places) };
      }
    }
    return {
      release: () => taken.forEach((slot) => slot.release()),
      cancel: () => taken.forEach((slot) => slot.cancel()),
    };
  }

  private async takeOne({ name, count, heldMs }: Places): Promise<Slot | null> {
    const first = Math.floor(Math.random() * count);
    for (let tried = 0; tried < Math.min(count, TRIES); tried++) {
      const lease = await this.acquire(`slot of ${name}, ${(first + tried) % count}`);
      if (lease) return this.slot(lease, heldMs);
    }
    return null;
  }

  /**
   * Tasks that are put off come back one after the other: so a place is filled soon after it is free, and however
   * many wait, they do not keep the workers from other tasks.
   */
  private turn({ name, count }: Places): number {
    const now = Date.now();
    const gap = Math.max(TURNS_MS / count, SHORTEST_TURN_MS);
    const at = Math.max(now, this.turns.get(name) ?? 0) + gap;
    this.turns.set(name, at);
    return at - now;
  }

  /** Gives everything back. */
  async close(): Promise<void> {
    clearInterval(this.renewal);
    for (const timer of this.later) clearTimeout(timer);
    await Promise.all([...this.held].map((lease) => this.store.release(lease)));
  }

  private async acquire(place: string): Promise<Lease | null> {
    try {
      return await this.store.acquire(place);
    } catch (error) {
      if (isWorkflowError(error, "TASK_BUSY")) return null;
      throw error;
    }
  }

  private slot(lease: Lease, heldMs: number | null): Slot {
    this.held.add(lease);
    const giveBack = () => {
      this.held.delete(lease);
      void this.store.release(lease).catch(() => {});
    };
    if (heldMs === null) return { release: giveBack, cancel: giveBack };
    const timer = setTimeout(() => {
      this.later.delete(timer);
      giveBack();
    }, heldMs);
    this.later.add(timer);
    return {
      release: () => {},
      cancel: () => {
        clearTimeout(timer);
        this.later.delete(timer);
        giveBack();
      },
    };
  }
}

function placesOf({ name, limit: { concurrency, rate } }: NamedLimit): readonly Places[] {
  return [
    ...(concurrency === null ? [] : [{ name, count: concurrency, heldMs: null }]),
    ...(rate === null ? [] : [{ name: `${name}, begun`, count: rate.max, heldMs: rate.perMs }]),
  ];
}
