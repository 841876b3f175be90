import { isPlainObject } from "../internal/json.ts";

type Row = Readonly<Record<string, unknown>>;
type Column = readonly string[];

/** Which part of a table's cells has to be there, so that it is shorter than its rows one by one. */
const FILLED = 2 / 3;

/**
 * Writes a JSON value in fewer tokens than JSON does: a line for each key, and a header and a row each
 * where several objects have mostly the same keys; what all rows have alike is said once. Different values
 * never give the same text: a string stands bare only where it can be taken for nothing else, tables say
 * how many rows follow, an empty cell is no member. Pure.
 *
 * @example compact({ id: "A1", items: [{ sku: "x", price: 3 }, { sku: "y", price: 4 }] })
 * // id: A1
 * // items: [2] sku | price
 * //  x | 3
 * //  y | 4
 */
export function compact(value: unknown): string {
  return block(value, { indent: "", alikeFrom: 3 });
}

/** The same on one line, without tables. */
export function compactInline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(compactInline).join(", ")}]`;
  if (!isPlainObject(value)) return typeof value === "string" ? text(value) : (JSON.stringify(value) ?? "null");
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{${members.map(([key, item]) => `${name(key)}: ${compactInline(item)}`).join(", ")}}`;
}

/**
 * The same as what follows a name and a colon, but that each row says what it has, also where all have it alike: it
 * is for what changes bit by bit, where that would come and go.
 */
export function compactMember(value: unknown): string {
  return attached(value, { indent: "", alikeFrom: Infinity });
}

/** How far in a value stands, and from how many rows on what all of them have alike is said once. */
interface Style {
  readonly indent: string;
  readonly alikeFrom: number;
}

function further(style: Style): Style {
  return { ...style, indent: `${style.indent} ` };
}

function block(value: unknown, style: Style): string {
  const { indent } = style;
  const table = tableOf(value);
  if (table) return writeTable(table, style);
  if (isPlainObject(value) && (indent === "" || hasTable(value)) && Object.keys(value).length > 0) {
    return members(value, style).join(`\n${indent}`);
  }
  if (Array.isArray(value) && hasTable(value)) {
    return `[${value.length}]${value.map((item) => `\n${indent} -${attached(item, further(style))}`).join("")}`;
  }
  return compactInline(value);
}

/** A line for each member; those that are null share one. */
function members(object: Row, style: Style): readonly string[] {
  const all = Object.entries(object).filter(([, item]) => item !== undefined);
  const empty = all.filter(([, item]) => item === null).map(([key]) => name(key));
  const isTogether = empty.length > 1;
  const shown = isTogether ? all.filter(([, item]) => item !== null) : all;
  return [
    ...shown.map(([key, item]) => `${name(key)}:${attached(item, style)}`),
    ...(isTogether ? [`null: ${empty.join(", ")}`] : []),
  ];
}

/** What follows a key: on the same line, or on lines of its own, further in. */
function attached(value: unknown, style: Style): string {
  const text = block(value, further(style));
  if (tableOf(value) || Array.isArray(value) || !hasTable(value)) return ` ${text}`;
  return `\n${style.indent} ${text}`;
}

/** Objects with mostly the same keys. */
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
  const keys = keysOf(rows);
  const by =
    keys.length > 1 ? keys.find((key) => rows.every((row, index) => memberOf(row, key) === names[index])) : undefined;
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

/** Whether all are objects whose members would fill most of a table. */
function areRows(items: readonly unknown[]): items is readonly Row[] {
  if (items.length < 2 || !items.every((item) => isPlainObject(item))) return false;
  const members = items.map((item) => Object.values(item).filter((value) => value !== undefined).length);
  const filled = members.reduce((sum, count) => sum + count, 0);
  const cells = keysOf(items).length * items.length;
  if (filled === cells) return cells > 0;
  // What may be a table itself is longer in a cell than by itself.
  const isFlat = () => items.every((item) => Object.values(item).every(isShallow));
  return members.every((count) => count > 0) && filled >= FILLED * cells && isFlat();
}

function isShallow(value: unknown): boolean {
  return Object.values(value ?? {}).every((item) => typeof item !== "object" || item === null);
}

/** What a row has of its own: every object has a `toString` somewhere. */
function memberOf(row: Row, key: string): unknown {
  return Object.hasOwn(row, key) ? row[key] : undefined;
}

/** The keys of all rows, in the order in which they come. */
function keysOf(rows: readonly Row[]): readonly string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row).filter((key) => row[key] !== undefined)))];
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

function writeTable({ size, by, rows, names }: Table, { indent, alikeFrom }: Style): string {
  const columns = columnsOf(rows)
    .filter(([key, ...rest]) => key !== by || rest.length > 0)
    .map((column) => ({ title: column.map(name).join("."), cells: rows.map((row) => cellText(row, column)) }));
  const alike = columns.filter(({ cells }) => rows.length >= alikeFrom && isOneText(cells));
  // A row has to have something of its own.
  const common = alike.length < columns.length ? alike : alike.slice(1);
  const shown = columns.filter((column) => !common.includes(column));
  const lines = rows.map((_row, index) => {
    const cells = shown.map((column) => column.cells[index]).join(" | ");
    return `\n${indent} ${names ? `${name(names[index] ?? "")}: ` : ""}${cells}`;
  });
  const all = common.map(({ title, cells }) => `${title}: ${cells[0]}`).join(", ");
  const header = shown.map(({ title }) => title).join(" | ");
  return `${size} ${all === "" ? "" : `all {${all}}, each `}${header}${lines.join("")}`;
}

function isOneText([first, ...others]: readonly string[]): boolean {
  return first !== "" && others.every((other) => other === first);
}

/** A cell; an empty one where the row has no such member. */
function cellText(row: Row, column: Column): string {
  const value = at(row, column);
  return value === undefined ? "" : compactInline(value);
}

/** The columns of a table; members of objects that are alike in all rows are columns of their own. */
function columnsOf(rows: readonly Row[]): readonly Column[] {
  return keysOf(rows).flatMap((key): Column[] => {
    const cells = rows.map((row) => memberOf(row, key));
    return sameKeys(cells) ? columnsOf(cells).map((rest) => [key, ...rest]) : [[key]];
  });
}

function at(row: Row, column: Column): unknown {
  return column.reduce<unknown>((value, key) => memberOf(value as Row, key), row);
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
