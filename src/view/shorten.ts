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

/** Never between the two halves of one character. */
function cutAt(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff ? index + 1 : index;
}
