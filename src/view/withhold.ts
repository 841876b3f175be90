import { isPlainObject } from "../internal/json.ts";
import type { CallResult, Execution, Observation } from "../state/execution.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import { kindsOf, kindsOfCall } from "../workflow/sensitive.ts";
import { textOf, type Turn } from "./transcript.ts";

/** What stands where something is that may not be sent. */
const WITHHELD = "[withheld";
const marker = (kind: string) => `${WITHHELD}: ${kind}]`;

/** For the model, where something is left out of its prompt. */
export const WITHHELD_NOTE = `What is shown as ${WITHHELD}] or ${marker("a kind of data")} is there, but not for you: go on without it, and never write it anywhere.`;

/** Shorter texts occur everywhere. */
const MIN_VALUE = 4;

/** Private IPv4 and IPv6 addresses, and names of hosts that only an inner network knows. */
const INNER_ADDRESSES = [
  String.raw`(?<![\d.])(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}|169\.254(?:\.\d{1,3}){2})(?![\d.]*\d)`,
  String.raw`(?<![\p{L}\p{N}:])f[cd][\da-f]{2}:[\da-f:]{2,40}(?![\p{L}\p{N}:])`,
  String.raw`(?<![\p{L}\p{N}.-])[\p{L}\p{N}][\p{L}\p{N}-]{0,62}(?:\.[\p{L}\p{N}-]{1,63}){0,5}\.(?:local|internal|intranet|lan|corp|home\.arpa)(?![\p{L}\p{N}-]|\.[\p{L}\p{N}])`,
];

/** A task as a prompt may show it where some kinds of data are withheld. */
export interface Withheld {
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  readonly turns: readonly Turn[];
  /** Takes what is withheld out of any text. */
  readonly hide: (text: string) => string;
}

/**
 * Leaves what nobody has allowed out of what a prompt is made from: values of fields, whole results of calls, what
 * people wrote; and the values of those fields, as well as inner addresses, wherever else they stand. Pure.
 *
 * A value counts where it stands by itself, not within a word, from 4 characters on.
 *
 * @param kinds the kinds of data that may not be shown; not empty.
 */
export function withhold(
  workflow: AnyWorkflow,
  kinds: readonly string[],
  task: { readonly snapshot: Snapshot; readonly observation: Observation | null; readonly turns: readonly Turn[] },
): Withheld {
  const hidden = new Set(kinds);
  const fieldKind = (name: string) => {
    const kind = workflow.state[name]?.rules.sensitive;
    return kind !== undefined && hidden.has(kind) ? kind : null;
  };
  const pattern = patternOf(workflow, hidden, valuesIn(task, fieldKind));
  const hide = (text: string) => (pattern ? text.replaceAll(pattern, `${WITHHELD}]`) : text);
  const deep = <T>(value: T): T => hideDeep(value, hide) as T;
  const fields = (values: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        const kind = fieldKind(name);
        return [name, value === null || kind === null ? deep(value) : marker(kind)];
      }),
    );
  const results = resultHider(workflow, hidden, task.turns, deep);
  const { messages } = workflow.sensitive;
  const said = (text: string) => (messages !== undefined && hidden.has(messages) ? marker(messages) : hide(text));
  const seen = (observation: Observation, calls: readonly CalledAs[]): Observation => {
    switch (observation.kind) {
      case "message":
      case "answer":
        return { ...deep(observation), text: said(observation.text) };
      case "results":
        return {
          ...deep({ ...observation, results: [] }),
          results: observation.results.map((each) => results(each, calls)),
        };
      case "expired":
      case "workflow":
        return deep(observation);
    }
  };
  const turns = task.turns.map((turn, index) => {
    if (turn.given) {
      const given = fields(turn.given);
      return { ...turn, given, text: JSON.stringify(given) };
    }
    if (turn.observation) {
      const observation = seen(turn.observation, callsOf(task.turns[index - 1]));
      return { ...turn, observation, text: textOf(observation) };
    }
    if (!turn.decision) return { ...turn, text: said(turn.text) };
    const decision = decided(turn.decision, deep, fields);
    return { ...turn, decision, text: JSON.stringify(decision) };
  });
  const latestCalls = callsOf(task.turns.findLast(({ decision }) => decision));
  const { execution, state } = task.snapshot;
  const shown = (observation: Observation | null) => observation && seen(observation, latestCalls);
  return {
    snapshot: { state: fields(state), execution: shownRecord(execution, deep, shown(execution.observation)) },
    observation: shown(task.observation),
    turns,
    hide,
  };
}

/** Whether a text holds what stands for something withheld: whoever wrote it wrote what he never saw. */
export function holdsWithheld(value: unknown): boolean {
  return JSON.stringify(value ?? null).includes(WITHHELD);
}

/** The record, with the texts in it that a prompt may show. Names of steps and tools stay: code looks by them. */
function shownRecord(execution: Execution, deep: <T>(value: T) => T, observation: Observation | null): Execution {
  const { recent, lastError, toolUse } = execution;
  const used = Object.entries(toolUse ?? {}).map(
    ([tool, use]) => [tool, { ...use, failed: deep(use.failed) }] as const,
  );
  return {
    ...execution,
    recent: deep(recent),
    lastError: lastError && { ...lastError, message: deep(lastError.message) },
    observation,
    ...(toolUse ? { toolUse: Object.fromEntries(used) } : {}),
  };
}

