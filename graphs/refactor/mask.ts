// What of a JavaScript text is code and what is text. Places stay: what is blanked out becomes spaces.

/** A name, as part of a regular expression with the flag `u`. */
export const NAME = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*`;
/** What stands before the beginning of a name that is no member of something. */
export const NO_MEMBER = String.raw`(?<![\p{ID_Continue}$]|(?<!\.\.)\.)`;

const OPEN = "([{";
const CLOSE = ")]}";
const REGEX_AFTER =
  /(?:^|[(,=:[!&|?{};*%~^<>]|(?<!\+)\+|(?<!-)-|\b(?:return|typeof|case|in|of|delete|void|do|else|await|yield))$/;

/** The text with comments, strings and regular expressions blanked out, place by place. Code in `${}` stays. Pure. */
export function mask(text: string): string {
  return blanked(text, true);
}

/** The text with comments blanked out, and strings as they are. Pure. */
export function withoutComments(text: string): string {
  return blanked(text, false);
}

function blanked(text: string, strings: boolean): string {
  const out = text.split("");
  const blank = (from: number, to: number) => {
    for (let at = from; at < Math.min(to, text.length); at++) if (out[at] !== "\n") out[at] = " ";
  };
  const blankString = (from: number, to: number) => {
    if (strings) blank(from, to);
  };
  // How deep in braces each `${` that is open was met.
  const templates: number[] = [];
  let depth = 0;
  let code = "";
  let at = firstLine(text);
  blank(0, at);
  const template = (from: number) => {
    let end = from;
    while (end < text.length && text[end] !== "`" && !(text[end] === "$" && text[end + 1] === "{"))
      end += text[end] === "\\" ? 2 : 1;
    const isOpen = text[end] === "$";
    if (isOpen) templates.push(depth++);
    blankString(from, end + (isOpen ? 2 : 1));
    return end + (isOpen ? 2 : 1);
  };
  while (at < text.length) {
    const char = text[at] ?? "";
    const two = text.slice(at, at + 2);
    if (two === "//" || two === "/*") {
      const close = two === "//" ? text.indexOf("\n", at) : text.indexOf("*/", at + 2) + 2;
      const end = close < at + 2 ? text.length : close;
      blank(at, end);
      at = end;
    } else if (char === '"' || char === "'") {
      let end = at + 1;
      while (end < text.length && text[end] !== char && text[end] !== "\n") end += text[end] === "\\" ? 2 : 1;
      blankString(at, end + 1);
      code += "x";
      at = end + 1;
    } else if (char === "`") {
      blankString(at, at + 1);
      code += "x";
      at = template(at + 1);
    } else if (char === "/" && REGEX_AFTER.test(code.trimEnd())) {
      const end = regexEnd(text, at);
      blankString(at, end);
      code += "x";
      at = end;
    } else {
      if (char === "{") depth++;
      if (char === "}" && --depth === templates.at(-1)) {
        templates.pop();
        blankString(at, at + 1);
        at = template(at + 1);
        continue;
      }
      if (/\S/.test(char) || /\S$/.test(code)) code = (code + char).slice(-20);
      at++;
    }
  }
  return out.join("");
}

/** Where the first line ends that says which program runs the file; 0 where there is none. Pure. */
export function firstLine(text: string): number {
  return /^#![^\n]*\n?/.exec(text)?.[0].length ?? 0;
}

function regexEnd(text: string, start: number): number {
  let isClass = false;
  for (let at = start + 1; at < text.length && text[at] !== "\n"; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "[") isClass = true;
    else if (text[at] === "]") isClass = false;
    else if (text[at] === "/" && !isClass) return at + 1 + (/^[a-z]*/.exec(text.slice(at + 1))?.[0].length ?? 0);
  }
  return start + 1;
}

/** Where the bracket that opens at a place is closed; the end where it is not. Pure. */
export function closing(masked: string, open: number): number {
  let depth = 0;
  for (let at = open; at < masked.length; at++) {
    if (isOpening(masked[at])) depth++;
    else if (isClosing(masked[at]) && --depth === 0) return at;
  }
  return masked.length;
}

/** Whether a character opens a bracket: `(`, `[` or `{`. Pure. */
export function isOpening(char: string | undefined): boolean {
  return char !== undefined && OPEN.includes(char);
}

/** Whether a character closes a bracket: `)`, `]` or `}`. Pure. */
export function isClosing(char: string | undefined): boolean {
  return char !== undefined && CLOSE.includes(char);
}

/** The masked text with what is in brackets blanked out too; the brackets stay. Pure. */
export function outermost(masked: string): string {
  const out = masked.split("");
  let depth = 0;
  for (const [at, char] of out.entries()) {
    if (isClosing(char)) depth--;
    if (depth > 0 && char !== "\n") out[at] = " ";
    if (isOpening(char)) depth++;
  }
  return out.join("");
}

/** Where statements outside of all brackets may begin. Pure. */
export function statementStarts(masked: string): readonly number[] {
  return [...outermost(masked).matchAll(/(?:^|[\n;}])\s*(?=\S)/g)].map(({ 0: before, index }) => index + before.length);
}

/** The names that a piece of code uses: one too many does no harm, one too few does. Pure. */
export function namesIn(masked: string): ReadonlySet<string> {
  return new Set([...masked.matchAll(new RegExp(NO_MEMBER + NAME, "gu"))].map(([name]) => name));
}
