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

/** A place among those that tasks of one name may take at once. */
export interface Slot {
  /** The task has run: a rate may hold the place for longer. */
  release(): void;
  /** The task was not run after all. */
  cancel(): void;
}

/** There is no place; how long to leave the task alone. */
export interface NoSlot {
  readonly againInMs: number;
}

const RENEW_EVERY_MS = 10_000;
/** Of many places, so many are tried before a task is put off. */
const TRIES = 8;
const TURNS_MS = 100;
const SHORTEST_TURN_MS = 5;

/**
 * Limits over all workers for what BullMQ knows nothing of, or counts otherwise. Each place is a lease in the store,
 * so that a dead worker's places are free again as its tasks are. A rate is kept by holding a place for its share of the
 * time: of 30 places, each held for a minute at least, at most 30 tasks begin in a minute.
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
    for (const { name, limit } of limits) {
      const slot = await this.takeOne(name, limit);
      if (slot) taken.push(slot);
      else {
        for (const unused of taken) unused.cancel();
        return { againInMs: this.turn(name, placesOf(limit)) };
      }
    }
    return {
      release: () => taken.forEach((slot) => slot.release()),
      cancel: () => taken.forEach((slot) => slot.cancel()),
    };
  }

  private async takeOne(name: string, limit: Limit): Promise<Slot | null> {
    const places = placesOf(limit);
    const { rate } = limit;
    const heldMs = rate === null ? 0 : (rate.perMs * places) / rate.max;
    const first = Math.floor(Math.random() * places);
    for (let tried = 0; tried < Math.min(places, TRIES); tried++) {
      const lease = await this.acquire(`slot of ${name}, ${(first + tried) % places}`);
      if (lease) return this.slot(lease, heldMs);
    }
    return null;
  }

  /**
   * Tasks that are put off come back one after the other: so a place is filled soon after it is free, and however
   * many wait, they do not keep the workers from other tasks.
   */
  private turn(name: string, places: number): number {
    const now = Date.now();
    const gap = Math.max(TURNS_MS / places, SHORTEST_TURN_MS);
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

  private slot(lease: Lease, heldMs: number): Slot {
    this.held.add(lease);
    const until = Date.now() + heldMs;
    const giveBack = () => {
      this.held.delete(lease);
      void this.store.release(lease).catch(() => {});
    };
    return {
      cancel: giveBack,
      release: () => {
        const timer = setTimeout(
          () => {
            this.later.delete(timer);
            giveBack();
          },
          Math.max(0, until - Date.now()),
        );
        this.later.add(timer);
      },
    };
  }
}

function placesOf({ concurrency, rate }: Limit): number {
  return concurrency ?? rate?.max ?? 0;
}
