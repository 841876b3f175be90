import { ToolError } from "../tool-error.ts";

/** Replaces a text that occurs once by another. */
export interface Edit {
  readonly find: string;
  readonly replace: string;
}

/** More ways back than this are not tried. */
const MAX_TRIES = 2000;

/**
 * Makes edits one after the other. Pure.
 *
 * @throws ToolError NOT_FOUND or AMBIGUOUS, where what is looked for does not occur exactly once.
 */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  let edited = text;
  for (const [index, { find, replace }] of edits.entries()) {
    const at = edited.indexOf(find);
    const which = edits.length > 1 ? `edit ${index + 1}: ` : "";
    if (at === -1) {
      const hint = "read the file again and copy the text to be replaced exactly, with its spaces and line ends";
      throw new ToolError(`${which}the text to be replaced is not in the file; nothing was written`, {
        type: "NOT_FOUND",
        hint,
      });
    }
    if (edited.includes(find, at + 1)) {
      throw new ToolError(`${which}the text to be replaced is in the file more than once; nothing was written`, {
        type: "AMBIGUOUS",
        hint: "take more of the lines around it",
      });
    }
    edited = edited.slice(0, at) + replace + edited.slice(at + find.length);
  }
  return edited;
}

/**
 * Whether a text is what these edits have made of another one, of which only a test is left. So it can be found
 * out after a crash whether a change was written. Pure.
 *
 * @param wasBefore true for the text before the edits.
 * @returns null where there are too many ways back to tell.
 */
export function areApplied(text: string, edits: readonly Edit[], wasBefore: (text: string) => boolean): boolean | null {
  let tries = 0;
  const undo = (edited: string, left: number): boolean | null => {
    const edit = edits[left - 1];
    if (edit === undefined) return wasBefore(edited);
    for (const at of placesOf(edited, edit.replace)) {
      if (++tries > MAX_TRIES) return null;
      const found = undo(edited.slice(0, at) + edit.find + edited.slice(at + edit.replace.length), left - 1);
      if (found !== false) return found;
    }
    // A text that was taken out of the middle of a line may have been anywhere.
    return edit.replace === "" ? null : false;
  };
  return undo(text, edits.length);
}

/** Where a text may have been put in; what was taken out, where a line begins or the text ends. */
function* placesOf(text: string, put: string): Generator<number> {
  if (put !== "") {
    for (let at = text.indexOf(put); at !== -1; at = text.indexOf(put, at + 1)) yield at;
    return;
  }
  yield 0;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", end + 1)) yield end + 1;
  if (!text.endsWith("\n")) yield text.length;
}
