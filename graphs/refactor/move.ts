import { posix } from "node:path";
import { exportListsIn, importsIn, unclearImports, writeImport, type Import } from "./imports.ts";
import { firstLine, mask, namesIn, NO_MEMBER } from "./mask.ts";
import { declarationsIn, isBalanced, sets, unclearNames, type Declaration } from "./source.ts";

/** A function that moves from one module into a new one; paths are relative to the project. */
export interface Move {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** True where somebody may use the function through the old module in a way that names cannot tell. */
  readonly reexport: boolean;
}

/** The function's declaration in the old module; null where it cannot be moved as it is. Pure. */
export function movable(text: string, name: string): Declaration | null {
  return whyNot(text, name) === null
    ? (declarationsIn(text).find((declaration) => declaration.name === name) ?? null)
    : null;
}

/** Why a function cannot be moved as it is; null where it can. Pure. */
export function whyNot(text: string, name: string): string | null {
  const masked = mask(text);
  const [found, ...others] = declarationsIn(text).filter((declaration) => declaration.name === name);
  if (!isBalanced(masked)) return "the module cannot be read: its brackets do not match";
  if (!found || found.signature === "") return `${name} is no function there, or a default export`;
  const code = masked.slice(found.code, found.end);
  const rest = masked.slice(0, found.code) + masked.slice(found.end);
  const listed = exportListsIn(text);
  const [used, needed] = [namesIn(code), neededLocals(text, name)];
  const unclear = [...unclearNames(text), ...unclearImports(text)].find((each) => used.has(each));
  const isSet = needed.find((local) => sets(code, local.name));
  const taken = needed.find((local) => exportedAs(text, local) === null && exportedNames(text).has(local.name));
  if (others.length > 0 || unclearNames(masked.slice(found.code, found.end)).size > 0)
    return `${name} is declared together with something else, or twice`;
  if (listed.some((each) => each.imported === name || each.local === name)) return `${name} is exported in a list`;
  if (IS_COMMON.test(masked)) return "the module exports by module.exports";
  if (KNOWS_PLACE.test(code)) return `${name} uses import.meta or the file's name, which would be another one`;
  if (sets(rest, name)) return `its module sets ${name} to something else`;
  if (isSet) return `it sets ${isSet.name}, a variable of its module`;
  if (unclear !== undefined) return `it uses ${unclear}, and how that is declared or imported is more than I can read`;
  if (taken) return `it uses ${taken.name}, and the module exports something else by that name`;
  if (loads(text, found).some(({ from }) => from === null))
    return `${name} imports a module whose name is made up as it runs`;
  if (found.isArrow && needed.length > 0 && runsAtOnce(text, name))
    return `its module uses ${name} while it is loaded, and ${name} uses ${needed[0]?.name} of its module`;
  return null;
}

