import { isPlainObject } from "../internal/json.ts";
import type { CallResult, Observation } from "../state/execution.ts";
import { compact, compactInline } from "./compact.ts";
import type { ShownRecords } from "./shown-records.ts";
import { shortenMiddle } from "./shorten.ts";
import { block, escapeTags } from "./text.ts";
import { fitsIn } from "./tokens.ts";

/** The longest messages and answers are kept whole up to this many times a result's limit. */
const SPOKEN = 4;

/** A decision as the log has it. */
type Asked = Readonly<Record<string, unknown>>;

/**
 * Whether an observation is just what a decision asked for: the answer to its question, or the result of its
 * only call. Right behind that decision it needs no name. Pure.
 */
function isPlainReply(observation: Observation, decision: Asked | undefined): boolean {
  if (observation.kind === "answer") return decision?.ask === observation.question;
  if (observation.kind !== "results" || observation.results.length !== 1) return false;
  const [result] = observation.results;
  const calls = Array.isArray(decision?.calls) ? (decision.calls as readonly unknown[]) : [];
  const [call] = calls;
  const isAsked = calls.length === 1 && isPlainObject(call) && call.tool === result?.tool;
  return isAsked && result?.status === "ok" && !result.args && !result.error && !observation.note;
}

/**
 * How an observation is told: `named` between tags, with what it is; `plain` between tags, where it is just what the
 * decision right before it asked for; `bare` without tags, as in any conversation, where that is a user's answer.
 */
export type Form = "named" | "plain" | "bare";

/**
 * The form of an observation behind a decision. Words that are not the user's own keep their tags, and so does an
 * answer that is empty. Pure.
 *
 * @param isFromStrangers whether all messages of the workflow are.
 */
export function formOf(observation: Observation, decision: Asked | undefined, isFromStrangers: boolean): Form {
  if (!isPlainReply(observation, decision)) return "named";
  if (observation.kind !== "answer" || observation.text.trim() === "") return "plain";
  return isFromStrangers || observation.untrusted ? "plain" : "bare";
}

/**
 * What came back. The same bytes whenever it is shown under the same limit, behind the same decision and the same
 * records, so that it can stay in a provider's cache.
 *
 * @param records what the same prompt has shown before, where results may refer to that; it is added to.
 */
export function renderObservation(
  observation: Observation,
  maxResultTokens: number,
  form: Form = "named",
  records?: ShownRecords,
): string {
  const shown = renderBlock(observation, maxResultTokens, form, records);
  const facts = "facts" in observation ? (observation.facts ?? []) : [];
  // In a block of their own, since what came from outside could imitate them.
  return facts.length > 0 ? `${shown}\n${block("facts", facts.map(escapeTags))}` : shown;
}

function renderBlock(
  observation: Observation,
  maxResultTokens: number,
  form: Form,
  records: ShownRecords | undefined,
): string {
  const spoken = (text: string) => shortenMiddle(escapeTags(text), maxResultTokens * SPOKEN);
  switch (observation.kind) {
    case "message":
      return block("observation", [spoken(observation.text)], ' kind="message"');
    case "answer":
      if (form === "bare") return spoken(observation.text);
      if (form === "plain") return block("observation", [spoken(observation.text)]);
      return block(
        "observation",
        [`question: ${spoken(observation.question)}`, `answer: ${spoken(observation.text)}`],
        ' kind="answer"',
      );
    case "results": {
      const [only] = observation.results;
      if (form === "plain" && only) return block("observation", [renderValue(only, maxResultTokens, records) ?? "ok"]);
      const results = observation.results.map((result) => renderResult(result, maxResultTokens, records));
      return block(
        "observation",
        results.concat(observation.note ? escapeTags(observation.note) : []),
        ' kind="results"',
      );
    }
    case "expired":
      return block("observation", [`no answer came in time to: ${spoken(observation.what)}`], ' kind="expired"');
    case "workflow":
      return block("observation", [`workflow ${observation.workflow} ${observation.status}`], ' kind="workflow"');
  }
}

function renderResult(result: CallResult, maxTokens: number, records: ShownRecords | undefined): string {
  const { id, tool, status, value, error, args } = result;
  if (error) records?.note(error);
  const isText = typeof value === "string";
  const head = [
    `${id} ${tool} ${status}`,
    args ? `with ${compactInline(args)}` : "",
    error ? asItIs(error) : "",
    // A text is shown as it is, anything else in short: what it is has to be said.
    isText ? "text" : "",
  ];
  const said = escapeTags(head.filter(Boolean).join(": "));
  const shown = renderValue(result, maxTokens, records);
  return shown === null ? said : `${said}:${isText || shown.includes("\n") ? "\n" : " "}${shown}`;
}

function renderValue(
  { value, artifact }: CallResult,
  maxTokens: number,
  records: ShownRecords | undefined,
): string | null {
  if (value === undefined || value === null) return null;
  const text = escapeTags(typeof value === "string" ? asItIs(value) : compact(value));
  const shortened = records?.add(value, !artifact && fitsIn(text, maxTokens));
  if (shortened) return escapeTags(`${compact(shortened.rest)}\n${shortened.note}`);
  return shortenMiddle(text, maxTokens, artifact ? `whole: artifact ${artifact}, readArtifact or searchArtifact` : "");
}

const LIKE_OURS = /^(?=\\|\d+\.\d+ |the rest as )/gm;

/** A text whose lines cannot be taken for the beginning of another result, or for words of ours on a record. */
function asItIs(text: string): string {
  return text.replaceAll(LIKE_OURS, "\\");
}
