/** One word of a command, as the shell would make it of its quotes and backslashes. */
export interface Word {
  readonly text: string;
  /** The same with NUL in place of whatever was quoted: what is left has a meaning to the shell. */
  readonly bare: string;
  /** Only the shell will know what it holds: a variable, the output of a command, a list in braces. */
  readonly isOpen: boolean;
}

/** One program with its arguments, and the files that the shell itself opens for it. */
export interface ShellCommand {
  readonly words: readonly Word[];
  /** Where its output goes. */
  readonly writes: readonly Word[];
  readonly reads: readonly Word[];
}

/** Raised where it cannot be known what a command line would run; the message says why. */
export class Unreadable extends Error {}

/** Commands inside commands: more than this is there to hide something. */
const MAX_DEPTH = 8;
const KEYWORDS = new Set(["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}"]);
/** What would need a reader of the whole language. */
const HARD_KEYWORDS = new Set(["case", "esac", "select", "function", "coproc"]);
const REDIRECT = /\d*(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|&>>|&>/y;
/** `$((1 + x))`, as long as nothing in it can run a command. */
const ARITHMETIC = /\$\(\([\w\s+\-*/%<>=!&|^~?:,$]*\)\)/y;
const BRACES = /\{[^{}]*(?:,|\.\.)[^{}]*\}/;

/**
 * Reads a command line for `sh` or `bash`: every command in it, also those after `;`, `&&` and `|`, in
 * brackets, and in substitutions. Pure.
 *
 * @throws Unreadable.
 */
export function readShell(text: string, depth = 0): readonly ShellCommand[] {
  if (depth > MAX_DEPTH) throw new Unreadable("commands are nested too deeply");
  if (/[\0\r]/.test(text)) throw new Unreadable("it holds control characters");
  const reader = new ShellReader(text, depth);
  reader.readUntil(null);
  return reader.commands;
}

class Draft {
  readonly words: Word[] = [];
  readonly writes: Word[] = [];
  readonly reads: Word[] = [];
}

class ShellReader {
  readonly commands: ShellCommand[] = [];
  private readonly text: string;
  private readonly depth: number;
  private at = 0;
  private nested = 0;
  private hereDocuments: { end: string; isQuoted: boolean; hasTabs: boolean }[] = [];

  constructor(text: string, depth: number) {
    this.text = text;
    this.depth = depth;
  }

  /** Reads commands up to a closing bracket, or to the end of the text. */
  readUntil(end: ")" | null): void {
    this.nested += 1;
    if (this.depth + this.nested > MAX_DEPTH) throw new Unreadable("commands are nested too deeply");
    let draft = new Draft();
    const finish = () => {
      this.keep(draft);
      draft = new Draft();
    };
    for (;;) {
      this.skip(/(?:[ \t]|\\\n)*/y);
      const sign = this.text[this.at];
      if (sign === undefined || sign === ")") {
        if (sign !== (end ?? undefined)) throw new Unreadable("its brackets do not match");
        finish();
        if (sign === ")") this.at += 1;
        else if (this.hereDocuments.length > 0) throw new Unreadable("a text after << has no end");
        this.nested -= 1;
        return;
      }
      if (sign === "\n") {
        finish();
        this.at += 1;
        this.skipHereDocuments();
      } else if (sign === "#") this.skip(/[^\n]*/y);
      else if (sign === "(") {
        if (draft.words.length > 0) throw new Unreadable("it defines a function or uses brackets in a word");
        this.at += 1;
        this.readUntil(")");
      } else if (this.isRedirect()) this.readRedirect(draft);
      else if (";&|".includes(sign)) {
        finish();
        this.skip(/[;&|]+/y);
      } else draft.words.push(this.readWord());
    }
  }

  private keep({ words, writes, reads }: Draft): void {
    const first = words.findIndex(({ bare }) => !KEYWORDS.has(bare));
    const rest = first < 0 ? [] : words.slice(first);
    const keyword = rest[0]?.bare ?? "";
    if (HARD_KEYWORDS.has(keyword)) throw new Unreadable(`it uses "${keyword}"`);
    // A loop's own line names a variable and a list; what runs follows after "do".
    const command = { words: keyword === "for" ? [] : rest, writes, reads };
    if (command.words.length + writes.length + reads.length > 0) this.commands.push(command);
  }

  private isRedirect(): boolean {
    const found = this.match(REDIRECT);
    // <( and >( begin a word: the name of a pipe.
    return found !== null && !(/^[<>]$/.test(found) && this.text[this.at + 1] === "(");
  }

  private readRedirect(draft: Draft): void {
    const operator = (this.match(REDIRECT) ?? "").replace(/^\d+/, "");
    this.skip(REDIRECT);
    this.skip(/[ \t]*/y);
    const word = this.readWord();
    if (operator === "<<" || operator === "<<-") {
      const isQuoted = word.text !== word.bare;
      this.hereDocuments.push({ end: word.text, isQuoted, hasTabs: operator === "<<-" });
    } else if (operator === "<") draft.reads.push(word);
    // The output of "2>&1" goes where that of another number goes.
    else if (operator.includes(">") && !(operator === ">&" && /^(?:\d+-?|-)$/.test(word.bare))) draft.writes.push(word);
  }

  /** Passes over the texts that follow the line with `<<`: they are input, not commands. */
  private skipHereDocuments(): void {
    for (const { end, isQuoted, hasTabs } of this.hereDocuments) {
      for (;;) {
        if (this.at >= this.text.length) throw new Unreadable("a text after << has no end");
        const line = this.match(/[^\n]*/y) ?? "";
        this.at += line.length + 1;
        if ((hasTabs ? line.replace(/^\t+/, "") : line) === end) break;
        if (!isQuoted && /`|\$\(/.test(line)) throw new Unreadable("a text after << runs commands");
      }
    }
    this.hereDocuments = [];
  }

  private readWord(): Word {
    const word = new DraftWord();
    for (;;) {
      const sign = this.text[this.at];
      const isPipeName = (sign === "<" || sign === ">") && this.text[this.at + 1] === "(";
      if (isPipeName) {
        this.at += 2;
        this.readUntil(")");
        word.open();
      } else if (sign === undefined || " \t\n;&|()<>".includes(sign)) break;
      else if (sign === "'") word.quoted(this.until("'", 1));
      else if (sign === '"') this.readDouble(word);
      else if (sign === "\\") {
        const next = this.text[this.at + 1];
        if (next === undefined) throw new Unreadable("it ends with a backslash");
        if (next !== "\n") word.quoted(next);
        this.at += 2;
      } else if (sign === "$") this.readDollar(word, false);
      else if (sign === "`") this.readBackticks(word);
      else {
        word.plain(sign);
        this.at += 1;
      }
    }
    if (word.isEmpty) throw new Unreadable("a word is missing");
    return word.done();
  }

  private readDouble(word: DraftWord): void {
    this.at += 1;
    word.quoted("");
    for (;;) {
      const sign = this.text[this.at];
      if (sign === undefined) throw new Unreadable("a quote is not closed");
      if (sign === "$") this.readDollar(word, true);
      else if (sign === "`") this.readBackticks(word);
      else if (sign === "\\") {
        const next = this.text[this.at + 1] ?? "";
        if (next !== "\n") word.quoted('$`"\\'.includes(next) ? next : `\\${next}`);
        this.at += 2;
      } else {
        this.at += 1;
        if (sign === '"') return;
        word.quoted(sign);
      }
    }
  }

  private readDollar(word: DraftWord, inQuotes: boolean): void {
    const next = this.text[this.at + 1] ?? "";
    const arithmetic = this.match(ARITHMETIC);
    if (arithmetic !== null) {
      this.at += arithmetic.length;
      word.open();
    } else if (next === "(") {
      this.at += 2;
      this.readUntil(")");
      word.open();
    } else if (next === "{") {
      const inside = this.until("}", 2);
      if (/[`({'"\\]/.test(inside)) throw new Unreadable("a variable's braces hold more than a name");
      word.open();
    } else if (next === "'" && !inQuotes) {
      const inside = this.until("'", 2);
      if (inside.includes("\\")) throw new Unreadable("a $'…' holds codes of characters");
      word.quoted(inside);
    } else if (next === '"' && !inQuotes) {
      this.at += 1;
      this.readDouble(word);
    } else {
      const name = /\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])/y;
      if (this.match(name) === null) word.quoted("$");
      else word.open();
      this.at += this.match(name)?.length ?? 1;
    }
  }

  private readBackticks(word: DraftWord): void {
    const found = this.match(/`((?:[^`\\]|\\[\s\S])*)`/y);
    if (found === null) throw new Unreadable("a backtick is not closed");
    this.at += found.length;
    const inside = found.slice(1, -1).replaceAll(/\\([`\\$])/g, "$1");
    this.commands.push(...readShell(inside, this.depth + this.nested + 1));
    word.open();
  }

  /** What stands before a sign, after so many signs of its beginning; both are passed over. */
  private until(sign: string, skipped: number): string {
    const end = this.text.indexOf(sign, this.at + skipped);
    if (end < 0) throw new Unreadable("a quote or brace is not closed");
    const inside = this.text.slice(this.at + skipped, end);
    this.at = end + 1;
    return inside;
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text)?.[0] ?? null;
  }

  private skip(pattern: RegExp): void {
    this.at += this.match(pattern)?.length ?? 0;
  }
}

class DraftWord {
  private text = "";
  private bare = "";
  private isOpen = false;
  isEmpty = true;

  plain(sign: string): void {
    this.add(sign, sign);
  }

  quoted(text: string): void {
    this.add(text, "\0".repeat(Math.max(text.length, 1)));
  }

  open(): void {
    this.isOpen = true;
    this.add("", "\0");
  }

  done(): Word {
    // Only a ~ that was not quoted is somebody's home.
    const text = this.text.startsWith("~") && !this.bare.startsWith("~") ? `./${this.text}` : this.text;
    return { text, bare: this.bare, isOpen: this.isOpen || BRACES.test(this.bare) };
  }

  private add(text: string, bare: string): void {
    this.text += text;
    this.bare += bare;
    this.isEmpty = false;
  }
}
