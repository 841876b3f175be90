import { posix } from "node:path";
import { declarationsIn, importsIn, mask, namesUsed, writeImport, type Declaration, type Import } from "./source.ts";

/** A function that moves from one module into a new one; paths are relative to the project. */
export interface Move {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** True where somebody may use the function through the old module in a way that names cannot tell. */
  readonly reexport: boolean;
}

/**
 * The function's declaration in the old module; null where it has none that can be moved as it is: one declared
 * twice, exported in a list or as the default, or one that sets a variable of its module. Pure.
 */
export function movable(text: string, name: string): Declaration | null {
  const [found, ...others] = declarationsIn(text).filter((declaration) => declaration.name === name);
  if (!found || others.length > 0 || found.signature === "") return null;
  const inList = new RegExp(`\\bexport\\s*\\{[^}]*\\b${escaped(name)}\\b[^}]*\\}(?!\\s*from)`);
  if (inList.test(mask(text))) return null;
  const code = mask(text.slice(found.code, found.end));
  const isSet = (local: string) =>
    new RegExp(`(?<![.\\w$])${escaped(local)}\\s*(?:[-+*/%&|^?]{0,2}=(?![=>])|\\+\\+|--)`).test(code);
  return neededLocals(text, name).some((local) => isSet(local.name)) ? null : found;
}

function escaped(name: string): string {
  return name.replaceAll("$", "\\$");
}

/** The new module: the function as it was, exported, with the imports that it needs. Pure. */
export function newModule(text: string, move: Move): string | null {
  const found = movable(text, move.name);
  if (!found) return null;
  const code = text.slice(found.code, found.end);
  const used = namesUsed(code);
  const fromOthers = importsIn(text).flatMap((one) => {
    if (one.kind === "export") return [];
    const needed = {
      ...one,
      from: moved(one.from, move.from, move.to),
      fallback: one.fallback !== null && used.has(one.fallback) ? one.fallback : null,
      everything: one.everything !== null && used.has(one.everything) ? one.everything : null,
      names: one.names.filter(({ local }) => used.has(local)),
    };
    return writeImport(needed) || [];
  });
  const locals = neededLocals(text, move.name).map(({ name }) => ({ imported: name, local: name }));
  const quote = importsIn(text)[0]?.quote ?? '"';
  const fromOld = writeImport({
    kind: "import",
    quote,
    fallback: null,
    everything: null,
    names: locals,
    from: specifier(move.to, move.from),
  });
  const head = [...fromOthers, ...(fromOld ? [fromOld] : [])];
  const comment = text.slice(found.start, found.code);
  const body = `${comment}${found.isExported ? "" : "export "}${code}\n`;
  return head.length > 0 ? `${head.join("\n")}\n\n${body}` : body;
}

/** The old module without the function: it imports what it still uses, and exports what the function needs. Pure. */
export function oldModule(text: string, move: Move): string | null {
  const found = movable(text, move.name);
  if (!found) return null;
  const inserts = neededLocals(text, move.name)
    .filter(({ isExported }) => !isExported)
    .map(({ code }) => ({ start: code, end: code, text: "export " }));
  const after = /^\n*/.exec(text.slice(found.end))?.[0].length ?? 0;
  const without = change(text, [...inserts, { start: found.start, end: found.end + after, text: "" }]);
  const imports = importsIn(without);
  const rest = change(
    without,
    imports.map(({ start, end }) => ({ start, end, text: "" })),
  );
  const used = namesUsed(rest);
  const mended = imports.flatMap((one) => {
    if (one.kind === "export" || usedBy(one, used)) return [];
    const left = writeImport({
      ...one,
      fallback: one.fallback !== null && used.has(one.fallback) ? one.fallback : null,
      everything: one.everything !== null && used.has(one.everything) ? one.everything : null,
      names: one.names.filter(({ local }) => used.has(local)),
    });
    // An import without names is there for what it does.
    return one.names.length + Number(one.fallback !== null) + Number(one.everything !== null) === 0
      ? []
      : [replaced(without, one, left)];
  });
  const link = {
    fallback: null,
    everything: null,
    quote: imports[0]?.quote ?? '"',
    from: specifier(move.from, move.to),
    names: [{ imported: move.name, local: move.name }],
  };
  const added = [
    ...(used.has(move.name) ? [writeImport({ ...link, kind: "import" })] : []),
    ...(move.reexport ? [writeImport({ ...link, kind: "export" })] : []),
  ];
  const mendedText = change(without, mended);
  return added.length > 0 ? withImports(mendedText, added) : mendedText.trimEnd() + "\n";
}

