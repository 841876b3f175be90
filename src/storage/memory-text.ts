/** The parts of a path: `chapters[*].content` is `chapters`, `*`, `content`. */
function partsOf(path: string): readonly string[] {
  return path === "$"
    ? []
    : path
        .replaceAll(/\[([^\]]*)\]/g, ".$1")
        .split(".")
        .filter(Boolean);
}

/** The texts at a path of a JSON value, with a name for each place. Pure. */
export function textsAt(value: unknown, path: string): readonly { readonly field: string; readonly text: string }[] {
  const found = follow(value, partsOf(path))
    .map(asText)
    .filter((text) => text !== "");
  return found.map((text, index) => ({ field: found.length > 1 ? `${path}.${index}` : path, text }));
}

function follow(value: unknown, [part, ...rest]: readonly string[]): readonly unknown[] {
  if (part === undefined) return [value];
  if (typeof value !== "object" || value === null) return [];
  if (part === "*") return Object.values(value).flatMap((item) => follow(item, rest));
  if (Array.isArray(value)) return /^-?\d+$/.test(part) ? follow(value.at(Number(part)), rest) : [];
  return Object.hasOwn(value, part) ? follow((value as Record<string, unknown>)[part], rest) : [];
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value as string | number | boolean);
}

/** All texts and numbers within a JSON value, for finding it by its words. Pure. */
export function allTexts(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  return typeof value === "object" && value !== null ? Object.values(value).map(allTexts).join("\n") : "";
}
