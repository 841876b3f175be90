import { Recent } from "../internal/recent.ts";
import { countTokens } from "../internal/tokens.ts";
import { fitsIn } from "./tokens.ts";

/** Of what is kept of a long text, the share that stands before the gap. */
const HEAD_SHARE = 0.7;

/**
 * Shows a text's beginning and end where it has too many tokens, and says how much is missing. It is
 * always cut from the whole, so a shortened text is never shortened again. Pure.
 *
 * @param whole where all of it can be read.
 */
export function shortenMiddle(text: string, maxTokens: number, whole = ""): string {
  if (fitsIn(text, maxTokens)) return text;
  const note = (left: number) => `\n… ${left} characters left out${whole ? `; ${whole}` : ""} …\n`;
  const room = Math.max(8, maxTokens - countTokens(note(text.length)));
  // Four characters a token is the usual; the pieces are made smaller until they fit.
  for (let characters = room * 4; ; characters = Math.floor(characters * 0.85)) {
    const head = text.slice(0, cutAt(text, Math.floor(characters * HEAD_SHARE)));
    const rest = Math.floor(characters * (1 - HEAD_SHARE));
    const tail = rest > 0 ? text.slice(cutAt(text, text.length - rest)) : "";
    if (countTokens(head) + countTokens(tail) <= room || characters < 8) {
      return `${head}${note(text.length - head.length - tail.length)}${tail}`;
    }
  }
}

const CUT = " …";
// A line that is cut shorter says no more what it was about.
const LINE_CHARACTERS = [240, 160, 120, 90, 65, 45, 30];

const MOST_DEPTHS = 5;

// A task's texts are shown again in each of its prompts.
const outlines = new Recent<string>(1024);

/**
 * Shortens a text that lists and asks, so that it can still be seen which things it told or offered, in what order,
 * and what it asked: first the details below the items of a list go, then the ends of lines. Lines that ask stay
 * whole, and so does the last one. Only where that is not enough, the middle goes. Pure.
 */
export function shortenLines(text: string, maxTokens: number): string {
  if (fitsIn(text, maxTokens)) return text;
  return outlines.get(`${maxTokens} ${text}`, () => outlineOf(text, maxTokens) ?? shortenMiddle(text, maxTokens));
}

function outlineOf(text: string, maxTokens: number): string | null {
  let lines: readonly string[] = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return null;
  const fits = () => countTokens(lines.join("\n")) <= maxTokens;
  // What stands further in than these goes with them.
  const depths = [...new Set(lines.map(depthOf))].toSorted((one, other) => one - other).slice(0, MOST_DEPTHS);
  depths.reverse();
  for (const depth of depths) {
    if (fits()) return lines.join("\n");
    lines = withoutDetails(lines, depth);
  }
  const outline = lines;
  for (const characters of LINE_CHARACTERS) {
    if (fits()) return lines.join("\n");
    lines = outline.map((line, index) => (stays(outline, index) ? line : beginningOf(line, characters)));
  }
  if (fits()) return lines.join("\n");
  const top = Math.min(...depths);
  lines = lines.filter((line, index) => depthOf(line) === top || stays(lines, index));
  return fits() ? lines.join("\n") : null;
}

/** Without what stands so far in, or further, below an item of a list. */
function withoutDetails(lines: readonly string[], depth: number): readonly string[] {
  const kept: string[] = [];
  let item: number | null = null;
  for (const [index, line] of lines.entries()) {
    const indent = depthOf(line);
    // Numbers that are aligned to the right, or begin anew, make no details.
    const isBelow = item !== null && indent > item && (indent > item + 1 || !ITEM.test(line));
    const isDetail = isBelow && indent >= depth;
    if (isDetail && !stays(lines, index)) {
      if (!kept.at(-1)?.endsWith(CUT)) kept.push(`${kept.pop() ?? ""}${CUT}`);
      continue;
    }
    kept.push(line);
    if (ITEM.test(line)) item = indent;
    else if (item !== null && indent <= item) item = null;
  }
  return kept;
}

const TAB = "    ";
/** A bullet, a number or a letter, in bold or not; a line in bold; a heading. */
const ITEM = /^\s*(?:(?:\*\*|__)?(?:[-*+•–]|\d{1,3}[.)]|[a-z][.)])\s|(?:\*\*|__|#{1,6}\s)\S)/i;

function depthOf(line: string): number {
  return line.replaceAll("\t", TAB).search(/\S/);
}

/** A question, or the last line, which mostly says what is wanted. */
function stays(lines: readonly string[], index: number): boolean {
  return index === lines.length - 1 || /[？؟]|\?(?=\s|$|["”'»)*\]])/.test(lines[index] ?? "");
}

/** Up to the end of a word, where there are words. */
function beginningOf(line: string, characters: number): string {
  if (line.length <= characters) return line;
  const beginning = line.slice(0, cutAt(line, characters));
  const word = beginning.lastIndexOf(" ");
  return `${word > characters / 2 ? beginning.slice(0, word) : beginning}${CUT}`;
}

/** Never between the two halves of one character. */
function cutAt(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff ? index + 1 : index;
}
