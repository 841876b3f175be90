import type { Item } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { blockLines, type BlockOptions } from "./block.ts";
import { condense } from "./condense.ts";
import { namespaceOf, type MemoryOwner } from "./owner.ts";
import { MEMORY_TYPES, type MemoryType } from "../workflow/memorable.ts";
import type { MemoryStore } from "./store.ts";
import { sentenceOf, type Summarise } from "./summarise.ts";
import {
  MAX_TEXT,
  MAX_TIME,
  memoryId,
  memoryIn,
  toValue,
  type MemoryItem,
  type NewMemory,
  type RecalledMemory,
} from "./value.ts";

/** How many memories a view shows of each: the newest, and those of the highest priority. */
const SHOWN = 5;
const DEFAULT_LIMIT = 5;
const DEFAULT_THRESHOLD = 0.3;
/** Texts beyond this are not even condensed whole. */
const MAX_READ = 5_000_000;

export interface RecallOptions {
  /** Words that the memory would hold. */
  readonly query: string;
  /** 5 unless set. */
  readonly limit?: number;
  /** The least share of the query's words that a memory has to hold, from 0 to 1; 0.3 unless set. */
  readonly threshold?: number;
  readonly type?: MemoryType;
}

export interface ListOptions {
  readonly order?: "newest" | "priority";
  readonly limit?: number;
  readonly type?: MemoryType;
}

export interface RememberOptions {
  /** True for what may not be shown to a model that nobody has allowed: a long text is condensed by code alone. */
  readonly isSensitive?: boolean;
}

/** What a write did. */
export interface Remembered {
  readonly memory: MemoryItem;
  /** False where the same had been remembered already: then its time, priority and expiry are those of this write. */
  readonly isNew: boolean;
  readonly isCondensed: boolean;
}

/** The long-term memory of one owner. It has no way to another owner's. */
export class Memory {
  private readonly store: MemoryStore;
  private readonly namespace: string[];
  private readonly summarise: Summarise | undefined;

  constructor(store: MemoryStore, owner: MemoryOwner, summarise?: Summarise) {
    this.store = store;
    this.namespace = namespaceOf(owner);
    this.summarise = summarise;
  }

  /**
   * Writes a memory. Secrets are taken out, a long text is condensed, and what is remembered already is written
   * once, however many write it at the same time.
   *
   * @throws INVALID_OPTIONS for a memory without text or with a priority that there is not.
   */
  async remember(memory: NewMemory, { isSensitive = false }: RememberOptions = {}): Promise<Remembered> {
    const { text, said, isCondensed } = await this.shortText(memory.text, isSensitive);
    const value = checkedValue({ ...memory, text }, this.store.now());
    // Without a model's sentence, which comes out differently each time: the same text is the same memory.
    const id = memoryId({ ...value, text: said });
    const { isNew } = await this.store.write(this.namespace, id, value);
    const written = toMemory(await this.store.get(this.namespace, id));
    const now = this.store.now();
    // One that expires at once is gone by now.
    return { memory: written ?? { id, ...value, createdAt: now, updatedAt: now }, isNew, isCondensed };
  }

  /** A text as it is stored, and the part of it that depends on nothing but what was given. */
  private async shortText(given: string, isSensitive: boolean) {
    // Redacted before it is cut: half a secret is not recognised any more.
    const whole = redact(given.slice(0, MAX_READ)).trim();
    if (whole.length <= MAX_TEXT) return { text: whole, said: whole, isCondensed: false };
    const sentence = isSensitive ? "" : await sentenceOf(this.summarise, condense(whole, 4 * MAX_TEXT));
    const said = condense(whole, MAX_TEXT);
    const text = sentence === "" ? said : `${sentence}\n${condense(whole, MAX_TEXT - sentence.length - 1)}`;
    return { text, said, isCondensed: true };
  }

  /** What fits a query: the best match first, then the highest priority, then the newest. */
  async recall({ query, limit, threshold, type }: RecallOptions): Promise<readonly RecalledMemory[]> {
    const found = await this.store.recall(this.namespace, {
      query,
      limit: limit ?? DEFAULT_LIMIT,
      threshold: threshold ?? DEFAULT_THRESHOLD,
      ...(type === undefined ? {} : { type }),
    });
    return found.flatMap((item) => {
      const memory = toMemory(item);
      return memory ? [{ ...memory, match: item.score ?? 0 }] : [];
    });
  }

  /** The newest memories, or those of the highest priority. */
  async list({ order = "newest", limit = 20, type }: ListOptions = {}): Promise<readonly MemoryItem[]> {
    const items = await this.store.list(this.namespace, { order, limit, ...(type === undefined ? {} : { type }) });
    return items.flatMap((item) => toMemory(item) ?? []);
  }

  /** @returns false where there is no such memory. */
  forget(id: string): Promise<boolean> {
    return this.store.remove(this.namespace, id);
  }

  /** Deletes what has expired, and what has priority 0 or 1 and is a day old; says how many. */
  cleanUp(): Promise<number> {
    return this.store.cleanUp(this.namespace);
  }

  /** The lines of a view's memory block: the five of the highest priority and the five newest. */
  async block(options: BlockOptions = {}): Promise<readonly string[]> {
    const [first, newest] = await Promise.all([
      this.list({ order: "priority", limit: SHOWN }),
      this.list({ order: "newest", limit: SHOWN }),
    ]);
    return blockLines([...first, ...newest], options);
  }
}

function checkedValue(memory: NewMemory, now: number) {
  const fault = faultIn(memory);
  if (fault) throw new WorkflowError("INVALID_OPTIONS", `the memory cannot be written: ${fault}`);
  return toValue(memory, now);
}

/** What is wrong with a memory that did not come through the type checker or a tool's schema. */
function faultIn({ type, text, priority, expiresAt, timeToLiveMs }: NewMemory): string | null {
  const types: readonly string[] = MEMORY_TYPES;
  if (!types.includes(type)) return `its type has to be one of ${types.join(", ")}`;
  if (text === "") return "it has no text";
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= 5)) {
    return `its priority has to be a whole number from 0 to 5, not ${priority}`;
  }
  const isTime = (time: number | undefined) => time === undefined || (time >= 0 && time <= MAX_TIME);
  if (!isTime(expiresAt) || !isTime(timeToLiveMs)) return "its end has to be a time in milliseconds";
  return null;
}

function toMemory(item: Item | null): MemoryItem | null {
  const value = item && memoryIn(item.value);
  if (!item || !value) return null;
  return { id: item.key, ...value, createdAt: item.createdAt.getTime(), updatedAt: item.updatedAt.getTime() };
}
