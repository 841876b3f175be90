import { CommanderError } from "commander";
import { isWorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { EXIT, exitCodeOf, exitWith } from "./exit.ts";
import { howToResume } from "./hints.ts";
import { Interrupted } from "./interruptible.ts";
import { sameTask, type CommonOptions } from "./options.ts";
import { detectTerminal, printableLines } from "./terminal.ts";

/**
 * Prints an error for a person or, as JSON, for a program, and with it how to go on.
 *
 * @returns the exit code.
 */
export function reportError(error: unknown, json: boolean, options: CommonOptions): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok;
    if (json) printJson({ code: "USAGE", message: error.message.replace(/^error: /, ""), details: {} });
    return EXIT.usage;
  }
  const known = describeError(error);
  if (json) printJson(known);
  else process.stderr.write(`${printableLines(`${known.code}: ${known.message}`)}${howToGoOn(known, options)}\n`);
  // A step that ignores the abort would hold the process, and its task is free for others now.
  return known.code === "INTERRUPTED" ? exitWith(EXIT.interrupted) : exitCodeOf(error);
}

interface DescribedError {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

function printJson(error: DescribedError): void {
  process.stdout.write(`${JSON.stringify({ error }, null, 2)}\n`);
}

function describeError(error: unknown): DescribedError {
  if (isWorkflowError(error)) return { code: error.code, message: redact(error.message), details: error.details };
  if (error instanceof Interrupted)
    return { code: "INTERRUPTED", message: error.message, details: { taskId: error.taskId } };
  // Not ours: the stack is what a bug report needs.
  const message = redact(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return { code: "UNEXPECTED", message, details: {} };
}

const RESUMABLE: ReadonlySet<string> = new Set([
  "INTERRUPTED",
  "MODEL_FAILED",
  "MODEL_TIMEOUT",
  "STEP_FAILED",
  "MISSING_MODEL",
  "CONSENT_WITHHELD",
  "APPROVAL_EXPIRED",
]);

/** After a failure that leaves the task where it was: the command that tries again. */
function howToGoOn({ code, details: { taskId } }: DescribedError, options: CommonOptions): string {
  if (!RESUMABLE.has(code) || typeof taskId !== "string") return "";
  return `\nGo on with:  ${howToResume(detectTerminal(process.stderr), taskId, sameTask(options))}`;
}
