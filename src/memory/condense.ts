/** The levels of log lines, the most severe first, under the names that they go by. */
const LEVELS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["FATAL", /\b(?:FATAL|EMERG(?:ENCY)?|CRIT(?:ICAL)?|ALERT|PANIC)\b/i],
  ["ERROR", /\b(?:ERROR|ERR|SEVERE|EXCEPTION)\b/i],
  ["WARN", /\bWARN(?:ING)?\b/i],
  ["INFO", /\b(?:INFO|NOTICE)\b/i],
  ["DEBUG", /\b(?:DEBUG|TRACE|VERBOSE)\b/i],
];
/** A level stands near the beginning of its line; later such a word is part of a message. */
const LEVEL_WITHIN = 80;
/** A text is a log if so much of it has levels. */
const LOG_SHARE = 0.3;
const MAX_KEY_LINES = 8;
const KEY_LINE_LENGTH = 160;
const STAMP = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?|\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d/;

interface Line {
  readonly number: number;
  readonly text: string;
  readonly level: string | null;
}

/**
 * Makes a long text short enough to remember: of a log, how many lines it has, how they spread over the levels, when
 * they begin and end, and the gravest kinds of lines with their numbers; of any other text, its beginning and
 * its end. A text that is short enough stays as it is. Pure.
 */
export function condense(text: string, maxCharacters: number): string {
  const whole = text.trim();
  if (whole.length <= maxCharacters) return whole;
  const lines = whole
    .split(/\r\n|[\n\r]/)
    .map((text, index): Line => ({ number: index + 1, text: text.trim(), level: levelOf(text) }))
    .filter((line) => line.text !== "");
  const levelled = lines.filter(({ level }) => level !== null).length;
  return levelled >= 2 && levelled >= lines.length * LOG_SHARE
    ? condenseLog(lines, maxCharacters)
    : condenseProse(whole, lines.length, maxCharacters);
}

function levelOf(line: string): string | null {
  const start = line.slice(0, LEVEL_WITHIN);
  return LEVELS.find(([, pattern]) => pattern.test(start))?.[0] ?? null;
}

function condenseLog(lines: readonly Line[], maxCharacters: number): string {
  const counts = [...LEVELS.map(([name]) => name), null].map((level) => ({
    level: level ?? "no level",
    count: lines.filter((line) => line.level === level).length,
  }));
  const spread = counts.filter(({ count }) => count > 0).map(({ level, count }) => `${level} ${count}`);
  const [from, to] = [lines.find(hasStamp), lines.findLast(hasStamp)].map((line) => STAMP.exec(line?.text ?? "")?.[0]);
  const span = from !== undefined && to !== undefined && from !== to ? `; from ${from} to ${to}` : "";
  const head = `log of ${lines.length} lines: ${spread.join(", ")}${span}`;
  const kinds = kindsOf(lines);
  const shown: string[] = [];
  let room = maxCharacters - head.length - 40;
  for (const { first, count } of kinds.slice(0, MAX_KEY_LINES)) {
    const line = `L${first.number}${count > 1 ? ` (${count} like it)` : ""}: ${cut(first.text, KEY_LINE_LENGTH)}`;
    if (line.length + 1 > room) break;
    room -= line.length + 1;
    shown.push(line);
  }
  const more = kinds.length - shown.length;
  return [head, ...shown, ...(more > 0 ? [`${more} more kinds of lines`] : [])].join("\n");
}

function hasStamp({ text }: Line): boolean {
  return STAMP.test(text);
}

/** Lines that differ only in numbers, ids and quoted parts are of one kind; the gravest and most frequent first. */
function kindsOf(lines: readonly Line[]): readonly { readonly first: Line; readonly count: number }[] {
  const kinds = new Map<string, { readonly first: Line; count: number }>();
  for (const line of lines) {
    const kind = `${line.level} ${maskOf(line.text)}`;
    const known = kinds.get(kind);
    if (known) known.count++;
    else kinds.set(kind, { first: line, count: 1 });
  }
  const rank = ({ first }: { readonly first: Line }) => {
    const at = LEVELS.findIndex(([name]) => name === first.level);
    return at < 0 ? LEVELS.length : at;
  };
  return [...kinds.values()].toSorted((a, b) => rank(a) - rank(b) || b.count - a.count);
}

/** What lines of one kind have in common. */
function maskOf(line: string): string {
  return line
    .slice(0, 2 * KEY_LINE_LENGTH)
    .replaceAll(/"[^"]*"|'[^']*'/g, '""')
    .replaceAll(/[\da-fA-F]+/g, (run) => (/\d/.test(run) ? "#" : run));
}

function condenseProse(text: string, lineCount: number, maxCharacters: number): string {
  const note = (left: number) => ` … ${left} of ${text.length} characters in ${lineCount} lines left out … `;
  const room = Math.max(0, maxCharacters - note(text.length).length);
  const head = wholeWords(wholeEnd(text.slice(0, Math.floor(room * 0.7))));
  const tail = wholeStart(text.slice(text.length - Math.max(0, room - head.length)));
  return `${head}${note(text.length - head.length - tail.length)}${tail}`.slice(0, maxCharacters);
}

/** Up to the end of a sentence or word, if one is in the second half. */
function wholeWords(text: string): string {
  const end = Math.max(text.lastIndexOf(". ") + 1, text.lastIndexOf("\n"));
  const blank = text.lastIndexOf(" ");
  const at = end > text.length / 2 ? end : blank > text.length / 2 ? blank : text.length;
  return text.slice(0, at).trimEnd();
}

/** From the beginning of a word on, and never from half a character. */
function wholeStart(text: string): string {
  const blank = text.search(/\s/);
  return (blank >= 0 && blank < text.length / 2 ? text.slice(blank) : text.replace(/^[\uDC00-\uDFFF]/, "")).trimStart();
}

/** Without half a character at the end. */
function wholeEnd(text: string): string {
  return text.replace(/[\uD800-\uDBFF]$/, "");
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${wholeEnd(text.slice(0, length - 1))}…`;
}