/** Another module, with the function from its new place; null where it does not take it from the old one. Pure. */
export function otherModule(text: string, path: string, move: Move): string | null {
  const changes = importsIn(text).flatMap((one) => {
    if (resolved(path, one.from) !== move.from) return [];
    const taken = one.names.filter(({ imported }) => imported === move.name);
    if (taken.length === 0) return [];
    const left = writeImport({ ...one, names: one.names.filter(({ imported }) => imported !== move.name) });
    const link = { ...one, fallback: null, everything: null, from: specifier(path, move.to), names: taken };
    return [{ start: one.start, end: one.end, text: [left, writeImport(link)].filter(Boolean).join("\n") }];
  });
  return changes.length > 0 ? change(text, changes) : null;
}

/** The one edit that makes one text of another; what it replaces occurs once. Pure. */
export function editBetween(before: string, after: string): { readonly find: string; readonly replace: string } {
  const [old, now] = [before.split(/(?<=\n)/), after.split(/(?<=\n)/)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const isOnce = () => {
    const find = old.slice(head, old.length - tail).join("");
    return find !== "" && before.indexOf(find) === before.lastIndexOf(find);
  };
  while (!isOnce() && (head > 0 || tail > 0)) {
    if (head > 0) head--;
    else tail--;
  }
  return { find: old.slice(head, old.length - tail).join(""), replace: now.slice(head, now.length - tail).join("") };
}

/** The old module's own declarations that the function uses. */
function neededLocals(text: string, name: string): readonly Declaration[] {
  const all = declarationsIn(text);
  const found = all.find((declaration) => declaration.name === name);
  const used = namesUsed(text.slice(found?.code ?? 0, found?.end ?? 0));
  return all.filter((declaration) => declaration.name !== name && used.has(declaration.name));
}

function usedBy({ fallback, everything, names }: Import, used: ReadonlySet<string>): boolean {
  const locals = [fallback, everything, ...names.map(({ local }) => local)].filter((name) => name !== null);
  return locals.every((name) => used.has(name));
}

interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** An import in another form; where nothing is left of it, its line goes too. */
function replaced(text: string, { start, end }: Import, left: string): Change {
  return { start, end: left === "" && text[end] === "\n" ? end + 1 : end, text: left };
}

function change(text: string, changes: readonly Change[]): string {
  return changes
    .toSorted((a, b) => b.start - a.start)
    .reduce((now, { start, end, text: put }) => now.slice(0, start) + put + now.slice(end), text);
}

/** Puts imports behind the last one; where there is none, at the top. */
function withImports(text: string, lines: readonly string[]): string {
  const last = importsIn(text).at(-1);
  if (last) return `${text.slice(0, last.end)}\n${lines.join("\n")}${text.slice(last.end)}`.trimEnd() + "\n";
  const rest = text.replace(/^\n+/, "");
  return `${lines.join("\n")}\n${rest === "" ? "" : `\n${rest}`}`;
}

/** What a module's import stands for, as a path of the project; packages stand for themselves. */
function resolved(path: string, from: string): string {
  return from.startsWith(".") ? posix.normalize(posix.join(posix.dirname(path), from)) : from;
}

/** A relative import as it has to read in another module. */
function moved(from: string, oldPath: string, newPath: string): string {
  return from.startsWith(".") ? specifier(newPath, resolved(oldPath, from)) : from;
}

/** How a module imports another one of the project. */
function specifier(path: string, other: string): string {
  const relative = posix.relative(posix.dirname(path), other);
  return relative.startsWith(".") ? relative : `./${relative}`;
}
