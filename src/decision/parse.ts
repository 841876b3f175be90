import { jsonrepair } from "jsonrepair";
import { z } from "zod";
import { isPlainObject, isTooDeep, shorten } from "../internal/json.ts";
import { redact } from "../internal/redact.ts";
import { expectationSchema, type Call } from "../state/execution.ts";
import type { Refusal } from "../state/patch.ts";
import type { Decision } from "../workflow/record.ts";

const text = z.string().nullish();
// Strict output modes write null for what is left out.
const expectationShape = z.strictObject({
  path: text,
  is: expectationSchema.shape.is,
  value: z.union([z.string(), z.number(), z.boolean()]).nullish(),
});
// The patch's values are checked later, after the merge: a partial object is right as a patch.
const decisionShape = z.strictObject({
  reasoning: z.unknown().optional(),
  because: text,
  patch: z.custom<Record<string, unknown>>(isPlainObject, "expected an object").nullish(),
  clear: z.array(z.string()).nullish(),
  next: text,
  calls: z
    .array(
      z.strictObject({
        tool: z.string(),
        args: z.custom<Record<string, unknown>>(isPlainObject, "expected an object"),
        id: text,
        expect: z.array(expectationShape).nullish(),
      }),
    )
    .nullish(),
  ask: text,
  reply: text,
});

export type Parsed =
  | { readonly ok: true; readonly decision: Decision }
  | { readonly ok: false; readonly refusal: Refusal };

/**
 * Reads a model's raw text as a decision. Prose and fences around the JSON, trailing commas, single
 * quotes and comments are repaired. An answer that was cut off is not: closing its brackets would
 * make up the end of a value. Pure.
 *
 * @param raw the text of the answer.
 * @returns the decision without its reasoning, or a refusal that tells the model what to mend.
 */
export function parseDecision(raw: string): Parsed {
  if (raw.trim() === "") return refuse("the answer was empty; answer with one JSON object");
  const value = readObject(raw);
  if (!value.ok) return value;
  return shapeDecision(value.object);
}

/** Checks the shape of a decision that is an object already: a model's, or what a code step returned. Pure. */
export function shapeDecision(value: unknown): Parsed {
  const parsed = decisionShape.safeParse(value);
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => [issue.path.join("."), issue.message].filter(Boolean).join(": "));
    return refuse(`the answer has the wrong shape: ${shorten(redact(issues.join("; ")), 300)}`);
  }
  const { because, patch, clear, next, calls, ask, reply } = parsed.data;
  if (isTooDeep(patch) || calls?.some(({ args }) => isTooDeep(args))) return refuse("its values are nested too deeply");
  return {
    ok: true,
    decision: {
      because: because ?? null,
      patch: patch ?? null,
      clear: clear ?? null,
      next: next || null,
      ...(calls?.length ? { calls: calls.map(plainCall) } : {}),
      ask: ask || null,
      reply: reply || null,
    },
  };
}

type ParsedCall = NonNullable<z.infer<typeof decisionShape>["calls"]>[number];

function plainCall({ tool, args, id, expect }: ParsedCall): Call {
  const expected = (expect ?? []).map(({ path, is, value }) => ({
    ...(path ? { path } : {}),
    is,
    ...(value === null || value === undefined ? {} : { value }),
  }));
  return { tool, args, ...(id ? { id } : {}), ...(expected.length > 0 ? { expect: expected } : {}) };
}

function refuse(reason: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code: "INVALID_DECISION", reason } };
}

const KEYS: ReadonlySet<string> = new Set(Object.keys(decisionShape.shape));
const isDecision = (value: unknown): value is Record<string, unknown> =>
  isPlainObject(value) && Object.keys(value).some((key) => KEYS.has(key));

function readObject(raw: string): { ok: true; object: Record<string, unknown> } | { ok: false; refusal: Refusal } {
  const exact = tryParse(raw);
  if (isPlainObject(exact)) return { ok: true, object: exact };
  // Some models think aloud before they answer.
  const text = raw.replaceAll(/<think>[\s\S]*?<\/think>/g, "");
  const pieces = findObjects(text);
  if (pieces === "cut off") return refuse("the answer was cut off before its JSON object ended; answer again, shorter");
  if (pieces === "unbalanced") return refuse("the brackets of the answer's JSON do not match; answer again");
  // Prose may hold braces of its own, so only what looks like a decision counts; two would be a guess.
  const decisions = pieces.map((piece) => tryParse(piece) ?? tryRepair(piece)).filter(isDecision);
  const [only] = decisions;
  if (decisions.length > 1) return refuse("the answer holds more than one JSON object; answer with exactly one");
  if (only) return { ok: true, object: only };
  const what = pieces.length > 0 ? "is no decision in valid JSON" : "holds no JSON object";
  // In this order: half a secret is not recognised any more.
  return refuse(`the answer ${what}: "${shorten(redact(raw.trim()), 80)}"`);
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function tryRepair(text: string): unknown {
  try {
    return tryParse(jsonrepair(text));
  } catch {
    return undefined;
  }
}

// A string in either quote, a comment, an ellipsis, or a bracket. A single quote opens a string only
// where a value or key can stand; elsewhere it is an apostrophe. (What stands before is looked at for quotes only:
// looked at everywhere, a run of blanks would be read again from each of them.)
const TOKEN =
  /"(?:[^"\\]|\\.)*"?|'(?<=[[{,:]\s*')(?:[^'\\]|\\.)*'?|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\.\.\.|…|[{}[\]]/gs;

/**
 * Cuts the outermost JSON objects out of a text. An ellipsis in one stands for something left out, so
 * such a piece is no JSON.
 */
function findObjects(text: string): readonly string[] | "cut off" | "unbalanced" {
  const pieces: string[] = [];
  let end = 0;
  for (let start = text.indexOf("{"); start >= 0; start = text.indexOf("{", end)) {
    // A closing bracket between objects belongs to none: the one before ended too early.
    if (pieces.length > 0 && /[}]/.test(text.slice(end, start))) return "unbalanced";
    const found = objectAt(text, start);
    if (!found) return "cut off";
    end = found.end;
    pieces.push(found.elided ? "" : text.slice(start, end));
  }
  return pieces.length > 0 && text.includes("}", end) ? "unbalanced" : pieces;
}

function objectAt(text: string, start: number): { end: number; elided: boolean } | null {
  let depth = 0;
  let elided = false;
  TOKEN.lastIndex = start;
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const [token] = match;
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (token === "..." || token === "…") elided = true;
    if (depth === 0) return { end: TOKEN.lastIndex, elided };
  }
  return null;
}
