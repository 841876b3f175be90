import { inspect } from "node:util";
import { shorten } from "../internal/json.ts";
import { redact } from "../internal/redact.ts";
import type { CallResult } from "../state/execution.ts";

const MAX_ERROR_CHARACTERS = 2000;
const MAX_TYPE_CHARACTERS = 80;

/** What a `ToolError` says beside its message. */
export interface ToolErrorOptions {
  /** The kind of error, a word that does not change with the case: `NOT_FOUND`. */
  readonly type: string;
  /** What the model should try instead. */
  readonly hint?: string;
  /** Whether the same call may succeed in a moment. Where it is set, the tool's rule of retries is not asked. */
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/**
 * An error that a tool's body raises on purpose. The model is told its kind, its message and what to try,
 * so that it can mend the call. Any other exception is told too, by its `code` or its name.
 *
 * @example
 * throw new ToolError(`there is no file ${path}`, { type: "NOT_FOUND", hint: "list the directory first" });
 */
export class ToolError extends Error {
  readonly type: string;
  readonly hint: string | null;
  readonly retryable: boolean | null;

  constructor(message: string, options: ToolErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ToolError";
    this.type = options.type;
    this.hint = options.hint ?? null;
    this.retryable = options.retryable ?? null;
  }
}

/** Works across two copies of the package, where `instanceof` does not. */
function isToolError(error: unknown): error is ToolError {
  return error instanceof Error && error.name === "ToolError" && "type" in error && typeof error.type === "string";
}

/** What a result says about an exception: its kind, its message, and what to try. */
export function explainError(error: unknown): Pick<CallResult, "error" | "errorType" | "hint"> {
  try {
    const type = kindsOf(error)[0];
    const hint = isToolError(error) ? error.hint : null;
    return {
      error: clean((error instanceof Error ? error.message : String(error)) || "no reason was given"),
      ...(type ? { errorType: clean(type, MAX_TYPE_CHARACTERS) } : {}),
      ...(hint ? { hint: clean(hint) } : {}),
    };
  } catch {
    // Whoever throws an object whose own parts throw still gets an answer.
    return { error: clean(shown(error)) };
  }
}

function shown(error: unknown): string {
  try {
    return inspect(error, { depth: 1 });
  } catch {
    return "what it threw cannot be shown";
  }
}

/** The words that an exception goes by, the most telling first. */
export function kindsOf(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return [];
  const words = [isToolError(error) ? error.type : null, "code" in error ? error.code : null, error.name];
  return words.filter((word): word is string => typeof word === "string" && word !== "");
}

/** What a `ToolError` says about another try; null where nobody has said anything. */
export function saysRetryable(error: unknown): boolean | null {
  return isToolError(error) ? error.retryable : null;
}

/** Takes secrets out and cuts. In this order: half a secret is not recognised any more. */
export function clean(text: string, length = MAX_ERROR_CHARACTERS): string {
  return shorten(redact(text), length);
}
