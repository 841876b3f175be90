import { WorkflowError } from "../../errors.ts";
import type { Limit } from "./slots.ts";

/** A limit as it is written in one word. */
export interface ReadLimit {
  /** A graph, or a tenant. */
  readonly kind: "graph" | "tenant";
  readonly name: string;
  readonly limit: Limit;
}

const UNIT_MS = { s: 1000, min: 60_000, h: 3_600_000 } as const;

/**
 * Reads `NAME=10`, `NAME=100/min` or `NAME=10,100/min`: how many tasks of a graph, or of a tenant
 * (`@NAME`), run at once, and how many runs begin in a second (`s`), minute or hour (`h`). Pure.
 *
 * @throws USAGE.
 */
export function readLimit(text: string): ReadLimit {
  const [, mark, name, rest = ""] = /^(@?)([^@=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined) throw wrong(text);
  let concurrency: number | null = null;
  let rate: Limit["rate"] = null;
  for (const part of rest.split(",")) {
    const [, count, unit] = /^([1-9]\d{0,5})(?:\/(s|min|h))?$/.exec(part.trim()) ?? [];
    if (count === undefined) throw wrong(text);
    if (unit === undefined) concurrency = Number(count);
    else rate = { max: Number(count), perMs: UNIT_MS[unit as keyof typeof UNIT_MS] };
  }
  return { kind: mark === "@" ? "tenant" : "graph", name, limit: { concurrency, rate } };
}

function wrong(text: string): WorkflowError {
  const how = "write GRAPH=10 (at once), GRAPH=100/min (begun in a s, min or h) or GRAPH=10,100/min";
  return new WorkflowError("USAGE", `--limit ${text}: ${how}; for a tenant, @NAME=…`);
}
