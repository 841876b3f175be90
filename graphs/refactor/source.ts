// Just enough of JavaScript to move a function: what is code and what is text, which names are declared at the top,
// and what is imported. No more than a small reader of ES modules: it leaves alone what it is not sure of.

/** A top-level declaration, with the comment that stands right above it. */
export interface Declaration {
  readonly name: string;
  readonly isExported: boolean;
  /** Where the comment begins, where the declaration itself does, and where it ends. */
  readonly start: number;
  readonly code: number;
  readonly end: number;
  /** For a function, from `function` or `const` to the beginning of its body. */
  readonly signature: string;
}

/** One name of an import or re-export. */
interface Specifier {
  readonly imported: string;
  readonly local: string;
}

/** An `import { … } from` or an `export { … } from`. */
export interface Import {
  readonly kind: "import" | "export";
  readonly start: number;
  readonly end: number;
  readonly from: string;
  readonly quote: string;
  /** `import name from`. */
  readonly fallback: string | null;
  /** `* as name`. */
  readonly everything: string | null;
  readonly names: readonly Specifier[];
}

const OPEN = "([{";
const CLOSE = ")]}";
const REGEX_AFTER = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|delete|void|do|else|await|yield))$/;

/** The text with comments, strings and regular expressions blanked out, place by place. Code in `${}` stays. Pure. */
export function mask(text: string): string {
  const out = text.split("");
  const blank = (from: number, to: number) => {
    for (let at = from; at < to; at++) if (out[at] !== "\n") out[at] = " ";
  };
  // How deep in braces each `${` that is open was met.
  const templates: number[] = [];
  let depth = 0;
  let code = "";
  let at = 0;
  const template = (from: number) => {
    let end = from;
    while (end < text.length && text[end] !== "`" && !(text[end] === "$" && text[end + 1] === "{"))
      end += text[end] === "\\" ? 2 : 1;
    blank(from, Math.min(end, text.length));
    if (text[end] === "$") {
      templates.push(depth++);
      blank(end, end + 2);
      return end + 2;
    }
    blank(end, end + 1);
    return end + 1;
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
      blank(at, end + 1);
      code += "x";
      at = end + 1;
    } else if (char === "`") {
      blank(at, at + 1);
      code += "x";
      at = template(at + 1);
    } else if (char === "/" && REGEX_AFTER.test(code.trimEnd())) {
      const end = regexEnd(text, at);
      blank(at, end);
      code += "x";
      at = end;
    } else {
      if (char === "{") depth++;
      if (char === "}" && --depth === templates.at(-1)) {
        templates.pop();
        blank(at, at + 1);
        at = template(at + 1);
        continue;
      }
      code = (code + char).slice(-20);
      at++;
    }
  }
  return out.join("");
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

/** Where the bracket that opens at a place is closed. */
function closing(masked: string, open: number): number {
  let depth = 0;
  for (let at = open; at < masked.length; at++) {
    if (OPEN.includes(masked[at] ?? "\n")) depth++;
    else if (CLOSE.includes(masked[at] ?? "\n") && --depth === 0) return at;
  }
  return masked.length;
}

const DECLARATION = /^(export\s+)?(?:(async\s+)?function\s*\*?|const|let|var|class)\s+([A-Za-z_$][\w$]*)/;

/** The declarations at the top of a module: those that begin a line outside of all brackets. Pure. */
export function declarationsIn(text: string): readonly Declaration[] {
  const masked = mask(text);
  const found: Declaration[] = [];
  for (const at of topLines(masked)) {
    const match = DECLARATION.exec(masked.slice(at));
    if (!match) continue;
    const isFunction = /\bfunction\b/.test(match[0]);
    const name = match[3] ?? "";
    const params = isFunction ? masked.indexOf("(", at + match[0].length - 1) : -1;
    const body = isFunction
      ? masked.indexOf("{", closing(masked, params))
      : /\bclass\b/.test(match[0])
        ? masked.indexOf("{", at)
        : -1;
    const end = body !== -1 ? closing(masked, body) + 1 : statementEnd(masked, at);
    const from = at + (match[1]?.length ?? 0);
    const to = isFunction ? body : headEnd(masked, from, end);
    const signature = text.slice(from, to).trim();
    found.push({
      name,
      isExported: match[1] !== undefined,
      start: commentStart(text, masked, at),
      code: at,
      end,
      signature,
    });
  }
  return found;
}

