import { isPlainObject, jsonEqual } from "../internal/json.ts";
import { REDACTED } from "../internal/redact.ts";
import { compactInline } from "./compact.ts";
import { MARK } from "./hidden-values.ts";
import { estimateTokens } from "./tokens.ts";

/** What tools return of a thing that has an id: an order, a customer. */
type ShownRecord = Readonly<Record<string, unknown>>;

/** By so many tokens has what is left out to be longer than the words that say so. */
const WORTH = 10;
/** Values of so many characters are always shown: it is they that decide, a status or a sum. */
const SHORT = 40;
const FEWEST_MEMBERS = 3;
const LONGEST_ID = 60;
const LIKE_AN_ID =
  /^(?:id|uuid|key|code|number|sku)$|(?:_(?:id|uuid|key|code|number|sku)|Id|ID|Uuid|Key|Code|Number|Sku)$/;

/** A record without what the prompt has shown before, and the words that say where it stands. */
export interface ShortenedRecord {
  readonly rest: ShownRecord;
  readonly note: string;
}

/** How a record of some name has been shown as a result of its own. */
interface Appearances {
  readonly id: string;
  /** Oldest first; the first one may have been shortened itself. */
  readonly versions: ShownRecord[];
  readonly isFirstWhole: boolean;
  /** Whether something else has shown it since the last one, or ever: then its name does not say what is meant. */
  isOutdated: boolean;
  isUnclear: boolean;
}

function outdate(appearances: Appearances): void {
  appearances.isOutdated = true;
  appearances.isUnclear = true;
}

/**
 * The records that a prompt has shown so far. One that comes again is shown without long values and nulls that have not
 * changed, and so is another one with the same members where they are the same. Both can be read back without loss. A
 * record is a result that has an id among its members.
 */
export class ShownRecords {
  private readonly known = new Map<string, Appearances>();
  /** The ids and texts that stood in lists, within other results, or beside results, so far. */
  private readonly elsewhere = new Set<string>();
  private readonly texts: string[] = [];

  /**
   * Takes note of a result that is shown next.
   *
   * @param isWhole whether nothing is cut out of it, so that later ones can refer to it.
   * @returns how it is to be shown, or null where that is as it is.
   */
  add(value: unknown, isWhole: boolean): ShortenedRecord | null {
    const id = isPlainObject(value) ? firstId(value) : null;
    if (!isPlainObject(value) || !isWhole || id === null || Object.keys(value).length < FEWEST_MEMBERS) {
      this.note(value);
      return null;
    }
    const { name } = id;
    const own = this.known.get(name);
    const shortened = own ? again(value, own) : this.anotherLike(value);
    if (own) {
      // Of two things under one name nobody could tell which is meant.
      own.isUnclear ||= own.versions.some((version) => haveOtherIds(version, value));
      own.isOutdated = false;
      own.versions.push(value);
    } else {
      const isUnclear = this.elsewhere.has(id.text) || this.texts.some((text) => tells(text, id.text));
      this.known.set(name, {
        id: id.text,
        versions: [value],
        isFirstWhole: !shortened,
        isOutdated: false,
        isUnclear,
      });
    }
    for (const [key, member] of Object.entries(value)) {
      if (isId([key, member])) this.outdateById(String(member), name);
      else if (isLarge(member)) this.note(member, name);
    }
    return shortened;
  }

  /** What else shows records, in lists, within others, in texts or errors, shows them as they are then. */
  note(value: unknown, butName?: string): void {
    if (typeof value === "string") {
      this.texts.push(value);
      for (const [name, own] of this.known) {
        if (name !== butName && tells(value, own.id)) outdate(own);
      }
    } else if (Array.isArray(value)) {
      for (const item of value) this.note(item, butName);
    } else if (isPlainObject(value)) {
      for (const [key, member] of Object.entries(value)) {
        // Records often stand in an object by their ids.
        if (isLarge(member)) this.outdateById(key, butName);
        if (isId([key, member])) this.outdateById(String(member), butName);
        else this.note(member, butName);
      }
    }
  }

  private outdateById(id: string, butName: string | undefined): void {
    this.elsewhere.add(id);
    for (const [name, own] of this.known) if (own.id === id && name !== butName) outdate(own);
  }

  private anotherLike(record: ShownRecord): ShortenedRecord | null {
    const like = [...this.known].find(([, { versions, isFirstWhole, isUnclear }]) => {
      const [first] = versions;
      // Nothing refers to what refers itself.
      return isFirstWhole && !isUnclear && first && haveSameMembers(first, record);
    });
    if (!like) return null;
    const [name, { versions }] = like;
    const stands = (key: string, value: unknown) => versions.every((version) => jsonEqual(version[key], value));
    return without(record, `the rest as above in ${name}`, stands);
  }
}

function again(record: ShownRecord, { versions, isOutdated }: Appearances): ShortenedRecord | null {
  const last = versions.at(-1);
  if (!last || isOutdated || !haveSameMembers(last, record) || haveOtherIds(last, record)) return null;
  return without(record, "the rest as it last stood above", (key, value) => jsonEqual(last[key], value));
}

function without(
  record: ShownRecord,
  note: string,
  stands: (key: string, value: unknown) => boolean,
): ShortenedRecord | null {
  const rest: Record<string, unknown> = {};
  const left: Record<string, unknown> = {};
  const named = firstId(record)?.key;
  for (const [key, value] of Object.entries(record)) {
    const mayGo = key !== named && (value === null || compactInline(value).length > SHORT);
    const into = mayGo && stands(key, value) ? left : rest;
    Object.defineProperty(into, key, { value, enumerable: true });
  }
  const isWorthIt = estimateTokens(compactInline(left)) >= estimateTokens(note) + WORTH;
  return isWorthIt ? { rest, note } : null;
}

/** An id alone only names the record. */
function tells(text: string, id: string): boolean {
  return text !== id && text.includes(id);
}

/** What could show another record: a short text of a record mostly only names it. */
function isLarge(value: unknown): boolean {
  return typeof value === "string" ? value.length > LONGEST_ID : typeof value === "object" && value !== null;
}

/** What a record is called by: the first of its members that is an id. */
function firstId(record: ShownRecord): { readonly key: string; readonly name: string; readonly text: string } | null {
  const first = Object.entries(record).find(isId);
  if (!first) return null;
  const [key, value] = first;
  return { key, name: compactInline({ [key]: value }).slice(1, -1), text: String(value) };
}

/** Where one of its ids is another, a record is another one; one that it did not have before may have come to it. */
function haveOtherIds(a: ShownRecord, b: ShownRecord): boolean {
  return Object.entries(a).some(([key, id]) => isId([key, id]) && isId([key, b[key]]) && b[key] !== id);
}

function isId([key, value]: readonly [string, unknown]): boolean {
  if (!LIKE_AN_ID.test(key)) return false;
  if (typeof value === "number") return true;
  const isText = typeof value === "string" && value !== "" && value.length <= LONGEST_ID;
  // What is withheld is the same for all.
  return isText && !value.includes(MARK) && !value.includes(REDACTED);
}

function haveSameMembers(a: ShownRecord, b: ShownRecord): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key));
}
