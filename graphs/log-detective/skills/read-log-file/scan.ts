import { readLines, type LogLine } from "./lines.ts";
import { openLog, type OpenLog } from "./open-log.ts";
import { momentOf, readStamp, tellMoment, YearTurns, type Stamp } from "./stamps.ts";
import { isAtLeast, LEVELS, levelOf, traitOf, type CountKey, type Level } from "./traits.ts";

/** Which lines to look for, and what to say about them. */
export interface LogFilter {
  /** Lines that contain one of these, in upper or lower case; all lines where it is empty. */
  readonly keywords: readonly string[];
  /** Lines that are at least so serious. */
  readonly level: Level | null;
  /** Lines from this moment on, and before that one, in milliseconds since 1970. */
  readonly from: number | null;
  readonly to: number | null;
  /** Show lines from this number on. */
  readonly fromLine: number;
  /** How many lines to show. */
  readonly limit: number;
  readonly countBy: CountKey | null;
}

/** A line as it is shown. */
interface ShownLine {
  readonly line: string;
  readonly text: string;
}

/** How often something occurs among the lines that match. */
interface Counted {
  readonly value: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
}

/** What a log holds, as far as it was asked for. */
export interface LogScan {
  readonly lines: number;
  readonly bytes: number;
  readonly format: Stamp["format"] | "none";
  /** The first and the last time in the whole log. */
  readonly begins: string | null;
  readonly ends: string | null;
  readonly matched: number;
  /** How many of the lines that match are of each level. */
  readonly levels: Readonly<Partial<Record<Level, number>>>;
  /** The most frequent first. */
  readonly counted: readonly Counted[];
  /** Different values beside those that are listed. */
  readonly notListed: number;
  readonly shown: readonly ShownLine[];
  /** The last line that matches, where it is not among those. */
  readonly last: ShownLine | null;
  /** The lines that match after the last one shown. */
  readonly more: number;
  readonly notes: readonly string[];
}

const SHOWN_CHARACTERS = 180;
const LISTED_VALUES = 12;
/** Of more different values only the first so many are told apart, so that memory stays bounded. */
const MAX_VALUES = 20_000;

/**
 * Reads a log once, from beginning to end, and keeps what was asked for. A log whose stamps have no year is
 * read a second time where a time is asked for: its years are known only when its end is.
 *
 * @throws LogError where it cannot be read.
 */
export async function scanLog(path: string, filter: LogFilter, signal: AbortSignal): Promise<LogScan> {
  const asksForTime = filter.from !== null || filter.to !== null;
  const first = await scanOnce(path, asksForTime ? NOTHING : filter, null, signal);
  if (!asksForTime) return first.scan;
  return (await scanOnce(path, filter, first.firstYear, signal)).scan;
}

const NOTHING: LogFilter = {
  keywords: [],
  level: null,
  from: null,
  to: null,
  fromLine: 1,
  limit: 0,
  countBy: null,
};

interface Scanned {
  readonly scan: LogScan;
  readonly firstYear: number;
}

async function scanOnce(
  path: string,
  filter: LogFilter,
  firstYear: number | null,
  signal: AbortSignal,
): Promise<Scanned> {
  const log = await openLog(path, signal);
  try {
    const scanner = new Scanner(filter, firstYear);
    for await (const lines of readLines(log.chunks)) {
      for (const line of lines) scanner.take(line);
    }
    return scanner.end(log, await log.changes());
  } finally {
    await log.close();
  }
}

class Scanner {
  private readonly filter: LogFilter;
  private readonly firstYear: number | null;
  private readonly keywords: readonly string[];
  private readonly levels: Partial<Record<Level, number>> = {};
  private readonly counts = new Map<string, { count: number; first: number; last: number }>();
  private readonly shown: ShownLine[] = [];
  private readonly years = new YearTurns();
  private lines = 0;
  private matched = 0;
  private more = 0;
  private lastMatch: LogLine | null = null;
  private firstStamp: Stamp | null = null;
  private lastStamp: Stamp | null = null;
  private moment: number | null = null;
  private longLines = 0;
  private oddLines = 0;

  constructor(filter: LogFilter, firstYear: number | null) {
    this.filter = filter;
    this.firstYear = firstYear;
    this.keywords = filter.keywords.map((keyword) => keyword.toLowerCase());
  }

  take(line: LogLine): void {
    this.lines = line.number;
    if (line.cutBytes > 0) this.longLines++;
    if (line.text.includes("\ufffd")) this.oddLines++;
    this.takeStamp(line.text);
    if (!this.isInTime() || !this.hasKeyword(line.text)) return;
    const level = levelOf(line.text);
    if (this.filter.level !== null && !isAtLeast(level, this.filter.level)) return;
    this.matched++;
    this.levels[level] = (this.levels[level] ?? 0) + 1;
    this.lastMatch = line;
    this.count(line);
    if (line.number < this.filter.fromLine) return;
    if (this.shown.length < this.filter.limit) this.shown.push(shownLine(line));
    else this.more++;
  }

