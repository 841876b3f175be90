import { isPlainObject, jsonEqual } from "../internal/json.ts";
import { compactInline } from "./compact.ts";
import { estimateTokens } from "./tokens.ts";

/** What tools return of a thing: an order, a customer. */
export type ShownRecord = Readonly<Record<string, unknown>>;

/** What is left out has to be worth this many tokens, or the words that say so are not. */
const WORTH = 20;
/** Of another record, members this short are always shown: it is they that decide, a status or a sum. */
const SHORT = 10;
const FEWEST_MEMBERS = 3;
const LONGEST_NAME = 60;

/** A record without what the prompt has shown before, and the words that say where it stands. */
export interface ShortenedRecord {
  readonly rest: ShownRecord;
  readonly note: string;
}

/**
 * The records that a prompt has shown so far. One that comes again is shown by what has changed, so that what a call
 * has changed can be seen; another one with the same members is shown without long values and nulls that are the
 * same. Both can be read back without loss.
 */
export class ShownRecords {
  /** By name, each as it has been shown, oldest first. */
  private readonly versions = new Map<string, ShownRecord[]>();

  /** The record as it is to be shown next; null where that is whole. It counts as shown from now on. */
  add(record: ShownRecord): ShortenedRecord | null {
    const name = nameOf(record);
    if (name === null) return null;
    const own = this.versions.get(name) ?? [];
    const shortened = own.length > 0 ? again(record, own) : this.anotherLike(record);
    this.versions.set(name, [...own, record]);
    return shortened;
  }

  /** The first of its kind was shown whole, so that nothing refers to what refers itself. */
  private anotherLike(record: ShownRecord): ShortenedRecord | null {
    const like = [...this.versions].find(([, [first]]) => first && haveSameMembers(first, record));
    if (!like) return null;
    const [name, versions] = like;
    return without(record, `the rest as above in ${name}`, (key, value) => {
      const isLong = value === null || estimateTokens(compactInline(value)) > SHORT;
      return isLong && versions.every((version) => jsonEqual(version[key], value));
    });
  }
}

function again(record: ShownRecord, versions: readonly ShownRecord[]): ShortenedRecord | null {
  const last = versions.at(-1);
  if (!last || !haveSameMembers(last, record)) return null;
  return without(record, "the rest as it last stood above", (key, value) => jsonEqual(last[key], value));
}

function without(
  record: ShownRecord,
  note: string,
  stands: (key: string, value: unknown) => boolean,
): ShortenedRecord | null {
  const [first] = Object.keys(record);
  const members = Object.entries(record);
  const rest = members.filter(([key, value]) => key === first || !stands(key, value));
  const left = members.filter(([key, value]) => key !== first && stands(key, value));
  if (estimateTokens(compactInline(Object.fromEntries(left))) < WORTH) return null;
  return { rest: Object.fromEntries(rest), note };
}

/** What a record is called by: its first member, where that is a short text or a number. */
function nameOf(record: ShownRecord): string | null {
  const [first] = Object.entries(record);
  if (!first) return null;
  const [key, value] = first;
  const isName = typeof value === "number" || (typeof value === "string" && value.length <= LONGEST_NAME);
  return isName ? compactInline({ [key]: value }).slice(1, -1) : null;
}

function haveSameMembers(a: ShownRecord, b: ShownRecord): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key));
}

/** Whether a value is a record that a later one could refer to. */
export function isRecord(value: unknown): value is ShownRecord {
  return isPlainObject(value) && Object.keys(value).length >= FEWEST_MEMBERS;
}
