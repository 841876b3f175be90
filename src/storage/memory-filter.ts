import type { ListNamespacesOperation, SearchOperation } from "@langchain/langgraph-checkpoint";
import { jsonEqual, isPlainObject } from "../internal/json.ts";

const COMPARISONS: Readonly<Record<string, (value: unknown, wanted: unknown) => boolean>> = {
  $eq: (value, wanted) => jsonEqual(value, wanted),
  $ne: (value, wanted) => !jsonEqual(value, wanted),
  $gt: (value, wanted) => Number(value) > Number(wanted),
  $gte: (value, wanted) => Number(value) >= Number(wanted),
  $lt: (value, wanted) => Number(value) < Number(wanted),
  $lte: (value, wanted) => Number(value) <= Number(wanted),
  $in: (value, wanted) => Array.isArray(wanted) && wanted.some((item) => jsonEqual(value, item)),
  $nin: (value, wanted) => !Array.isArray(wanted) || wanted.every((item) => !jsonEqual(value, item)),
};

/** Whether a value passes a search's filter, as LangGraph describes it. Pure. */
export function passes(value: Readonly<Record<string, unknown>>, filter: SearchOperation["filter"]): boolean {
  return Object.entries(filter ?? {}).every(([key, wanted]) => {
    const found = Object.hasOwn(value, key) ? value[key] : undefined;
    const isComparison =
      isPlainObject(wanted) &&
      Object.keys(wanted).length > 0 &&
      Object.keys(wanted).every((name) => Object.hasOwn(COMPARISONS, name));
    if (!isComparison) return jsonEqual(found, wanted);
    return Object.entries(wanted).every(([name, operand]) => COMPARISONS[name]?.(found, operand) === true);
  });
}

/** Which of these namespaces are asked for, each once and in order. Pure. */
export function namespacesFor(
  operation: ListNamespacesOperation,
  all: readonly (readonly string[])[],
): readonly string[][] {
  const { matchConditions = [], maxDepth, limit, offset } = operation;
  const found = new Map<string, string[]>();
  for (const namespace of all) {
    const fits = matchConditions.every(({ matchType, path }) => {
      const part = matchType === "prefix" ? namespace.slice(0, path.length) : namespace.slice(-path.length);
      return part.length === path.length && path.every((label, index) => label === "*" || label === part[index]);
    });
    const shown = namespace.slice(0, maxDepth);
    if (fits) found.set(JSON.stringify(shown), shown);
  }
  const sorted = [...found.values()].toSorted((a, b) => (a.join(":") < b.join(":") ? -1 : 1));
  return sorted.slice(offset ?? 0, (offset ?? 0) + (limit ?? sorted.length));
}