/** The beginnings of lines that are outside of all brackets. */
function topLines(masked: string): readonly number[] {
  const found: number[] = [];
  let depth = 0;
  for (let at = 0; at < masked.length; at++) {
    if (depth === 0 && (at === 0 || masked[at - 1] === "\n") && /\S/.test(masked[at] ?? "")) found.push(at);
    if (OPEN.includes(masked[at] ?? "\n")) depth++;
    else if (CLOSE.includes(masked[at] ?? "\n")) depth--;
  }
  return found;
}

function statementEnd(masked: string, from: number): number {
  for (let at = from; at < masked.length; at++) {
    if (OPEN.includes(masked[at] ?? "\n")) at = closing(masked, at);
    else if (masked[at] === ";") return at + 1;
  }
  return masked.length;
}

/** An arrow function's head ends with its arrow; of anything else there is none. */
function headEnd(masked: string, from: number, end: number): number {
  const arrow = masked.indexOf("=>", from);
  return arrow === -1 || arrow > end ? from : arrow + 2;
}

/** The beginning of the comment right above a line; the line itself where there is none. */
function commentStart(text: string, masked: string, line: number): number {
  let start = line;
  while (start > 0) {
    const above = text.lastIndexOf("\n", start - 2) + 1;
    const isComment = text.slice(above, start).trim() !== "" && masked.slice(above, start).trim() === "";
    if (!isComment) break;
    start = above;
  }
  return start;
}

const IMPORT =
  /^(import|export)\s+(?!type\b)(?:([A-Za-z_$][\w$]*)\s*,?\s*)?(?:\{([^}]*)\}\s*|\*(?:\s*as\s+([A-Za-z_$][\w$]*))?\s*)?from\s*(["'])([^"'\n]+)\5\s*;?/;

/** The imports and re-exports of a module. Pure. */
export function importsIn(text: string): readonly Import[] {
  const masked = mask(text);
  return topLines(masked).flatMap((start): Import[] => {
    const match = IMPORT.exec(text.slice(start));
    if (!match) return [];
    const [whole, kind, fallback, names, everything, quote = '"', from = ""] = match;
    return [
      {
        kind: kind === "import" ? "import" : "export",
        start,
        end: start + whole.length,
        from,
        quote,
        fallback: fallback ?? null,
        everything: everything ?? (names === undefined && fallback === undefined ? "*" : null),
        names: (names ?? "").split(",").flatMap(specifierIn),
      },
    ];
  });
}

function specifierIn(part: string): Specifier[] {
  const [, imported, local] = /^\s*([\w$]+)(?:\s+as\s+([\w$]+))?\s*$/.exec(part) ?? [];
  return imported === undefined ? [] : [{ imported, local: local ?? imported }];
}

/** Writes an import or re-export; nothing where no name is left. Pure. */
export function writeImport(
  one: Pick<Import, "kind" | "from" | "quote" | "fallback" | "everything" | "names">,
): string {
  const { kind, from, quote, fallback, everything, names } = one;
  const listed = names.map(({ imported, local }) => (imported === local ? imported : `${imported} as ${local}`));
  const parts = [
    fallback,
    everything === null ? null : everything === "*" ? "*" : `* as ${everything}`,
    listed.length > 0 ? `{ ${listed.join(", ")} }` : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? "" : `${kind} ${parts.join(", ")} from ${quote}${from}${quote};`;
}

/**
 * The names that a piece of code uses, those that it declares itself included: one import too many does no harm,
 * one too few does. Pure.
 */
export function namesUsed(text: string): ReadonlySet<string> {
  const masked = mask(text);
  const isMember = (at: number) => masked[at - 1] === "." && masked[at - 2] !== ".";
  const found = [...masked.matchAll(/[A-Za-z_$][\w$]*/g)].filter(({ index }) => !isMember(index));
  return new Set(found.map(([name]) => name));
}
