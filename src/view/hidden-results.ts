import { isPlainObject } from "../internal/json.ts";
import type { CallResult } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { sensitiveKindsOf, kindsOfCall } from "../workflow/sensitive.ts";
import { HIDDEN, hideDeep, marker } from "./hidden-values.ts";
import type { Turn } from "./transcript.ts";

/** A call as it was decided. */
export interface CalledAs {
  readonly tool?: unknown;
  readonly args?: unknown;
}

/** What of a result is no text of anybody's. */
const KEPT: ReadonlySet<string> = new Set(["id", "tool", "status", "name", "artifact", "tries"]);
/** What of it says what went wrong. */
const SAID: ReadonlySet<string> = new Set(["error", "unmet"]);

/** Withholds the results of tools whose data may not be sent, and pieces of them that were read later. */
export class ResultHider {
  /** Whether results of any tool are withheld. */
  private readonly hidesCalls: boolean;
  private readonly workflow: AnyWorkflow;
  private readonly hidden: ReadonlySet<string>;
  private readonly hide: (text: string) => string;
  /** The first withheld kind that some tool's results are of. */
  private readonly someKind: string | null;
  private readonly calls: ReadonlyMap<string, CalledAs>;
  private readonly aside = new Map<string, string | null>();

  constructor(
    workflow: AnyWorkflow,
    hidden: ReadonlySet<string>,
    turns: readonly Turn[],
    hide: (text: string) => string,
  ) {
    this.workflow = workflow;
    this.hidden = hidden;
    this.hide = hide;
    const { memories } = workflow.sensitive;
    const kinds = Object.values(workflow.tools).flatMap(sensitiveKindsOf);
    this.someKind = this.firstHidden([...kinds, ...(memories === undefined ? [] : [memories])]);
    this.hidesCalls = this.someKind !== null;
    this.calls = callsById(turns);
    for (const { observation } of turns) {
      if (observation?.kind !== "results") continue;
      for (const result of observation.results)
        if (result.artifact !== undefined) this.aside.set(result.artifact, this.kindOf(result));
    }
  }

  /** A result as it may be shown. Ids and names stay: later calls refer to them. */
  result(result: CallResult): { readonly result: CallResult; readonly isWithheld: boolean } {
    const kind = this.kindOf(result);
    const { messages } = this.workflow.sensitive;
    const isPersonal = messages !== undefined && this.hidden.has(messages);
    // Arguments that are told with a result were changed by a person, or hold what other results gave.
    const hidesArgs = result.args !== undefined && (this.hidesCalls || isPersonal);
    const saidNo = result.status === "refused" && isPersonal;
    const isWithheld = kind !== null || hidesArgs || saidNo;
    const mark = marker(kind ?? this.someKind ?? messages ?? "");
    const shown = Object.entries(result).flatMap(([part, value]): [string, unknown][] => {
      if (value === undefined || KEPT.has(part)) return [[part, value]];
      if (part === "args" && hidesArgs) return [[part, { arguments: HIDDEN }]];
      // What a tool's own words say of a call goes with what the call brought.
      if (part === "hint" || part === "errorType") return isWithheld ? [] : [[part, hideDeep(value, this.hide)]];
      const isHidden = part === "value" ? kind !== null : SAID.has(part) && isWithheld;
      return [[part, isHidden ? mark : hideDeep(value, this.hide)]];
    });
    return { result: Object.fromEntries(shown) as CallResult, isWithheld };
  }

  /** The value of a field that keeps a plan, without what its calls brought. */
  plan(value: unknown): unknown {
    if (!isPlainObject(value) || !Array.isArray(value.calls)) return value;
    const calls = (value.calls as unknown[]).map((call) => {
      if (!isPlainObject(call) || typeof call.tool !== "string") return call;
      const kind = this.kindOfTool(call.tool, call.args);
      // Of arguments with references, an error may tell what they stood for.
      const hidesProblem = kind !== null || (this.hidesCalls && JSON.stringify(call.args ?? null).includes('"$ref"'));
      return {
        ...call,
        ...(kind === null ? {} : { result: marker(kind) }),
        ...(hidesProblem && typeof call.problem === "string" ? { problem: HIDDEN } : {}),
      };
    });
    return { ...value, calls };
  }

  private kindOf(result: CallResult): string | null {
    const call = this.calls.get(result.id);
    const args = result.args ?? (call?.tool === result.tool ? call.args : undefined);
    const tool = this.workflow.tools[result.tool];
    const { memories } = this.workflow.sensitive;
    if (tool?.readsMemories && memories !== undefined && this.hidden.has(memories)) return memories;
    if (!tool?.readsArtifacts) return this.kindOfTool(result.tool, args);
    const id = isPlainObject(args) ? args.id : undefined;
    const known = typeof id === "string" ? this.aside.get(id) : undefined;
    // A piece of a result that is not at hand may be a piece of anything.
    return known === undefined ? this.someKind : known;
  }

  private kindOfTool(name: string, args: unknown): string | null {
    const tool = Object.hasOwn(this.workflow.tools, name) ? this.workflow.tools[name] : undefined;
    // Of a tool that a release has removed nobody knows any more what it gave.
    if (!tool) return [...this.hidden][0] ?? null;
    return this.firstHidden(kindsOfCall(tool, isPlainObject(args) ? args : undefined));
  }

  private firstHidden(kinds: readonly string[]): string | null {
    return kinds.find((kind) => this.hidden.has(kind)) ?? null;
  }
}

/** The calls that results came from, by the results' ids: those of the decision right before them. */
function callsById(turns: readonly Turn[]): ReadonlyMap<string, CalledAs> {
  const found = new Map<string, CalledAs>();
  for (const [index, { observation }] of turns.entries()) {
    const calls = turns[index - 1]?.decision?.calls;
    if (observation?.kind !== "results" || !Array.isArray(calls)) continue;
    for (const { id } of observation.results) {
      const call: unknown = calls[Number(id.split(".")[1])];
      if (isPlainObject(call)) found.set(id, call);
    }
  }
  return found;
}
