import { createHash } from "node:crypto";
import { z } from "zod";
import { jsonBytes } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import type { CallResult } from "../state/execution.ts";
import type { Artifact, ArtifactReader } from "../workflow/artifact.ts";
import { defineTool } from "../workflow/tool.ts";
import { count, linesOf, pieceEnd, readSlice, searchIn, wholeCharacter } from "./artifact-text.ts";
import type { NewArtifact } from "./journal.ts";

/** Values up to here, in bytes of JSON, are kept with their result only. */
const SMALL_BYTES = 4096;
/** Values up to here are in the result as well as aside; larger ones are shown as a preview. */
const SHOWN_BYTES = 16_384;
const MAX_ARTIFACT_BYTES = 50_000_000;
// What a preview shows of the beginning and the end. Writing that takes several bytes a character costs more
// tokens a character too, so there is less of it.
const HEAD = { characters: 1500, bytes: 2000 };
const TAIL = { characters: 500, bytes: 700 };
/** How many artifacts a message lists. */
const LISTED = 20;

/** What stands for a value that is too large to be shown. */
export interface Preview {
  readonly preview: string;
  /** The id under which the whole is kept. */
  readonly artifact: string;
  readonly bytes: number;
  readonly lines: number;
}

/**
 * Sets a large value of a call aside: it is kept whole as an artifact, and the result names it. Where it is
 * very large, a preview takes its place. Secrets are taken out first, since half of one would not be
 * recognised any more. A result whose value has been set aside stays as it is. Pure.
 *
 * @param key the call's key in the journal. The artifact's id is this key and the first 8 digits of the
 *   text's SHA-256, so that branches of a task that got different values keep both.
 */
export function setAside(
  key: string,
  result: CallResult,
): { readonly result: CallResult; readonly artifact: NewArtifact | null } {
  if (result.artifact !== undefined || jsonBytes(result.value) <= SMALL_BYTES) return { result, artifact: null };
  const value = redactDeep(result.value);
  const { text, isCut } = bounded(typeof value === "string" ? value : JSON.stringify(value, null, 1));
  // What was cut is no JSON any more, and whoever needs the value must not fail at reading it.
  const kind = typeof value === "string" || isCut ? "text" : "json";
  const id = `${key}-${createHash("sha256").update(text).digest("hex").slice(0, 8)}`;
  const artifact: NewArtifact = { id, tool: result.tool, kind, text, bytes: Buffer.byteLength(text) };
  const shown = jsonBytes(value) <= SHOWN_BYTES ? value : previewOf(artifact);
  return { result: { ...result, value: shown, artifact: id }, artifact };
}

/** The text as it can be stored: well-formed, and cut where it is too long. */
function bounded(text: string): { readonly text: string; readonly isCut: boolean } {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_ARTIFACT_BYTES) return { text: bytes.toString(), isCut: false };
  let end = MAX_ARTIFACT_BYTES - 100;
  // Not within the bytes of one character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  const note = `\n… cut here: ${count(bytes.length - end)} more bytes were not kept\n`;
  return { text: bytes.toString("utf8", 0, end) + note, isCut: true };
}

function previewOf({ id, text, bytes }: NewArtifact): Preview {
  const head = headOf(text);
  const tail = tailOf(text);
  const leftOut = text.length - head.length - tail.length;
  return {
    preview: `${head}\n… ${count(leftOut)} characters left out …\n${tail}`,
    artifact: id,
    bytes,
    lines: linesOf(text).length,
  };
}

/** The beginning; to a line's end, if one is in its second half. */
function headOf(text: string): string {
  const first = text.slice(0, wholeCharacter(text, HEAD.characters));
  const whole = text.slice(0, pieceEnd(first, 0, HEAD.bytes));
  const lineEnd = whole.lastIndexOf("\n");
  return lineEnd >= whole.length / 2 ? whole.slice(0, lineEnd) : whole;
}

/** The end; from a line's beginning on, if one is in its first half. */
function tailOf(text: string): string {
  const last = text.slice(-TAIL.characters);
  const share = Math.min(1, TAIL.bytes / jsonBytes(last));
  const whole = text.slice(wholeCharacter(text, text.length - Math.floor(last.length * share)));
  const lineEnd = whole.indexOf("\n");
  return lineEnd >= 0 && lineEnd < whole.length / 2 ? whole.slice(lineEnd + 1) : whole;
}

const id = z.string().min(1).describe('The artifact\'s id, as the result names it, such as "12.0-3fa9c1d2"');
const from = z.number().int().min(1).optional();
const character = z.number().int().min(0).optional();

const readArtifact = defineTool({
  description:
    "Reads on in a large result that is shown as a preview or named as an artifact. Gives numbered lines, about 3,500 characters at a time, and says where to go on. To find something, search first.",
  effect: "read",
  readsArtifacts: true,
  parameters: z.object({
    id,
    from: from.describe("The line to begin with; 1 unless given"),
    lines: z.number().int().min(1).optional().describe("The most lines to read; as many as fit unless given"),
    character: character.describe("Where in the first line to begin, to go on within a very long line; 0 unless given"),
  }),
  run: async ({ id, ...where }, { artifacts }) => readSlice(await find(artifacts, id), where).text,
});

const searchArtifact = defineTool({
  description:
    "Finds a text in a large result that is shown as a preview or named as an artifact. Gives the lines where it occurs, with their numbers, to read on from there.",
  effect: "read",
  readsArtifacts: true,
  parameters: z.object({
    id,
    text: z
      .string()
      .min(1)
      .max(200)
      .describe('What to look for, literally and within one line; quotes inside a JSON text are written as \\"'),
    ignoreCase: z.boolean().optional().describe("True to take capital and small letters as the same"),
    from: from.describe("The line to begin with; 1 unless given"),
    character: character.describe("Where in the first line to begin, to go on after an earlier search; 0 unless given"),
    max: z.number().int().min(1).optional().describe("The most places to show; 20 unless given"),
  }),
  run: async ({ id, ...search }, { artifacts }) => searchIn(await find(artifacts, id), search).text,
});

/**
 * Tools with which the model reads and searches large results that were set aside. List them in the steps
 * that may need it.
 *
 * @example
 * defineWorkflow({ tools: { search, ...artifactTools }, steps: { reading: { tools: ["search", "readArtifact"], … } } })
 */
export const artifactTools = { readArtifact, searchArtifact };

async function find(artifacts: ArtifactReader, id: string): Promise<Artifact> {
  const artifact = await artifacts.read(id);
  if (artifact) return artifact;
  const known = await artifacts.list();
  const named = known.slice(-LISTED).map((one) => `${one.id} (${one.tool}, ${count(one.bytes)} bytes)`);
  const which = known.length > LISTED ? `the latest ${LISTED} of ${count(known.length)} are` : "there are";
  throw new Error(
    known.length === 0
      ? `there is no artifact "${id}": no result of this task was set aside`
      : `there is no artifact "${id}"; ${which}: ${named.join(", ")}`,
  );
}
