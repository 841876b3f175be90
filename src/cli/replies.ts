import { isPlainObject, shorten } from "../internal/json.ts";
import type { PersonsReply, ReplyWords } from "../compile/reply-to.ts";
import { usage } from "./exit.ts";

export interface VerdictOptions {
  readonly answer?: string;
  readonly approve?: boolean;
  readonly reject?: string;
  readonly edit?: string;
}

/**
 * The one answer on a command line; null where there is none.
 *
 * @throws USAGE where there are several, a rejection has no reason, or an edit is no JSON object.
 */
export function verdictOf({ answer, approve, reject, edit }: VerdictOptions): PersonsReply | null {
  const given: PersonsReply[] = [];
  if (answer !== undefined) given.push({ verb: "answer", text: answer });
  if (approve) given.push({ verb: "approve" });
  if (reject !== undefined) given.push({ verb: "reject", reason: reasonOf(reject) });
  if (edit !== undefined) given.push({ verb: "edit", args: argumentsOf(edit) });
  if (given.length > 1) throw usage(`choose one of ${given.map(({ verb }) => `--${verb}`).join(" and ")}`);
  return given[0] ?? null;
}

function reasonOf(text: string): string {
  if (text.trim() === "") throw usage("a rejection needs a reason: the model is told it, and acts on it");
  return text;
}

/** @throws USAGE. */
function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (isPlainObject(args) && Object.keys(args).length > 0) return args;
  throw usage(
    `an edit is a JSON object with the arguments to change, such as {"amount": 50}, not ${shorten(text, 60)}`,
  );
}

/** How an answer is written at the command line. */
export const ON_COMMAND_LINE: ReplyWords = { verb: (verb) => `--${verb}`, request: "--request" };
