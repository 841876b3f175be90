import type { CallResult } from "statecard";
import { z } from "zod";

export const MAX_FINDINGS = 150;

/** What is looked at: source that the rules can read. */
const SOURCE = /\.[cm]?[jt]sx?$/;

export const fileSchema = z.object({ path: z.string().max(400), status: z.enum(["open", "read", "unreadable"]) });
export type ReviewFile = z.infer<typeof fileSchema>;

/** The piece of a file that is looked at, as the state has it. */
export interface Reading {
  readonly file: string | null;
  /** The line that it begins with. */
  readonly from: number | null;
  readonly source: string | null;
}

export const findingSchema = z.object({
  file: z.string().max(400),
  line: z.number().int().min(1),
  rule: z.string().max(60),
  why: z.string().max(200),
  /** The line as it stands in the file, its beginning where it is long. */
  quote: z.string().max(120),
});
export type Finding = z.infer<typeof findingSchema>;

const listed = z.object({ files: z.array(z.string()) });
const piece = z.object({ path: z.string(), text: z.string(), lines: z.number(), goOnFrom: z.number().optional() });

/** Every line of a text, with its end. */
export function linesOf(text: string): readonly string[] {
  return text.split(/(?<=\n)/);
}

/** A line as a finding quotes it. */
export function quoteOf(line: string): string {
  return line.trim().slice(0, 120);
}

export function keepList(result: CallResult): { files?: ReviewFile[] } {
  const value = result.status === "ok" ? listed.safeParse(result.value).data : undefined;
  if (!value) return {};
  return { files: value.files.filter((path) => SOURCE.test(path)).map((path) => ({ path, status: "open" })) };
}

/** The piece that was read, and which files have been read to their end. */
export function keepPiece(result: CallResult, state: { readonly files: readonly ReviewFile[] | null }) {
  const files = [...(state.files ?? [])];
  const mark = (marked: string | undefined, status: ReviewFile["status"]) =>
    files.map((file) => (file.path === marked ? { ...file, status } : file));
  const value = result.status === "ok" ? piece.safeParse(result.value).data : undefined;
  // Files are read in their order: what failed is the first that is open. It holds up nothing.
  if (!value) return { files: mark(files.find(({ status }) => status === "open")?.path, "unreadable") };
  const { path, text, lines, goOnFrom } = value;
  return {
    file: path,
    from: (goOnFrom ?? lines + 1) - linesOf(text).length,
    source: text,
    // Null would leave what was there.
    goOnFrom: goOnFrom ?? 0,
    files: goOnFrom === undefined ? mark(path, "read") : files,
  };
}
