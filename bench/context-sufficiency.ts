import type { Prompt } from "../src/view/cost.ts";
import type { ModelCall } from "./context-replay.ts";
import type { ContextSet } from "./context-workflows.ts";

/** How many of the values that the recorded calls used could be seen in the prompt before. */
export interface Sufficiency {
  values: number;
  seen: number;
  calls: number;
  toolsSeen: number;
  /** Values that were not seen, by tool and key. */
  readonly misses: Map<string, number>;
}

export function nothingSeen(): Sufficiency {
  return { values: 0, seen: 0, calls: 0, toolsSeen: 0, misses: new Map() };
}

/** Looks for what a recorded call used in the prompt that a policy would have shown before it. */
export function look(set: ContextSet, call: ModelCall, prompt: Prompt, sum: Sufficiency): void {
  if (call.calls.length === 0) return;
  // The schema names all tools, whatever the prompt tells of them.
  const text = prompt.flatMap((part) => (part.role === "schema" ? [] : [part.text])).join("\n");
  for (const { name, args } of call.calls) {
    sum.calls++;
    if (text.includes(name) || text.includes(name.replaceAll(".", "_"))) sum.toolsSeen++;
    for (const { key, value } of set.valuesOf(args)) {
      sum.values++;
      if (isVisible(text, value)) sum.seen++;
      else sum.misses.set(`${name}.${key}`, (sum.misses.get(`${name}.${key}`) ?? 0) + 1);
    }
  }
}

/** At token boundaries; a text inside JSON may have escapes. */
function isVisible(text: string, value: string): boolean {
  return occurs(text, value) || occurs(text, JSON.stringify(value).slice(1, -1));
}

function occurs(text: string, value: string): boolean {
  if (value === "") return true;
  const isWord = /[\p{L}\p{N}_]/u;
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
    const before = isWord.test(value[0] ?? "") && isWord.test(text[at - 1] ?? "");
    const after = isWord.test(value.at(-1) ?? "") && isWord.test(text[at + value.length] ?? "");
    if (!before && !after) return true;
  }
  return false;
}
