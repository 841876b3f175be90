import type { Artifact } from "../workflow/artifact.ts";

/**
 * What the shown lines of an answer take at most, in bytes of JSON. With what stands around them an answer
 * stays below 4,000 bytes, and so below 4,000 characters and below what is set aside itself.
 */
const BODY_BYTES = 3600;
/** Room for what stands before a piece of a line; with less left, an answer ends. */
const LABEL_BYTES = 80;
/** A line break in JSON. */
const BREAK_BYTES = 2;
/** Longer lines are shown around a match only. */
const SHORT_LINE = 300;
const AROUND_MATCH = 100;
const MAX_PLACES = 20;
/** Places that are not shown are counted up to here. */
const MAX_COUNTED = 1000;

/** Where to begin reading or searching. */
export interface Position {
  /** A line, counted from 1. */
  readonly from: number;
  /** Where in that line, counted from 0. */
  readonly character: number;
}

/** What a part of an artifact looks like to the model. */
export interface Answer {
  readonly text: string;
  /** Where to go on; null where nothing is left. */
  readonly next: Position | null;
}

/**
 * The lines of a text from a place on: numbered, and as many as fit. A line that is too long for one answer
 * comes in pieces. Reading on at `next` until that is null shows every character once. Pure.
 *
 * @param where `lines`: the most lines to show; as many as fit unless set.
 */
export function readSlice(artifact: Artifact, where: Partial<Position> & { readonly lines?: number } = {}): Answer {
  const lines = linesOf(artifact.text);
  const { from = 1, lines: most = Infinity } = where;
  if (from > lines.length) return beyond(artifact, lines, from);
  const shown: string[] = [];
  let left = BODY_BYTES;
  let line = from;
  let character = wholeCharacter(lines[from - 1] ?? "", where.character ?? 0);
  while (line <= lines.length && shown.length < most && left >= LABEL_BYTES) {
    const text = lines[line - 1] ?? "";
    const piece = show(text, line, character, text.length, left);
    // What does not fit after other lines begins in the next answer.
    if (piece.end < text.length && shown.length > 0) break;
    shown.push(piece.shown);
    left -= piece.bytes;
    if (piece.end < text.length) {
      character = piece.end;
      break;
    }
    line++;
    character = 0;
  }
  const next = line > lines.length ? null : { from: line, character };
  const last = character > 0 ? line : line - 1;
  const range = last > from ? `lines ${count(from)}–${count(last)}` : `line ${count(from)}`;
  return {
    text: [`${artifact.id}: ${range} of ${count(lines.length)}`, ...shown, whatIsLeft(artifact, lines, next)].join(
      "\n",
    ),
    next,
  };
}

function whatIsLeft({ text }: Artifact, lines: readonly string[], next: Position | null): string {
  if (!next) return text.endsWith("\n") ? "end of the text" : "end of the text, without a line break at its end";
  const { from, character } = next;
  if (character === 0) return `${number(lines.length - from + 1, "line")} left; go on with from ${from}`;
  const rest = number((lines[from - 1] ?? "").length - character, "character");
  const more = lines.length > from ? ` and ${number(lines.length - from, "line")}` : "";
  return `${rest} of line ${from}${more} left; go on with from ${from}, character ${character}`;
}

/** What to look for. */
export interface Search extends Partial<Position> {
  readonly text: string;
  /** False unless set. */
  readonly ignoreCase?: boolean;
  /** The most places to show; 20 unless set. */
  readonly max?: number;
}

/**
 * The places where a text occurs, each with its line: short lines whole, long ones around the match.
 * Searching on at `next` until that is null shows every place once. Pure.
 */
