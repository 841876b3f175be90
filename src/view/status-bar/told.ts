import type { Observation } from "../../state/execution.ts";
import { attachedLines, statusBar } from "../status-bar.ts";
import type { StatusBarInput } from "./input.ts";

/**
 * An observation with what code tells the model about it. Whoever keeps it so has the same bytes in every later
 * prompt. What it was told before is told anew. Pure.
 */
export function withFacts(input: StatusBarInput & { readonly observation: Observation }): Observation {
  const { observation, options } = input;
  if (!("text" in observation || "results" in observation)) return observation;
  const { attached, bar } = statusBar(input);
  const facts = [...attachedLines(attached), ...(options?.mode === "append" ? bar : [])];
  const { facts: _before, ...bare } = observation;
  return facts.length > 0 ? { ...bare, facts } : bare;
}

/** The bar that ends a prompt: one that is kept with the observation is said again only where it has changed since. Pure. */
export function barAtTheEnd(input: StatusBarInput): readonly string[] {
  const { observation } = input;
  const { bar } = statusBar(input);
  const kept = observation && "facts" in observation ? (observation.facts ?? []) : [];
  return bar.every((line) => kept.includes(line)) ? [] : bar;
}
