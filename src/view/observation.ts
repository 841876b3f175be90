import type { CallResult, Observation } from "../state/execution.ts";
import { compact, compactInline } from "./compact.ts";
import { shortenMiddle } from "./shorten.ts";
import { block, escapeTags } from "./text.ts";

/** The longest messages and answers are kept whole up to this many times a result's limit. */
const SPOKEN = 4;

/**
 * What came back, between tags of its own. The same bytes whenever it is shown under the same limit,
 * so that it can stay in a provider's cache. Pure.
 *
 * @param isQuestionShown whether the decision that asked stands right before its answer.
 */
export function renderObservation(observation: Observation, maxResultTokens: number, isQuestionShown = false): string {
  const shown = renderBlock(observation, maxResultTokens, isQuestionShown);
  const facts = "facts" in observation ? (observation.facts ?? []) : [];
  // In a block of their own, since what came from outside could imitate them.
  return facts.length > 0 ? `${shown}\n${block("facts", facts.map(escapeTags))}` : shown;
}

function renderBlock(observation: Observation, maxResultTokens: number, isQuestionShown: boolean): string {
  const spoken = (text: string) => shortenMiddle(escapeTags(text), maxResultTokens * SPOKEN);
  switch (observation.kind) {
    case "message":
      return block("observation", [spoken(observation.text)], ' kind="message"');
    case "answer":
      return block(
        "observation",
        isQuestionShown
          ? [spoken(observation.text)]
          : [`question: ${spoken(observation.question)}`, `answer: ${spoken(observation.text)}`],
        ' kind="answer"',
      );
    case "results": {
      const results = observation.results.map((result) => renderResult(result, maxResultTokens));
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

function renderResult(result: CallResult, maxTokens: number): string {
  const { id, tool, status, value, error, args } = result;
  const isText = typeof value === "string";
  const head = [
    `${id} ${tool} ${status}`,
    args ? `with ${compactInline(args)}` : "",
    error ?? "",
    // A text is shown as it is, anything else in short: what it is has to be said.
    isText ? "text" : "",
  ];
  const said = escapeTags(head.filter(Boolean).join(": "));
  if (value === undefined || value === null) return said;
  const whole = result.artifact ? `whole: artifact ${result.artifact}, readArtifact or searchArtifact` : "";
  const shown = shortenMiddle(escapeTags(isText ? asItIs(value) : compact(value)), maxTokens, whole);
  return `${said}:${isText || shown.includes("\n") ? "\n" : " "}${shown}`;
}

const LIKE_A_RESULT = /^(?=\\|\d+\.\d+ )/gm;

/** A text whose lines cannot be taken for the beginning of another result. */
function asItIs(text: string): string {
  return text.replaceAll(LIKE_A_RESULT, "\\");
}