export function searchIn(artifact: Artifact, { text, ignoreCase, max = MAX_PLACES, ...where }: Search): Answer {
  const lines = linesOf(artifact.text);
  const { from = 1, character = 0 } = where;
  if (from > lines.length) return beyond(artifact, lines, from);
  const pattern = new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`), ignoreCase ? "gi" : "g");
  const shown: string[] = [];
  let left = BODY_BYTES;
  let unshown = 0;
  let next: Position | null = null;
  for (const place of placesOf(lines, pattern, { from, character })) {
    if (!next && shown.length < max && left >= LABEL_BYTES) {
      const line = lines[place.line - 1] ?? "";
      const piece = show(line, place.line, place.start, place.end, left);
      if (piece.end === place.end || shown.length === 0) {
        shown.push(piece.shown);
        left -= piece.bytes;
        continue;
      }
    }
    next ??= { from: place.line, character: place.match };
    unshown++;
    if (unshown === MAX_COUNTED) break;
  }
  const what = `${JSON.stringify(cut(text, LABEL_BYTES))} in ${artifact.id}, from line ${count(from)} of ${count(lines.length)} on`;
  const head = shown.length > 0 ? `${what}: ${number(shown.length, "place")}` : `${what}: not found`;
  return { text: [head, ...shown, placesLeft(unshown, next)].join("\n"), next };
}

function placesLeft(unshown: number, next: Position | null): string {
  if (!next) return "nothing left to search";
  const more = unshown === MAX_COUNTED ? `at least ${count(unshown)} more places` : number(unshown, "more place");
  return `${more}; go on with from ${next.from}, character ${next.character}`;
}

interface Place {
  readonly line: number;
  /** Where the match begins. */
  readonly match: number;
  /** What of the line is to be shown. */
  readonly start: number;
  readonly end: number;
}

/** A match that is shown whole around an earlier one is no place of its own. */
function* placesOf(lines: readonly string[], pattern: RegExp, { from, character }: Position): Generator<Place> {
  for (let line = from; line <= lines.length; line++) {
    const text = lines[line - 1] ?? "";
    const isShort = text.length <= SHORT_LINE;
    let shownUntil = -1;
    pattern.lastIndex = line === from ? character : 0;
    for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
      const match = found.index;
      const until = match + found[0].length;
      // An empty search would stay where it is.
      pattern.lastIndex = Math.max(until, match + 1);
      if (until <= shownUntil) continue;
      const start = isShort ? 0 : wholeCharacter(text, Math.max(0, match - AROUND_MATCH));
      const end = isShort ? text.length : wholeCharacter(text, Math.min(text.length, until + AROUND_MATCH));
      shownUntil = end;
      yield { line, match, start, end };
    }
  }
}

interface Piece {
  readonly shown: string;
  /** Where in the line it ends. */
  readonly end: number;
  readonly bytes: number;
}

/** A part of a line with its label; it ends earlier than asked for where there is no room. */
function show(line: string, lineNumber: number, start: number, end: number, room: number): Piece {
  const isWhole = start === 0 && end === line.length;
  const label = `L${lineNumber}: `;
  if (isWhole && pieceEnd(line, 0, room - BREAK_BYTES - label.length) === end) return piece(label + line, end);
  const reached = Math.min(end, pieceEnd(line, start, room - LABEL_BYTES));
  const range = `characters ${count(start)}–${count(reached)} of ${count(line.length)}`;
  return piece(`L${lineNumber} (${range}): ${line.slice(start, reached)}`, reached);
}

function piece(shown: string, end: number): Piece {
  return { shown, end, bytes: BREAK_BYTES + jsonLength(shown) };
}

/**
 * Where the longest piece of a text ends that takes at most so many bytes as JSON. It divides no character
 * that is written as two code units. Pure.
 */
export function pieceEnd(text: string, start: number, bytes: number): number {
  let end = start;
  let left = bytes;
  for (const character of text.slice(start, start + bytes)) {
    left -= jsonLength(character);
    if (left < 0) break;
    end += character.length;
  }
  return end;
}

/** The beginning of a text, as much as takes so many bytes as JSON. */
function cut(text: string, bytes: number): string {
  const end = pieceEnd(text, 0, bytes);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** The place itself, or the one before it where it would divide a character. */
export function wholeCharacter(text: string, at: number): number {
  const place = Math.min(at, text.length);
  const isInside = (text.codePointAt(place - 1) ?? 0) > 0xffff;
  return isInside ? place - 1 : place;
}

/** The bytes of a text within a JSON string. */
function jsonLength(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** The lines of a text, without the line feeds; one at the end begins no further line. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function beyond({ id }: Artifact, lines: readonly string[], from: number): Answer {
  return { text: `${id} has ${number(lines.length, "line")}: there is no line ${from}`, next: null };
}

/** `1,234`. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

function number(value: number, of: string): string {
  return `${count(value)} ${of}${value === 1 ? "" : "s"}`;
}
