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

// A line that is cut shorter says no more what it was about.
const LINE_CHARACTERS = [160, 120, 90, 65, 45, 30];

/**
 * Shortens a text that lists and asks, so that it can still be seen which things it told or offered, in what order,
 * and what it asked: first the details below a line go, then the ends of lines; lines that ask stay whole. Only where
 * that is not enough, the middle goes. Pure.
 */
export function shortenLines(text: string, maxTokens: number): string {
  if (fitsIn(text, maxTokens)) return text;
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const outline = withoutDetails(lines);
  const beginnings = LINE_CHARACTERS.map((characters) => outline.map((line) => beginningOf(line, characters)));
  const found = [lines, outline, ...beginnings]
    .map((shorter) => shorter.join("\n"))
    .find((one) => fitsIn(one, maxTokens));
  return found ?? shortenMiddle(text, maxTokens);
}

/** Lines that stand further in than the first one say more of the line above them. */
function withoutDetails(lines: readonly string[]): readonly string[] {
  const outline: string[] = [];
  for (const line of lines) {
    if (!/^\s/.test(line) || asks(line)) outline.push(line);
    else if (outline.length > 0 && !outline.at(-1)?.endsWith(CUT)) outline.push(`${outline.pop() ?? ""}${CUT}`);
  }
  return outline;
}

/** Up to the end of a word, where there are words. */
function beginningOf(line: string, characters: number): string {
  if (line.length <= characters || asks(line)) return line;
  const beginning = line.slice(0, cutAt(line, characters));
  const word = beginning.lastIndexOf(" ");
  return `${word > characters / 2 ? beginning.slice(0, word) : beginning}${CUT}`;
}

const CUT = " …";

function asks(line: string): boolean {
  return /[?？؟]/.test(line);
}

/** Never between the two halves of one character. */
function cutAt(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff ? index + 1 : index;
}
