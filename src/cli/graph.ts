import { toolsOf } from "../workflow/calls.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { targets } from "../workflow/next-step.ts";
import type { RuntimeStep } from "../workflow/step.ts";
import type { Approval } from "../workflow/tool.ts";
import { storeForReading } from "./database.ts";
import { loadGraph } from "./graphs.ts";
import type { CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { lasting, printable } from "./terminal.ts";

/** `statecard graph`: a workflow's table, as text or as a Mermaid chart. */
export async function graphCommand(name: string, options: CommonOptions & { mermaid?: boolean }): Promise<number> {
  const graph = await loadGraph(name, storeForReading(options.db));
  const { workflow } = graph.runtime;
  const mermaid = options.mermaid ? mermaidOf(workflow) : undefined;
  const { name: title, version, initial, goal } = workflow;
  const steps = Object.entries(workflow.steps).map(([step, declared]) => rowOf(workflow, step, declared));
  const text = mermaid ?? [`${title} v${version}${goal && `: ${goal}`}`, ...steps.map(rowText)];
  return print(options, { workflow: title, version, initial, steps, ...(mermaid ? { mermaid } : {}) }, text);
}

/** A move of the table; with what is said while its condition does not hold, where it has one. */
interface TableMove {
  readonly to: string;
  readonly because?: string;
}

/** A tool whose calls a person has to approve: always, or where a function of the arguments says so. */
interface ApprovedTool {
  readonly tool: string;
  readonly always: boolean;
}

/** A step as the table shows it. */
interface TableRow {
  readonly name: string;
  readonly to: readonly string[];
  readonly moves: readonly TableMove[];
  readonly requires: readonly string[];
  readonly writes: readonly string[];
  readonly kind: string;
  readonly approvals: readonly ApprovedTool[];
  readonly deadline?: { readonly afterMs: number; readonly to: string };
}

function rowOf(workflow: AnyWorkflow, name: string, step: RuntimeStep): TableRow {
  return {
    name,
    to: targets(step),
    moves: movesOf(step),
    requires: step.requires ?? [],
    writes: step.writes ?? [],
    kind: kindOf(step),
    approvals: approvalsIn(workflow, name, step),
    ...(step.deadline ? { deadline: step.deadline } : {}),
  };
}

function movesOf({ to = [] }: RuntimeStep): readonly TableMove[] {
  return to.map((move) => (typeof move === "string" ? { to: move } : { to: move.to, because: move.because }));
}

function kindOf({ final, run, map, workflow }: RuntimeStep): string {
  if (final) return "final";
  if (run) return "code";
  if (map) return "map";
  return workflow ? "workflow" : "model";
}

function approvalsIn(workflow: AnyWorkflow, name: string, { approve = [] }: RuntimeStep): readonly ApprovedTool[] {
  const byStep = approve as Readonly<Record<string, Approval | undefined>> | readonly string[];
  return [...toolsOf(workflow, name)].flatMap((tool) => {
    const here = isList(byStep) ? byStep.includes(tool) || undefined : byStep[tool];
    const rules = [here, workflow.tools[tool]?.approve].filter((rule) => rule !== undefined);
    return rules.length === 0 ? [] : [{ tool, always: rules.some((rule) => typeof rule !== "function") }];
  });
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value);
}

function rowText({ name, kind, moves, requires, writes, approvals, deadline }: TableRow): string {
  const to = moves.map((move) => (move.because === undefined ? move.to : `${move.to} (${condition(move.because)})`));
  return [
    `  ${name} (${kind}) -> ${to.join(" | ") || "end"}`,
    ...(requires.length > 0 ? [`needs ${requires.join(", ")}`] : []),
    ...(writes.length > 0 ? [`writes ${writes.join(", ")}`] : []),
    ...toldApprovals(approvals),
    ...(deadline ? [`${after(deadline)} -> ${deadline.to}`] : []),
  ].join("   ");
}

/** Worded as it is told when it does not hold, so that it fits however a workflow's author has put it. */
const condition = (because: string) => `may be closed: ${printable(because)}`;
const after = ({ afterMs }: { readonly afterMs: number }) => `unanswered after ${lasting(afterMs)}`;

function toldApprovals(approvals: readonly ApprovedTool[]): readonly string[] {
  const of = (wanted: boolean) => approvals.flatMap(({ tool, always }) => (always === wanted ? [tool] : []));
  const told = (word: string, tools: readonly string[]) =>
    tools.length > 0 ? [`${word} approval for ${tools.join(", ")}`] : [];
  return [...told("needs", of(true)), ...told("may need", of(false))];
}

/** The transition table as a Mermaid state diagram. Pure. */
export function mermaidOf(workflow: AnyWorkflow): string {
  const lines = [`[*] --> ${workflow.initial}`];
  for (const [name, step] of Object.entries(workflow.steps)) {
    for (const { to, because } of movesOf(step)) {
      const requires = workflow.steps[to]?.requires ?? [];
      const labels = [
        ...(requires.length > 0 ? [`needs ${requires.join(", ")}`] : []),
        ...(because === undefined ? [] : [condition(because)]),
      ];
      lines.push(`${name} --> ${to}${labels.length > 0 ? `: ${label(labels.join(", "))}` : ""}`);
    }
    if (step.deadline) lines.push(`${name} --> ${step.deadline.to}: ${after(step.deadline)}`);
    const approvals = toldApprovals(approvalsIn(workflow, name, step));
    if (approvals.length > 0) lines.push(`note right of ${name}: ${label(approvals.join(", "))}`);
    if (step.final) lines.push(`${name} --> [*]`);
  }
  return ["stateDiagram-v2", ...lines.map((line) => `  ${line}`)].join("\n");
}

/** Text without the marks that end a label of Mermaid or begin a code in it. */
function label(text: string): string {
  return text.replaceAll(/\s*[:;#]\s*/g, " - ");
}
