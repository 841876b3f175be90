import { isPlainObject } from "../internal/json.ts";
import type { Call } from "../state/execution.ts";
import type { AnyWorkflow } from "./define.ts";
import type { Fault } from "./fault.ts";
import type { AnyTool } from "./tool.ts";

/** What of a workflow's data is sensitive beside its fields and tools, as kinds of data; absent where it may go anywhere. */
export interface SensitiveData {
  /** What people write: messages and answers. */
  readonly messages?: string;
  /** What is remembered across tasks, as prompts show it. */
  readonly memories?: string;
  /** Addresses of the inner network, wherever they stand: private IP addresses, names under .local, .internal and the like. */
  readonly innerAddresses?: string;
  /**
   * Kinds without which no model could do its work: where one is withheld, a task stops with `CONSENT_WITHHELD`
   * before it asks the model, rather than going on with half of what it needs.
   */
  readonly needed?: readonly string[];
}

const known = new WeakMap<AnyWorkflow, ReadonlyMap<string, readonly string[]>>();

/** All kinds of data that a workflow declares as sensitive, sorted, each with where it is. Pure. */
export function sensitiveSources(workflow: AnyWorkflow): ReadonlyMap<string, readonly string[]> {
  const before = known.get(workflow);
  if (before) return before;
  const found = findSources(workflow);
  known.set(workflow, found);
  return found;
}

function findSources(workflow: AnyWorkflow): ReadonlyMap<string, readonly string[]> {
  const sources = new Map<string, string[]>();
  const add = (kind: string | undefined, source: string) => {
    if (kind !== undefined) sources.set(kind, [...(sources.get(kind) ?? []), source]);
  };
  for (const [name, { rules }] of Object.entries(workflow.state)) add(rules.sensitive, `field ${name}`);
  for (const [name, tool] of Object.entries(workflow.tools)) {
    for (const kind of sensitiveKindsOf(tool)) add(kind, `results of ${name}`);
  }
  const { messages, memories, innerAddresses } = workflow.sensitive;
  add(messages, "what people write");
  add(memories, "memories");
  add(innerAddresses, "addresses of the inner network");
  return new Map([...sources].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The kinds of data that a tool's results may hold. Pure. */
export function sensitiveKindsOf({ sensitive }: Pick<AnyTool, "sensitive">): readonly string[] {
  if (sensitive === undefined) return [];
  return typeof sensitive === "string" ? [sensitive] : sensitive.kinds;
}

/**
 * The kinds of data that the result of one call may hold; all that its tool names where that cannot be told. Pure,
 * as far as the tool's own function is.
 *
 * @param args the arguments that it ran with; undefined where they are not known.
 */
export function kindsOfCall(tool: Pick<AnyTool, "sensitive">, args: Call["args"] | undefined): readonly string[] {
  const { sensitive } = tool;
  if (sensitive === undefined || typeof sensitive === "string" || args === undefined) return sensitiveKindsOf(tool);
  try {
    const kind = sensitive.of(args as never);
    if (kind === null) return [];
    // A kind that was not declared was never asked about, so nobody has allowed it.
    return kind !== undefined && sensitive.kinds.includes(kind) ? [kind] : sensitive.kinds;
  } catch {
    return sensitive.kinds;
  }
}

/** What is wrong with what a workflow declares as sensitive. Pure. */
export function sensitiveFaults(workflow: AnyWorkflow): readonly Fault[] {
  const { needed = [], ...texts } = workflow.sensitive;
  const named: (readonly [path: string, kind: unknown])[] = [
    ...Object.entries(workflow.state).map(([name, { rules }]) => [`state.${name}`, rules.sensitive] as const),
    ...Object.entries(workflow.tools).flatMap(([name, { sensitive }]) =>
      sensitive !== undefined && isPlainObject(sensitive) && sensitive.kinds.length > 0
        ? sensitive.kinds.map((kind) => [`tools.${name}.sensitive`, kind] as const)
        : [[`tools.${name}.sensitive`, isPlainObject(sensitive) ? "" : sensitive] as const],
    ),
    ...Object.entries(texts).map(([what, kind]) => [`sensitive.${what}`, kind] as const),
  ];
  const declared = sensitiveSources(workflow);
  const strangers = needed
    .filter((kind) => !declared.has(kind))
    .map((kind): Fault => {
      const message = `no field, tool or text is of the kind "${kind}"`;
      return { path: "sensitive.needed", code: "INVALID_NAME", message };
    });
  const unnamed = named.flatMap(([path, kind]): Fault[] =>
    kind === undefined || (typeof kind === "string" && kind.trim() === kind && /^[^\p{C},]{1,60}$/u.test(kind))
      ? []
      : [
          {
            path,
            code: "INVALID_NAME",
            message: 'name the kind of data in 1 to 60 characters, such as "personal data"',
          },
        ],
  );
  const remembering = Object.entries(workflow.tools).flatMap(([name, tool]): Fault[] => {
    if (tool.remembers === undefined || sensitiveKindsOf(tool).length === 0 || texts.memories !== undefined) return [];
    const message = `what it remembers is of ${sensitiveKindsOf(tool).join(", ")}, and prompts show memories: name their kind in sensitive.memories`;
    return [{ path: `tools.${name}.remembers`, code: "CONTRADICTION", message }];
  });
  return [...unnamed, ...strangers, ...remembering];
}
