/** A piece of source, with what is no code blanked out. Every line and column is where it was. */
export interface Source {
  readonly raw: string;
  /** Comments and regular expressions are blanks; strings keep their quotes, and templates what is interpolated. */
  readonly code: string;
  readonly strings: readonly StringLiteral[];
}

interface StringLiteral {
  /** The offset of its first quote, and behind its last. */
  readonly start: number;
  readonly end: number;
  /** What stands between the quotes, interpolations included. */
  readonly text: string;
  /** What a template interpolates. */
  readonly parts: readonly string[];
}

const BEFORE_REGEX = /(?:^|[=(,:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|void|delete|await))\s*$/;

/** Takes JavaScript or TypeScript apart, as far as looking for patterns needs it. Pure. */
export function readSource(raw: string): Source {
  const scan = new Scan(raw);
  scan.code(0, false);
  return { raw, code: scan.masked.join(""), strings: scan.strings.toSorted((a, b) => a.start - b.start) };
}

class Scan {
  readonly masked: string[];
  readonly strings: StringLiteral[] = [];
  private readonly raw: string;

  constructor(raw: string) {
    this.raw = raw;
    this.masked = raw.split("");
    // A piece may begin within a block comment: the end of one without a beginning says so.
    const end = raw.indexOf("*/");
    const begin = raw.indexOf("/*");
    if (end !== -1 && (begin === -1 || begin > end)) this.blank(0, end + 2);
  }

  /** @returns the offset behind the code: the end, or the brace that closes an interpolation. */
  code(from: number, isInTemplate: boolean): number {
    let depth = 0;
    let at = from;
    while (at < this.raw.length) {
      const next = this.special(at);
      if (next !== null) {
        at = next;
        continue;
      }
      const char = this.masked[at];
      if (char === "{") depth++;
      if (char === "}" && isInTemplate && depth-- === 0) return at;
      at++;
    }
    return at;
  }

  /** Comments, strings and regular expressions: the offset behind them; null where none begins. */
  private special(at: number): number | null {
    const char = this.masked[at];
    const two = `${char}${this.raw[at + 1]}`;
    if (two === "//") return this.blank(at, this.find("\n", at));
    if (two === "/*") return this.blank(at, this.find("*/", at + 2) + 2);
    if (char === '"' || char === "'") return this.plain(at, char);
    if (char === "`") return this.template(at);
    if (char !== "/") return null;
    const before = this.masked.slice(Math.max(0, at - 40), at).join("");
    return BEFORE_REGEX.test(before) ? this.regex(at) : null;
  }

  private plain(start: number, quote: string): number {
    let at = start + 1;
    while (at < this.raw.length && this.raw[at] !== quote && this.raw[at] !== "\n") at += this.raw[at] === "\\" ? 2 : 1;
    this.strings.push({ start, end: at + 1, text: this.raw.slice(start + 1, at), parts: [] });
    this.blank(start + 1, at);
    return at + 1;
  }

  private template(start: number): number {
    const parts: string[] = [];
    let at = start + 1;
    while (at < this.raw.length && this.raw[at] !== "`") {
      if (this.raw[at] === "$" && this.raw[at + 1] === "{") {
        const end = this.code(at + 2, true);
        parts.push(this.raw.slice(at + 2, end));
        at = end + 1;
      } else {
        const width = this.raw[at] === "\\" ? 2 : 1;
        this.blank(at, at + width);
        at += width;
      }
    }
    this.strings.push({ start, end: at + 1, text: this.raw.slice(start + 1, at), parts });
    return at + 1;
  }

  private regex(start: number): number | null {
    let isClass = false;
    for (let at = start + 1; at < this.raw.length && this.raw[at] !== "\n"; at++) {
      const char = this.raw[at];
      if (char === "\\") at++;
      else if (char === "[") isClass = true;
      else if (char === "]") isClass = false;
      else if (char === "/" && !isClass) return this.blank(start, at + 1);
    }
    return null;
  }

  private find(text: string, from: number): number {
    const at = this.raw.indexOf(text, from);
    return at === -1 ? this.raw.length : at;
  }

  private blank(from: number, to: number): number {
    const end = Math.min(to, this.raw.length);
    for (let at = from; at < end; at++) if (this.masked[at] !== "\n") this.masked[at] = " ";
    return end;
  }
}

/** The offset of the bracket that closes the one at an offset; -1 where none does. Pure. */
export function closing(code: string, open: number): number {
  const pairs: Readonly<Record<string, string>> = { "(": ")", "{": "}", "[": "]" };
  const opening = code[open] ?? "";
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if (code[at] === opening) depth++;
    if (code[at] === pairs[opening] && --depth === 0) return at;
  }
  return -1;
}
