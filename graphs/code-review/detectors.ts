import { closing, readSource, type Source } from "./source.ts";

export const FOCUSES = ["security", "errors"] as const;
export type Focus = (typeof FOCUSES)[number];

/** A place in a text that a rule points at. */
export interface Hit {
  readonly rule: string;
  readonly why: string;
  /** From 1, within the text that was looked at. */
  readonly line: number;
}

interface Rule {
  readonly focus: Focus;
  readonly why: string;
  /** The offsets of what it finds. */
  readonly find: (source: Source) => readonly number[];
}

/** What a rule of each name looks for, in JavaScript and TypeScript. */
export const RULES: Readonly<Record<string, Rule>> = {
  eval: {
    focus: "security",
    why: "text is run as code",
    find: ({ code }) => offsets(code, /(?<![\w.$])(?:eval\s*\(|new\s+Function\s*\()/g),
  },
  "shell-interpolation": {
    focus: "security",
    why: "a value becomes part of a shell command; pass arguments as a list without a shell",
    find: (source) =>
      offsets(source.code, /(?:(?<![\w.$])|\b(?:child_process|childProcess|cp)\.)(?:exec|execSync)\s*\(/g).filter(
        (at) => isPutTogether(source, at),
      ),
  },
  "secret-in-code": {
    focus: "security",
    why: "a secret stands in the source; take it from the environment",
    find: ({ code, strings }) =>
      strings.filter((each) => isSecret(code, each.start, each.text)).map(({ start }) => start),
  },
  "sql-concatenation": {
    focus: "security",
    why: "a value becomes part of an SQL statement; pass it as a parameter",
    find: ({ code, strings }) =>
      strings
        .filter(({ text, parts, end }) => {
          if (!/^\s*(?:select\s[\s\S]*\sfrom|insert\s+into|update\s[\s\S]*\sset|delete\s+from)\s/i.test(`${text} `))
            return false;
          // Names in capitals are constants of the program, not values from outside.
          return parts.some((part) => !/^[A-Z][A-Z0-9_]*$/.test(part.trim())) || /^\s*\+/.test(code.slice(end));
        })
        .map(({ start }) => start),
  },
  "empty-catch": {
    focus: "errors",
    why: "an error is dropped without a word; handle it, or say why it does not matter",
    find: ({ raw, code }) => [
      ...offsets(code, /\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}/g).filter((at) => isBlankBlock(raw, code, at)),
      ...offsets(code, /\.catch\(\s*(?:async\s*)?(?:\(\s*\w*\s*\)|\w+)\s*=>\s*\{\s*\}\s*\)/g).filter((at) =>
        isBlankBlock(raw, code, at),
      ),
    ],
  },
  "unawaited-promise": {
    focus: "errors",
    why: "nobody waits for this promise, so its failure is lost; await it, or handle its rejection",
    find: ({ code }) => unawaited(code),
  },
  "missing-error-check": {
    focus: "errors",
    why: "the callback gets an error and never looks at it",
    find: ({ code }) => uncheckedCallbacks(code),
  },
};

/**
 * Looks at a text of source, by rules alone: comments, strings and regular expressions are no code. It knows no
 * types, so it finds what can be seen in the text. Pure.
 */
export function detect(text: string, focus: Focus): readonly Hit[] {
  const source = readSource(text);
  const hits = Object.entries(RULES).flatMap(([rule, { focus: own, why, find }]) => {
    if (own !== focus) return [];
    return [...new Set(find(source).map((at) => lineAt(text, at)))].map((line): Hit => ({ rule, why, line }));
  });
  return hits.toSorted((a, b) => a.line - b.line);
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

function offsets(text: string, pattern: RegExp): readonly number[] {
  return [...text.matchAll(pattern)].map(({ index }) => index);
}

/** Whether the first argument of the call at an offset is a template with values, or a sum. */
function isPutTogether({ code, strings }: Source, at: number): boolean {
  const open = code.indexOf("(", at);
  const close = closing(code, open);
  if (close === -1) return false;
  const first = strings.find(({ start }) => start > open && start < close);
  if (!first) return false;
  const isFirst = code.slice(open + 1, first.start).trim() === "";
  return (
    (isFirst && first.parts.length > 0) ||
    /^\s*\+/.test(code.slice(first.end, close)) ||
    /\+\s*$/.test(code.slice(open + 1, first.start))
  );
}

const SECRET_NAME =
  /(?:api_?key|secret(?:_?key)?|private_?key|access_?key|auth_?token|access_?token|passw(?:or)?d|passphrase|credentials?)["']?\s*(?::\s*string\s*)?[:=]\s*$/i;

function isSecret(code: string, start: number, text: string): boolean {
  const before = code.slice(Math.max(0, start - 80), start);
  // Secrets are taken out of what a task reads, so this is what one looks like.
  if (text.includes("[redacted]")) return /[:=]\s*$/.test(before) && !/redacted/i.test(before);
  if (!SECRET_NAME.test(before)) return false;
  return (
    text.length >= 8 &&
    /\d/.test(text) &&
    /^[\w.+/=!@#%^&*-]+$/.test(text) &&
    !/^__|^(?:x{3,}|example|changeme)/i.test(text)
  );
}

/** A comment within the braces says why. */
function isBlankBlock(raw: string, code: string, at: number): boolean {
  const open = code.indexOf("{", at);
  return raw.slice(open + 1, closing(code, open)).trim() === "";
}

/** Calls of functions that the same text declares as asynchronous, as statements of their own. */
function unawaited(code: string): readonly number[] {
  const functions = names(code, /\basync\s+function\s+(\w+)/g, /\b(?:const|let)\s+(\w+)\s*=\s*async\b/g);
  const methods = names(code, /^\s*(?:(?:public|private|protected|static|override)\s+)*async\s+(\w+)\s*[(<]/gm);
  const calls = [
    ...[...functions].map((name) => String.raw`(?<![\w.$])${name}`),
    ...[...methods].map((name) => String.raw`this\.${name}`),
  ];
  if (calls.length === 0) return [];
  return offsets(code, new RegExp(String.raw`(?:${calls.join("|")})\s*\(`, "g")).filter((at) => {
    const before = code.slice(0, at).trimEnd();
    const close = closing(code, code.indexOf("(", at));
    const isStatement = before === "" || /[;{}]$/.test(before);
    return (
      isStatement &&
      close !== -1 &&
      /^\s*(?:;|\n|$)/.test(code.slice(close + 1)) &&
      !/^\s*\./.test(code.slice(close + 1))
    );
  });
}

function names(code: string, ...patterns: readonly RegExp[]): ReadonlySet<string> {
  return new Set(patterns.flatMap((pattern) => [...code.matchAll(pattern)].flatMap(([, name]) => name ?? [])));
}

/** Callbacks of Node's kind, whose first parameter is an error that their body never names. */
function uncheckedCallbacks(code: string): readonly number[] {
  const callbacks = code.matchAll(/(?:\bfunction\s*\w*\s*)?\(\s*(err|error)\s*,[^()]*\)\s*(?:=>\s*)?\{/g);
  return [...callbacks].flatMap(({ 0: text, 1: name = "", index }) => {
    const isCallback = text.includes("=>") || text.startsWith("function");
    const open = index + text.length - 1;
    const body = code.slice(open, closing(code, open) + 1);
    return isCallback && body !== "" && !new RegExp(String.raw`\b${name}\b`).test(body) ? [index] : [];
  });
}
