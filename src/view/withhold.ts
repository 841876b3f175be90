import { isPlainObject } from "../internal/json.ts";
import type { Execution, Observation } from "../state/execution.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import { moves } from "../workflow/next-step.ts";
import { planFieldOf } from "../workflow/plan.ts";
import { HIDDEN, HiddenValues, hideDeep, marker, MARK } from "./hidden-values.ts";
import { ResultHider, type CalledAs } from "./hidden-results.ts";
import { textOf, type Turn } from "./transcript.ts";

/** For the model, where something is left out of its prompt. */
export const WITHHELD_NOTE = `What is shown as ${HIDDEN} or ${marker("a kind of data")} is there, but not for you: go on without it, and never write it anywhere.`;

/** What a prompt is made from. */
export interface WholeTask {
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  readonly turns: readonly Turn[];
  /** The fields that it was started with, where they are shown. */
  readonly given?: Readonly<Record<string, unknown>> | null;
}

/** A task as a prompt may show it where some kinds of data are withheld. */
export interface Withheld extends WholeTask {
  /** Takes what is withheld out of any text. */
  readonly hide: (text: string) => string;
  /** An observation as it may be shown. */
  readonly seen: (observation: Observation) => Observation;
}

/**
 * Leaves what nobody has allowed out of what a prompt is made from: values of fields, whole results of calls, what
 * people wrote; and the values of those fields, as well as inner addresses, wherever else they stand. Pure.
 *
 * @param kinds the kinds of data that may not be shown; not empty.
 */
export function withhold(workflow: AnyWorkflow, kinds: readonly string[], task: WholeTask): Withheld {
  const hidden = new Set(kinds);
  const fieldKind = (name: string): string | null => {
    // Of a field that a release has removed or renamed nobody knows any more what it held.
    if (!Object.hasOwn(workflow.state, name)) return kinds[0] ?? null;
    const kind = workflow.state[name]?.rules.sensitive;
    return kind !== undefined && hidden.has(kind) ? kind : null;
  };
  const { messages, innerAddresses } = workflow.sensitive;
  const values = valuesIn(workflow, task, fieldKind);
  const hide = values.hider(kinds, innerAddresses !== undefined && hidden.has(innerAddresses));
  const deep = <T>(value: T): T => hideDeep(value, hide);
  const results = new ResultHider(workflow, hidden, task.turns, hide);
  const plans = new Set(Object.values(workflow.steps).map((step) => planFieldOf(step)));
  const fields = (given: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(given).map(([name, value]) => {
        const kind = fieldKind(name);
        if (value === null || value === undefined) return [name, value];
        if (kind !== null) return [name, marker(kind)];
        return [name, deep(plans.has(name) ? results.plan(value) : value)];
      }),
    );
  const said = (text: string) => (messages !== undefined && hidden.has(messages) ? marker(messages) : hide(text));
  // Only texts are hidden in: what a value could be taken for, such as the name of a part, code looks by.
  const seen = (observation: Observation): Observation => {
    switch (observation.kind) {
      case "message":
        return { ...observation, text: said(observation.text), ...facts(observation, false, hide) };
      case "answer": {
        const { question, text } = observation;
        return { ...observation, question: hide(question), text: said(text), ...facts(observation, false, hide) };
      }
      case "results": {
        const shown = observation.results.map((each) => results.result(each));
        const isPart = shown.some(({ isWithheld }) => isWithheld);
        return {
          ...observation,
          results: shown.map(({ result }) => result),
          ...(observation.note === undefined ? {} : { note: isPart ? UNTOLD : hide(observation.note) }),
          ...facts(observation, isPart, hide),
        };
      }
      case "expired":
        return { ...observation, what: hide(observation.what) };
      case "workflow":
        return observation;
    }
  };
  const turns = task.turns.map((turn) => {
    if (turn.observation) {
      const observation = seen(turn.observation);
      return { ...turn, observation, text: textOf(observation) };
    }
    if (!turn.decision) return { ...turn, text: said(turn.text) };
    const decision = decided(turn.decision, deep, fields);
    return { ...turn, decision, text: JSON.stringify(decision) };
  });
  const { execution, state } = task.snapshot;
  const shown = (observation: Observation | null) => observation && seen(observation);
  return {
    snapshot: {
      state: fields(state),
      execution: shownRecord(execution, hide, shown(execution.observation)),
      // Conditions are asked about what is there, not about what stands for it.
      moves: moves(workflow, execution.step, state),
    },
    observation: shown(task.observation),
    turns,
    given: task.given ? fields(task.given) : null,
    hide,
    seen,
  };
}

