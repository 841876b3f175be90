import type { CallResult } from "../state/execution.ts";
import { counterLines } from "./status-bar/counters.ts";
import { errorLines } from "./status-bar/errors.ts";
import type { StatusBarInput, Technique } from "./status-bar/input.ts";
import { systemReadings } from "./status-bar/system.ts";
import { observationTimes, timeReadings } from "./status-bar/times.ts";
import { todoReadings } from "./status-bar/todo.ts";

/** Facts about the latest observation, to be shown with it. They quote what came from outside, on one line and escaped. */
export interface Attachments {
  /** About the observation as a whole. */
  readonly observation: readonly string[];
  /** About each result, by the id of its call, in the order of the results. Of many calls of one tool the last few tell. */
  readonly results: readonly { readonly id: string; readonly lines: readonly string[] }[];
}

export interface StatusBar {
  /** The lines of the bar: numbers, times, names from the definition, and quoted todo texts and paths. */
  readonly bar: readonly string[];
  readonly attached: Attachments;
}

/**
 * The run-time facts for one decision. They are kept by code and come with the rule that says what to make of
 * them. What concerns the latest observation is attached to it; only the todo list, the limits and the like
 * stand in the bar itself, which comes last in a prompt. Pure.
 *
 * Models trust such a bar, so nothing from outside gets into it: no message, result or error. Todo texts and the
 * working directory, which a model has written, are quoted: one line, cut, unable to form a tag.
 */
export function statusBar(input: StatusBarInput): StatusBar {
  const { observation, options = {} } = input;
  const isOn = (technique: Technique) => options[technique] !== false;
  const facts = typeof options.system === "object" ? options.system : {};
  const results = observation?.kind === "results" ? observation.results : [];
  const counted = new Set(isOn("counters") ? results.map(({ tool }) => tool) : []);
  return {
    bar: [
      ...(isOn("todo") ? todoReadings(input) : []),
      ...(isOn("timestamps") ? timeReadings(input) : []),
      ...(isOn("system") ? systemReadings(input, facts, counted) : []),
    ],
    attached: {
      observation: isOn("timestamps") ? observationTimes(input) : [],
      results: attachedResults(input, results, isOn),
    },
  };
}

/** The attached facts as lines, to be shown right behind the observation; with several results each line names its call. */
export function attachedLines({ observation, results }: Attachments): readonly string[] {
  const isOne = results.length === 1;
  return [
    ...observation,
    ...results.flatMap(({ id, lines }) => (isOne ? lines : lines.map((line) => `${id}: ${line}`))),
  ];
}

/** About how many tokens the lines take, without counting: four bytes each. */
export function statusTokens(lines: readonly string[]): number {
  return Math.ceil(Buffer.byteLength(lines.join("\n")) / 4);
}

/** Facts about results, from the last one back, since the record counts to the last. */
function attachedResults(
  input: StatusBarInput,
  results: readonly CallResult[],
  isOn: (technique: Technique) => boolean,
): Attachments["results"] {
  const after = new Map<string, { readonly runs: number; readonly failures: number }>();
  const told = results.toReversed().map((result) => {
    const { runs, failures } = after.get(result.tool) ?? { runs: 0, failures: 0 };
    const hasRun = result.status !== "refused" && result.status !== "cancelled";
    after.set(result.tool, { runs: runs + (hasRun ? 1 : 0), failures: failures + (hasFailed(result) ? 1 : 0) });
    // A list's hundred calls are counted once.
    const counted = isOn("counters") && hasRun && runs === 0 ? counterLines(input, result) : [];
    const explained = isOn("errors") && hasFailed(result) ? errorLines(input, result, failures) : [];
    return { id: result.id, lines: [...counted, ...explained] };
  });
  return told.toReversed();
}

/** True for a call that was made and did not come to a good end. */
function hasFailed({ status }: CallResult): boolean {
  return status === "error" || status === "timeout";
}
