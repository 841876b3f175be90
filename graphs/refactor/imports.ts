import { mask, NAME, namesIn, NO_MEMBER, outermost, statementStarts, withoutComments } from "./mask.ts";

/** One name of an import or an export. */
export interface Specifier {
  /** As the other module calls it; in a list of exports, as this one does. */
  readonly imported: string;
  /** As this module calls it; in a list of exports, as others do. */
  readonly local: string;
}

/** An `import { … } from` or an `export { … } from`. */
export interface Import {
  readonly kind: "import" | "export";
  readonly start: number;
  readonly end: number;
  readonly from: string;
  readonly quote: string;
  /** `import name from`. */
  readonly fallback: string | null;
  /** `* as name`; `*` for `export *`. */
  readonly everything: string | null;
  readonly names: readonly Specifier[];
  /** What stands behind the module's name: attributes such as `with { type: "json" }`, and a semicolon or none. */
  readonly tail: string;
}

const IMPORT = new RegExp(
  String.raw`^(import|export)\b\s*(?:(${NAME})\s*(?:,\s*|(?=from\b)))?(?:\{([^}]*)\}\s*|\*(?:\s*as\s+(${NAME}))?\s*)?from\s*(["'])([^"'\n]+)\5((?:\s*(?:with|assert)\s*\{[^}]*\})?(?:[^\S\n]*;)?)`,
  "u",
);

/** The imports and re-exports of a module; those that this cannot read are none. Pure. */
export function importsIn(text: string): readonly Import[] {
  const bare = withoutComments(text);
  return statementStarts(mask(text)).flatMap((start): Import[] => {
    const match = IMPORT.exec(bare.slice(start));
    if (!match) return [];
    const [whole, kind, fallback, list, everything, quote = '"', from = "", tail = ""] = match;
    const names = specifiersIn(list ?? "");
    if (names === null) return [];
    return [
      {
        kind: kind === "import" ? "import" : "export",
        start,
        end: start + whole.length,
        from,
        quote,
        fallback: fallback ?? null,
        everything: everything ?? (list === undefined && fallback === undefined ? "*" : null),
        names,
        tail,
      },
    ];
  });
}

/** The names of a list in braces; null where one cannot be read. */
function specifiersIn(list: string): readonly Specifier[] | null {
  const pattern = new RegExp(String.raw`^(${NAME})(?:\s+as\s+(${NAME}))?$`, "u");
  const parts = list.split(",").map((part) => part.trim());
  const read = parts.filter((part) => part !== "").map((part) => pattern.exec(part));
  const found = read.flatMap((match) => {
    const [, imported, local] = match ?? [];
    return imported === undefined ? [] : [{ imported, local: local ?? imported }];
  });
  return found.length === read.length ? found : null;
}

/** What lists such as `export { a, b as c };` export of a module's own. Pure. */
export function exportListsIn(text: string): readonly Specifier[] {
  const bare = withoutComments(text);
  return statementStarts(mask(text)).flatMap((start) => {
    const list = /^export\s*\{([^}]*)\}(?!\s*from\b)/.exec(bare.slice(start))?.[1];
    return list === undefined ? [] : (specifiersIn(list) ?? []);
  });
}

/** The names in imports that cannot be read, such as a second one on a line. Pure. */
export function unclearImports(text: string): ReadonlySet<string> {
  const masked = mask(text);
  const read = new Set(importsIn(text).map(({ start }) => start));
  // Without a name in it, it is there for what it does.
  const keyword = new RegExp(String.raw`${NO_MEMBER}import(?![\p{ID_Continue}$])(?!\s*[(.]|[^\S\n]*(?:[;\n]|$))`, "gu");
  const unread = [...outermost(masked).matchAll(keyword)].filter(({ index }) => !read.has(index));
  return namesIn(
    unread.map(({ index }) => /^import[^;]*?(?:;|\bfrom\b|$)/.exec(masked.slice(index))?.[0] ?? "").join("\n"),
  );
}

/** Writes an import or re-export; nothing where no name is left. Pure. */
export function writeImport(one: Omit<Import, "start" | "end">): string {
  const { kind, from, quote, fallback, everything, names, tail } = one;
  const listed = names.map(({ imported, local }) => (imported === local ? imported : `${imported} as ${local}`));
  const parts = [
    fallback,
    everything === null ? null : everything === "*" ? "*" : `* as ${everything}`,
    listed.length > 0 ? `{ ${listed.join(", ")} }` : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? "" : `${kind} ${parts.join(", ")} from ${quote}${from}${quote}${tail}`;
}