/** In place of a note on what became of results that are withheld, since it may quote them. */
const UNTOLD = "of what was to follow from these results, something was not done";

/** Whether a text holds what stands for something withheld: whoever wrote it wrote what he never saw. */
export function holdsWithheld(value: unknown): boolean {
  return JSON.stringify(value ?? null).includes(MARK);
}

/** What code has told with an observation. Data in it is quoted, often shortened, so that its values are not found. */
function facts(
  { facts: told }: { readonly facts?: readonly string[] | undefined },
  isPart: boolean,
  hide: (text: string) => string,
) {
  if (!told) return {};
  const shown = told.map((line) =>
    hide(line.replaceAll(/“[^”]*”/g, (quote) => (isPart || quote.includes("…") ? `“${HIDDEN}”` : quote))),
  );
  return { facts: shown };
}

/** The record, with the texts in it that a prompt may show. Names of steps and tools stay: code looks by them. */
function shownRecord(execution: Execution, hide: (text: string) => string, observation: Observation | null): Execution {
  const { recent, lastError, toolUse } = execution;
  // Of failures only the number is told.
  const used = Object.entries(toolUse ?? {}).map(
    ([tool, use]) => [tool, { ...use, failed: use.failed.map(() => HIDDEN) }] as const,
  );
  return {
    ...execution,
    recent: recent.map((line) => hideCut(line, hide)),
    lastError: lastError && { ...lastError, message: hide(lastError.message) },
    observation,
    ...(toolUse ? { toolUse: Object.fromEntries(used) } : {}),
  };
}

/** Hides in a line about a decision. Of a text that was cut, values are no longer found whole. */
function hideCut(line: string, hide: (text: string) => string): string {
  const [, start = ""] = /^(\d+\. [^:]*: )/.exec(line) ?? [];
  return line.includes("…") ? `${start}${HIDDEN}` : hide(line);
}

function decided(
  decision: Readonly<Record<string, unknown>>,
  deep: <T>(value: T) => T,
  fields: (values: Readonly<Record<string, unknown>>) => object,
): Record<string, unknown> {
  const shown = (name: string, value: unknown): unknown => {
    // A step's name is no text of anybody's.
    if (name === "next") return value;
    if (name === "patch" && isPlainObject(value)) return fields(value);
    if (name !== "calls" || !Array.isArray(value)) return deep(value);
    return (value as readonly CalledAs[]).map((call) =>
      Object.fromEntries(Object.entries(call).map(([part, told]) => [part, part === "tool" ? told : deep(told)])),
    );
  };
  return Object.fromEntries(Object.entries(decision).map(([name, value]) => [name, shown(name, value)]));
}

/** The values that withheld fields hold, or held as far as the conversation tells. */
function valuesIn(
  workflow: AnyWorkflow,
  { snapshot, turns, given }: WholeTask,
  fieldKind: (name: string) => string | null,
): HiddenValues {
  const known = turns.flatMap(({ decision, kept }) => [decision?.patch, kept]);
  const found = new HiddenValues();
  for (const values of [snapshot.state, given, ...known].filter(isPlainObject)) {
    for (const [name, value] of Object.entries(values)) {
      if (fieldKind(name) !== null) found.add(workflow.state[name], value);
    }
  }
  return found;
}
