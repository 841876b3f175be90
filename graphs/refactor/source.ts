import {
  closing,
  firstLine,
  isClosing,
  isOpening,
  mask,
  NAME,
  namesIn,
  NO_MEMBER,
  outermost,
  statementStarts,
  withoutComments,
} from "./mask.ts";

// Just enough of JavaScript to move a function: which names are declared at the top of a module, and where each
// declaration ends. No more than a small reader of ES modules: it says where it is not sure.

/** A top-level declaration, with the comment that stands right above it. */
export interface Declaration {
  readonly name: string;
  readonly isExported: boolean;
  /** Where the comment begins, where the declaration itself does, and where it ends. */
  readonly start: number;
  readonly code: number;
  readonly end: number;
  /** For a function, from `function` or `const` to the beginning of its body; empty for anything else. */
  readonly signature: string;
  readonly isArrow: boolean;
}

const DECLARATION = new RegExp(
  String.raw`^(export\s+)?(?:(?:async\s+)?(function)(?:\s*\*\s*|\s+)|(?:const|let|var|class)\s+)(${NAME})`,
  "u",
);

/** The declarations at the top of a module. Pure. */
export function declarationsIn(text: string): readonly Declaration[] {
  const masked = mask(text);
  return statementStarts(masked).flatMap((at): Declaration[] => {
    const [head, exported = "", isFunction, name = ""] = DECLARATION.exec(masked.slice(at)) ?? [];
    if (head === undefined) return [];
    const from = at + exported.length;
    const params = isFunction ? masked.indexOf("(", at + head.length) : -1;
    const body = isFunction
      ? masked.indexOf("{", closing(masked, params))
      : masked.startsWith("class", from)
        ? masked.indexOf("{", from)
        : -1;
    const end = body === -1 ? statementEnd(text, masked, at) : closing(masked, body) + 1;
    const to = isFunction ? body : arrowEnd(masked, at + head.length);
    return [
      {
        name,
        isExported: exported !== "",
        start: commentStart(text, masked, at),
        code: at,
        end,
        signature: text.slice(from, Math.max(from, to)).trim(),
        isArrow: isFunction === undefined,
      },
    ];
  });
}

const BEFORE_ARROW = new RegExp(String.raw`^\s*=\s*(?:async\b\s*)?(?:(${NAME}\s*)|\()`, "u");

/** Where the head of an arrow function ends whose name ends at a place; -1 where there is none. */
function arrowEnd(masked: string, from: number): number {
  const [head, name] = BEFORE_ARROW.exec(masked.slice(from)) ?? [];
  if (head === undefined) return -1;
  const params = from + head.length;
  const behind = name === undefined ? closing(masked, params - 1) + 1 : params;
  const arrow = /^\s*=>/.exec(masked.slice(behind))?.[0];
  return arrow === undefined ? -1 : behind + arrow.length;
}

