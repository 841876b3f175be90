import { isPlainObject, jsonEqual } from "../internal/json.ts";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { estimateTokens } from "./tokens.ts";

/** A text or number this short is restated whenever it has changed. */
const SHORT = 30;
/** Shorter texts occur everywhere, so that finding one proves nothing. */
const TELLING = 3;

/** What has become of the fields since a snapshot. */
export interface Changes {
  /** What has to be restated: short fields, and of longer ones what cannot be read above. */
  readonly restated: State;
  /** Of these only a part is restated. */
  readonly inPart: readonly string[];
  /** What the snapshot shows and the state has no more, in words. */
  readonly gone: readonly string[];
}

/**
 * Compares a state with the one that a prompt has shown. What has changed since mostly stands in the
 * decisions and results that follow the snapshot; to say it again would cost more than it helps. Pure.
 *
 * @param above the text of the prompt since the snapshot.
 */
export function changesSince(workflow: AnyWorkflow, before: State, after: State, above: string): Changes {
  const restated: Record<string, unknown> = {};
  const inPart: string[] = [];
  const gone: string[] = [];
  for (const name of Object.keys(workflow.state)) {
    const [old, value] = [before[name] ?? null, after[name] ?? null];
    if (jsonEqual(old, value)) continue;
    const found = value === null || isShort(value) ? { unseen: value, gone: [] } : compare(value, old, above, false);
    if (found.unseen !== undefined) {
      restated[name] = found.unseen;
      if (!jsonEqual(found.unseen, value)) inPart.push(name);
    }
    if (!jsonEqual(found.unseen, value)) gone.push(...found.gone.map((what) => `${name}${what}`));
  }
  return { restated, inPart, gone };
}

function isShort(value: unknown): boolean {
  return typeof value !== "object" && estimateTokens(JSON.stringify(value)) <= SHORT;
}

interface Compared {
  /** What is new and does not stand in the text; undefined where there is nothing. */
  readonly unseen: unknown;
  /** What is there no more, each as the rest of a sentence that begins with the field's name. */
  readonly gone: readonly string[];
}
const NOTHING_NEW: Compared = { unseen: undefined, gone: [] };

/** @param isOwnerTold whether the object that the value is part of stands in the text as far as that can be told. */
function compare(value: unknown, old: unknown, above: string, isOwnerTold: boolean): Compared {
  if (jsonEqual(value, old)) return NOTHING_NEW;
  if (Array.isArray(value)) return compareLists(value, Array.isArray(old) ? old : [], above, isOwnerTold);
  if (isPlainObject(value)) return compareObjects(value, isPlainObject(old) ? old : {}, above, isOwnerTold);
  const isSeen = isTelling(value) ? isTold(value, above) : isOwnerTold;
  return { unseen: isSeen ? undefined : value, gone: [] };
}

/** A list that has lost items at its beginning and won some at its end; any other change makes it a new one. */
function compareLists(
  list: readonly unknown[],
  old: readonly unknown[],
  above: string,
  isOwnerTold: boolean,
): Compared {
  let lost = 0;
  const isEnd = (from: number) => old.slice(from).every((item, index) => jsonEqual(item, list[index]));
  while (!isEnd(lost)) lost++;
  if (lost === old.length && old.length > 0) return { unseen: list, gone: [] };
  const unseen = list
    .slice(old.length - lost)
    .filter((item) => compare(item, undefined, above, isOwnerTold).unseen !== undefined);
  const gone = lost > 0 ? [`: the first ${lost} above are no longer in it`] : [];
  return { unseen: unseen.length > 0 ? unseen : undefined, gone };
}

type Members = Readonly<Record<string, unknown>>;

function compareObjects(object: Members, old: Members, above: string, isOwnerTold: boolean): Compared {
  const changed = Object.entries(object).filter(([key, item]) => !jsonEqual(item, old[key]));
  const telling = changed.filter(([, item]) => isTelling(item));
  // Short values are believed to stand above where the longer ones of the same object do.
  const isSeen = telling.length > 0 ? telling.every(([, item]) => isTold(item, above)) : isOwnerTold;
  const unseen: [string, unknown][] = [];
  const gone = Object.keys(old)
    .filter((key) => !Object.hasOwn(object, key))
    .map((key) => `.${key} is no longer there`);
  for (const [key, item] of changed) {
    const isPlain = typeof item !== "object" || item === null;
    const part = isPlain ? { unseen: isSeen ? undefined : item, gone: [] } : compare(item, old[key], above, isSeen);
    if (part.unseen !== undefined) unseen.push([key, part.unseen]);
    gone.push(...part.gone.map((what) => `.${key}${what}`));
  }
  return { unseen: unseen.length > 0 ? Object.fromEntries(unseen) : undefined, gone };
}

function isTelling(value: unknown): boolean {
  return (typeof value === "string" || typeof value === "number") && String(value).length >= TELLING;
}

/** Whether a value stands in the text, as it is or as JSON writes it. */
function isTold(value: unknown, above: string): boolean {
  if (!isTelling(value)) return false;
  const text = String(value);
  return above.includes(text) || above.includes(JSON.stringify(text).slice(1, -1));
}
