import { redact } from "../../internal/redact.ts";

// Controls, line breaks, marks that turn the direction of a text, halves of characters, blanks of all kinds.
const INVISIBLE = /[\p{C}\p{Z}]+/gu;

/**
 * Shows a text that the model or somebody outside has written: between quotation marks that it cannot
 * close, on one line, at most `length` characters long and without the sign that begins a tag. So it can
 * neither end the block that it stands in nor look like a reading beside it. Marks of two shapes need no
 * escapes in the JSON that is often quoted.
 *
 * @param keep which end stays where it is cut; the end of a path tells more than its beginning.
 */
export function quote(text: string, length: number, keep: "start" | "end" = "start"): string {
  // Redacted before it is cut: half a secret is not recognised any more.
  const characters = Array.from(redact(text).replaceAll(INVISIBLE, " ").trim());
  const shown =
    characters.length <= length
      ? characters.join("")
      : keep === "start"
        ? `${characters.slice(0, length - 1).join("")}…`
        : `…${characters.slice(1 - length).join("")}`;
  return `“${shown.replaceAll(/[“”]/g, '"').replaceAll("<", "&lt;")}”`;
}