const GOES_ON_AFTER = /(?:[=+\-*/%&|^~!?:,<>.]|\b(?:in|of|instanceof|typeof|void|await|new|delete|extends))$/;
const GOES_ON_WITH = /^(?:[=+\-*/%&|^?:,<>.([`]|(?:in|instanceof)\b)/;
const STATEMENT = /^(?:export|import|const|let|var|if|for|while|do|switch|try|throw|return)\b/;

/** The end of a statement, with its semicolon or without one. */
function statementEnd(text: string, masked: string, from: number): number {
  const bare = withoutComments(text);
  for (let at = from; at < masked.length; at++) {
    if (isOpening(masked[at])) at = closing(masked, at);
    else if (masked[at] === ";") return at + 1;
    else if (masked[at] === "\n" && isEnd(bare, masked, at)) return bare.slice(0, at).trimEnd().length;
  }
  return bare.trimEnd().length;
}

/** Whether a line's end is a statement's, where no semicolon says so. */
function isEnd(bare: string, masked: string, at: number): boolean {
  const next = bare.slice(at).trimStart();
  if (STATEMENT.test(next)) return true;
  const before = bare.slice(0, at).trimEnd();
  // What is masked there is the end of a string or of a regular expression, and no operator.
  const goesOn = masked[before.length - 1] !== " " && GOES_ON_AFTER.test(before);
  return !goesOn && !GOES_ON_WITH.test(next);
}

/** The beginning of the comment right above a place; the place itself where there is none. */
function commentStart(text: string, masked: string, place: number): number {
  let start = place;
  while (start > firstLine(text)) {
    const above = text.lastIndexOf("\n", start - 2) + 1;
    const isComment = text.slice(above, start).trim() !== "" && masked.slice(above, start).trim() === "";
    if (!isComment || above < firstLine(text)) break;
    start = above;
  }
  return start;
}

/** Names that statements at the top bind and that are no declaration of one name each. Pure. */
export function unclearNames(text: string): ReadonlySet<string> {
  const masked = mask(text);
  const flat = outermost(masked);
  const clear = new Set(declarationsIn(text).map(({ name }) => name));
  const keywords = new RegExp(
    String.raw`${NO_MEMBER}(?:(const|let|var)|function(?:\s*\*)?|class)(?![\p{ID_Continue}$])\s*`,
    "gu",
  );
  const bound = [...flat.matchAll(keywords)].flatMap(({ 0: keyword, 1: isList, index }) => {
    const from = index + keyword.length;
    return isList ? declarators(masked, from, statementEnd(text, masked, from)) : nameAt(masked, from);
  });
  return new Set(bound.filter((name) => !clear.has(name)));
}

/** The names that `const`, `let` or `var` bind: those of each pattern, whatever is a default in it included. */
function declarators(masked: string, from: number, end: number): readonly string[] {
  const commas = [...outermost(masked.slice(from, end)).matchAll(/,\s*/g)];
  return [from, ...commas.map(({ 0: comma, index }) => from + index + comma.length)].flatMap((at) =>
    isOpening(masked[at]) ? [...namesIn(masked.slice(at, closing(masked, at)))] : nameAt(masked, at),
  );
}

function nameAt(masked: string, at: number): readonly string[] {
  return new RegExp(`^${NAME}`, "u").exec(masked.slice(at)) ?? [];
}

/** Whether a piece of masked code sets a variable. Pure. */
export function sets(masked: string, name: string): boolean {
  const one = `${name.replaceAll("$", String.raw`\$`)}(?![\\p{ID_Continue}$])`;
  const ways = [
    String.raw`(?<!\b(?:const|let|var)\s+)${NO_MEMBER}${one}\s*(?:(?:\*\*|<<|>>>?|&&|\|\||\?\?|[-+*/%&|^])?=(?![=>])|\+\+|--)`,
    String.raw`(?:\+\+|--)\s*${one}(?!\s*(?:\?\.|[.[]))`,
    String.raw`\bfor\s*(?:await\s*)?\(\s*${one}\s+(?:of|in)\b`,
  ];
  return ways.some((way) => new RegExp(way, "u").test(masked)) || assignedPatterns(masked).has(name);
}

/** The names in `[a, b] = …`, `({ a } = …)` and `for ([a] of …)`. */
function assignedPatterns(masked: string): ReadonlySet<string> {
  const patterns = [...masked.matchAll(/[[{]/g)].flatMap(({ 0: bracket, index: open }) => {
    const before = masked.slice(0, open).trimEnd();
    // An index of something, or a declaration.
    if ((bracket === "[" && /[\p{ID_Continue}$)\].]$/u.test(before)) || /\b(?:const|let|var)$/.test(before)) return [];
    const close = closing(masked, open);
    return /^\s*(?:=(?![=>])|(?:of|in)\b)/.test(masked.slice(close + 1)) ? [masked.slice(open, close)] : [];
  });
  return namesIn(patterns.join("\n"));
}

/** Whether every bracket has its partner; where not, this reader has not understood the text. Pure. */
export function isBalanced(masked: string): boolean {
  let depth = 0;
  for (const char of masked) {
    if (isOpening(char)) depth++;
    else if (isClosing(char) && --depth < 0) return false;
  }
  return depth === 0;
}
