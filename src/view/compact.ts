import { isPlainObject } from "../internal/json.ts";

type Row = Readonly<Record<string, unknown>>;
type Column = readonly string[];

/**
 * Writes a JSON value in fewer tokens than JSON does: a line for each key, and a header and a row each
 * where several objects have the same keys. Different values never give the same text: a string stands
 * bare only where it can be taken for nothing else, tables say how many rows follow. Pure.
 *
 * @example compact({ id: "A1", items: [{ sku: "x", price: 3 }, { sku: "y", price: 4 }] })
 * // id: A1
 * // items: [2] sku | price
 * //  x | 3
 * //  y | 4
 */
export function compact(value: unknown): string {
  return block(value, "");
}

/** The same on one line, without tables. */
export function compactInline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(compactInline).join(", ")}]`;
  if (!isPlainObject(value)) return typeof value === "string" ? text(value) : (JSON.stringify(value) ?? "null");
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{${members.map(([key, item]) => `${name(key)}: ${compactInline(item)}`).join(", ")}}`;
}

/** The same as what follows a name and a colon. */
export function compactMember(value: unknown): string {
  return attached(value, "");
}

function block(value: unknown, indent: string): string {
  const table = tableOf(value);
  if (table) return writeTable(table, indent);
  if (isPlainObject(value) && (indent === "" || hasTable(value)) && Object.keys(value).length > 0) {
    return members(value, indent).join(`\n${indent}`);
  }
  if (Array.isArray(value) && hasTable(value)) {
    return `[${value.length}]${value.map((item) => `\n${indent} -${attached(item, `${indent} `)}`).join("")}`;
  }
  return compactInline(value);
}

/** A line for each member; those that are null share one. */
function members(object: Row, indent: string): readonly string[] {
  const all = Object.entries(object).filter(([, item]) => item !== undefined);
  const empty = all.filter(([, item]) => item === null).map(([key]) => name(key));
  const isTogether = empty.length > 1;
  const shown = isTogether ? all.filter(([, item]) => item !== null) : all;
  return [
    ...shown.map(([key, item]) => `${name(key)}:${attached(item, indent)}`),
    ...(isTogether ? [`null: ${empty.join(", ")}`] : []),
  ];
}

/** What follows a key: on the same line, or on lines of its own, further in. */
function attached(value: unknown, indent: string): string {
  if (tableOf(value) || Array.isArray(value) || !hasTable(value)) return ` ${block(value, `${indent} `)}`;
  return `\n${indent} ${block(value, `${indent} `)}`;
}

/** Objects with the same keys. */
interface Table {
  /** `[3]` a list of three, `[2+1]` a list of lists of two and one, `{3}` an object of three. */
  readonly size: string;
  /** The member that each row has its own name in, which is not said again: `{3 by id}`. */
  readonly by?: string;
  readonly rows: readonly Row[];
  /** The rows' keys, where they are members of an object. */
  readonly names?: readonly string[];
}

function tableOf(value: unknown): Table | null {
  if (Array.isArray(value)) return listTable(value);
  if (!isPlainObject(value)) return null;
  const rows = Object.values(value);
  return areRows(rows) ? namedTable(rows, Object.keys(value)) : null;
}

function namedTable(rows: readonly Row[], names: readonly string[]): Table {
  const keys = Object.keys(rows[0] ?? {});
  const by = keys.length > 1 ? keys.find((key) => rows.every((row, index) => row[key] === names[index])) : undefined;
  if (by === undefined) return { size: `{${rows.length}}`, rows, names };
  return { size: `{${rows.length} by ${name(by)}}`, by, rows, names };
}

function listTable(list: readonly unknown[]): Table | null {
  if (areRows(list)) return { size: `[${list.length}]`, rows: list };
  const groups = list.filter((item) => Array.isArray(item) && item.length > 0) as readonly (readonly unknown[])[];
  const rows = groups.flat();
  const isNested = groups.length > 1 && groups.length === list.length && areRows(rows);
  return isNested ? { size: `[${groups.map((group) => group.length).join("+")}]`, rows } : null;
}

function areRows(items: readonly unknown[]): items is readonly Row[] {
  return items.length > 1 && sameKeys(items);
}

/** Whether all are objects with the same members. */
function sameKeys(items: readonly unknown[]): items is readonly Row[] {
  const [first] = items;
  if (!isPlainObject(first)) return false;
  const keys = Object.keys(first);
  return (
    keys.length > 0 &&
    items.every(
      (item) =>
        isPlainObject(item) &&
        Object.keys(item).length === keys.length &&
        keys.every((key) => Object.hasOwn(item, key) && item[key] !== undefined),
    )
  );
}

function hasTable(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return tableOf(value) !== null || Object.values(value).some(hasTable);
}

function writeTable({ size, by, rows, names }: Table, indent: string): string {
  const columns = columnsOf(rows).filter(([key, ...rest]) => key !== by || rest.length > 0);
  const lines = rows.map((row, index) => {
    const cells = columns.map((column) => compactInline(at(row, column))).join(" | ");
    return `\n${indent} ${names ? `${name(names[index] ?? "")}: ` : ""}${cells}`;
  });
  return `${size} ${columns.map((column) => column.map(name).join(".")).join(" | ")}${lines.join("")}`;
}

/** The columns of a table; members of objects that are alike in all rows are columns of their own. */
function columnsOf(rows: readonly Row[]): readonly Column[] {
  return Object.keys(rows[0] ?? {}).flatMap((key): Column[] => {
    const cells = rows.map((row) => row[key]);
    return sameKeys(cells) ? columnsOf(cells).map((rest) => [key, ...rest]) : [[key]];
  });
}

function at(row: Row, column: Column): unknown {
  return column.reduce<unknown>((value, key) => (value as Row)[key], row);
}

const BARE_NAME = /^[\p{L}_][\p{L}\p{N}_#@/-]*$|^#?\p{N}+$/u;
const BARE_TEXT = /^[\p{L}\p{N}_#$@/][^\p{C}"\\,|{}[\]\u2028\u2029]*$/u;
const LITERALS = new Set(["true", "false", "null"]);

function name(key: string): string {
  return BARE_NAME.test(key) && key !== "null" ? key : JSON.stringify(key);
}

function text(value: string): string {
  const isBare =
    BARE_TEXT.test(value) && !LITERALS.has(value) && Number.isNaN(Number(value)) && !/:\s|[\s:]$/.test(value);
  return isBare ? value : JSON.stringify(value);
}