interface CalledAs {
  readonly tool?: unknown;
  readonly args?: unknown;
}

function callsOf(turn: Turn | undefined): readonly CalledAs[] {
  const calls = turn?.decision?.calls;
  return Array.isArray(calls) ? (calls as readonly CalledAs[]) : [];
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
    return (value as readonly CalledAs[]).map((call) => ({ ...call, args: deep(call.args) }));
  };
  return Object.fromEntries(Object.entries(decision).map(([name, value]) => [name, shown(name, value)]));
}

/** Withholds the results of tools whose data may not be sent, and pieces of them that were read later. */
function resultHider(
  workflow: AnyWorkflow,
  hidden: ReadonlySet<string>,
  turns: readonly Turn[],
  deep: <T>(value: T) => T,
): (result: CallResult, calls: readonly CalledAs[]) => CallResult {
  const kindOf = (tool: string, args: unknown) => {
    const declared = workflow.tools[tool];
    const kinds = declared ? kindsOfCall(declared, isPlainObject(args) ? args : undefined) : [];
    return kinds.find((kind) => hidden.has(kind)) ?? null;
  };
  const argsOf = (result: CallResult, calls: readonly CalledAs[]) => {
    const call = calls[Number(result.id.split(".")[1])];
    return result.args ?? (call?.tool === result.tool ? call.args : undefined);
  };
  const asideKinds = new Map<string, string | null>();
  for (const [index, { observation }] of turns.entries()) {
    if (observation?.kind !== "results") continue;
    for (const result of observation.results) {
      if (result.artifact !== undefined) {
        asideKinds.set(result.artifact, kindOf(result.tool, argsOf(result, callsOf(turns[index - 1]))));
      }
    }
  }
  const someKind =
    Object.values(workflow.tools)
      .flatMap(kindsOf)
      .find((kind) => hidden.has(kind)) ?? null;
  const kindOfResult = (result: CallResult, calls: readonly CalledAs[]) => {
    const args = argsOf(result, calls);
    if (!workflow.tools[result.tool]?.readsArtifacts) return kindOf(result.tool, args);
    const id = isPlainObject(args) ? args.id : undefined;
    const known = typeof id === "string" ? asideKinds.get(id) : undefined;
    // A piece of a result that is not at hand may be a piece of anything.
    return known === undefined ? someKind : known;
  };
  return (result, calls) => {
    const kind = kindOfResult(result, calls);
    if (kind === null) return deepResult(result, deep);
    const { value, error, unmet } = result;
    return {
      ...deepResult(result, deep),
      ...(value === undefined ? {} : { value: marker(kind) }),
      ...(error === undefined ? {} : { error: marker(kind) }),
      ...(unmet === undefined ? {} : { unmet: marker(kind) }),
    };
  };
}

/** Ids and names stay as they are: later calls refer to them. */
function deepResult(result: CallResult, deep: <T>(value: T) => T): CallResult {
  const { id, tool, status, name, artifact, ...texts } = result;
  return {
    id,
    tool,
    status,
    ...(name === undefined ? {} : { name }),
    ...(artifact === undefined ? {} : { artifact }),
    ...deep(texts),
  };
}

/** The texts and numbers that withheld fields hold, or held as far as the conversation tells. */
function valuesIn(
  { snapshot, turns }: { readonly snapshot: Snapshot; readonly turns: readonly Turn[] },
  fieldKind: (name: string) => string | null,
): ReadonlySet<string> {
  const patches = turns.map(({ decision }) => decision?.patch).filter(isPlainObject);
  const found = new Set<string>();
  for (const values of [snapshot.state, ...patches]) {
    for (const [name, value] of Object.entries(values)) if (fieldKind(name) !== null) collect(value, found);
  }
  return found;
}

function collect(value: unknown, found: Set<string>): void {
  if (typeof value === "string" || typeof value === "number") {
    const text = String(value).trim();
    if (text.length >= MIN_VALUE) found.add(text);
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, found);
  } else if (isPlainObject(value)) {
    for (const item of Object.values(value)) collect(item, found);
  }
}

function patternOf(workflow: AnyWorkflow, hidden: ReadonlySet<string>, values: ReadonlySet<string>): RegExp | null {
  const { innerAddresses } = workflow.sensitive;
  const addresses = innerAddresses !== undefined && hidden.has(innerAddresses) ? INNER_ADDRESSES : [];
  // The longest first: one value may begin like another.
  const literal = [...values].toSorted((a, b) => b.length - a.length).map(byItself);
  const all = [...literal, ...addresses];
  return all.length > 0 ? new RegExp(all.join("|"), "giu") : null;
}

/** A value where it is no part of a longer word; writing without blanks between words has no such ends. */
function byItself(value: string): string {
  const escaped = value.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
  const before = /^[A-Za-z0-9_]/.test(value) ? "(?<![A-Za-z0-9_])" : "";
  const after = /[A-Za-z0-9_]$/.test(value) ? "(?![A-Za-z0-9_])" : "";
  return `${before}${escaped}${after}`;
}

function hideDeep(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === "string") return hide(value);
  if (typeof value === "number") {
    const text = String(value);
    return hide(text) === text ? value : hide(text);
  }
  if (Array.isArray(value)) return value.map((item) => hideDeep(item, hide));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [hide(key), hideDeep(item, hide)]));
}
