/** Reads back what `compact` wrote; only tests need that. */
export function readCompact(text: string): unknown {
  const reader = new Reader(text.split("\n"));
  const value = reader.block("");
  if (!reader.isAtEnd()) throw new Error(`more lines than expected: ${reader.peek()}`);
  return value;
}

const TABLE = /^(\[\d+(?:\+\d+)*\]|\{\d+(?: by (?:"(?:[^"\\]|\\.)*"|[^\s"}]+))?\}) (.+)$/s;

class Reader {
  private readonly lines: readonly string[];
  private at = 0;

  constructor(lines: readonly string[]) {
    this.lines = lines;
  }

  isAtEnd(): boolean {
    return this.at >= this.lines.length;
  }

  peek(): string {
    return this.lines[this.at] ?? "";
  }

  private next(indent: string): string {
    const line = this.lines[this.at++] ?? "";
    if (!line.startsWith(indent)) throw new Error(`"${line}" is not as far in as expected`);
    return line.slice(indent.length);
  }

  /** A value that begins on a line of its own. */
  block(indent: string): unknown {
    const first = this.next(indent);
    const member = readName(first);
    if (!member || TABLE.test(first)) return this.rest(first, indent);
    const object: (readonly [string, unknown])[] = [];
    for (let line: string | null = first; line !== null; line = this.sibling(indent)) {
      const found = readName(line);
      if (!found) throw new Error(`"${line}" is no member`);
      if (line.startsWith("null:"))
        object.push(...new Inline(found.rest.slice(1)).names().map((name) => [name, null] as const));
      else object.push([found.name, this.attached(found.rest, indent)]);
    }
    return Object.fromEntries(object);
  }

  private sibling(indent: string): string | null {
    const line = this.lines[this.at];
    if (line === undefined || !line.startsWith(indent) || line.startsWith(`${indent} `)) return null;
    return this.next(indent);
  }

  private attached(rest: string, indent: string): unknown {
    return rest === "" ? this.block(`${indent} `) : this.rest(rest.slice(1), `${indent} `);
  }

  /** A value whose first line is given; what follows it is further in. */
  private rest(line: string, indent: string): unknown {
    const table = TABLE.exec(line);
    if (table) return this.table(table[1] ?? "", table[2] ?? "", indent);
    const list = /^\[(\d+)\]$/.exec(line);
    if (list && this.peek().startsWith(`${indent} -`)) {
      return Array.from({ length: Number(list[1]) }, () => this.attached(this.next(`${indent} -`), `${indent} `));
    }
    return new Inline(line).whole();
  }

  private table(size: string, header: string, indent: string): unknown {
    const head = new Inline(header);
    const alike = head.alike();
    const columns = head.columns();
    const by = /^\{\d+ by (.+)\}$/s.exec(size)?.[1];
    const counts = (/[\d+]+/.exec(size)?.[0] ?? "").split("+").map(Number);
    const isNamed = size.startsWith("{");
    const row = (): [string, unknown] => {
      const line = this.next(`${indent} `);
      const named = isNamed ? readName(line) : null;
      const cells = new Inline(named ? named.rest.slice(1) : line).cells();
      const value = unflatten(
        [...columns, ...alike.map(([column]) => column)],
        [...cells, ...alike.map(([, cell]) => cell)],
      );
      if (by !== undefined && named) define(value, by.startsWith('"') ? (JSON.parse(by) as string) : by, named.name);
      return [named?.name ?? "", value];
    };
    const groups = counts.map((count) => Array.from({ length: count }, row));
    if (isNamed) return Object.fromEntries(groups.flat());
    const lists = groups.map((group) => group.map(([, value]) => value));
    return lists.length > 1 ? lists : lists[0];
  }
}

/** What an empty cell stands for. */
const ABSENT = Symbol("no member");

