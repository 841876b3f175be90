import { pickState } from "../../state/fields.ts";
import { taskLimit } from "../../workflow/advance.ts";
import { stepLimit } from "../../workflow/define.ts";
import { stateSize } from "../../workflow/state-budget.ts";
import type { StatusBarInput, SystemFacts } from "./input.ts";
import { progressReading } from "./progress.ts";
import { quote } from "./quote.ts";

const MAX_PATH = 120;
const MAX_FACT = 60;
/** Of a limit this part, and at most so many, are few. */
const FEW_PART = 4;
const FEW_MOST = 5;

/**
 * Where the task is and what is left of its limits.
 *
 * @param counted tools whose use the results tell already.
 */
export function systemReadings(
  input: StatusBarInput,
  facts: SystemFacts,
  counted: ReadonlySet<string>,
): readonly string[] {
  const progress = progressReading(input.workflow, input.snapshot);
  return [
    ...(progress === null ? [] : [progress]),
    ...directoryReading(input, facts.directory),
    ...hostReading(facts),
    ...decisionReadings(input),
    ...toolReadings(input, counted),
    ...sizeReading(input),
  ];
}

function directoryReading({ snapshot }: StatusBarInput, name: string | undefined): readonly string[] {
  const value = name !== undefined && Object.hasOwn(snapshot.state, name) ? snapshot.state[name] : null;
  if (typeof value !== "string" || value === "") return [];
  return [`directory: ${quote(value, MAX_PATH, "end")}; relative paths start here`];
}

function hostReading({ os, shell }: SystemFacts): readonly string[] {
  const facts = [...(os ? [`on ${quote(os, MAX_FACT)}`] : []), ...(shell ? [`in ${quote(shell, MAX_FACT)}`] : [])];
  return facts.length > 0 ? [`commands run ${facts.join(" ")}: write them for that`] : [];
}

function decisionReadings({ workflow, snapshot }: StatusBarInput): readonly string[] {
  const { step, decisions, decisionsByStep } = snapshot.execution;
  const made = Object.hasOwn(decisionsByStep, step) ? (decisionsByStep[step] ?? 0) : 0;
  return [
    ...leftReading("this step", stepLimit(workflow, step), made),
    ...leftReading("this task", taskLimit(workflow, snapshot.execution), decisions),
  ];
}

function leftReading(what: string, limit: number, made: number): readonly string[] {
  const left = limit - made;
  const few = Math.min(FEW_MOST, Math.ceil(limit / FEW_PART));
  if (left <= 0 || left > few) return [];
  return left === 1
    ? [`decisions: this is the last of ${what}: conclude now with what is known and what is open`]
    : [`decisions: ${left} left in ${what}, this one included: come to a conclusion`];
}

function toolReadings({ workflow, snapshot }: StatusBarInput, counted: ReadonlySet<string>): readonly string[] {
  const { step, toolUse = {} } = snapshot.execution;
  return (workflow.steps[step]?.tools ?? []).flatMap((name) => {
    const limit = workflow.tools[name]?.limit;
    const calls = Object.hasOwn(toolUse, name) ? (toolUse[name]?.calls ?? 0) : 0;
    if (limit === undefined || calls === 0 || counted.has(name)) return [];
    const rule = calls >= limit ? "do not call it again, report what is open" : `${limit - calls} left`;
    return [`${name}: ${calls} of ${limit} calls made: ${rule}`];
  });
}

function sizeReading({ workflow, snapshot }: StatusBarInput): readonly string[] {
  const { warnBytes, maxBytes } = workflow.stateBudget;
  const { bytes, largest, of } = stateSize(pickState(workflow.state, snapshot.state));
  if (bytes < warnBytes) return [];
  return [`state: ${bytes} of at most ${maxBytes} bytes, ${of} of them in ${largest}: shorten it where you can`];
}
