import { z } from "zod";
import { digest } from "../internal/digest.ts";
import { shorten } from "../internal/json.ts";

const MAX_LINE = 100_000;
const MAX_ID = 200;

const lineSchema = z.strictObject({
  id: z
    .string()
    .trim()
    .min(1)
    .max(MAX_ID)
    .regex(/^\P{Cc}*$/u, "it has control characters")
    .optional(),
  message: z.string().optional(),
  input: z.record(z.string(), z.unknown()).optional(),
});

/** One task of a batch, as its file gives it. */
export interface BatchLine {
  /** Where it stands in the file, from 1. */
  readonly line: number;
  /** What the file calls it; made from its content where it has no name there. */
  readonly id: string;
  /** The message and the fields that the task is started with. */
  readonly input: Readonly<Record<string, unknown>>;
}

/** A line that is no task. */
export interface BrokenLine {
  readonly line: number;
  readonly reason: string;
}

export interface BatchLines {
  readonly lines: readonly BatchLine[];
  readonly broken: readonly BrokenLine[];
}

/**
 * Reads a file of tasks, one JSON object a line: `{"id": "…", "message": "…", "input": {"field": …}}`, each part
 * optional. Empty lines are skipped. A line that is no task is told with its number and stops no other. Pure.
 */
export function readLines(text: string): BatchLines {
  const lines: BatchLine[] = [];
  const broken: BrokenLine[] = [];
  const taken = new Map<string, number>();
  const seen = new Map<string, number>();
  for (const [index, raw] of text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    if (raw.trim() === "") continue;
    const line = index + 1;
    const read = readLine(raw);
    if ("reason" in read) {
      broken.push({ line, reason: read.reason });
      continue;
    }
    const id = read.id ?? unnamed(read.input, seen);
    const first = taken.get(id);
    if (first === undefined) {
      taken.set(id, line);
      lines.push({ line, id, input: read.input });
    } else {
      broken.push({ line, reason: `line ${first} has the id ${shorten(JSON.stringify(id), 60)} already` });
    }
  }
  return { lines, broken };
}

/**
 * The task's id in the store. The same line of a file of the same name gives the same task, wherever it stands in
 * the file; another content, workflow or view policy gives another one. Pure.
 *
 * @param batch the file's name without folder and ending.
 * @param policy the view policy that the task is run under, where several are compared.
 */
export function batchTaskId(batch: string, workflow: string, { id, input }: BatchLine, policy?: string): string {
  const content = digest({ batch, workflow, id, input, policy }).replaceAll(/[-_]/g, "").slice(0, 8).toLowerCase();
  return [batch, id, ...(policy === undefined ? [] : [policy]), content].join(".");
}

function readLine(
  raw: string,
): (Omit<BatchLine, "line" | "id"> & { readonly id?: string }) | { readonly reason: string } {
  if (raw.length > MAX_LINE) return { reason: `it has ${raw.length} characters; at most ${MAX_LINE} are read` };
  let given: unknown;
  try {
    given = JSON.parse(raw);
  } catch (error) {
    return { reason: `it is not JSON: ${shorten(error instanceof Error ? error.message : String(error), 120)}` };
  }
  const parsed = lineSchema.safeParse(given);
  if (!parsed.success) {
    const said = parsed.error.issues.map(({ path, message }) => [...path, message].join(": ")).join("; ");
    return { reason: `it is no task: ${shorten(said)}; a task is {"id", "message", "input": {fields}}, each optional` };
  }
  const { id, message, input = {} } = parsed.data;
  if (message !== undefined && "message" in input) return { reason: "it has a message twice, once within input" };
  return {
    input: { ...input, ...(message === undefined ? {} : { message }) },
    ...(id === undefined ? {} : { id }),
  };
}

/** A name for a line without one: by its content, and the how manieth of its kind it is. */
function unnamed(input: Readonly<Record<string, unknown>>, seen: Map<string, number>): string {
  const content = digest(input).replaceAll(/[-_]/g, "").slice(0, 6).toLowerCase();
  const count = (seen.get(content) ?? 0) + 1;
  seen.set(content, count);
  return count === 1 ? content : `${content}-${count}`;
}
