import { isAlias, isMap, isScalar, LineCounter, parseDocument, type Document, type Node } from "yaml";
import { isPlainObject } from "../internal/json.ts";

/** A value may stand for another (`*name`) so often; more is an attempt to fill the memory. */
const MAX_ALIASES = 50;

/** A front matter is a few lines; nested brackets in a long one would take minutes to read. */
const MAX_CHARACTERS = 16_000;

/** Why a front matter cannot be read, and in which line of the file. */
interface FrontMatterFault {
  readonly code: "NO_FRONT_MATTER" | "INVALID_YAML";
  readonly line: number;
  readonly message: string;
}

/** The front matter of a file and what follows it. */
export type SplitFile =
  | { readonly ok: true; readonly frontMatter: FrontMatter; readonly body: string }
  | { readonly ok: false; readonly fault: FrontMatterFault };

/** The fence is the file's first line, so the YAML begins in the second. */
const FIRST_LINE = 2;

/** Splits a SKILL.md at its fences and reads what is between them. Pure. */
export function readFrontMatter(text: string): SplitFile {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const isFence = (line: string) => /^---[ \t]*$/.test(line);
  if (!isFence(lines[0] ?? "")) return failed("NO_FRONT_MATTER", 1, "the file does not begin with a line ---");
  const end = lines.findIndex((line, index) => index > 0 && isFence(line));
  if (end < 0) return failed("NO_FRONT_MATTER", 1, "no second line --- ends the front matter");
  const yaml = lines.slice(1, end).join("\n");
  if (yaml.length > MAX_CHARACTERS) {
    const message = `the front matter has ${yaml.length} characters, at most ${MAX_CHARACTERS} are read`;
    return failed("INVALID_YAML", FIRST_LINE, message);
  }
  const counter = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: counter, prettyErrors: false });
  const [error] = document.errors;
  const lineAt = (offset: number) => Math.max(1, counter.linePos(offset).line) + FIRST_LINE - 1;
  if (error) return failed("INVALID_YAML", lineAt(error.pos[0]), withHint(error.message));
  if (!isMap(document.contents)) return failed("INVALID_YAML", FIRST_LINE, "the front matter is no list of keys");
  try {
    const frontMatter = new FrontMatter(document, lineAt);
    return { ok: true, frontMatter, body: lines.slice(end + 1).join("\n") };
  } catch (error) {
    return failed("INVALID_YAML", FIRST_LINE, error instanceof Error ? error.message : String(error));
  }
}

function failed(code: FrontMatterFault["code"], line: number, message: string): SplitFile {
  return { ok: false, fault: { code, line, message } };
}

/** The commonest slip by far is a colon in an unquoted text. */
function withHint(message: string): string {
  return /nested mappings|implicit keys/i.test(message)
    ? `${message}; a text with a colon and a space in it has to be quoted`
    : message;
}

/** The keys of a front matter with their lines. */
export class FrontMatter {
  readonly keys: readonly string[];
  private readonly document: Document;
  private readonly lineAt: (offset: number) => number;
  private readonly values: Readonly<Record<string, unknown>>;

  constructor(document: Document, lineAt: (offset: number) => number) {
    this.document = document;
    this.lineAt = lineAt;
    const values: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    this.values = isPlainObject(values) ? values : {};
    this.keys = Object.keys(this.values);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.values, key);
  }

  /** The line of a key, or of one inside it; the nearest that there is. */
  lineOf(...path: readonly string[]): number {
    let node: unknown = this.document.contents;
    let line = FIRST_LINE;
    for (const name of path) {
      const pair = isMap(node) ? node.items.find(({ key }) => keyText(key) === name) : undefined;
      if (!pair) break;
      const start = (pair.key as Node).range?.[0];
      if (start !== undefined) line = this.lineAt(start);
      node = pair.value;
    }
    return line;
  }

  /** A text as it is written: `1.0` stays `1.0`. Null where there is none, or where it is no single value. */
  text(...path: readonly string[]): string | null {
    const node: unknown = this.document.getIn(path, true);
    const value: unknown = isAlias(node) ? node.resolve(this.document) : node;
    if (!isScalar(value)) return null;
    const text = typeof value.value === "string" ? value.value : (value.source ?? "");
    return text.trim();
  }

  /** A value of any shape, numbers and truth values read as such. */
  value(key: string): unknown {
    return this.has(key) ? this.values[key] : undefined;
  }
}

function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value) : "";
}