function unflatten(columns: readonly (readonly string[])[], cells: readonly unknown[]): object {
  const root: Record<string, unknown> = {};
  for (const [index, column] of columns.entries()) {
    if (cells[index] === ABSENT) continue;
    let target = root;
    for (const key of column.slice(0, -1)) {
      if (!Object.hasOwn(target, key)) define(target, key, {});
      target = target[key] as Record<string, unknown>;
    }
    define(target, column.at(-1) ?? "", cells[index]);
  }
  return root;
}

function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

/** A name and what follows its colon; null where the line begins with no name. */
function readName(line: string): { name: string; rest: string } | null {
  const match = /^("(?:[^"\\]|\\.)*"|[^\s":,|{}[\]]+):(.*)$/s.exec(line);
  if (!match || (match[2] !== "" && !match[2]?.startsWith(" "))) return null;
  const [, name = "", rest = ""] = match;
  return { name: name.startsWith('"') ? (JSON.parse(name) as string) : name, rest };
}

/** A value on one line. */
class Inline {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  whole(): unknown {
    const value = this.value();
    if (this.at < this.text.length) throw new Error(`"${this.text.slice(this.at)}" is left over`);
    return value;
  }

  cells(): readonly unknown[] {
    const cells = [this.cell()];
    while (this.take(" | ")) cells.push(this.cell());
    return cells;
  }

  private cell(): unknown {
    return this.at === this.text.length || this.text.startsWith(" | ", this.at) ? ABSENT : this.value();
  }

  /** What all rows have alike, before what each of them has. */
  alike(): readonly (readonly [readonly string[], unknown])[] {
    const all: [readonly string[], unknown][] = [];
    if (!this.take("all {")) return all;
    do {
      const path = [this.key(/[^\s.":,|{}[\]]+/y)];
      while (this.take(".")) path.push(this.key(/[^\s.":,|{}[\]]+/y));
      if (!this.take(": ")) throw new Error(`"${this.text}" has a member without a value`);
      all.push([path, this.value()]);
    } while (this.take(", "));
    if (!this.take("}, each ")) throw new Error(`"${this.text}" does not end what all have alike`);
    return all;
  }

  names(): readonly string[] {
    const names = [this.key(/[^\s":,|{}[\]]+/y)];
    while (this.take(", ")) names.push(this.key(/[^\s":,|{}[\]]+/y));
    return names;
  }

  columns(): readonly (readonly string[])[] {
    const columns = [[this.key(/[^\s.":,|{}[\]]+/y)]];
    for (;;) {
      if (this.take(".")) columns.at(-1)?.push(this.key(/[^\s.":,|{}[\]]+/y));
      else if (this.take(" | ")) columns.push([this.key(/[^\s.":,|{}[\]]+/y)]);
      else return columns;
    }
  }

  private take(text: string): boolean {
    const isThere = this.text.startsWith(text, this.at);
    if (isThere) this.at += text.length;
    return isThere;
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? null;
    if (found !== null) this.at += found.length;
    return found;
  }

  private key(bare: RegExp): string {
    const quoted = this.match(/"(?:[^"\\]|\\.)*"/y);
    return quoted === null ? (this.match(bare) ?? "") : (JSON.parse(quoted) as string);
  }

  private value(): unknown {
    if (this.take("[")) {
      const list: unknown[] = [];
      while (!this.take("]")) {
        if (list.length > 0) this.take(", ");
        list.push(this.value());
      }
      return list;
    }
    if (this.take("{")) {
      const members: [string, unknown][] = [];
      while (!this.take("}")) {
        if (members.length > 0) this.take(", ");
        const name = this.key(/[^\s":,|{}[\]]+/y);
        this.take(": ");
        members.push([name, this.value()]);
      }
      return Object.fromEntries(members);
    }
    const quoted = this.match(/"(?:[^"\\]|\\.)*"/y);
    if (quoted !== null) return JSON.parse(quoted);
    const bare = (this.match(/[^,|{}[\]"]+/y) ?? "").replace(/ $/, () => {
      this.at--;
      return "";
    });
    if (["true", "false", "null"].includes(bare) || !Number.isNaN(Number(bare))) return JSON.parse(bare);
    return bare;
  }
}