  private takeStamp(text: string): void {
    const stamp = readStamp(text);
    if (stamp === null) return;
    this.years.take(stamp);
    this.firstStamp ??= stamp;
    this.lastStamp = stamp;
    const year = (this.firstYear ?? 0) + this.years.turns;
    this.moment = stamp.year === null && this.firstYear === null ? null : momentOf(stamp, year);
  }

  /** A line without a stamp belongs to the one before it. */
  private isInTime(): boolean {
    const { from, to } = this.filter;
    if (from === null && to === null) return true;
    if (this.moment === null) return false;
    return (from === null || this.moment >= from) && (to === null || this.moment < to);
  }

  private hasKeyword(text: string): boolean {
    if (this.keywords.length === 0) return true;
    const lower = text.toLowerCase();
    return this.keywords.some((keyword) => lower.includes(keyword));
  }

  private count({ text, number }: LogLine): void {
    const key = this.filter.countBy;
    const value = key === null ? null : traitOf(key, text, this.moment);
    if (value === null) return;
    const known = this.counts.get(value);
    if (known) {
      known.count++;
      known.last = number;
    } else if (this.counts.size < MAX_VALUES) this.counts.set(value, { count: 1, first: number, last: number });
  }

  end(log: OpenLog, changes: readonly string[]): Scanned {
    const firstYear = this.firstYear ?? this.years.firstYear(log.modifiedMs);
    const last = this.lastMatch === null ? null : shownLine(this.lastMatch);
    const isShown = last === null || this.shown.some(({ line }) => line === last.line) || this.filter.limit === 0;
    const counted = [...this.counts].toSorted(([, a], [, b]) => b.count - a.count || a.first - b.first);
    const scan: LogScan = {
      lines: this.lines,
      bytes: log.bytes,
      format: this.firstStamp?.format ?? "none",
      begins: tellStamp(this.firstStamp, firstYear),
      ends: tellStamp(this.lastStamp, firstYear + this.years.turns),
      matched: this.matched,
      levels: Object.fromEntries(LEVELS.flatMap((level) => (this.levels[level] ? [[level, this.levels[level]]] : []))),
      counted: counted.slice(0, LISTED_VALUES).map(([value, { count, first, last }]) => ({
        value: clean(value, 100),
        count,
        first: `L${first}`,
        last: `L${last}`,
      })),
      notListed: Math.max(0, counted.length - LISTED_VALUES),
      shown: this.shown,
      last: isShown ? null : last,
      more: this.more,
      notes: [...this.notesOn(log, firstYear), ...changes],
    };
    return { scan, firstYear };
  }

  private notesOn(log: OpenLog, firstYear: number): readonly string[] {
    const { from, to, countBy } = this.filter;
    const notes: string[] = [];
    if (this.lines === 0) notes.push("the log is empty");
    if (log.packed) notes.push("it is gzip'd and was unpacked while it was read; lines count in what it unpacks to");
    if (this.firstStamp !== null && this.firstStamp.year === null) {
      const date = new Date(log.modifiedMs).toISOString().slice(0, 10);
      const turns = this.years.turns > 0 ? ", and the year turns where the months begin again" : "";
      notes.push(
        `its times have no year: ${firstYear} is taken for the first one, since the file is of ${date}${turns}`,
      );
    }
    if (this.firstStamp === null && this.lines > 0) notes.push("its lines begin with no time that can be read");
    if ((from !== null || to !== null) && this.firstStamp !== null) {
      notes.push("times are compared in UTC where the log says its zone, else as they are written");
    }
    if (this.longLines > 0)
      notes.push(`${this.longLines} lines are longer than 65,536 bytes: only their beginnings were looked at`);
    if (this.oddLines > 0) notes.push(`${this.oddLines} lines have bytes that are no UTF-8`);
    if (countBy !== null && this.counts.size >= MAX_VALUES)
      notes.push(`more than ${MAX_VALUES} values: the rest was not counted`);
    return notes;
  }
}

function tellStamp(stamp: Stamp | null, year: number): string | null {
  return stamp === null ? null : tellMoment(momentOf(stamp, year));
}

function shownLine({ number, text, cutBytes }: LogLine): ShownLine {
  const cleaned = clean(text, SHOWN_CHARACTERS);
  const shorn = cutBytes + Math.max(0, text.length - SHOWN_CHARACTERS);
  return { line: `L${number}`, text: shorn > 0 && cleaned.endsWith("…") ? `${cleaned} [long line, cut]` : cleaned };
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** A text on one line, without control characters, cut to a length. */
function clean(text: string, length: number): string {
  const plain = text.slice(0, length * 4).replaceAll(UNSEEN, " ");
  return plain.length > length ? `${plain.slice(0, length).replace(/[\ud800-\udbff]$/, "")}…` : plain;
}
