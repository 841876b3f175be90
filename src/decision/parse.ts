import { jsonrepair } from "jsonrepair";
import { z } from "zod";
import { isPlainObject, shorten } from "../internal/json.ts";
import type { Refusal } from "../state/patch.ts";
import type { Decision } from "../workflow/advance.ts";

const text = z.string().nullish();
// The patch's values are checked later, after the merge: a partial object is right as a patch.
const decisionShape = z.strictObject({
  reasoning: z.unknown().optional(),
  because: text,
  patch: z.record(z.string(), z.unknown()).nullish(),
  clear: z.array(z.string()).nullish(),
  next: text,
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
  const parsed = decisionShape.safeParse(value.object);
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => [issue.path.join("."), issue.message].filter(Boolean).join(": "));
    return refuse(`the answer has the wrong shape: ${shorten(issues.join("; "), 300)}`);
  }
  const { because, patch, clear, next, ask, reply } = parsed.data;
  return {
    ok: true,
    decision: {
      because: because ?? null,
      patch: patch ?? null,
      clear: clear ?? null,
      next: next || null,
      ask: ask || null,
      reply: reply || null,
    },
  };
}

function refuse(reason: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code: "INVALID_DECISION", reason } };
}

const KEYS: ReadonlySet<string> = new Set(Object.keys(decisionShape.shape));
const MAX_CANDIDATES = 8;

function readObject(raw: string): { ok: true; object: Record<string, unknown> } | { ok: false; refusal: Refusal } {
  const exact = tryParse(raw);
  if (isPlainObject(exact)) return { ok: true, object: exact };
  let start = raw.indexOf("{");
  if (start < 0) return refuse(`the answer holds no JSON object: "${shorten(raw.trim(), 80)}"`);
  // Prose in front may hold braces of its own, so the first object that looks like a decision counts.
  for (let candidate = 0; start >= 0 && candidate < MAX_CANDIDATES; candidate++) {
    const end = objectEnd(raw, start);
    if (end === null) return refuse("the answer was cut off before its JSON object ended; answer again, shorter");
    const piece = raw.slice(start, end);
    const inner = tryParse(piece) ?? tryRepair(piece);
    if (isPlainObject(inner) && Object.keys(inner).some((key) => KEYS.has(key))) return { ok: true, object: inner };
    start = raw.indexOf("{", end);
  }
  return refuse(`the answer is no decision in valid JSON: "${shorten(raw.trim(), 80)}"`);
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

/** Where the object that starts at `start` ends; null where it does not. Strings may use either quote. */
function objectEnd(raw: string, start: number): number | null {
  let depth = 0;
  let quote = "";
  for (let at = start; at < raw.length; at++) {
    const character = raw.charAt(at);
    if (quote) {
      if (character === "\\") at++;
      else if (character === quote) quote = "";
    } else if (character === '"' || (character === "'" && /[[{,:]\s*$/.test(raw.slice(Math.max(0, at - 20), at)))) {
      quote = character;
    } else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return null;
}
