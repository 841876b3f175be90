import { z } from "zod";
import { isPlainObject } from "../internal/json.ts";
import type { Field } from "../state/fields.ts";

/** What stands where something is that may not be sent. */
export const MARK = "[withheld";
export const HIDDEN = `${MARK}]`;
export const marker = (kind: string) => `${MARK}: ${kind}]`;

/** Shorter texts occur everywhere. */
const MIN_VALUE = 4;
/** Longer texts, and those of several lines, are looked for piece by piece. */
const MAX_PIECE = 200;
/** So many values make one pattern: no engine takes any number of them. */
const PER_PATTERN = 300;

const LABEL = String.raw`[\p{L}\p{N}_](?:[\p{L}\p{N}_-]{0,61}[\p{L}\p{N}_])?`;

/** Private and link-local IPv4 and IPv6 addresses, and names of hosts that only an inner network knows. */
const INNER_ADDRESSES = [
  String.raw`(?<![\d.])(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}|169\.254(?:\.\d{1,3}){2}|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])(?:\.\d{1,3}){2})(?![\d.]*\d)`,
  String.raw`(?<![\p{L}\p{N}:])(?:f[cd][\da-f]{2}|fe[89ab][\da-f]):[\da-f:]{2,40}(?![\p{L}\p{N}:])`,
  String.raw`(?<![\p{L}\p{N}_.-])-?${LABEL}(?:\.${LABEL}){0,20}\.(?:local|localdomain|internal|intranet|private|lan|corp|home|home\.arpa)(?![\p{L}\p{N}_-]|\.[\p{L}\p{N}])`,
];

/** A text that is looked for, and the pattern that finds it. */
interface Looked {
  readonly text: string;
  readonly source: string;
}

/** Values that may stand nowhere in a text. */
export class HiddenValues {
  private readonly values = new Set<string>();
  /** Pieces of longer texts, which begin and end anywhere. */
  private readonly pieces = new Set<string>();

  /** Adds the texts and numbers of a field's value, apart from the choices and names that its schema fixes. */
  add(field: Field<unknown> | undefined, value: unknown): void {
    this.collect(value, field ? schemaText(field) : "");
  }

  private collect(value: unknown, schema: string): void {
    if (typeof value === "string" || typeof value === "number") this.addText(String(value), schema);
    else if (Array.isArray(value)) for (const item of value) this.collect(item, schema);
    else if (isPlainObject(value)) {
      for (const [key, item] of Object.entries(value)) {
        this.addText(key, schema);
        this.collect(item, schema);
      }
    }
  }

  private addText(text: string, schema: string): void {
    if (schema.includes(JSON.stringify(text))) return;
    const plain = text.normalize("NFKC").trim();
    const lines = plain.split(/[\r\n]+/).map((line) => line.trim());
    if (lines.length > 1 && plain.length <= MAX_PIECE) this.addWhole(plain);
    for (const line of lines) {
      if (line.length <= MAX_PIECE) this.addWhole(line);
      else for (const piece of piecesOf(line)) this.pieces.add(piece);
    }
  }

  private addWhole(text: string): void {
    if (text.length < MIN_VALUE) return;
    this.values.add(text);
    // As it stands in a text that holds JSON.
    const escaped = JSON.stringify(text).slice(1, -1);
    if (escaped !== text) this.values.add(escaped);
  }

  /**
   * What takes these values out of texts, and inner addresses where they are hidden too. A value counts where it
   * stands by itself, in any case and with any blanks between its words; a text in other forms of the same characters
   * is read as the usual ones. What stands there for something withheld stays as it is.
   *
   * @param kinds the kinds of data that are withheld.
   */
  hider(kinds: readonly string[], hidesAddresses: boolean): (text: string) => string {
    const kept = new Set([HIDDEN, ...kinds.map(marker)]);
    const markers = [...kept].map((text) => ({ text, source: anywhere(text) }));
    const pieces = [...this.pieces].map((text) => ({ text, source: anywhere(text) }));
    const values = [...this.values].map((text) => ({ text, source: byItself(text) }));
    const addresses = (hidesAddresses ? INNER_ADDRESSES : []).map((source) => ({ text: "", source }));
    // The longest first: one value may begin like another, or like a marker.
    const longestFirst = (some: readonly Looked[]) => some.toSorted((a, b) => b.text.length - a.text.length);
    const all = [...longestFirst([...pieces, ...values]), ...addresses];
    const patterns: RegExp[] = [];
    for (let at = 0; at < all.length; at += PER_PATTERN) {
      const some = longestFirst([...markers, ...all.slice(at, at + PER_PATTERN)]);
      patterns.push(new RegExp(some.map(({ source }) => source).join("|"), "giu"));
    }
    const stands = (found: string) => (kept.has(found) ? found : HIDDEN);
    const without = (text: string) => patterns.reduce((rest, pattern) => rest.replaceAll(pattern, stands), text);
    return (text) => {
      const plain = text.normalize("NFKC");
      if (plain === text) return without(text);
      const hidden = without(plain);
      return hidden === plain ? without(text) : hidden;
    };
  }
}

/** A long text in pieces of about the same length. */
function piecesOf(text: string): readonly string[] {
  const count = Math.ceil(text.length / MAX_PIECE);
  const length = Math.ceil(text.length / count);
  return Array.from({ length: count }, (_, index) => text.slice(index * length, (index + 1) * length));
}

/** A value where it is no part of a longer word; writing without blanks between words has no such ends. */
function byItself(value: string): string {
  const before = /^[A-Za-z0-9]/.test(value) ? "(?<![A-Za-z0-9])" : "";
  const after = /[A-Za-z0-9]$/.test(value) ? "(?![A-Za-z0-9])" : "";
  return `${before}${anywhere(value)}${after}`;
}

function anywhere(value: string): string {
  const words = value.split(/\s+/).map((word) => word.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`));
  return words.join(String.raw`\s+`);
}

const schemas = new WeakMap<Field<unknown>, string>();

/** A field's schema as JSON: what stands in it everybody may know. */
function schemaText(field: Field<unknown>): string {
  let text = schemas.get(field);
  if (text === undefined) {
    text = JSON.stringify(z.toJSONSchema(field.schema, { unrepresentable: "any" }));
    schemas.set(field, text);
  }
  return text;
}

/** Hides in every text of a value, keys and numbers included. */
export function hideDeep<T>(value: T, hide: (text: string) => string): T {
  return hideAny(value, hide) as T;
}

function hideAny(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === "string") return hide(value);
  if (typeof value === "number") {
    const text = String(value);
    const shown = hide(text);
    return shown === text ? value : shown;
  }
  if (Array.isArray(value)) return value.map((item) => hideAny(item, hide));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [hide(key), hideAny(item, hide)]));
}
