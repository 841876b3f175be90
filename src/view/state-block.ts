import type { State } from "../state/fields.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import { isModelStep, moves, targets } from "../workflow/next-step.ts";
import { rolePartsOf } from "../workflow/role.ts";
import { compactMember } from "./compact.ts";
import { shortenMiddle } from "./shorten.ts";
import { signature } from "./signature.ts";
import { block, escapeTags } from "./text.ts";

/** The tools that each of several steps has in which a model decides: a prompt's beginning tells them once. Pure. */
export function commonTools({ steps }: AnyWorkflow): readonly string[] {
  const [first, ...others] = Object.values(steps).filter(isModelStep);
  if (others.length === 0) return [];
  return (first?.tools ?? []).filter((tool) => others.every(({ tools = [] }) => tools.includes(tool)));
}

/** Tools a line each, with what they take. Pure. */
export function toolLines({ tools }: AnyWorkflow, names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const tool = tools[name];
    return tool ? [signature(name, tool)] : [];
  });
}

/** What stands in a prompt before a step's description. */
interface ToldBefore {
  /** Tools that are told as those of every step. */
  readonly common?: readonly string[];
  /** Steps that are described. */
  readonly steps?: readonly string[];
}

/**
 * What the model has to know of a step: its role's advice and style where they matter, instructions, fields,
 * tools; what the same prompt has told before is only named. Pure.
 */
export function stepLines(
  workflow: AnyWorkflow,
  name: string,
  { common = [], steps: before = [] }: ToldBefore = {},
): readonly string[] {
  const step = workflow.steps[name];
  const own = (step?.tools ?? []).filter((tool) => !common.includes(tool));
  const told = before.flatMap((other) => workflow.steps[other]?.tools ?? []);
  const described = new Set(told.filter((tool) => !common.includes(tool)));
  const again = own.filter((tool) => described.has(tool));
  const more = common.length > 0 ? "more tools" : "tools";
  const signatures = toolLines(
    workflow,
    own.filter((tool) => !described.has(tool)),
  );
  const writesAtAll = Object.values(workflow.steps).some(({ run, writes = [] }) => !run && writes.length > 0);
  return [
    `name: ${name}`,
    ...roleLines(workflow, name, before),
    ...(step?.instructions ? [`instructions: ${step.instructions}`] : []),
    ...(writesAtAll ? [`may write: ${step?.writes?.join(", ") || "nothing"}`] : []),
    ...(step && isModelStep(step) && common.length > 0 && own.length === 0 ? ["tools: those of every step"] : []),
    ...againLine(again, described, more),
    ...(signatures.length > 0 ? [`${more}:`, ...signatures] : []),
  ];
}

/** Tools that stand above already: by name, or in short where most of them still are the step's. */
function againLine(again: readonly string[], described: ReadonlySet<string>, more: string): readonly string[] {
  if (again.length === 0) return [];
  const others = [...described].filter((tool) => !again.includes(tool));
  if (others.length >= again.length) return [`${more} as above: ${again.join(", ")}`];
  return [others.length > 0 ? `all tools above but: ${others.join(", ")}` : "all tools above"];
}

const PART_NAMES = { advice: "working advice", style: "output style" } as const;

function roleLines(workflow: AnyWorkflow, name: string, before: readonly string[]): readonly string[] {
  const shown = new Set(before.flatMap((other) => rolePartsOf(workflow, other)));
  return rolePartsOf(workflow, name).map((part) => {
    const text = workflow.role?.[part] ?? "";
    if (shown.has(part)) return `${PART_NAMES[part]}: as above`;
    return `${PART_NAMES[part]}:${text.includes("\n") ? "\n" : " "}${text}`;
  });
}

/** The moves out of the present step: open ones by name, closed ones with what they need. Pure. */
export function movesLine(workflow: AnyWorkflow, { execution, state, moves: known }: Snapshot): string {
  return nextLine(
    (known ?? moves(workflow, execution.step, state)).map(({ to, closed }) => (closed ? `(${closed.reason})` : to)),
  );
}

/** Of more moves each description would be long; then only the end of a prompt tells them. */
const MOST_MOVES = 12;

/** The moves out of a step where none is closed: the same whenever it is described. Null where they are too many. Pure. */
export function allMovesLine(workflow: AnyWorkflow, name: string): string | null {
  const moves = targets(workflow.steps[name]);
  return moves.length > MOST_MOVES ? null : nextLine(moves);
}

function nextLine(moves: readonly string[]): string {
  return `next: ${moves.join(" | ")}`;
}

/** The whole state, as the policy `state` shows it for every decision. Pure. */
export function renderState(workflow: AnyWorkflow, snapshot: Snapshot, maxValueTokens: number): string {
  const { execution, state } = snapshot;
  return block("state", [
    `status: ${execution.status}`,
    `completed steps: ${execution.completedSteps.join(", ") || "none"}`,
    `retries: ${execution.retryCount}`,
    ...Object.keys(workflow.state).map((name) => fieldLine(name, state[name], maxValueTokens)),
  ]);
}

/** The fields that have a value, and in one line those that have none. Pure. */
export function fieldLines(
  workflow: AnyWorkflow,
  state: State,
  maxValueTokens: number,
  isShown: (name: string) => boolean = () => true,
): readonly string[] {
  const names = Object.keys(workflow.state).filter(isShown);
  const unset = names.filter((name) => (state[name] ?? null) === null);
  return [
    ...names.filter((name) => !unset.includes(name)).map((name) => fieldLine(name, state[name], maxValueTokens)),
    ...(unset.length > 0 ? [`not set: ${unset.join(", ")}`] : []),
  ];
}

function fieldLine(name: string, value: unknown, maxTokens: number): string {
  if (value === null || value === undefined) return `${name}: -`;
  const text = typeof value === "string" ? ` ${JSON.stringify(value)}` : compactMember(value);
  return `${name}:${shortenMiddle(escapeTags(text), maxTokens)}`;
}
