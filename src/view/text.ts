/** The tags that structure a view. Text from outside must not be able to open or close one. */
const TAGS = [
  "step",
  "state",
  "memory",
  "recent",
  "observation",
  "facts",
  "refused",
  "status",
  "now",
  "summary",
  "answer-schema",
];
const LOOK_ALIKE = new RegExp(String.raw`<(?=[\s/]*(?:${TAGS.join("|")})\b)`, "gi");

/** Makes text from outside safe to put between tags: look-alikes of the view's own tags are escaped. */
export function escapeTags(text: string): string {
  return text.includes("<") ? text.replace(LOOK_ALIKE, "&lt;") : text;
}

/** A block of a view between tags of its own. */
export function block(tag: string, lines: readonly string[], attributes = ""): string {
  return `<${tag}${attributes}>\n${lines.join("\n")}\n</${tag}>`;
}