const IS_COMMON = /(?<![.\w$])(?:module\s*\.\s*exports\b|exports\s*[.[=])/;
const KNOWS_PLACE = /(?<![.\w$])(?:import\s*\.\s*meta|__dirname|__filename)\b/;

/** The new module: the function as it was, exported, with the imports that it needs. Pure. */
export function newModule(text: string, move: Move): string | null {
  const found = movable(text, move.name);
  if (!found) return null;
  const used = namesIn(mask(text).slice(found.code, found.end));
  const fromOthers = importsIn(text).flatMap((one) => {
    const needed = { ...only(one, (local) => used.has(local)), from: moved(one.from, move) };
    return one.kind === "export" ? [] : writeImport(needed) || [];
  });
  const names = neededLocals(text, move.name).map((local) => ({
    imported: exportedAs(text, local) ?? local.name,
    local: local.name,
  }));
  const fromOld = writeImport({ ...plainLink(text), names, from: specifier(move.to, move.from) });
  const head = [...fromOthers, ...(fromOld ? [fromOld] : [])];
  const code = change(
    text.slice(found.code, found.end),
    loads(text, found).map(({ start, end, from }) => ({ start, end, text: moved(from ?? "", move) })),
  );
  const newLine = lineEnd(text);
  const body = `${text.slice(found.start, found.code)}export ${code.replace(/^export\s+/, "")}${newLine}`;
  return head.length > 0 ? `${head.join(newLine)}${newLine}${newLine}${body}` : body;
}

/** The old module without the function: it imports what it still uses, and exports what the function needs. Pure. */
export function oldModule(text: string, move: Move): string | null {
  const found = movable(text, move.name);
  if (!found) return null;
  const inserts = neededLocals(text, move.name)
    .filter((local) => exportedAs(text, local) === null)
    .map(({ code }) => ({ start: code, end: code, text: "export " }));
  const after = /^[^\S\n]*(?:\r?\n)*/.exec(text.slice(found.end))?.[0].length ?? 0;
  const without = change(text, [...inserts, { start: found.start, end: found.end + after, text: "" }]);
  const imports = importsIn(without);
  const rest = change(
    mask(without),
    imports.map(({ start, end }) => ({ start, end, text: "" })),
  );
  const [left, moving] = [namesIn(rest), namesIn(mask(text).slice(found.code, found.end))];
  const stays = (local: string) => left.has(local) || !moving.has(local);
  const mended = imports.flatMap((one) => {
    if (one.kind === "export" || localsOf(one).every(stays)) return [];
    return [replaced(without, one, writeImport(only(one, stays)))];
  });
  const link = {
    ...plainLink(text),
    from: specifier(move.from, move.to),
    names: [{ imported: move.name, local: move.name }],
  };
  const added = [
    ...(left.has(move.name) ? [writeImport(link)] : []),
    ...(move.reexport ? [writeImport({ ...link, kind: "export" })] : []),
  ];
  return withImports(change(without, mended), added, lineEnd(text));
}

/** Another module, with the function from its new place; null where it does not take it from the old one. Pure. */
export function otherModule(text: string, path: string, move: Move): string | null {
  const changes = importsIn(text).flatMap((one) => {
    if (resolved(path, one.from) !== move.from) return [];
    const taken = one.names.filter(({ imported }) => imported === move.name);
    if (taken.length === 0) return [];
    const left = writeImport({ ...one, names: one.names.filter(({ imported }) => imported !== move.name) });
    const link = { ...one, fallback: null, everything: null, from: specifier(path, move.to), names: taken };
    return [{ start: one.start, end: one.end, text: [left, writeImport(link)].filter(Boolean).join(lineEnd(text)) }];
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
  const used = namesIn(mask(text).slice(found?.code ?? 0, found?.end ?? 0));
  return all.filter((declaration) => declaration.name !== name && used.has(declaration.name));
}

/** By which name a module exports a declaration of its own; null where it does not. */
function exportedAs(text: string, { name, isExported }: Declaration): string | null {
  if (isExported) return name;
  const listed = exportListsIn(text).filter(({ imported }) => imported === name);
  return (listed.find(({ local }) => local === name) ?? listed[0])?.local ?? null;
}

/** The names by which a module exports something in lists. */
function exportedNames(text: string): ReadonlySet<string> {
  const reexports = importsIn(text).filter(({ kind }) => kind === "export");
  return new Set([...exportListsIn(text), ...reexports.flatMap(({ names }) => names)].map(({ local }) => local));
}

/** Whether what a module does while it is loaded, beside declaring functions, names a function. */
function runsAtOnce(text: string, name: string): boolean {
  const functions = declarationsIn(text).filter(({ signature }) => signature !== "");
  const masked = mask(text);
  return namesIn(
    change(
      masked,
      functions.map(({ code, end }) => ({ start: code, end, text: "" })),
    ),
  ).has(name);
}

/** A module that a function loads as it runs; its place is counted from the function's beginning. */
interface Load {
  readonly start: number;
  readonly end: number;
  /** Null where it is no plain text. */
  readonly from: string | null;
}

/** The modules that a function loads by `import(…)`, or by `require(…)` unless the module has made that itself. */
function loads(text: string, found: Declaration): readonly Load[] {
  const code = text.slice(found.code, found.end);
  const isOwn =
    importsIn(text).some((one) => localsOf(one).includes("require")) ||
    neededLocals(text, found.name).some(({ name }) => name === "require");
  const calls = new RegExp(
    String.raw`${NO_MEMBER}(?:import${isOwn ? "" : String.raw`|require(?:\s*\.\s*resolve)?`})\s*\(\s*`,
    "gu",
  );
  return [...mask(text).slice(found.code, found.end).matchAll(calls)].map(({ index }) => {
    const open = code.indexOf("(", index) + 1;
    const [head, space = "", , from] = /^(\s*)(["'])([^"'\\\n]*)\2\s*[),]/.exec(code.slice(open)) ?? [];
    const start = open + space.length + 1;
    return head === undefined || from === undefined
      ? { start: open, end: open, from: null }
      : { start, end: start + from.length, from };
  });
}

/** An import with those of its names only that a test takes. */
function only(one: Import, isTaken: (local: string) => boolean): Import {
  return {
    ...one,
    fallback: one.fallback !== null && isTaken(one.fallback) ? one.fallback : null,
    everything: one.everything !== null && isTaken(one.everything) ? one.everything : null,
    names: one.names.filter(({ local }) => isTaken(local)),
  };
}

function localsOf({ fallback, everything, names }: Import): readonly string[] {
  return [fallback, everything, ...names.map(({ local }) => local)].filter((name) => name !== null);
}

/** An import as a module writes its own. */
function plainLink(text: string) {
  const quote = importsIn(text)[0]?.quote ?? '"';
  const tail = /;\s*$/m.test(mask(text)) ? ";" : "";
  return { kind: "import", quote, tail, fallback: null, everything: null } as const;
}

function lineEnd(text: string): string {
  return /\r?\n/.exec(text)?.[0] ?? "\n";
}

interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** An import in another form; where nothing is left of it, its line goes too. */
function replaced(text: string, { start, end }: Import, left: string): Change {
  const rest = left === "" ? (/^[^\S\n]*\n/.exec(text.slice(end))?.[0].length ?? 0) : 0;
  return { start, end: end + rest, text: left };
}

function change(text: string, changes: readonly Change[]): string {
  return changes
    .toSorted((a, b) => b.start - a.start)
    .reduce((now, { start, end, text: put }) => now.slice(0, start) + put + now.slice(end), text);
}

/** Puts imports behind the last one; where there is none, at the top. The text ends with one line end. */
function withImports(text: string, lines: readonly string[], newLine: string): string {
  const [all, top] = [lines.join(newLine), firstLine(text)];
  const last = importsIn(text).at(-1);
  const rest = text.slice(top).replace(/^(?:\r?\n)+/, "");
  const whole =
    lines.length === 0
      ? text
      : last
        ? `${text.slice(0, last.end)}${newLine}${all}${text.slice(last.end)}`
        : `${text.slice(0, top)}${all}${newLine}${rest === "" ? "" : newLine + rest}`;
  return whole.trimEnd() + newLine;
}

/** What a module's import stands for, as a path of the project; packages stand for themselves. */
function resolved(path: string, from: string): string {
  return from.startsWith(".") ? posix.normalize(posix.join(posix.dirname(path), from)) : from;
}

/** A relative import as it has to read in the new module. */
function moved(from: string, move: Move): string {
  return from.startsWith(".") ? specifier(move.to, resolved(move.from, from)) : from;
}

/** How a module imports another one of the project. */
function specifier(path: string, other: string): string {
  const relative = posix.relative(posix.dirname(path), other);
  return relative.startsWith(".") ? relative : `./${relative}`;
}
